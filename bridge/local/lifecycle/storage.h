// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/storage.h — where a sandbox's files come from: the root of its image and its
// volumes. Touches the file system; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bridge/local/api/create_request.h"
#include "bridge/local/api/failure.h"
#include "bridge/local/lifecycle/state_dir.h"
#include "bridge/local/runtime/isolation.h"

namespace bridge::local::lifecycle {

struct StorageOptions {
  // Unpacked root file systems: DIR/python:3.12, DIR/registry.example/team/tool:1.
  std::string image_dir;
  // An image that is not there: the host's root stands in for it, or the create fails as the real
  // server's pull does.
  bool host_root_for_missing_images = true;
  // Host paths below which a request may mount; none by default.
  std::vector<std::string> allowed_host_paths;
};

// The root directory of an image. "/" is the host's.
std::optional<api::Failure> ResolveImage(const StorageOptions& options, const std::string& image,
                                         std::string* root);

struct VolumePlan {
  std::vector<runtime::Bind> binds;
  std::vector<std::string> delete_with_sandbox;  // names of volumes that this request made
};

// Makes what has to be made.
std::optional<api::Failure> PrepareVolumes(const StorageOptions& options, const StateDir& state,
                                           runtime::Isolation isolation,
                                           const std::vector<api::VolumeRequest>& volumes,
                                           VolumePlan* plan);

}  // namespace bridge::local::lifecycle
