// SPDX-License-Identifier: Apache-2.0
//
// Part of file_write.h: the request and the route.
#include "bridge/local/execd/extra/digest.h"
#include "bridge/local/execd/extra/file_common.h"
#include "bridge/local/execd/extra/file_write.h"
#include "bridge/local/execd/extra/request.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::execd::extra {
namespace {

void ReadDigest(StrictQuery& query, std::string_view name, std::optional<std::string>* out) {
  query.String(name, out);
  if (!*out) return;
  *out = http::AsciiLower(**out);
  if (!IsDigest(**out)) query.Fail(name, "must be 64 hex digits");
}

void ReadPreconditions(StrictQuery& query, FileWrite* out) {
  query.Flag("if_absent", &out->if_absent);
  ReadDigest(query, "if_sha256", &out->if_sha256);
  ReadTime(query, "if_modified_at", &out->if_modified_at);
  if (out->if_absent + out->if_sha256.has_value() + out->if_modified_at.has_value() > 1) {
    query.Fail("if_absent", "and the other preconditions exclude each other");
  }
}

}  // namespace

std::optional<Failure> ParseFileWrite(const http::Request& request, FileWrite* out) {
  StrictQuery query(request);
  std::optional<std::string> symlink;
  query.Path("path", &out->path);
  ReadMode(query, &out->mode);
  ReadOwner(query, &out->uid, &out->gid);
  query.Flag("parents", &out->parents);
  query.Flag("atomic", &out->atomic);
  query.Flag("sync", &out->sync);
  query.String("symlink", &symlink);
  if (symlink == "replace") {
    out->symlink = FileWrite::Symlink::kReplace;
  } else if (symlink == "refuse") {
    out->symlink = FileWrite::Symlink::kRefuse;
  } else if (symlink && *symlink != "follow") {
    query.Fail("symlink", "must be follow, replace or refuse");
  }
  if (!out->atomic && out->symlink == FileWrite::Symlink::kReplace) {
    query.Fail("symlink", "cannot be replaced in place");
  }
  query.Integer("size", 0, INT64_MAX, &out->size);
  ReadDigest(query, "sha256", &out->sha256);
  ReadPreconditions(query, out);
  return query.Finish();
}

void AddFileWriteRoute(http::Router& router) {
  router.Add("PUT", "/v1/file", [](http::Exchange& exchange) {
    FileWrite request;
    if (const auto failure = ParseFileWrite(exchange.request(), &request)) {
      return Reply(exchange, *failure);
    }
    std::string json;
    const auto failure = WriteWholeFile(
        request,
        [&](char* to, size_t size) {
          const auto n = exchange.ReadBody(to, size);
          return n.ok() ? static_cast<int64_t>(*n) : int64_t{-1};
        },
        &json);
    if (failure) return Reply(exchange, *failure);
    (void)exchange.Respond({200, {{"Content-Type", "application/json"}}, std::move(json)});
  });
}

}  // namespace bridge::local::execd::extra
