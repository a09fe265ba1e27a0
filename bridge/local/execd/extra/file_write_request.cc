// SPDX-License-Identifier: Apache-2.0
//
// Part of file_write.h: the request and the route.
#include <algorithm>

#include "bridge/local/execd/extra/digest.h"
#include "bridge/local/execd/extra/file_write.h"
#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/users.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::execd::extra {
namespace {

std::optional<mode_t> ParseOctal(std::string_view text) {
  mode_t mode = 0;
  if (text.empty() || text.size() > 5) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    mode = mode * 8 + static_cast<mode_t>(c - '0');
  }
  return mode <= 07777 ? std::optional<mode_t>(mode) : std::nullopt;
}

std::optional<uint32_t> ParseId(std::string_view text) {
  const auto number = JsonInteger(text);
  if (!number || *number < 0 || *number >= UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

void ReadOwner(StrictQuery& query, FileWrite* out) {
  std::optional<std::string> owner, group;
  query.String("owner", &owner);
  query.String("group", &group);
  if (!owner && !group) return;
  const UserDatabase users = UserDatabase::Read();
  if (owner) {
    const User* user = users.FindUser(*owner);
    out->uid = user != nullptr ? std::optional<uid_t>(user->uid) : ParseId(*owner);
    if (!out->uid) query.Fail("owner", "is no account and no number");
  }
  if (group) {
    out->gid = users.FindGroup(*group);
    if (!out->gid) out->gid = ParseId(*group);
    if (!out->gid) query.Fail("group", "is no group and no number");
  }
}

void ReadDigest(StrictQuery& query, std::string_view name, std::optional<std::string>* out) {
  query.String(name, out);
  if (!*out) return;
  *out = http::AsciiLower(**out);
  if (!IsDigest(**out)) query.Fail(name, "must be 64 hex digits");
}

void ReadPreconditions(StrictQuery& query, FileWrite* out) {
  query.Flag("if_absent", &out->if_absent);
  ReadDigest(query, "if_sha256", &out->if_sha256);
  std::optional<std::string> modified;
  query.String("if_modified_at", &modified);
  if (modified) {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(absl::RFC3339_full, *modified, &time, &error)) {
      out->if_modified_at = time;
    } else {
      query.Fail("if_modified_at", "is no RFC 3339 time");
    }
  }
  if (out->if_absent + out->if_sha256.has_value() + out->if_modified_at.has_value() > 1) {
    query.Fail("if_absent", "and the other preconditions exclude each other");
  }
}

}  // namespace

std::optional<Failure> ParseFileWrite(const http::Request& request, FileWrite* out) {
  StrictQuery query(request);
  std::optional<std::string> mode, symlink;
  query.Path("path", &out->path);
  query.String("mode", &mode);
  if (mode && !(out->mode = ParseOctal(*mode))) {
    query.Fail("mode", "must be octal digits from 0 to 7777");
  }
  ReadOwner(query, out);
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
