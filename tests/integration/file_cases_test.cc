// SPDX-License-Identifier: Apache-2.0
//
// Cases of files, through a whole bridge and a whole local OpenSandbox: names, kinds, windows,
// directories, and what older daemons answer.
#include <sys/stat.h>

#include <set>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using R = ErrorReason;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Files = v1::FileService::Stub;

class FileCases : public BridgeOverLocal {
 protected:
  void SetUp() override { Begin(false); }
  void Begin(bool use_server_proxy) {
    Start(use_server_proxy);
    files_ = v1::FileService::NewStub(channel_);
    id_ = MustCreate();
  }

  // Makes the daemon a stock one, or ours again, for a bridge that does not know it yet.
  void Daemon(bool stock, const std::string& more = "") {
    Faults((stock ? kStockDaemon : "") + more);
    Connect(local_->url());
    files_ = v1::FileService::NewStub(channel_);
  }

  std::string Output(const std::string& line) {
    v1::RunResponse run;
    EXPECT_THAT(Run(id_, line, &run), IsOk());
    return run.stdout();
  }
  absl::Status Write(const std::string& path, const std::string& data) {
    v1::WriteSmallFileRequest request;
    v1::WriteFileResponse response;
    request.set_sandbox_id(id_);
    request.mutable_options()->set_path(path);
    request.set_data(data);
    return Call(*files_, &Files::WriteSmallFile, request, &response);
  }
  absl::StatusOr<std::string> Read(const std::string& path, int64_t offset = 0,
                                   std::optional<int64_t> length = std::nullopt) {
    v1::ReadSmallFileRequest request;
    v1::ReadSmallFileResponse response;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_offset(offset);
    if (length) request.set_length(*length);
    const absl::Status status = Call(*files_, &Files::ReadSmallFile, request, &response);
    if (!status.ok()) return status;
    return response.data();
  }
  absl::StatusOr<v1::FileInfo> Stat(const std::string& path) {
    v1::StatRequest request;
    v1::FileInfo info;
    request.set_sandbox_id(id_);
    request.set_path(path);
    const absl::Status status = Call(*files_, &Files::Stat, request, &info);
    if (!status.ok()) return status;
    return info;
  }
  absl::Status Remove(const std::string& path, bool recursive = false) {
    v1::RemoveRequest request;
    v1::RemoveResponse response;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_recursive(recursive);
    return Call(*files_, &Files::Remove, request, &response);
  }
  absl::Status Move(const std::string& from, const std::string& to) {
    v1::MoveRequest request;
    v1::MoveResponse response;
    request.set_sandbox_id(id_);
    request.set_source(from);
    request.set_destination(to);
    return Call(*files_, &Files::Move, request, &response);
  }
  absl::StatusOr<std::vector<v1::FileInfo>> List(const std::string& path, int depth = 1) {
    v1::ListDirectoryRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_depth(depth);
    grpc::ClientContext context;
    auto stream = files_->ListDirectory(&context, request);
    std::vector<v1::FileInfo> entries;
    v1::FileInfoBatch batch;
    while (stream->Read(&batch)) {
      largest_ = std::max(largest_, batch.ByteSizeLong());
      for (auto& entry : *batch.mutable_entries()) entries.push_back(std::move(entry));
    }
    const absl::Status status = FromGrpcStatus(stream->Finish());
    if (!status.ok()) return status;
    return entries;
  }
  // "name type", in order.
  static std::vector<std::string> Kinds(const std::vector<v1::FileInfo>& entries) {
    std::vector<std::string> kinds;
    for (const v1::FileInfo& entry : entries) {
      const std::string type = v1::FileType_Name(entry.type()).substr(sizeof("FILE_TYPE_") - 1);
      kinds.push_back(entry.path().substr(entry.path().rfind('/') + 1) + " " + type);
    }
    return kinds;
  }
  void OddNames();

  std::unique_ptr<Files> files_;
  std::string id_;
  size_t largest_ = 0;
};

