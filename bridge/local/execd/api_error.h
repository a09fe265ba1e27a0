// SPDX-License-Identifier: Apache-2.0
//
// local/execd/api_error.h — a refusal as execd's clients see it.
#pragma once

#include <string>

namespace bridge::local::execd {

struct ApiError {
  int status = 500;
  std::string code;  // one of the constants below
  std::string message;
};

inline constexpr char kInvalidBody[] = "INVALID_REQUEST_BODY";
inline constexpr char kMissingQuery[] = "MISSING_QUERY";
inline constexpr char kRuntimeError[] = "RUNTIME_ERROR";
inline constexpr char kInvalidFile[] = "INVALID_FILE";
inline constexpr char kInvalidFileContent[] = "INVALID_FILE_CONTENT";
inline constexpr char kInvalidFileMetadata[] = "INVALID_FILE_METADATA";
inline constexpr char kFileNotFound[] = "FILE_NOT_FOUND";
inline constexpr char kContextNotFound[] = "CONTEXT_NOT_FOUND";
inline constexpr char kAlreadyConnected[] = "ALREADY_CONNECTED";

}  // namespace bridge::local::execd
