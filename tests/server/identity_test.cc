// SPDX-License-Identifier: Apache-2.0
//
// Who may call a server: TLS, client certificates, tokens, and what happens when their files
// change.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/server/server.h"
#include "bridge/server/token_file.h"
#include "tests/server/http_get.h"
#include "tests/server/server_fixture.h"
#include "tests/server/temp_folder.h"
#include "tests/server/test_certs.h"

namespace bridge::testing {
namespace {

using R = ErrorReason;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TokenLine(const std::string& tenant, const std::string& token) {
  std::string line = tenant + ":";
  for (const uint8_t byte : Sha256Of(token)) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    line += digits;
  }
  return line + "\n";
}

std::shared_ptr<grpc::ChannelCredentials> Tls(const std::string& ca, const PemPair& client = {}) {
  return grpc::SslCredentials({ca, client.key, client.cert});
}

absl::StatusCode CodeOf(TestServer& server, std::shared_ptr<grpc::ChannelCredentials> credentials) {
  return Call(server.NewChannel(std::move(credentials))).code();
}

constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
constexpr absl::StatusCode kUnavailable = absl::StatusCode::kUnavailable;

class Identity : public ::testing::Test {
 protected:
  void InstallServerCertificate(TestCa& ca) {
    const PemPair pair = ca.Issue("localhost");
    // One after the other: they are taken when they match.
    options_.tls.key_file = folder_.Write("key.pem", pair.key);
    options_.tls.cert_file = folder_.Write("cert.pem", pair.cert);
  }

  TempFolder folder_;
  TestCa ca_{"test ca"};
  TestCa other_ca_{"another ca"};
  ServerOptions options_ = TestOptions();
};

// ---- TLS

TEST_F(Identity, TlsIsCheckedByTheClientAndPlainTextGetsNowhere) {
  InstallServerCertificate(ca_);
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert())), kOk);
  EXPECT_EQ(CodeOf(server, Tls(other_ca_.cert())), kUnavailable);
  EXPECT_EQ(CodeOf(server, grpc::InsecureChannelCredentials()), kUnavailable);
}

TEST_F(Identity, ClientCertificatesMustBeSignedByTheGivenAuthority) {
  InstallServerCertificate(ca_);
  options_.tls.client_ca_file = folder_.Write("clients.pem", ca_.cert());
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert(), ca_.Issue("a client"))), kOk);
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert())), kUnavailable);
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert(), other_ca_.Issue("a stranger"))), kUnavailable);
}

TEST_F(Identity, AReplacedCertificateIsServedWithoutARestart) {
  InstallServerCertificate(ca_);
  TestServer server(options_);
  ASSERT_EQ(CodeOf(server, Tls(ca_.cert())), kOk);
  auto before = server.NewChannel(Tls(ca_.cert()));
  ASSERT_TRUE(Call(before).ok());
  InstallServerCertificate(other_ca_);
  EXPECT_TRUE(Eventually([&] { return CodeOf(server, Tls(other_ca_.cert())) == kOk; }));
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert())), kUnavailable);
  EXPECT_TRUE(Call(before).ok());  // connections that are there stay
}

TEST_F(Identity, AReplacedClientAuthorityCountsForNewConnections) {
  InstallServerCertificate(ca_);
  options_.tls.client_ca_file = folder_.Write("clients.pem", ca_.cert());
  TestServer server(options_);
  const PemPair old_client = ca_.Issue("old"), new_client = other_ca_.Issue("new");
  ASSERT_EQ(CodeOf(server, Tls(ca_.cert(), old_client)), kOk);
  folder_.Write("clients.pem", other_ca_.cert());
  EXPECT_TRUE(Eventually([&] { return CodeOf(server, Tls(ca_.cert(), new_client)) == kOk; }));
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert(), old_client)), kUnavailable);
}

// An empty key ended the process, and half of a replacement every new connection.
TEST_F(Identity, FilesThatDoNotFitTogetherChangeNothingAndAreLogged) {
  const PemPair pair = ca_.Issue("localhost"), stranger = ca_.Issue("localhost");
  const PemPair client = ca_.Issue("a client");
  options_.reload_interval = absl::Hours(1);  // looks when it is told to
  struct Case {
    const char* file;
    std::string content;
    const char* flag;
  };
  for (const Case& c : {
           Case{"key.pem", "", "tls_key_file"},
           Case{"key.pem", "no pem", "tls_key_file"},
           Case{"key.pem", stranger.key, "tls_key_file"},
           Case{"cert.pem", "", "tls_cert_file"},
           Case{"cert.pem", "no pem", "tls_cert_file"},
           Case{"cert.pem", pair.cert.substr(0, pair.cert.size() / 2), "tls_cert_file"},
           Case{"cert.pem", pair.cert + stranger.cert.substr(0, 200), "tls_cert_file"},
           Case{"clients.pem", "", "client_ca_file"},
           Case{"clients.pem", "no pem", "client_ca_file"},
       }) {
    options_.tls.cert_file = folder_.Write("cert.pem", pair.cert);
    options_.tls.key_file = folder_.Write("key.pem", pair.key);
    options_.tls.client_ca_file = folder_.Write("clients.pem", ca_.cert());
    TestServer server(options_);
    ASSERT_TRUE(server.status().ok()) << server.status();
    folder_.Write(c.file, c.content);
    server->Reload();
    EXPECT_TRUE(Eventually([&] {
      return server.log().find("file not read again") != std::string::npos;
    })) << c.flag;
    EXPECT_THAT(server.log(), HasSubstr(std::string("flag=") + c.flag));
    EXPECT_EQ(CodeOf(server, Tls(ca_.cert(), client)), kOk) << c.file << c.content;
  }
}

