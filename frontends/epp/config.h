// SPDX-License-Identifier: Apache-2.0
//
// epp/config.h — the configuration that the host passes in `initialize`, and what a single create
// may change of it.
//
// The host has resolved the sources (options, environment, files, defaults of the manifest); here
// the values get their types, whatever types the sources gave them, and the defaults that depend on
// whether a value was given at all. Every complaint is INVALID_ARGUMENT and names the field; none
// shows a value. An empty text is an absent value. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "frontends/epp/json.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge::epp {

// What new sandboxes are made with: the nine settings that provider_options may change for one
// create.
struct CreateSettings {
  std::string default_image = "python:3.12-slim";
  std::map<std::string, std::string> image_aliases = {
      {"code", "opensandbox/code-interpreter:v1.1.0"}};
  // Absent: the image's own rule, see EntrypointFor() in template.h.
  std::optional<std::vector<std::string>> entrypoint = {};
  absl::Duration ready_timeout = absl::Seconds(60);
  std::string registry_username = {};
  std::string registry_password = {};
  std::optional<sandbox::bridge::v1::NetworkPolicy> network_policy = {};
  std::string platform = {};
  bool secure_access = false;
};

struct Config {
  // A bridge that runs elsewhere. Empty: the plugin carries its own and the `upstream` part holds.
  std::string bridge_address = {};  // "host:port"
  bool bridge_tls = false;
  std::string bridge_token = {};
  std::string bridge_token_file = {};  // read when the first call is made
  std::string bridge_ca_file = {};

  std::string base_url = {};  // "http://host:port/prefix", without /v1
  std::string api_key = {};
  bool use_server_proxy = false;

  CreateSettings create = {};
};

// `config` is `initialize.params.config`.
absl::StatusOr<Config> ParseConfig(const Json& config);

// `settings` with what `options` (`sandbox.create.params.options`) changes. Other settings of the
// manifest are ignored: the host has merged them into the config already. What is no setting at all
// is refused.
absl::StatusOr<CreateSettings> WithOptions(CreateSettings settings, const Json& options);

}  // namespace bridge::epp
