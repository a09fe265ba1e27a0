// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/local/execd/daemon_fixture.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kToken[] = "X-EXECD-ACCESS-TOKEN";

TEST(Daemon, UnknownRoutesAndMethodsAreTheSame) {
  const auto daemon = StartDaemon();
  const Caller caller(*daemon);
  for (const auto& [method, target] :
       std::initializer_list<std::pair<const char*, const char*>>{{"GET", "/nope"},
                                                                  {"PUT", "/ping"},
                                                                  {"OPTIONS", "/command"},
                                                                  {"GET", "/"},
                                                                  {"GET", "/session"}}) {
    const auto answer = caller.Call(method, target);
    EXPECT_EQ(answer.status, 404) << method << target;
    EXPECT_EQ(answer.body, "404 page not found");
    EXPECT_EQ(answer.headers.Get("Content-Type"), "text/plain");
  }
  EXPECT_EQ(caller.Call("HEAD", "/ping").status, 404);
}

TEST(Daemon, TrailingSlashes) {
  const auto daemon = StartDaemon();
  const Caller caller(*daemon);
  const auto get = caller.Get("/ping/?a=<b>");
  EXPECT_EQ(get.status, 301);
  EXPECT_EQ(get.headers.Get("Location"), "/ping?a=<b>");
  EXPECT_EQ(get.body, "<a href=\"/ping?a=&lt;b&gt;\">Moved Permanently</a>.\n\n");
  const auto post = caller.Post("/command/", "{}");
  EXPECT_EQ(post.status, 307);
  EXPECT_EQ(post.headers.Get("Location"), "/command");
  EXPECT_EQ(caller.Get("/command/").status, 404);  // no GET without the slash either
}

TEST(Daemon, TheOldVersionWantsItsTokenEverywhere) {
  const auto daemon = StartDaemon({.habits = kHabits110, .access_token = "tok"});
  const Caller caller(*daemon);
  for (const char* target :
       {"/ping", "/nope", "/proxy/44772/ping", "/metrics", "/v1/capabilities"}) {
    const auto answer = caller.Get(target);
    EXPECT_EQ(answer.status, 401) << target;
    EXPECT_EQ(answer.body,
              "{\"error\":\"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN\"}");
    EXPECT_EQ(caller.Get(target, {{kToken, "toc"}}).status, 401);
  }
  EXPECT_EQ(caller.Get("/ping", {{kToken, "tok"}}).status, 200);
  EXPECT_EQ(caller.Get("/ping/").status, 301);  // before anything is asked
}

TEST(Daemon, TheNewVersionLetsPingThrough) {
  const auto daemon = StartDaemon({.access_token = "tok"});
  const Caller caller(*daemon);
  EXPECT_EQ(caller.Get("/ping").status, 200);
  EXPECT_EQ(caller.Get("/files/info").status, 401);
}

TEST(Daemon, BadHosts) {
  const auto daemon = StartDaemon();
  const auto ask = [&](const std::string& host_line) {
    auto client = http::ClientExchange::Connect("127.0.0.1", daemon->port(), kLong);
    EXPECT_TRUE((*client)->socket().Write("GET /ping HTTP/1.1\r\n" + host_line + "\r\n").ok());
    std::string all;
    char buffer[1024];
    for (absl::StatusOr<size_t> n;
         (n = (*client)->socket().Read(buffer, 1024, kLong)).ok() && *n;) {
      all.append(buffer, *n);
      if (all.find("Content-Length: 0\r\n\r\n") != std::string::npos) break;
    }
    return all;
  };
  EXPECT_EQ(ask("Host: bad host\r\n"),
            "HTTP/1.1 400 Bad Request: malformed Host header\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
            "400 Bad Request: malformed Host header");
  EXPECT_THAT(ask(""), HasSubstr("400 Bad Request: missing required Host header"));
  EXPECT_THAT(ask("Host: [::1]:80\r\n"), StartsWith("HTTP/1.1 200 OK"));
}