// Not everybody replaces both in one step.
TEST_F(Identity, ACertificateCountsOnceItsKeyIsThere) {
  InstallServerCertificate(ca_);
  options_.reload_interval = absl::Hours(1);
  TestServer server(options_);
  ASSERT_EQ(CodeOf(server, Tls(ca_.cert())), kOk);
  const PemPair fresh = other_ca_.Issue("localhost");
  folder_.Write("cert.pem", fresh.cert);
  server->Reload();
  EXPECT_TRUE(
      Eventually([&] { return server.log().find("file not read again") != std::string::npos; }));
  EXPECT_EQ(CodeOf(server, Tls(ca_.cert())), kOk);
  folder_.Write("key.pem", fresh.key);
  server->Reload();
  EXPECT_TRUE(Eventually([&] { return CodeOf(server, Tls(other_ca_.cert())) == kOk; }));
}

// Every port is told.
TEST_F(Identity, AReplacedCertificateIsServedOnEveryAddress) {
  InstallServerCertificate(ca_);
  options_.listen = {{.host = "127.0.0.1"}, {.host = "127.0.0.1"}};
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  const auto code = [&](size_t i, TestCa& ca) {
    grpc::ChannelArguments alone;
    alone.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return Call(grpc::CreateCustomChannel(server->addresses()[i].ToString(), Tls(ca.cert()), alone))
        .code();
  };
  ASSERT_EQ(code(0, ca_), kOk);
  ASSERT_EQ(code(1, ca_), kOk);
  InstallServerCertificate(other_ca_);
  server->Reload();
  for (const size_t i : {0, 1}) {
    EXPECT_TRUE(Eventually([&] { return code(i, other_ca_) == kOk; })) << i;
    EXPECT_EQ(code(i, ca_), kUnavailable) << i;
  }
}

TEST_F(Identity, WrongFilesAreNoticedAtStart) {
  const PemPair pair = ca_.Issue("localhost"), stranger = ca_.Issue("localhost");
  const std::string cert = folder_.Write("c", pair.cert), key = folder_.Write("k", pair.key);
  const std::string other_key = folder_.Write("k2", stranger.key);
  const std::string garbage = folder_.Write("g", "no pem");
  struct Case {
    TlsFiles files;
    const char* says;
  };
  for (const Case& c : {
           Case{{.cert_file = cert}, "tls_key_file: is not set"},
           Case{{.key_file = key}, "tls_cert_file: is not set"},
           Case{{.client_ca_file = cert}, "tls_cert_file: is not set"},
           Case{{.cert_file = folder_.path("none"), .key_file = key}, "No such file"},
           Case{{.cert_file = cert, .key_file = folder_.path("none")}, "No such file"},
           Case{{.cert_file = garbage, .key_file = key}, "is not a PEM certificate"},
           Case{{.cert_file = cert, .key_file = garbage}, "tls_key_file: "},
           Case{{.cert_file = cert, .key_file = other_key}, "tls_key_file: "},
           Case{{.cert_file = cert, .key_file = key, .client_ca_file = garbage},
                "client_ca_file: "},
           Case{{.cert_file = cert, .key_file = key, .client_ca_file = folder_.path("none")},
                "client_ca_file: "},
       }) {
    options_.tls = c.files;
    TestServer server(options_);
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(c.says));
    EXPECT_THAT(std::string(server.status().message()), Not(HasSubstr("\n")));
  }
}

// ---- tokens

