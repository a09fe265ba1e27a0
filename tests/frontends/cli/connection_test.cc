// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "tests/frontends/cli/fake_bridge.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string FileNamed(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

EnvironmentLookup Environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

struct Address {
  const char* text;
  const char* target;
  bool tls;
  bool loopback;
};

TEST(Address, GoodOnes) {
  for (const Address& want :
       {Address{"127.0.0.1:50051", "127.0.0.1:50051", false, true},
        Address{"localhost:1", "localhost:1", false, true},
        Address{"[::1]:65535", "[::1]:65535", false, true},
        Address{"http://h:80", "h:80", false, false},
        Address{"https://bridge.example:443/", "bridge.example:443", true, false},
        Address{"10.0.0.1:5", "10.0.0.1:5", false, false},
        Address{"[2001:db8::1]:5", "[2001:db8::1]:5", false, false},
        Address{"unix:/run/b.sock", "unix:/run/b.sock", false, true}}) {
    Settings settings;
    ASSERT_TRUE(ParseAddress(want.text, settings).ok()) << want.text;
    EXPECT_EQ(settings.target, want.target);
    EXPECT_EQ(settings.tls, want.tls) << want.text;
    EXPECT_EQ(settings.loopback, want.loopback) << want.text;
  }
}

TEST(Address, BadOnesAreRepeatedInTheMessage) {
  for (const char* text : {"", "h", "h:", ":1", "h:0", "h:65536", "h:1x", "h:-1", "::1:5",
                           "http://h", "ftp://h:1", "u:p@h:1", "h/x:1", "unix:", "h h:1"}) {
    Settings settings;
    const absl::Status status = ParseAddress(text, settings);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST(Settings, TheOptionWinsOverTheEnvironmentOverTheDefault) {
  const auto environment = Environment({{"SANDBOX_BRIDGE_ADDRESS", "127.0.0.1:2"}});
  EXPECT_EQ(Settings::Read("127.0.0.1:1", environment)->address, "127.0.0.1:1");
  EXPECT_EQ(Settings::Read("", environment)->address, "127.0.0.1:2");
  EXPECT_EQ(Settings::Read("", Environment({}))->address, "127.0.0.1:50051");
  EXPECT_EQ(Settings::Read("", Environment({{"SANDBOX_BRIDGE_ADDRESS", ""}}))->address,
            "127.0.0.1:50051");
}

TEST(Settings, ReadsTheTokenWithoutSpaceAroundIt) {
  const std::string path = FileNamed("token", "  s3cret-token \n");
  const auto settings =
      Settings::Read("127.0.0.1:1", Environment({{"SANDBOX_BRIDGE_TOKEN_FILE", path}}));
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->token, "s3cret-token");
}

TEST(Settings, BadTokenFilesAreNamedAndNeverQuoted) {
  for (const std::string& content : {std::string("two tokens"), std::string("a\nsecret"),
                                     std::string("secret\x80"), std::string()}) {
    const std::string path = FileNamed("bad_token", content);
    const auto settings =
        Settings::Read("127.0.0.1:1", Environment({{"SANDBOX_BRIDGE_TOKEN_FILE", path}}));
    ASSERT_FALSE(settings.ok()) << content;
    const std::string message(settings.status().message());
    EXPECT_THAT(message, HasSubstr("SANDBOX_BRIDGE_TOKEN_FILE"));
    EXPECT_THAT(message, Not(HasSubstr("secret")));
  }
  for (const char* path : {"/no/such", "/etc"}) {  // a directory can be opened
    const auto settings =
        Settings::Read("127.0.0.1:1", Environment({{"SANDBOX_BRIDGE_TOKEN_FILE", path}}));
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(path));
  }
}

TEST(Settings, ATokenNeverTravelsInTheClear) {
  const auto environment =
      Environment({{"SANDBOX_BRIDGE_TOKEN_FILE", FileNamed("token2", "secret")}});
  const auto refused = Settings::Read("10.0.0.1:1", environment);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("in the clear"));
  EXPECT_TRUE(Settings::Read("https://10.0.0.1:1", environment).ok());
  EXPECT_TRUE(Settings::Read("unix:/x", environment).ok());
}

TEST(Settings, CertificateAndKeyGoTogetherAndMeanTls) {
  const std::string pem = FileNamed("some.pem", "PEM");
  EXPECT_FALSE(Settings::Read("h:1", Environment({{"SANDBOX_BRIDGE_CLIENT_CERT_FILE", pem}})).ok());
  const auto both = Settings::Read("h:1", Environment({{"SANDBOX_BRIDGE_CLIENT_CERT_FILE", pem},
                                                       {"SANDBOX_BRIDGE_CLIENT_KEY_FILE", pem}}));
  ASSERT_TRUE(both.ok());
  EXPECT_TRUE(both->tls);
  const auto ca = Settings::Read("h:1", Environment({{"SANDBOX_BRIDGE_CA_FILE", pem}}));
  ASSERT_TRUE(ca.ok());
  EXPECT_TRUE(ca->tls);
}

TEST(Connection, SendsTheTokenWithEveryCall) {
  FakeBridge fake;
  fake.on_server_info = [](const auto&, auto*) { return grpc::Status::OK; };
  const auto settings = Settings::Read(
      fake.address(), Environment({{"SANDBOX_BRIDGE_TOKEN_FILE", FileNamed("token3", "t0k")}}));
  ASSERT_TRUE(settings.ok());
  Connection connection(*settings);
  const auto context = connection.NewContext(absl::Seconds(10));
  pb::ServerInfo info;
  ASSERT_TRUE(connection.bridge().GetServerInfo(context.get(), {}, &info).ok());
  EXPECT_EQ(fake.authorization(), "Bearer t0k");
}

TEST(Connection, WorksOverAUnixSocket) {
  // Not below the test's directory: a socket's path has at most 107 characters.
  char directory[] = "/tmp/sbx-test-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = fmt::format("unix:{}/s", directory);
  FakeBridge fake(path);
  fake.on_server_info = [](const auto&, auto*) { return grpc::Status::OK; };
  Connection connection(*Settings::Read(path, Environment({})));
  const auto context = connection.NewContext(absl::Seconds(10));
  pb::ServerInfo info;
  EXPECT_TRUE(connection.bridge().GetServerInfo(context.get(), {}, &info).ok());
  unlink((directory + std::string("/s")).c_str());
  rmdir(directory);
}

TEST(Connection, AProxyOfTheEnvironmentIsNotForThisMachine) {
  setenv("http_proxy", "http://127.0.0.1:9", 1);
  FakeBridge fake;
  fake.on_server_info = [](const auto&, auto*) { return grpc::Status::OK; };
  Connection connection(*Settings::Read(fake.address(), Environment({})));
  const auto context = connection.NewContext(absl::Seconds(10));
  pb::ServerInfo info;
  EXPECT_TRUE(connection.bridge().GetServerInfo(context.get(), {}, &info).ok());
  unsetenv("http_proxy");
}

}  // namespace
}  // namespace bridge::cli
