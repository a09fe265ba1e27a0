// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_lister.h"

#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_codec.h"
#include "bridge/opensandbox/file_error.h"

namespace bridge {
namespace {

constexpr size_t kMaxErrorBody = 64 * 1024;
constexpr absl::Duration kIdle =
    absl::Seconds(60);  // a daemon walks a large tree before it answers

HttpRequest ListRequest(const SandboxHandle& sandbox, const std::string& path, int depth) {
  HttpRequest request = sandbox.client.Request(
      sandbox.context, *sandbox.daemon, "GET",
      "/directories/list?path=" + QueryEscape(path) + "&depth=" + std::to_string(depth),
      absl::InfiniteDuration());
  request.idle_timeout = kIdle;
  request.receive_buffer = 64 * 1024;
  return request;
}

}  // namespace

FileLister::FileLister(SandboxHandle sandbox, const std::string& path, int depth)
    : sandbox_(std::move(sandbox)),
      transfer_(sandbox_.client.http(), ListRequest(sandbox_, path, depth)) {}

Task<absl::Status> FileLister::Begin() {
  CO_ASSIGN_OR_RETURN(HttpHead head, co_await transfer_.Head());
  if (head.status == 200) co_return absl::OkStatus();
  HttpResponse response{head.status, std::move(head.headers), {}};
  absl::StatusOr<std::string> body = co_await transfer_.ReadAll(kMaxErrorBody);
  if (body.ok()) response.body = *std::move(body);
  co_return FileError(response, "list a directory");
}

Task<absl::StatusOr<std::vector<FileInfo>>> FileLister::Next(size_t max_entries) {
  std::vector<FileInfo> entries;
  while (true) {
    std::string_view element;
    while (entries.size() < max_entries && splitter_.Next(&element)) {
      CO_RETURN_IF_ERROR(ParseFileInfo(element, &entries.emplace_back()));
    }
    if (entries.size() == max_entries || splitter_.failed()) break;
    // What is here goes out before the next wait.
    if (!entries.empty() || ended_) break;
    const bool more = co_await transfer_.Read(&chunk_);
    if (more) {
      splitter_.Feed(chunk_);
      continue;
    }
    CO_RETURN_IF_ERROR(transfer_.result());
    ended_ = true;
  }
  if (entries.empty()) CO_RETURN_IF_ERROR(splitter_.Finish());
  co_return entries;
}

}  // namespace bridge
