// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "bridge/local/execd/byte_range.h"
#include "bridge/local/execd/file_ops.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/line_splitter.h"
#include "bridge/local/execd/paths.h"
#include "bridge/local/execd/reply.h"

namespace bridge::local::execd {
namespace {

using http::Exchange;
using http::Response;

constexpr size_t kChunkBytes = 256 * 1024;
constexpr char kOctets[] = "application/octet-stream";

// Closes on destruction.
struct OpenFile {
  int fd = -1;
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
};

// A body of `length` bytes from `start`. What cannot be read is missing from it, and the connection
// ends: that is how a directory is answered.
void SendRange(Exchange& exchange, Response head, int fd, int64_t start, int64_t length) {
  if (!exchange.Start(std::move(head)).ok()) return;
  std::string buffer;
  while (length > 0) {
    buffer.resize(static_cast<size_t>(std::min<int64_t>(length, kChunkBytes)));
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), start);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    if (!exchange.Write(std::string_view(buffer).substr(0, n)).ok()) return;
    start += n;
    length -= n;
  }
  (void)exchange.Finish();
}

// A plain-text failure of Go's file server.
void ServerError(Exchange& exchange, Response head, int status, std::string body) {
  head.status = status;
  head.headers.Set("Content-Type", "text/plain; charset=utf-8");
  head.headers.Add("X-Content-Type-Options", "nosniff");
  head.body = std::move(body);
  (void)exchange.Respond(std::move(head));
}

// The header promises the whole file, the body is a short object, or nothing when that would be
// longer.
void MalformedRange(Exchange& exchange, Response head, int64_t size) {
  constexpr std::string_view kBody = "{\"code\":\"UNKNOWN\"}";
  head.status = 416;
  head.headers.Set("Content-Length", std::to_string(size));
  head.headers.Set("Content-Type", kOctets);
  if (!exchange.Start(std::move(head)).ok()) return;
  if (size < static_cast<int64_t>(kBody.size())) return;
  if (!exchange.Write(kBody).ok()) return;
  if (size == static_cast<int64_t>(kBody.size())) (void)exchange.Finish();
}

void SendWhole(Exchange& exchange, Response head, int fd, const struct stat& info) {
  const int64_t size = lseek(fd, 0, SEEK_END);  // of a directory: an absurd number, or refused
  if (size < 0) {
    ServerError(exchange, std::move(head), 500, "seeker can't seek\n");
    return;
  }
  const std::string modified = http::HttpDate(info.st_mtim.tv_sec);
  const auto since = exchange.request().headers.Get("If-Modified-Since");
  if (since && ParseHttpTime(*since) >= info.st_mtim.tv_sec) {
    head.status = 304;
    head.headers.Add("Last-Modified", modified);
    (void)exchange.Respond(std::move(head));
    return;
  }
  Response whole;
  whole.headers.Add("Accept-Ranges", "bytes");
  for (const auto& [name, value] : head.headers) whole.headers.Add(name, value);
  whole.headers.Add("Content-Length", std::to_string(size));
  whole.headers.Add("Content-Type", kOctets);
  whole.headers.Add("Last-Modified", modified);
  SendRange(exchange, std::move(whole), fd, 0, size);
}

void SendPart(Exchange& exchange, Response head, int fd, const ByteRange& range, int64_t size) {
  head.status = 206;
  head.headers.Add("Content-Length", std::to_string(range.length));
  head.headers.Add("Content-Range", "bytes " + std::to_string(range.start) + "-" +
                                        std::to_string(range.start + range.length - 1) + "/" +
                                        std::to_string(size));
  head.headers.Add("Content-Type", kOctets);
  SendRange(exchange, std::move(head), fd, range.start, range.length);
}

