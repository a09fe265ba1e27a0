// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/failure.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "bridge/base/utf8.h"
#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd::extra {

Failure& Failure::With(std::string_view name, std::string_view json) {
  others.append(",\"").append(name).append("\":").append(json);
  return *this;
}

std::string Failure::Json() const {
  std::string out = "{\"code\":";
  AppendGoJsonString(out, code);
  out += ",\"message\":";
  AppendGoJsonString(out, message);
  if (error != 0) {
    const char* name = strerrorname_np(error);
    out += ",\"errno\":";
    AppendGoJsonString(out, name != nullptr ? std::string(name) : std::to_string(error));
  }
  if (!field.empty()) {
    out += ",\"field\":";
    AppendGoJsonString(out, field);
  }
  return out + others + "}";
}

Failure Invalid(std::string_view field, std::string_view problem) {
  Failure failure{400, "INVALID_ARGUMENT", std::string(problem)};
  failure.field = std::string(field);
  return failure;
}

Failure FromErrno(std::string_view operation, std::string_view path, int error) {
  Failure failure;
  failure.message = GoPathError(operation, path, error);
  failure.error = error;
  const auto is = [&](int status, const char* code) {
    failure.status = status;
    failure.code = code;
  };
  switch (error) {
    case EPERM:
    case EACCES:
      is(403, "PERMISSION_DENIED");
      break;
    case EROFS:
      is(403, "READ_ONLY");
      break;
    case ENOENT:
    case ESRCH:
      is(404, "NOT_FOUND");
      break;
    case ENOTDIR:
      is(409, "NOT_A_DIRECTORY");
      break;
    case EISDIR:
      is(409, "IS_A_DIRECTORY");
      break;
    case EEXIST:
    case ENOTEMPTY:
      is(409, "EXISTS");
      break;
    case EBUSY:
    case ETXTBSY:
      is(409, "BUSY");
      break;
    case EXDEV:
      is(409, "OTHER_FILE_SYSTEM");
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      is(507, "NO_SPACE");
      break;
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      is(400, "INVALID_ARGUMENT");
      break;
    case ENOSYS:
    case EOPNOTSUPP:
      is(501, "UNSUPPORTED");
      break;
    default:
      break;
  }
  return failure;
}

Failure IsALink(const std::string& path) {
  return {409, "IS_A_LINK", path + " is a symbolic link"};
}

void Reply(http::Exchange& exchange, const Failure& failure) {
  (void)exchange.Respond({failure.status, {{"Content-Type", "application/json"}}, failure.Json()});
}

std::string Base64(std::string_view bytes) {
  return absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
}

void AppendText(std::string& out, std::string_view name, std::string_view text) {
  out.append("\"").append(name).append("\":");
  AppendGoJsonString(out, text);
  if (IsValidUtf8(text)) return;
  out.append(",\"").append(name).append("_b64\":\"").append(Base64(text)).append("\"");
}

}  // namespace bridge::local::execd::extra
