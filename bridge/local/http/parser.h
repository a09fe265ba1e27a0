// SPDX-License-Identifier: Apache-2.0
//
// local/http/parser.h — one HTTP/1.1 message, incrementally (Boost.Beast's parser behind it; this
// is the only target that compiles Beast).
//
// The caller keeps the input: Feed() says how much of it is used up, and what is left must be
// offered again with more behind it. Body bytes are copied straight into the caller's buffer, so a
// body of any size needs constant memory. Errors: INVALID_ARGUMENT for malformed input,
// RESOURCE_EXHAUSTED when the head is longer than allowed. One thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/local/http/types.h"

namespace bridge::local::http {

class Parser {
 public:
  enum class Kind { kRequest, kResponse };
  struct Head {
    std::string method;  // requests
    std::string target;
    int status = 0;  // responses
    std::string reason;
    int minor_version = 1;
    Headers headers;
  };

  // no_body: a response that has none whatever its head says (to HEAD).
  Parser(Kind kind, size_t max_head_bytes, bool no_body = false);
  ~Parser();

  // Parses a prefix of `in`, and returns how long it was. Body bytes go to `to`, at most `size`;
  // *written says how many. Without room the parser stops before the body.
  absl::StatusOr<size_t> Feed(std::string_view in, char* to, size_t size, size_t* written);
  // The connection ended: fine for a body that lasts until then, an error within a message.
  absl::Status FeedEof();

  bool head_done() const;
  bool done() const;  // the whole message was parsed
  bool keep_alive() const;
  bool chunked() const;
  std::optional<unsigned long long> content_length() const;
  const Head& head() const;  // complete once head_done()

  class Impl;  // of parser.cc

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge::local::http
