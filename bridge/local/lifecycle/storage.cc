// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/storage.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace bridge::local::lifecycle {
namespace {

namespace fs = std::filesystem;
using api::CodeFailure;
using api::Failure;
using api::VolumeRequest;

bool IsBelow(const fs::path& path, const fs::path& prefix) {
  const auto [end, unused] = std::mismatch(prefix.begin(), prefix.end(), path.begin(), path.end());
  return end == prefix.end();
}

std::string PythonList(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", '" : "'") + item + "'";
  return out + "]";
}

std::optional<Failure> HostSource(const StorageOptions& options, const VolumeRequest& volume,
                                  std::string* source) {
  // Symbolic links are followed before the comparison, so that none leads out.
  std::error_code error;
  const fs::path path = fs::weakly_canonical(volume.source, error);
  const auto allows = [&path](const std::string& prefix) {
    std::error_code ignored;
    return IsBelow(path, fs::weakly_canonical(prefix, ignored));
  };
  if (std::none_of(options.allowed_host_paths.begin(), options.allowed_host_paths.end(), allows)) {
    return CodeFailure(400, "VOLUME::HOST_PATH_NOT_ALLOWED",
                       "Host path '" + volume.source +
                           "' is not under any allowed prefix. Allowed prefixes: " +
                           PythonList(options.allowed_host_paths));
  }
  fs::create_directories(path, error);
  if (error) {
    return CodeFailure(500, "VOLUME::HOST_PATH_CREATE_FAILED",
                       "Host path '" + volume.source + "': " + error.message());
  }
  *source = path;
  return std::nullopt;
}

std::optional<Failure> NamedSource(const StateDir& state, const VolumeRequest& volume,
                                   VolumePlan* plan, std::string* source) {
  *source = state.VolumeDir(volume.source);
  std::error_code error;
  if (fs::is_directory(*source, error)) return std::nullopt;
  if (!volume.create_if_not_exists) {
    return CodeFailure(400, "VOLUME::PVC_NOT_FOUND",
                       "Volume '" + volume.name + "': named volume '" + volume.source +
                           "' does not exist, and createIfNotExists is false.");
  }
  fs::create_directories(*source, error);
  if (error) {
    return CodeFailure(500, "VOLUME::PVC_INSPECT_FAILED",
                       "Volume '" + volume.name + "': " + error.message());
  }
  if (volume.delete_with_sandbox) plan->delete_with_sandbox.push_back(volume.source);
  return std::nullopt;
}

}  // namespace

std::optional<Failure> ResolveImage(const StorageOptions& options, const std::string& image,
                                    std::string* root) {
  const bool tagged = image.find(':', image.rfind('/') + 1) != std::string::npos;
  std::vector<std::string> names = {image};
  if (!tagged) names.push_back(image + ":latest");
  for (const std::string& name : names) {
    std::error_code error;
    const fs::path path = fs::canonical(fs::path(options.image_dir) / name, error);
    if (options.image_dir.empty() || error || !fs::is_directory(path, error)) continue;
    *root = path;
    return std::nullopt;
  }
  if (options.host_root_for_missing_images) {
    *root = "/";
    return std::nullopt;
  }
  return CodeFailure(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                     "Failed to pull image " + image + ": no unpacked root of that name in " +
                         (options.image_dir.empty() ? "any image directory" : options.image_dir));
}

std::optional<Failure> PrepareVolumes(const StorageOptions& options, const StateDir& state,
                                      runtime::Isolation isolation,
                                      const std::vector<VolumeRequest>& volumes, VolumePlan* plan) {
  if (!volumes.empty() && isolation == runtime::Isolation::kNone) {
    return CodeFailure(400, "VOLUME::UNSUPPORTED_BACKEND",
                       "Volumes need a sandbox with a file system of its own; this server runs "
                       "with --isolation=none.");
  }
  for (const VolumeRequest& volume : volumes) {
    std::string source;
    const bool named = volume.backend == VolumeRequest::Backend::kNamed;
    std::optional<Failure> failure =
        named ? NamedSource(state, volume, plan, &source) : HostSource(options, volume, &source);
    if (failure) return failure;
    if (!volume.sub_path.empty()) {
      // A link inside the volume, made by a sandbox, must not lead out of it.
      std::error_code error;
      const fs::path base = fs::weakly_canonical(source, error);
      const fs::path below = fs::weakly_canonical(base / volume.sub_path, error);
      if (error || !IsBelow(below, base)) {
        return CodeFailure(400, "VOLUME::INVALID_SUB_PATH",
                           "SubPath '" + volume.sub_path + "' leads out of its volume.");
      }
      fs::create_directories(below, error);
      source = below;
    }
    plan->binds.push_back({source, volume.mount_path, volume.read_only});
  }
  return std::nullopt;
}

}  // namespace bridge::local::lifecycle
