// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/verb.hpp>
#include <cstring>

namespace bridge::local::http {
namespace {

namespace beast = boost::beast;
using ErrorCode = beast::error_code;
using View = beast::string_view;

// Copies the body into a buffer that the caller lends, and stops when it is full.
template <bool kIsRequest>
class BeastParser final : public beast::http::basic_parser<kIsRequest> {
 public:
  Parser::Head head;
  char* to = nullptr;
  size_t room = 0;
  size_t written = 0;

 private:
  void on_request_impl(beast::http::verb, View method, View target, int version,
                       ErrorCode&) override {
    head.method.assign(method.data(), method.size());
    head.target.assign(target.data(), target.size());
    head.minor_version = version % 10;
  }
  void on_response_impl(int code, View reason, int version, ErrorCode&) override {
    head.status = code;
    head.reason.assign(reason.data(), reason.size());
    head.minor_version = version % 10;
  }
  void on_field_impl(beast::http::field, View name, View value, ErrorCode&) override {
    head.headers.Add(std::string_view(name.data(), name.size()),
                     std::string_view(value.data(), value.size()));
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, ErrorCode&) override {}
  std::size_t on_body_impl(View body, ErrorCode& ec) override { return Copy(body, ec); }
  void on_chunk_header_impl(std::uint64_t, View, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View body, ErrorCode& ec) override {
    return Copy(body, ec);
  }
  void on_finish_impl(ErrorCode&) override {}

  std::size_t Copy(View body, ErrorCode& ec) {
    const size_t n = std::min(room - written, body.size());
    if (n > 0) std::memcpy(to + written, body.data(), n);
    written += n;
    if (n < body.size()) ec = beast::http::error::need_buffer;
    return n;
  }
};

}  // namespace

class Parser::Impl {
 public:
  virtual ~Impl() = default;
  virtual absl::StatusOr<size_t> Feed(std::string_view in, char* to, size_t size,
                                      size_t* written) = 0;
  virtual absl::Status FeedEof() = 0;
  virtual bool head_done() const = 0;
  virtual bool done() const = 0;
  virtual bool keep_alive() const = 0;
  virtual bool chunked() const = 0;
  virtual std::optional<unsigned long long> content_length() const = 0;
  virtual const Head& head() const = 0;
};

namespace {

template <bool kIsRequest>
class ImplOf final : public Parser::Impl {
 public:
  ImplOf(size_t max_head_bytes, bool no_body) {
    parser_.header_limit(static_cast<std::uint32_t>(max_head_bytes));
    parser_.body_limit(boost::none);
    parser_.eager(true);
    if (!kIsRequest) parser_.skip(no_body);
  }

  absl::StatusOr<size_t> Feed(std::string_view in, char* to, size_t size,
                              size_t* written) override {
    parser_.to = to;
    parser_.room = size;
    parser_.written = 0;
    size_t used = 0;
    while (used < in.size() && !parser_.is_done()) {
      // Without room, only the head: the parser would read into a body that it cannot hand over.
      if (parser_.is_header_done() && parser_.written == size) break;
      ErrorCode ec;
      const size_t n = parser_.put(boost::asio::buffer(in.data() + used, in.size() - used), ec);
      used += n;
      if (ec == beast::http::error::need_more || ec == beast::http::error::need_buffer) break;
      if (ec == beast::http::error::header_limit) {
        return absl::ResourceExhaustedError("the head of the message is too long");
      }
      if (ec) return absl::InvalidArgumentError("malformed HTTP: " + ec.message());
      if (n == 0) break;
    }
    *written = parser_.written;
    return used;
  }

  absl::Status FeedEof() override {
    ErrorCode ec;
    if (parser_.got_some()) parser_.put_eof(ec);
    if (ec) return absl::UnavailableError("the message ended early: " + ec.message());
    return absl::OkStatus();
  }

  bool head_done() const override { return parser_.is_header_done(); }
  bool done() const override { return parser_.is_done(); }
  bool keep_alive() const override { return parser_.keep_alive(); }
  bool chunked() const override { return parser_.chunked(); }
  std::optional<unsigned long long> content_length() const override {
    const auto length = parser_.content_length();
    if (!length) return std::nullopt;
    return *length;
  }
  const Parser::Head& head() const override { return parser_.head; }

 private:
  BeastParser<kIsRequest> parser_;
};

}  // namespace

Parser::Parser(Kind kind, size_t max_head_bytes, bool no_body) {
  if (kind == Kind::kRequest) {
    impl_ = std::make_unique<ImplOf<true>>(max_head_bytes, no_body);
  } else {
    impl_ = std::make_unique<ImplOf<false>>(max_head_bytes, no_body);
  }
}
Parser::~Parser() = default;

absl::StatusOr<size_t> Parser::Feed(std::string_view in, char* to, size_t size, size_t* written) {
  return impl_->Feed(in, to, size, written);
}
absl::Status Parser::FeedEof() { return impl_->FeedEof(); }
bool Parser::head_done() const { return impl_->head_done(); }
bool Parser::done() const { return impl_->done(); }
bool Parser::keep_alive() const { return impl_->keep_alive(); }
bool Parser::chunked() const { return impl_->chunked(); }
std::optional<unsigned long long> Parser::content_length() const { return impl_->content_length(); }
const Parser::Head& Parser::head() const { return impl_->head(); }

}  // namespace bridge::local::http
