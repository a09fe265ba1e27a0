// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/template.h"

namespace bridge::epp {
namespace {

// Where OpenSandbox's code-interpreter images keep the script that starts their kernels.
constexpr std::string_view kInterpreterScript = "/opt/opensandbox/code-interpreter.sh";

// "registry:5000/team/name:tag@sha256:…" → "name".
std::string_view RepositoryName(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t slash = image.rfind('/');
  if (slash != image.npos) image.remove_prefix(slash + 1);
  return image.substr(0, image.find(':'));
}

}  // namespace

std::string ImageFor(std::string_view template_name, const CreateSettings& settings) {
  const std::string name(template_name);
  if (const auto alias = settings.image_aliases.find(name); alias != settings.image_aliases.end()) {
    return alias->second;
  }
  return name.empty() || name == "base" ? settings.default_image : name;
}

std::vector<std::string> EntrypointFor(std::string_view image, const CreateSettings& settings) {
  if (settings.entrypoint.has_value()) return *settings.entrypoint;
  if (RepositoryName(image) == "code-interpreter") return {std::string(kInterpreterScript)};
  return {};
}

}  // namespace bridge::epp