// A file with a space or a foreign name was 'not found', behind the server's proxy above all.
void FileCases::OddNames() {
  Output("mkdir /tmp/d");
  for (const std::string& name : {std::string("a b"),
                                  std::string("a+b"),
                                  std::string("100%"),
                                  std::string("a%20b"),
                                  std::string("q?x=1&y"),
                                  std::string("h#1"),
                                  std::string("\xe6\x97\xa5\xe6\x9c\xac.txt"),
                                  std::string("e\xcc\x81"),
                                  std::string("\xf0\x9f\x98\x80"),
                                  std::string(255, 'n'),
                                  std::string("a;touch pwned"),
                                  std::string("$(touch pwned)"),
                                  std::string("`id`"),
                                  std::string("-rf"),
                                  std::string("a'b"),
                                  std::string("re\"port"),
                                  std::string("end\\"),
                                  std::string("a\r\nX-Evil: 1"),
                                  std::string("price_$5"),
                                  std::string("~")}) {
    const std::string path = "/tmp/d/" + name;
    ASSERT_THAT(Write(path, name), IsOk()) << name;
    EXPECT_EQ(*Read(path), name);
    EXPECT_EQ(Stat(path)->size_bytes(), static_cast<int64_t>(name.size()));
    const auto list = List("/tmp/d");
    ASSERT_TRUE(list.ok()) << list.status();
    ASSERT_EQ(list->size(), 1u) << name;
    EXPECT_EQ((*list)[0].path(), path);
    ASSERT_THAT(Move(path, "/tmp/moved"), IsOk()) << name;
    EXPECT_EQ(*Read("/tmp/moved"), name);
    ASSERT_THAT(Remove("/tmp/moved"), IsOk()) << name;
    EXPECT_THAT(*List("/tmp/d"), IsEmpty()) << name;
  }
  EXPECT_EQ(Output("ls /tmp/d /tmp/pwned pwned 2>/dev/null | grep pwned"), "");
}

TEST_F(FileCases, OddNamesDirectly) { OddNames(); }

TEST_F(FileCases, OddNamesOnAStockDaemon) {
  Daemon(/*stock=*/true);
  OddNames();
}

class ProxiedFileCases : public FileCases {
 protected:
  void SetUp() override { Begin(true); }
};

TEST_F(ProxiedFileCases, OddNamesThroughTheServersProxy) { OddNames(); }

// 'No such file' for what was just written.
TEST_F(FileCases, AFileIsThereAtOnce) {
  for (const bool stock : {false, true}) {
    Daemon(stock);
    for (int i = 0; i < 40; ++i) {
      const std::string path = "/tmp/v" + std::to_string(i) + (stock ? "s" : "o");
      ASSERT_THAT(Write(path, path), IsOk());
      ASSERT_EQ(Output("cat " + path), path);
    }
  }
}

// 644 written as a number came out as 01204.
TEST_F(FileCases, ModesAreWhatTheySay) {
  for (const bool stock : {false, true}) {
    Daemon(stock);
    v1::WriteSmallFileRequest request;
    v1::WriteFileResponse response;
    request.set_sandbox_id(id_);
    request.mutable_options()->set_path("/tmp/m");
    request.mutable_options()->set_mode(0640);
    EXPECT_THAT(Call(*files_, &Files::WriteSmallFile, request, &response), IsOk());
    EXPECT_EQ(response.info().mode(), 0640u);
    EXPECT_EQ(Output("stat -c %a /tmp/m"), "640\n");
    v1::MakeDirectoryRequest make;
    v1::MakeDirectoryResponse made;
    make.set_sandbox_id(id_);
    make.set_path(stock ? "/tmp/stock" : "/tmp/own");
    make.set_mode(0700);
    EXPECT_THAT(Call(*files_, &Files::MakeDirectory, make, &made), IsOk());
    EXPECT_EQ(Output("stat -c %a " + make.path()), "700\n");
    // What is there keeps its own.
    make.set_path("/tmp");
    EXPECT_THAT(Call(*files_, &Files::MakeDirectory, make, &made), IsOk());
    EXPECT_FALSE(made.created());
    EXPECT_EQ(Stat("/tmp")->mode() & 0777, 0777u);
  }
}

// Windows missed or repeated bytes; sizes wrapped at 2^31.
TEST_F(FileCases, WindowsFarIntoALargeFile) {
  Output("truncate -s 5G /tmp/big; printf X | dd of=/tmp/big bs=1 seek=4294967299 conv=notrunc");
  for (const bool stock : {false, true}) {
    Daemon(stock);
    EXPECT_EQ(Stat("/tmp/big")->size_bytes(), int64_t{5} << 30);
    EXPECT_EQ(*Read("/tmp/big", 4294967299, 1), "X");
    EXPECT_EQ(*Read("/tmp/big", int64_t{5} << 30, 1), "");
    EXPECT_EQ(*Read("/tmp/big", (int64_t{5} << 30) + 1, 1), "");
    EXPECT_EQ(*Read("/tmp/big", 4294967298, 0), "");
    EXPECT_EQ(ReasonOf(Read("/tmp/big", -1, 1).status()), R::ERROR_REASON_INVALID_ARGUMENT);
    EXPECT_EQ(ReasonOf(Read("/tmp/big", 0, -1).status()), R::ERROR_REASON_INVALID_ARGUMENT);
    EXPECT_EQ(ReasonOf(Read("/tmp/big").status()), R::ERROR_REASON_FILE_TOO_LARGE);
  }
}

