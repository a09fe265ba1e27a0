// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/failure.h"

namespace bridge::local::api {

Failure CodeFailure(int status, std::string_view code, std::string_view message) {
  return {status, {{"code", code}, {"message", message}}};
}

Failure DetailFailure(int status, std::string_view detail) {
  return {status, {{"detail", detail}}};
}

Failure PlainFailure() { return {500, nullptr}; }

Failure SandboxNotFound(std::string_view id) {
  return CodeFailure(404, "DOCKER::SANDBOX_NOT_FOUND",
                     "Sandbox " + std::string(id) + " not found.");
}

Failure InvalidParameter(std::string_view message) {
  return CodeFailure(400, "SANDBOX::INVALID_PARAMETER", message);
}

void ValidationErrors::Add(std::string_view type, const Json& loc, std::string_view message,
                           const Json& input, const Json& ctx) {
  Json error = {{"type", type}, {"loc", loc}, {"msg", message}, {"input", input}};
  if (!ctx.is_null()) error["ctx"] = ctx;
  detail_.push_back(std::move(error));
}

Failure ValidationErrors::ToFailure() const { return {422, {{"detail", detail_}}}; }

}  // namespace bridge::local::api