TEST_F(Identity, ATokenOpensTheDoor) {
  options_.auth_tokens_file =
      folder_.Write("tokens", TokenLine("red", "red-token") + TokenLine("*", "root-token"));
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  auto channel = server.NewChannel();
  EXPECT_TRUE(Call(channel, {{"authorization", "Bearer red-token"}}).ok());
  EXPECT_TRUE(Call(channel, {{"authorization", "Bearer root-token"}}).ok());
  for (const std::vector<std::pair<std::string, std::string>>& metadata :
       std::vector<std::vector<std::pair<std::string, std::string>>>{
           {},
           {{"authorization", "Bearer wrong"}},
           {{"authorization", "red-token"}},
           {{"authorization", "Bearer red-token"}, {"authorization", "Bearer red-token"}},
       }) {
    const absl::Status status = Call(channel, metadata);
    EXPECT_THAT(status.code(), ::testing::AnyOf(absl::StatusCode::kUnauthenticated,
                                                absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("red-token")));
  }
}

// Names of methods that do not exist are not found out without a token either.
TEST_F(Identity, WithoutATokenNothingIsAnswered) {
  options_.auth_tokens_file = folder_.Write("tokens", TokenLine("red", "red-token"));
  TestServer server(options_);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  auto stub = v1::BridgeService::NewStub(server.NewChannel());
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stub->GetCapabilities(&context, {}, &response))),
            R::ERROR_REASON_CALLER_UNAUTHENTICATED);
}

TEST_F(Identity, ChangedTokensCountWithoutARestartAndBadOnesDoNot) {
  options_.auth_tokens_file = folder_.Write("tokens", TokenLine("red", "old"));
  TestServer server(options_);
  auto channel = server.NewChannel();
  ASSERT_TRUE(Call(channel, {{"authorization", "Bearer old"}}).ok());
  folder_.Write("tokens", "half a li");
  server->Reload();
  EXPECT_TRUE(
      Eventually([&] { return server.log().find("file not read again") != std::string::npos; }));
  EXPECT_TRUE(Call(channel, {{"authorization", "Bearer old"}}).ok());
  folder_.Write("tokens", TokenLine("red", "new"));
  EXPECT_TRUE(Eventually([&] { return Call(channel, {{"authorization", "Bearer new"}}).ok(); }));
  EXPECT_EQ(ReasonOf(Call(channel, {{"authorization", "Bearer old"}})),
            R::ERROR_REASON_CALLER_UNAUTHENTICATED);
}

TEST_F(Identity, ABadTokenOrKeyFileIsNoticedAtStart) {
  options_.auth_tokens_file = folder_.Write("tokens", "nonsense");
  EXPECT_THAT(std::string(TestServer(options_).status().message()),
              HasSubstr("auth_tokens_file: line 1"));
  options_.auth_tokens_file = folder_.path("none");
  EXPECT_THAT(std::string(TestServer(options_).status().message()), HasSubstr("No such file"));
  options_.auth_tokens_file.clear();
  for (const char* key : {"", "\n", "two words\n", "a\nb\n", "tab\there"}) {
    options_.api_key_file = folder_.Write("key", key);
    EXPECT_THAT(std::string(TestServer(options_).status().message()), HasSubstr("api_key_file"));
  }
}

// ---- secrets stay secret

TEST_F(Identity, NoSecretGetsIntoTheLogOrTheMetrics) {
  options_.auth_tokens_file = folder_.Write("tokens", TokenLine("red", "canary-token"));
  options_.api_key_file = folder_.Write("key", "canary-api-key\n");
  options_.admin_listen = "127.0.0.1:0";
  options_.log_calls = LogCalls::kAll;
  options_.forward_api_keys = true;
  TestServer server(options_);
  ASSERT_TRUE(server.status().ok()) << server.status();
  auto channel = server.NewChannel();
  std::string seen;
  const auto call = [&](const std::vector<std::pair<std::string, std::string>>& metadata) {
    seen += Call(channel, metadata).ToString();
  };
  call({{"authorization", "Bearer canary-token"}});
  call({{"authorization", "Bearer canary-wrong"}});
  call({{"authorization", "canary-basic"}});
  call({{"authorization", "Bearer canary-token"}, {"open-sandbox-api-key", "canary-callers-key"}});
  call({{"authorization", "Bearer canary-token"}, {"open-sandbox-api-key", "canary bad key"}});
  call({{"authorization", "Bearer canary-token"}, {"traceparent", "canary-trace"}});
  call({{"authorization", "Bearer canary-token"}, {"canary-metadata", "canary-value"}});
  folder_.Write("key", "canary second\n");
  folder_.Write("tokens", "red:canary-in-clear\n");
  server->Reload();
  EXPECT_TRUE(Eventually([&] {
    return server.log().find("flag=api_key_file") != std::string::npos &&
           server.log().find("flag=auth_tokens_file") != std::string::npos;
  }));
  server->DumpCalls();
  seen += HttpGet(server->admin_port(), "/metrics") + HttpGet(server->admin_port(), "/healthz");
  server.Destroy();
  seen += server.log();
  EXPECT_THAT(seen, HasSubstr("method=sandbox.bridge.v1.BridgeService/GetServerInfo"));
  EXPECT_THAT(seen, Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace bridge::testing
