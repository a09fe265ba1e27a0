// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/failure.h — refusals of the extra routes (docs/execd-extras.md, "Errors"). Pure
// values.
#pragma once

#include <string>
#include <string_view>

#include "bridge/local/http/exchange.h"

namespace bridge::local::execd::extra {

struct Failure {
  int status = 500;
  std::string code = "INTERNAL";
  std::string message;
  int error = 0;       // the errno, if a system call failed
  std::string field;   // of the request, if one is to blame
  std::string others;  // further members as JSON, each with a comma in front

  // One more member; `json` is its value.
  Failure& With(std::string_view name, std::string_view json);
  std::string Json() const;
};

Failure Invalid(std::string_view field, std::string_view problem);

// What a failed system call means: "open /a/b: no such file or directory", status and code by
// `error`.
Failure FromErrno(std::string_view operation, std::string_view path, int error);

// A symbolic link is at the path, and it is not to be followed.
Failure IsALink(const std::string& path);

void Reply(http::Exchange& exchange, const Failure& failure);

// Appends `"name":"text"`, and `"name_b64"` with the exact bytes when they are not UTF-8.
void AppendText(std::string& out, std::string_view name, std::string_view text);

std::string Base64(std::string_view bytes);

}  // namespace bridge::local::execd::extra
