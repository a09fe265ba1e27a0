// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/file_write.h — `PUT /v1/file` (docs/execd-extras.md): a file replaced in one step.
// The body is read by the calling thread; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "bridge/local/execd/extra/failure.h"
#include "bridge/local/http/router.h"
#include "bridge/local/http/types.h"

namespace bridge::local::execd::extra {

struct FileWrite {
  std::string path;
  std::optional<mode_t> mode;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  bool parents = false;
  bool atomic = true;
  bool sync = true;
  enum class Symlink { kFollow, kReplace, kRefuse } symlink = Symlink::kFollow;
  std::optional<int64_t> size;
  std::optional<std::string> sha256;
  bool if_absent = false;
  std::optional<std::string> if_sha256;
  std::optional<absl::Time> if_modified_at;
};

std::optional<Failure> ParseFileWrite(const http::Request& request, FileWrite* out);

// The next bytes of the content into `to`, 0 at the end, -1 when it broke off.
using ContentSource = std::function<int64_t(char* to, size_t size)>;

// Does it. *json is the answer of a success; after a failure nothing has changed (with `atomic`,
// and without it as far as the failure came before the first byte was written).
std::optional<Failure> WriteWholeFile(const FileWrite& request, const ContentSource& source,
                                      std::string* json);

void AddFileWriteRoute(http::Router& router);

}  // namespace bridge::local::execd::extra
