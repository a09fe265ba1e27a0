// SPDX-License-Identifier: Apache-2.0
//
// local/api/create_request.h — POST /sandboxes: the request as values, and everything that can be
// said against it before anything is started, in the order in which the real server says it.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bridge/local/api/failure.h"

namespace bridge::local::api {

struct VolumeRequest {
  enum class Backend { kHost, kNamed, kObjectStore };
  std::string name;
  std::string mount_path;
  bool read_only = false;
  std::string sub_path;  // below the backend's root; empty = all of it
  Backend backend = Backend::kHost;
  std::string source;                // the host path, or the named volume's name
  bool create_if_not_exists = true;  // named volumes
  bool delete_with_sandbox = false;
};

struct CreateRequest {
  std::string image;  // empty only together with snapshot_id or template_id
  std::string snapshot_id;
  std::string template_id;
  std::vector<std::string> entrypoint;
  std::optional<int64_t> timeout_seconds;
  std::map<std::string, std::string> resource_limits;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> metadata;
  Json metadata_as_sent = nullptr;                // the answer repeats the order of its members
  std::map<std::string, std::string> extensions;  // as sent
  std::optional<std::pair<std::string, std::string>> platform;  // os, arch
  bool has_network_policy = false;
  bool has_lifecycle_hooks = false;
  bool secure_access = false;
  std::vector<VolumeRequest> volumes;

  // Of `extensions`, what the server keeps and shows.
  std::map<std::string, std::string> KeptExtensions() const;
};

// What the answer depends on besides the request.
struct CreateLimits {
  std::optional<int64_t> max_timeout_seconds;
  int cpus = 1;
  std::string arch = "amd64";  // of this machine
};

// The schema: 422 with every problem.
std::optional<Failure> ParseCreateRequest(const Json& body, CreateRequest* request);

// The rules beyond the schema, those about files excepted.
std::optional<Failure> CheckCreateRequest(const CreateRequest& request, const CreateLimits& limits);

}  // namespace bridge::local::api
