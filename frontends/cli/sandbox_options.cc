// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/sandbox_options.h"

#include <fmt/format.h>

#include <utility>

#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::CreateSandboxRequest;
using sandbox::bridge::v1::SandboxSpec;

absl::Status ReadLifetime(const Arguments& arguments, SandboxSpec& spec) {
  if (!arguments.Has("--ttl")) return absl::OkStatus();
  if (arguments.Value("--ttl") == "never") {
    spec.set_never(true);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const absl::Duration ttl, ParseDuration(arguments.Value("--ttl")));
  SetDuration(ttl, *spec.mutable_ttl());
  return absl::OkStatus();
}

absl::Status ReadMaps(const Arguments& arguments, SandboxSpec& spec) {
  for (const std::string& text : arguments.List("--label")) {
    ASSIGN_OR_RETURN(auto pair, ParsePair("--label", text));
    (*spec.mutable_metadata())[pair.first] = pair.second;
  }
  for (const auto& [option, key] : {std::pair("--cpu", "cpu"), std::pair("--memory", "memory")}) {
    if (arguments.Has(option)) (*spec.mutable_resource_limits())[key] = arguments.Value(option);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Option> SandboxOptions(bool with_env) {
  using K = Option::Kind;
  std::vector<Option> options = {
      {"--image", 0, K::kValue, "REF",
       "The image it is made of. Default: $SANDBOX_BRIDGE_IMAGE, else python:3.12-slim."},
      {"--snapshot", 0, K::kValue, "ID", "Make it from a snapshot instead of an image."},
      {"--ttl", 0, K::kValue, "TIME", "How long it lives: 30m, 2h, never. Default: the bridge's."},
      {"--label", 'l', K::kList, "KEY=VALUE", "Metadata to find it by. May be repeated."},
      {"--cpu", 0, K::kValue, "N", "At most this much processor: 500m, 2."},
      {"--memory", 0, K::kValue, "SIZE", "At most this much memory: 512Mi, 2Gi."},
      {"--platform", 0, K::kValue, "OS/ARCH", "linux/amd64 or linux/arm64."},
      {"--ready-timeout", 0, K::kValue, "TIME", "How long it may take to be usable. Default: 60s."},
      {"--request-id", 0, K::kValue, "WORD",
       "Makes a repeat safe: the same word finds the same sandbox."},
  };
  if (with_env) {
    options.push_back(
        {"--env", 'e', K::kList, "NAME=VALUE",
         "Environment of all its programs; NAME alone takes yours. May be repeated."});
  }
  return options;
}

absl::StatusOr<CreateSandboxRequest> ReadSandboxOptions(const Arguments& arguments, bool with_env,
                                                        const EnvironmentLookup& environment) {
  CreateSandboxRequest request;
  SandboxSpec& spec = *request.mutable_spec();
  if (arguments.Has("--image") && arguments.Has("--snapshot")) {
    return absl::InvalidArgumentError("--image and --snapshot exclude each other");
  }
  if (arguments.Has("--snapshot")) {
    spec.set_snapshot_id(arguments.Value("--snapshot"));
  } else {
    ASSIGN_OR_RETURN(const std::optional<std::string> own,
                     OwnVariable("SANDBOX_BRIDGE_IMAGE", environment));
    spec.set_image(
        arguments.Value("--image", own && !own->empty() ? std::string_view(*own) : kDefaultImage));
  }
  RETURN_IF_ERROR(ReadLifetime(arguments, spec));
  RETURN_IF_ERROR(ReadMaps(arguments, spec));
  spec.set_platform(arguments.Value("--platform"));
  request.set_request_id(arguments.Value("--request-id"));
  if (arguments.Has("--ready-timeout")) {
    ASSIGN_OR_RETURN(const absl::Duration ready, ParseDuration(arguments.Value("--ready-timeout")));
    SetDuration(ready, *request.mutable_ready_timeout());
  }
  if (with_env) {
    for (const std::string& text : arguments.List("--env")) {
      ASSIGN_OR_RETURN(*spec.add_env(), ParseEnv(text, environment));
    }
  }
  return request;
}

absl::StatusOr<std::optional<std::string>> OwnVariable(const std::string& name,
                                                       const EnvironmentLookup& environment) {
  std::optional<std::string> own = environment(name);
  if (own && !IsValidUtf8(*own)) {
    return absl::InvalidArgumentError(NotUtf8(fmt::format("the value of {} here", name)));
  }
  return own;
}

absl::StatusOr<sandbox::bridge::v1::EnvVar> ParseEnv(const std::string& text,
                                                     const EnvironmentLookup& environment) {
  sandbox::bridge::v1::EnvVar variable;
  const size_t equals = text.find('=');
  variable.set_name(text.substr(0, equals));
  if (equals != std::string::npos) {
    variable.set_value(text.substr(equals + 1));
  } else {
    ASSIGN_OR_RETURN(const std::optional<std::string> own, OwnVariable(text, environment));
    if (!own) return absl::InvalidArgumentError(fmt::format("--env {}: not set here", text));
    variable.set_value(*own);
  }
  // The value may be a secret, so only the name is ever repeated.
  if (variable.name().empty()) return absl::InvalidArgumentError("--env wants NAME=VALUE");
  return variable;
}

absl::StatusOr<std::pair<std::string, std::string>> ParsePair(std::string_view option,
                                                              const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(fmt::format("{} wants KEY=VALUE, not \"{}\"", option, text));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

void SetDuration(absl::Duration value, google::protobuf::Duration& out) {
  const int64_t seconds = absl::IDivDuration(value, absl::Seconds(1), &value);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(value / absl::Nanoseconds(1)));
}

}  // namespace bridge::cli