// An empty executable was shown as a directory.
TEST_F(FileCases, KindsAreSeenAndNotGuessed) {
  Output(
      "mkdir -m 700 /tmp/k /tmp/k/dir; cd /tmp/k; touch empty; chmod 755 empty; mkfifo fifo;"
      "ln -s dir link; ln -s nowhere broken; ln -s loop loop;"
      "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'");
  const auto kinds = ElementsAre("broken SYMLINK", "dir DIRECTORY", "empty FILE", "fifo OTHER",
                                 "link SYMLINK", "loop SYMLINK", "sock OTHER");
  EXPECT_THAT(Kinds(*List("/tmp/k")), kinds);
  Daemon(/*stock=*/true);
  EXPECT_THAT(Kinds(*List("/tmp/k")), kinds);
  EXPECT_EQ(Stat("/tmp/k/empty")->type(), v1::FILE_TYPE_FILE);
  EXPECT_EQ(Stat("/dev/null")->type(), v1::FILE_TYPE_OTHER);
  EXPECT_EQ(ReasonOf(Read("/tmp/k/loop").status()), R::ERROR_REASON_PATH_REJECTED);
  EXPECT_EQ(ReasonOf(Read("/tmp/k/dir").status()), R::ERROR_REASON_IS_A_DIRECTORY);
  EXPECT_EQ(ReasonOf(Write("/tmp/k/dir", "x")), R::ERROR_REASON_IS_A_DIRECTORY);
}

// A broken link could not be deleted, and deleting a link hit its target.
TEST_F(FileCases, RemovingLinks) {
  for (const bool stock : {false, true}) {
    Daemon(stock);
    Output(
        "rm -rf /tmp/l; mkdir -p /tmp/l/dir; cd /tmp/l; echo x > dir/f; ln -s dir/f file;"
        "ln -s dir todir; ln -s nowhere broken; ln -s loop loop");
    for (const char* name : {"file", "todir", "broken", "loop"}) {
      EXPECT_THAT(Remove(std::string("/tmp/l/") + name, /*recursive=*/true), IsOk()) << name;
    }
    EXPECT_EQ(Output("cd /tmp/l; find . | sort"), ".\n./dir\n./dir/f\n");
  }
  EXPECT_EQ(ReasonOf(Remove("/")), R::ERROR_REASON_PATH_REJECTED);
}

// Whatever changes something does not go through a link silently.
TEST_F(FileCases, ChangesThroughLinks) {
  for (const bool stock : {false, true}) {
    Daemon(stock);
    Output("rm -rf /tmp/l; mkdir /tmp/l; cd /tmp/l; echo old > f; chmod 640 f; ln -s f link");
    v1::SetAttributesRequest set;
    v1::FileInfo info;
    set.set_sandbox_id(id_);
    set.set_path("/tmp/l/link");
    set.set_mode(0777);
    EXPECT_THAT(Call(*files_, &Files::SetAttributes, set, &info), HasReason("PATH_REJECTED"));
    v1::WriteSmallFileRequest write;
    v1::WriteFileResponse written;
    write.set_sandbox_id(id_);
    write.mutable_options()->set_path("/tmp/l/link");
    write.mutable_options()->set_no_follow(true);
    write.set_data("new");
    EXPECT_THAT(Call(*files_, &Files::WriteSmallFile, write, &written), HasReason("PATH_REJECTED"));
    v1::ReplaceTextRequest replace;
    v1::ReplaceTextResponse replaced;
    replace.set_sandbox_id(id_);
    replace.set_path("/tmp/l/link");
    replace.set_old_text("old");
    replace.set_new_text("new");
    replace.set_no_follow(true);
    EXPECT_THAT(Call(*files_, &Files::ReplaceText, replace, &replaced), HasReason("PATH_REJECTED"));
    EXPECT_EQ(Output("cat /tmp/l/f; stat -c %a /tmp/l/f"), "old\n640\n");

    replace.set_no_follow(false);
    EXPECT_THAT(Call(*files_, &Files::ReplaceText, replace, &replaced), IsOk());
    EXPECT_EQ(replaced.symlink_followed(), "/tmp/l/f");
    write.mutable_options()->set_no_follow(false);
    EXPECT_THAT(Call(*files_, &Files::WriteSmallFile, write, &written), IsOk());
    EXPECT_EQ(written.symlink_followed(), "/tmp/l/f");
    set.set_follow_symlink(true);
    EXPECT_THAT(Call(*files_, &Files::SetAttributes, set, &info), IsOk());
    EXPECT_EQ(info.type(), v1::FILE_TYPE_FILE);
    EXPECT_EQ(Output("cd /tmp/l; cat f; stat -c %a f; readlink link"), "new777\nf\n");
  }
}