void SendBytes(Exchange& exchange, const std::string& path, int fd, std::string_view range_header) {
  struct stat info = {};
  fstat(fd, &info);
  Response head;
  head.headers.Add("Content-Disposition", ContentDisposition(BaseName(path)));
  const ByteRange range = ParseByteRange(range_header, info.st_size);
  switch (range.kind) {
    case ByteRange::Kind::kNone:
      return SendWhole(exchange, std::move(head), fd, info);
    case ByteRange::Kind::kPart:
      return SendPart(exchange, std::move(head), fd, range, info.st_size);
    case ByteRange::Kind::kMalformed:
      return MalformedRange(exchange, std::move(head), info.st_size);
    case ByteRange::Kind::kNoOverlap:
      head.headers.Add("Content-Range", "bytes */" + std::to_string(info.st_size));
      return ServerError(exchange, std::move(head), 416, "invalid range: failed to overlap\n");
  }
}

// `offset` and `limit` count lines from 1; line ends become "\n", the last is dropped.
void SendLines(Exchange& exchange, int fd, int64_t offset, std::optional<int64_t> limit) {
  std::string out;
  int64_t line_number = 0;
  bool first = true;
  std::string partial;
  const auto take = [&](std::string_view line) {
    ++line_number;
    if (line_number < offset || (limit && line_number >= offset + *limit)) return;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!first) out += '\n';
    first = false;
    out += line;
  };
  std::string buffer(kChunkBytes, '\0');
  ssize_t n = 0;
  while ((n = read(fd, buffer.data(), buffer.size())) > 0) {
    std::string_view text = std::string_view(buffer).substr(0, n);
    for (size_t end; (end = text.find('\n')) != std::string_view::npos;) {
      partial.append(text.substr(0, end));
      take(partial);
      partial.clear();
      text.remove_prefix(end + 1);
    }
    partial.append(text);
  }
  if (!partial.empty()) take(partial);
  ReplyText(exchange, 200, "text/plain; charset=utf-8", std::move(out));
}

// A line number of the query. False: it was answered with an error.
bool LineNumber(Exchange& exchange, std::string_view name, std::optional<int64_t>* out) {
  const auto text = QueryValue(exchange, name);
  if (!text || text->empty()) return true;
  *out = JsonInteger(*text);
  if (*out && **out >= 1) return true;
  ReplyError(exchange,
             {400, kInvalidBody, "invalid query parameter '" + std::string(name) + "': " + *text});
  return false;
}

}  // namespace

std::string ContentDisposition(std::string_view name) {
  const bool ascii =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!ascii) {
    // What a path segment may hold stays as it is.
    const std::string escaped = http::PercentEncode(name, "$&+=:@");
    return "attachment; filename=\"" + escaped + "\"; filename*=UTF-8''" + escaped;
  }
  std::string quoted;
  for (const char c : name) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return "attachment; filename=\"" + quoted + "\"";
}

void Download(Exchange& exchange) {
  const auto sent = QueryValue(exchange, "path");
  if (!sent || sent->empty()) return ReplyError(exchange, MissingQuery("path"));
  std::optional<int64_t> offset, limit;
  if (!LineNumber(exchange, "offset", &offset) || !LineNumber(exchange, "limit", &limit)) return;
  const std::string_view range = exchange.request().headers.Get("Range").value_or("");
  if ((offset || limit) && !range.empty()) {
    return ReplyError(exchange, {400, kInvalidBody,
                                 "line-based reading (offset/limit) and byte range (Range header) "
                                 "are mutually exclusive"});
  }
  std::string error;
  const std::string path = ResolvePath(*sent, &error);
  if (!error.empty()) {
    return ReplyError(exchange, {500, kRuntimeError, "error accessing file: " + error});
  }
  // Without O_NONBLOCK a pipe without a writer would hold this thread for ever.
  OpenFile file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) {
    const int failure = errno;
    const std::string message = GoPathError("open", path, failure);
    if (failure == ENOENT) {
      return ReplyError(exchange, {404, kFileNotFound, "file not found. " + message});
    }
    return ReplyError(exchange, {500, kRuntimeError, "error accessing file: " + message});
  }
  if (offset || limit) {
    SendLines(exchange, file.fd, offset.value_or(1), limit);
  } else {
    SendBytes(exchange, path, file.fd, range);
  }
}

}  // namespace bridge::local::execd
