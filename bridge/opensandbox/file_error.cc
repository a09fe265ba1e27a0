// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_error.h"

#include <nlohmann/json.hpp>

#include "bridge/base/error.h"
#include "bridge/opensandbox/daemon_client.h"
#include "bridge/opensandbox/json.h"

namespace bridge {
namespace {

using R = ErrorReason;

struct Rule {
  std::string_view text;
  R reason;
  std::string_view words;
};

// In this order: the first that is found in the answer.
constexpr Rule kGoWords[] = {
    {"no space left", R::ERROR_REASON_NO_SPACE, "the sandbox's disk is full"},
    {"quota exceeded", R::ERROR_REASON_NO_SPACE, "the sandbox's disk is full"},
    // Of a form that was sent whole: the daemon could not keep its parts until the last was there.
    {"multipart form is empty", R::ERROR_REASON_NO_SPACE,
     "the sandbox's daemon has no room in its temporary directory"},
    {"permission denied", R::ERROR_REASON_PERMISSION_DENIED, "the sandbox's user may not do this"},
    {"operation not permitted", R::ERROR_REASON_PERMISSION_DENIED,
     "the sandbox's user may not do this"},
    {"read-only file system", R::ERROR_REASON_PERMISSION_DENIED, "the file system is read-only"},
    {"unknown user", R::ERROR_REASON_UNKNOWN_USER, "the sandbox has no account of this name"},
    {"unknown group", R::ERROR_REASON_UNKNOWN_USER, "the sandbox has no group of this name"},
    {"already exists", R::ERROR_REASON_PATH_EXISTS, "something is at the path already"},
    {"file exists", R::ERROR_REASON_PATH_EXISTS, "something is at the path already"},
    {"not a directory", R::ERROR_REASON_NOT_A_DIRECTORY, "a part of the path is no directory"},
    {"is a directory", R::ERROR_REASON_IS_A_DIRECTORY, "a directory is at the path"},
    {"file name too long", R::ERROR_REASON_PATH_REJECTED, kPathTooLong},
    {"too many levels of symbolic links", R::ERROR_REASON_PATH_REJECTED, kLinksInACircle},
    {"too many links", R::ERROR_REASON_PATH_REJECTED, kLinksInACircle},
    {"device or resource busy", R::ERROR_REASON_PATH_REJECTED, kPathHeld},
    {"text file busy", R::ERROR_REASON_PATH_REJECTED, kPathHeld},
    {"no such file or directory", R::ERROR_REASON_PATH_NOT_FOUND, "nothing is at the path"},
    {"file not found", R::ERROR_REASON_PATH_NOT_FOUND, "nothing is at the path"},
};

constexpr Rule kOwnCodes[] = {
    {"NOT_FOUND", R::ERROR_REASON_PATH_NOT_FOUND, "nothing is at the path"},
    {"PERMISSION_DENIED", R::ERROR_REASON_PERMISSION_DENIED, "the sandbox's user may not do this"},
    {"READ_ONLY", R::ERROR_REASON_PERMISSION_DENIED, "the file system is read-only"},
    {"NOT_A_DIRECTORY", R::ERROR_REASON_NOT_A_DIRECTORY, "a part of the path is no directory"},
    {"IS_A_DIRECTORY", R::ERROR_REASON_IS_A_DIRECTORY, "a directory is at the path"},
    {"NOT_A_FILE", R::ERROR_REASON_PATH_EXISTS, "something that is no file is at the path"},
    {"IS_A_LINK", R::ERROR_REASON_PATH_REJECTED,
     "a symbolic link is at the path, and nothing in the request says to follow it"},
    {"EXISTS", R::ERROR_REASON_PATH_EXISTS, "something is at the path already"},
    {"PRECONDITION_FAILED", R::ERROR_REASON_PRECONDITION_FAILED, "the file is not as expected"},
    {"DIGEST_MISMATCH", R::ERROR_REASON_PRECONDITION_FAILED,
     "the content is not what its digest says"},
    {"SHORT_BODY", R::ERROR_REASON_PRECONDITION_FAILED, "the content is not as long as announced"},
    {"NO_SPACE", R::ERROR_REASON_NO_SPACE, "the sandbox's disk is full"},
    {"TOO_MANY", R::ERROR_REASON_QUOTA_EXCEEDED, "the sandbox watches as much as it can"},
};

// The kernel's word, where the code only says that something is wrong.
constexpr Rule kOwnErrnos[] = {
    {"ENAMETOOLONG", R::ERROR_REASON_PATH_REJECTED, kPathTooLong},
    {"ELOOP", R::ERROR_REASON_PATH_REJECTED, kLinksInACircle},
    {"EBUSY", R::ERROR_REASON_PATH_REJECTED, kPathHeld},
    {"ETXTBSY", R::ERROR_REASON_PATH_REJECTED, kPathHeld},
    {"EINVAL", R::ERROR_REASON_PATH_REJECTED, "the file system takes no such path"},
};

absl::Status Make(const Rule& rule, std::string_view what, int status) {
  return MakeError(rule.reason, "to " + std::string(what) + " failed: " + std::string(rule.words),
                   {.metadata = {{"upstream_status", std::to_string(status)}}});
}

std::string TextOf(const HttpResponse& response, const char* key) {
  const auto object = ParseJson(response.body);
  if (!object.is_object()) return response.body;
  const auto text = object.find(key);
  return text != object.end() && text->is_string() ? text->get<std::string>() : std::string();
}

}  // namespace

absl::Status FileError(const HttpResponse& response, std::string_view what) {
  const std::string words = TextOf(response, "message");
  const bool ours = response.status == 400 || response.status == 404 || response.status == 500;
  if (ours) {
    for (const Rule& rule : kGoWords) {
      if (words.find(rule.text) != std::string::npos) return Make(rule, what, response.status);
    }
  }
  if (response.status == 404 && TextOf(response, "code") == "FILE_NOT_FOUND") {
    return Make({"", R::ERROR_REASON_PATH_NOT_FOUND, "nothing is at the path"}, what, 404);
  }
  return DaemonError(response, what);
}

absl::Status OwnFileError(const HttpResponse& response, std::string_view what) {
  const std::string code = TextOf(response, "code");
  for (const Rule& rule : kOwnCodes) {
    if (code == rule.text) return Make(rule, what, response.status);
  }
  // The only names in a request to write are the owner's and the group's.
  if (code == "INVALID_ARGUMENT") {
    const std::string field = TextOf(response, "field");
    if (field == "owner" || field == "group") {
      return Make({"", R::ERROR_REASON_UNKNOWN_USER, "the sandbox has no account of this name"},
                  what, response.status);
    }
    if (field == "destination") {
      return Make(
          {"", R::ERROR_REASON_PATH_REJECTED, "the destination lies in what is to be moved"}, what,
          response.status);
    }
  }
  const std::string error = TextOf(response, "errno");
  for (const Rule& rule : kOwnErrnos) {
    if (error == rule.text) return Make(rule, what, response.status);
  }
  return DaemonError(response, what);
}

absl::Status WithoutDirectory(absl::Status failure, std::string_view what) {
  if (ReasonOf(failure) != R::ERROR_REASON_PATH_NOT_FOUND) return failure;
  return MakeError(
      R::ERROR_REASON_PATH_NOT_FOUND,
      "to " + std::string(what) + " failed: the directory that it is to be in does not exist");
}

absl::Status OwnReadError(const HttpResponse& response) {
  if (TextOf(response, "code") != "NOT_A_FILE") return OwnFileError(response, "read a file");
  // A pipe or device would block the daemon, or never end.
  return Make(
      {"", R::ERROR_REASON_PATH_REJECTED, "something that is no regular file is at the path"},
      "read a file", response.status);
}

bool OwnDaemonCannotMove(const HttpResponse& response) {
  const std::string code = TextOf(response, "code");
  return code == "OTHER_FILE_SYSTEM" || code == "UNSUPPORTED";
}

absl::Status OwnListError(std::string_view element) {
  if (!element.starts_with("{\"error\"")) return absl::OkStatus();
  const auto object = ParseJson(element);
  constexpr int kNoStatus = 200;  // the answer's own: it had begun well
  return OwnFileError({kNoStatus, {}, object.is_object() ? object["error"].dump() : "{}"},
                      "list a directory");
}

}  // namespace bridge