// A listing of many entries timed out or broke a limit.
TEST_F(FileCases, ManyEntries) {
  Output(
      "python3 -c \"import os; os.makedirs('/tmp/many');"
      "[open(f'/tmp/many/{i:060d}', 'w').close() for i in range(50000)]\"");
  for (const bool stock : {false, true}) {
    Daemon(stock);
    const absl::Time start = absl::Now();
    const auto list = List("/tmp/many");
    ASSERT_TRUE(list.ok()) << list.status();
    std::set<std::string> names;
    for (const v1::FileInfo& entry : *list) names.insert(entry.path());
    EXPECT_EQ(names.size(), 50'000u);
    EXPECT_LT(largest_, size_t{1} << 20);
    EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  }
}

// Listing failed on a daemon that has no route for it.
TEST_F(FileCases, ADaemonWithoutAListRoute) {
  Output("mkdir -p /tmp/o/dir/nested; touch /tmp/o/a /tmp/o/b /tmp/o/dir/f; ln -s a /tmp/o/link");
  Daemon(/*stock=*/true, R"(rule { half: EXECD route: "/directories/list"
         action { answer { status: 404 header { name: "Content-Type" value: "text/plain" }
                           body: "404 page not found" } } })");
  const auto list = List("/tmp/o");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Kinds(*list), ElementsAre("a FILE", "b FILE", "dir DIRECTORY", "link SYMLINK"));
  EXPECT_EQ(ReasonOf(List("/tmp/none").status()), R::ERROR_REASON_PATH_NOT_FOUND);
}

TEST_F(FileCases, SearchesBelowALink) {
  Output("mkdir -p /tmp/t/src; touch /tmp/t/src/b.py; ln -s t /tmp/link");
  v1::SearchRequest request;
  request.set_sandbox_id(id_);
  request.set_path("/tmp/link");
  request.set_pattern("src/*.py");
  grpc::ClientContext context;
  auto stream = files_->Search(&context, request);
  v1::FileInfoBatch batch;
  ASSERT_TRUE(stream->Read(&batch));
  EXPECT_EQ(batch.entries(0).path(), "/tmp/link/src/b.py");
}

TEST_F(FileCases, SmallReadsOfWhatDoesNotKnowItsSize) {
  v1::ReadSmallFileRequest request;
  v1::ReadSmallFileResponse response;
  request.set_sandbox_id(id_);
  request.set_path("/proc/version");
  EXPECT_THAT(Call(*files_, &v1::FileService::Stub::ReadSmallFile, request, &response), IsOk());
  EXPECT_EQ(response.data(), Output("cat /proc/version"));
  // Thirteen bytes a symbol, far beyond a MiB, and a claim of none.
  request.set_path("/proc/kallsyms");
  EXPECT_EQ(ReasonOf(Call(*files_, &v1::FileService::Stub::ReadSmallFile, request, &response)),
            R::ERROR_REASON_FILE_TOO_LARGE);
}

TEST_F(FileCases, WatchTellsWhatHappens) {
  Output("mkdir /tmp/w");
  v1::WatchDirectoryRequest request;
  request.set_sandbox_id(id_);
  request.set_path("/tmp/w");
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  auto stream = files_->WatchDirectory(&context, request);
  v1::WatchEventBatch batch;
  ASSERT_TRUE(stream->Read(&batch));
  EXPECT_EQ(batch.events(0).kind(), v1::WatchEvent::KIND_READY);
  Output("mkdir /tmp/w/d; mv /tmp/w/d /tmp/w/e; rmdir /tmp/w/e; rmdir /tmp/w");
  std::vector<std::string> seen;
  while (stream->Read(&batch)) {
    for (const v1::WatchEvent& event : batch.events()) {
      seen.push_back(v1::WatchEvent::Kind_Name(event.kind()) + " " + event.old_path() + " " +
                     event.path() + " " + v1::FileType_Name(event.type()));
    }
  }
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stream->Finish())), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_THAT(seen, ElementsAre("KIND_CREATED  /tmp/w/d FILE_TYPE_DIRECTORY",
                                "KIND_MOVED /tmp/w/d /tmp/w/e FILE_TYPE_DIRECTORY",
                                "KIND_DELETED  /tmp/w/e FILE_TYPE_DIRECTORY"));
}

}  // namespace
}  // namespace bridge
