// SPDX-License-Identifier: Apache-2.0
//
// local/api/failure.h — an unsuccessful answer of the lifecycle API, in the shapes that the real
// server uses: {"code","message"} of its own errors, {"detail"} of its framework, the 422 of its
// schema validation, and a plain-text 500. Pure values: any thread.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace bridge::local::api {

// Objects keep the order of their members, as the real server's answers do.
using Json = nlohmann::ordered_json;

struct Failure {
  int status = 500;
  Json body = nullptr;  // null: the answer is the text "Internal Server Error"
};

// {"code":"NS::NAME","message":"…"}
Failure CodeFailure(int status, std::string_view code, std::string_view message);
// {"detail":"…"}
Failure DetailFailure(int status, std::string_view detail);
// What an exception that nobody caught looks like.
Failure PlainFailure();

// 404 of an id that is not (or no longer) there.
Failure SandboxNotFound(std::string_view id);
// 400 SANDBOX::INVALID_PARAMETER
Failure InvalidParameter(std::string_view message);

// The problems that schema validation found, in the order of the schema's fields.
class ValidationErrors {
 public:
  void Add(std::string_view type, const Json& loc, std::string_view message, const Json& input,
           const Json& ctx = nullptr);
  bool empty() const { return detail_.empty(); }
  Failure ToFailure() const;  // 422

 private:
  Json detail_ = Json::array();
};

}  // namespace bridge::local::api
