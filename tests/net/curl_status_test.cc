// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/curl_status.h"

#include <curl/curl.h>

#include <cerrno>
#include <string>

#include "tests/net/http_fixture.h"

namespace bridge {
namespace {

constexpr std::string_view kUrl = "http://user:secret@h.test:81/secret?secret";

absl::Status Of(CURLcode code, HttpPhase phase = HttpPhase::kAnswer, std::string_view detail = "") {
  return CurlStatus({.code = code, .phase = phase, .url = kUrl, .detail = detail});
}

TEST(CurlStatus, OkIsOk) { EXPECT_TRUE(Of(CURLE_OK).ok()); }

TEST(CurlStatus, TheTable) {
  for (const CURLcode code :
       {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_PROXY,
        CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND, CURLE_RECV_ERROR, CURLE_GOT_NOTHING,
        CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
        CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE}) {
    EXPECT_THAT(Of(code), FailsWith("UPSTREAM_UNAVAILABLE")) << code;
    EXPECT_THAT(Of(code), HasMetadata("host", "h.test:81")) << code;
    EXPECT_THAT(Of(code), HasMetadata("phase", "answer")) << code;
    EXPECT_THAT(Of(code, HttpPhase::kConnect), HasMetadata("phase", "connect")) << code;
  }
  EXPECT_THAT(Of(CURLE_OPERATION_TIMEDOUT), FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(Of(CURLE_OPERATION_TIMEDOUT), HasMetadata("phase", "answer"));
  for (const CURLcode code : {CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2,
                              CURLE_BAD_CONTENT_ENCODING, CURLE_FILESIZE_EXCEEDED}) {
    EXPECT_THAT(Of(code), FailsWith("UPSTREAM_PROTOCOL")) << code;
  }
  EXPECT_THAT(Of(CURLE_URL_MALFORMAT), FailsWith("INVALID_ARGUMENT"));
}

// Whatever else curl comes up with is our problem, and says so.
TEST(CurlStatus, UnknownCodesAreInternal) {
  for (int code = 1; code < CURL_LAST; ++code) {
    const absl::Status status = Of(static_cast<CURLcode>(code));
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.ToString(), ::testing::Not(::testing::HasSubstr("secret"))) << code;
  }
  EXPECT_THAT(Of(CURLE_FAILED_INIT), FailsWith("INTERNAL"));
  EXPECT_THAT(Of(CURLE_FAILED_INIT), SaysInMessage("(curl 2)"));
}

TEST(CurlStatus, ReceiveErrorsThatAreThePeersFault) {
  EXPECT_THAT(Of(CURLE_RECV_ERROR, HttpPhase::kBody,
                 "Illegal or missing hexadecimal sequence in "
                 "chunked-encoding"),
              FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(Of(CURLE_RECV_ERROR, HttpPhase::kAnswer, "Too large response headers: 1 > 0"),
              FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(Of(CURLE_RECV_ERROR, HttpPhase::kBody, "Recv failure: Connection reset by peer"),
              FailsWith("UPSTREAM_UNAVAILABLE"));
}

TEST(CurlStatus, SaysWhereAndWhy) {
  EXPECT_THAT(Of(CURLE_RECV_ERROR, HttpPhase::kBody), SaysInMessage("inside its answer"));
  EXPECT_THAT(Of(CURLE_SEND_ERROR, HttpPhase::kAnswer), SaysInMessage("before it answered"));
  EXPECT_THAT(
      CurlStatus({.code = CURLE_COULDNT_CONNECT, .url = kUrl, .system_error = EHOSTUNREACH}),
      SaysInMessage("h.test:81 accepts no connection: No route to host"));
  EXPECT_THAT(Of(CURLE_PEER_FAILED_VERIFICATION, HttpPhase::kConnect, "self-signed certificate"),
              SaysInMessage("not trusted: self-signed certificate"));
}

TEST(CurlStatus, OurOwnLimits) {
  const absl::Status late =
      TimeoutStatus(kUrl, HttpPhase::kConnect, "accepted no connection", absl::Seconds(5));
  EXPECT_THAT(late, FailsWith("UPSTREAM_TIMEOUT"));
  EXPECT_THAT(late, SaysInMessage("h.test:81 accepted no connection within 5s"));
  EXPECT_THAT(ProtocolStatus(kUrl, "is odd"), FailsWith("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(CancelledStatus(kUrl), FailsWith("CANCELLED"));
  EXPECT_THAT(NotResentStatus(kUrl), FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(LostStatus(kUrl, HttpPhase::kBody), FailsWith("UPSTREAM_UNAVAILABLE"));
  EXPECT_THAT(CancelledStatus("no url"), SaysInMessage("the peer"));
}

TEST(CurlStatus, PrintableShowsNoControlCharacters) {
  EXPECT_EQ(Printable("a\n\x1b[31mb\xff", 100), "a??[31mb?");
  EXPECT_EQ(Printable("abcdef", 3), "abc");
}

}  // namespace
}  // namespace bridge