class FilesOverHttp : public FolderTest {
 protected:
  void SetUp() override { chmod(root_.c_str(), 0777); }
  http::Response Upload(const std::string& prefix, const std::string& path) {
    return caller_.Call(
        "POST", prefix + "/files/upload",
        "--b\r\nContent-Disposition: form-data; name=metadata; filename=m\r\n\r\n"
        "{\"path\":\"" +
            path +
            "\",\"mode\":644}\r\n"
            "--b\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\nhello\r\n--b--",
        {{"Content-Type", "multipart/form-data; boundary=b"}});
  }
  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

TEST_F(FilesOverHttp, LongAnswersAreChunkedShortOnesAreNot) {
  for (int i = 0; i < 40; ++i) std::ofstream(root_ + "/f" + std::to_string(i));
  const auto list = caller_.Get("/directories/list?path=" + root_);
  EXPECT_TRUE(list.headers.HasToken("Transfer-Encoding", "chunked"));
  const auto info = caller_.Get("/files/info?path=" + root_ + "/f1");
  EXPECT_TRUE(info.headers.Has("Content-Length"));
}

TEST_F(FilesOverHttp, WithTheRightsOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(Upload("/v1/filesystem/4242/4343", root_ + "/theirs").status, 200);
  struct stat info;
  ASSERT_EQ(stat((root_ + "/theirs").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 4242u);
  EXPECT_EQ(info.st_gid, 4343u);
  std::ofstream(root_ + "/private") << "x";
  chmod((root_ + "/private").c_str(), 0600);
  EXPECT_EQ(
      caller_.Get("/v1/filesystem/4242/4343/files/download?path=" + root_ + "/private").status,
      500);
  EXPECT_EQ(caller_.Get("/files/download?path=" + root_ + "/private").body, "x");
  EXPECT_EQ(caller_.Get("/v1/filesystem/x/1/files/info?path=/").status, 400);
  EXPECT_EQ(caller_.Get("/v1/filesystem/4294967295/1/files/info?path=/").status, 400);
}

TEST_F(FilesOverHttp, TheOldVersionHasNoUserPrefix) {
  const auto old = StartDaemon({.habits = kHabits110});
  EXPECT_EQ(Caller(*old).Get("/v1/filesystem/0/0/files/info?path=/").status, 404);
}

TEST_F(FilesOverHttp, LargeFilesComeWhole) {
  std::string content(3'000'000, 'x');
  content[1'500'000] = 'y';
  std::ofstream(root_ + "/big") << content;
  EXPECT_TRUE(caller_.Get("/files/download?path=" + root_ + "/big").body == content);
  EXPECT_EQ(
      caller_.Get("/files/download?path=" + root_ + "/big", {{"Range", "bytes=1499999-1500001"}})
          .body,
      "xyx");
}

TEST_F(FilesOverHttp, APipeWithoutAWriterDoesNotHang) {
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0644), 0);
  EXPECT_EQ(caller_.Get("/files/download?path=" + root_ + "/pipe").status, 500);
}

TEST_F(FilesOverHttp, NamesInContentDisposition) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a%22b", "attachment; filename=\"a\\\"b\""},
           {"%C3%BC%20x", "attachment; filename=\"%C3%BC%20x\"; filename*=UTF-8''%C3%BC%20x"}}) {
    const std::string path = root_ + "/" + http::PercentDecode(name);
    std::ofstream(path) << "x";
    EXPECT_EQ(caller_.Get("/files/download?path=" + root_ + "/" + name)
                  .headers.Get("Content-Disposition"),
              value);
  }
}

TEST(Daemon, LongLogsAreWhole) {
  setenv("TMPDIR", ::testing::TempDir().c_str(), 1);
  const auto daemon = StartDaemon();
  const Caller caller(*daemon);
  const auto started = caller.Post("/command", R"({"command":"seq 1 20000","background":true})");
  const std::string id = started.body.substr(started.body.find("\"text\":\"") + 8, 32);
  while (caller.Get("/command/status/" + id).body.find("exit_code") == std::string::npos) {
  }
  const auto logs = caller.Get("/command/" + id + "/logs?cursor=4");
  EXPECT_THAT(logs.body, StartsWith("3\n4\n"));
  EXPECT_EQ(logs.headers.Get("Execd-Commands-Tail-Cursor"), "108894");
  EXPECT_EQ(logs.body.size(), 108890u);
}

TEST(Daemon, EndsWithEverythingThatRuns) {
  auto daemon = StartDaemon();
  const Caller caller(*daemon);
  std::thread streaming([&] {
    auto client = http::ClientExchange::Connect("127.0.0.1", caller.port(), kLong);
    ASSERT_TRUE(client.ok());
    const std::string body = R"({"command":"echo up; sleep 1000"})";
    (void)(*client)->SendHead("POST", "/command",
                              {{"Host", "x"}, {"Content-Length", std::to_string(body.size())}});
    (void)(*client)->SendBody(body, false);
    ASSERT_TRUE((*client)->ReadHead(kLong).ok());
    char buffer[4096];
    for (absl::StatusOr<size_t> n; (n = (*client)->ReadBody(buffer, 4096, kLong)).ok() && *n > 0;) {
      if (std::string_view(buffer, *n).find("\"up\"") != std::string_view::npos) daemon.reset();
    }
  });
  streaming.join();
  EXPECT_EQ(daemon, nullptr);
}

}  // namespace
}  // namespace bridge::local::execd
