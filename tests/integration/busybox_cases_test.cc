// SPDX-License-Identifier: Apache-2.0
//
// Images whose only shell and tools are busybox's: everything that needs no bash works there, on
// our own daemon and on a stock one, and what does need it, or a tool that is not there, says so.
#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"
#include "tests/server/temp_folder.h"

namespace bridge {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using Files = v1::FileService::Stub;
using Processes = v1::ProcessService::Stub;

constexpr char kBusybox[] = "/bin/busybox";
constexpr char kImage[] = "busybox:1";

std::vector<std::string> LinesOf(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  char line[4096];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    lines.emplace_back(line);
    if (lines.back().ends_with('\n')) lines.back().pop_back();
  }
  pclose(pipe);
  return lines;
}

void Copy(const std::string& file, const std::string& root) {
  const fs::path target = root + file;
  fs::create_directories(target.parent_path());
  fs::copy_file(file, target, fs::copy_options::overwrite_existing);
}

// With the libraries that it is linked to.
void CopyLibraries(const std::string& program, const std::string& root) {
  for (const std::string& line : LinesOf("ldd " + program + " 2>/dev/null")) {
    // "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)" or "\t/lib64/ld-linux-x86-64.so.2
    // (0x…)"
    const size_t from = line.find('/');
    if (from != std::string::npos) Copy(line.substr(from, line.find(' ', from) - from), root);
  }
}

// A root with busybox and the links to its applets, those `without` left out.
void MakeImage(const std::string& root, const std::set<std::string>& without) {
  for (const char* directory : {"/bin", "/etc", "/proc", "/sys", "/dev", "/root", "/opt"}) {
    fs::create_directories(root + directory);
  }
  fs::create_directory(root + "/tmp");
  chmod((root + "/tmp").c_str(), 01777);
  std::ofstream(root + "/etc/passwd") << "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/:/bin/sh\n";
  std::ofstream(root + "/etc/group") << "root:x:0:\napp:x:1000:\n";
  Copy(kBusybox, root);
  CopyLibraries(kBusybox, root);
  // With a sanitizer the daemon is linked to libraries as well.
  CopyLibraries("bridge/local/execd/execd", root);
  CopyLibraries("bridge/local/runtime/bootstrap", root);
  for (const std::string& applet : LinesOf(std::string(kBusybox) + " --list")) {
    if (without.contains(applet) || applet == "busybox") continue;
    fs::create_symlink("busybox", fs::path(root) / "bin" / applet);
  }
}

struct Variant {
  const char* name;
  const char* compat;
  const char* faults;
};

class BusyboxCases : public BridgeOverLocal, public ::testing::WithParamInterface<Variant> {
 protected:
  void SetUp() override { Begin({}); }
  void Begin(const std::set<std::string>& without) {
    ASSERT_TRUE(fs::exists(kBusybox)) << "third_party/install installs it";
    MakeImage(images_.path(kImage), without);
    local::LocalOptions options;
    options.image_dir = images_.path("");
    options.fail_on_missing_image = true;
    options.compat = GetParam().compat;
    Start(false, std::move(options));
    ASSERT_NE(bridge_, nullptr);
    Faults(GetParam().faults);
    files_ = v1::FileService::NewStub(channel_);
    processes_ = v1::ProcessService::NewStub(channel_);
    v1::CreateSandboxRequest request = CreateRequest();
    request.mutable_spec()->set_image(kImage);
    v1::Sandbox sandbox;
    ASSERT_THAT(Create(request, &sandbox), IsOk());
    id_ = sandbox.sandbox_id();
  }

  static bool IsOwn() { return GetParam().faults[0] == '\0'; }

  v1::RunResponse MustRun(const v1::ExecSpec& spec) {
    v1::RunRequest request;
    request.set_sandbox_id(id_);
    *request.mutable_spec() = spec;
    v1::RunResponse response;
    EXPECT_THAT(Call(*execs_, &Execs::Run, request, &response), IsOk());
    return response;
  }
  std::string Output(const std::string& line) {
    v1::ExecSpec spec;
    spec.set_shell(line);
    return MustRun(spec).stdout();
  }
  absl::Status Write(const std::string& path, const std::string& data) {
    v1::WriteSmallFileRequest request;
    request.set_sandbox_id(id_);
    request.mutable_options()->set_path(path);
    request.mutable_options()->set_mode(0640);
    request.mutable_options()->set_create_parents(true);
    request.set_data(data);
    v1::WriteFileResponse written;
    const absl::Status status = Call(*files_, &Files::WriteSmallFile, request, &written);
    EXPECT_EQ(written.size_bytes(), status.ok() ? static_cast<int64_t>(data.size()) : 0);
    return status;
  }
  absl::StatusOr<std::string> Read(const std::string& path) {
    v1::ReadSmallFileRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    v1::ReadSmallFileResponse content;
    const absl::Status status = Call(*files_, &Files::ReadSmallFile, request, &content);
    if (!status.ok()) return status;
    return content.data();
  }
  absl::Status Stat(const std::string& path, v1::FileInfo* info) {
    v1::StatRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    return Call(*files_, &Files::Stat, request, info);
  }
  absl::Status MakeDirectory(const std::string& path) {
    v1::MakeDirectoryRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_parents(true);
    v1::MakeDirectoryResponse made;
    return Call(*files_, &Files::MakeDirectory, request, &made);
  }
  absl::Status Move(const std::string& from, const std::string& to) {
    v1::MoveRequest request;
    request.set_sandbox_id(id_);
    request.set_source(from);
    request.set_destination(to);
    v1::MoveResponse moved;
    return Call(*files_, &Files::Move, request, &moved);
  }
  absl::Status Remove(const std::string& path) {
    v1::RemoveRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_recursive(true);
    v1::RemoveResponse removed;
    return Call(*files_, &Files::Remove, request, &removed);
  }
  absl::Status SetMode(const std::string& path, unsigned mode) {
    v1::SetAttributesRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_mode(mode);
    v1::FileInfo info;
    return Call(*files_, &Files::SetAttributes, request, &info);
  }
  absl::Status List(const std::string& path, std::vector<std::string>* names) {
    v1::ListDirectoryRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_depth(2);
    grpc::ClientContext context;
    auto stream = files_->ListDirectory(&context, request);
    v1::FileInfoBatch batch;
    while (stream->Read(&batch)) {
      for (const auto& entry : batch.entries()) names->push_back(entry.path());
    }
    return FromGrpcStatus(stream->Finish());
  }

  testing::TempFolder images_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Processes> processes_;
  std::string id_;
};

constexpr Variant kVariants[] = {
    {"own", "current", ""}, {"stock", "current", kStockDaemon}, {"old", "1.1.0", kStockDaemon}};
std::string VariantName(const ::testing::TestParamInfo<Variant>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Daemons, BusyboxCases, ::testing::ValuesIn(kVariants), VariantName);

TEST_P(BusyboxCases, CommandsRun) {
  EXPECT_EQ(Output("command -v bash python3 || readlink /bin/sh"), "busybox\n")
      << "the image's own";
  v1::ExecSpec spec;
  spec.set_shell("printf 'a\\r\\n\\377b\\0'; echo err >&2; exit 3");
  v1::RunResponse ran = MustRun(spec);
  EXPECT_EQ(ran.stdout(), std::string("a\r\n\xff"
                                      "b\0",
                                      6));
  EXPECT_EQ(ran.stderr(), "err\n");
  EXPECT_EQ(ran.outcome().exit_code(), 3);

  spec.Clear();
  for (const char* arg : {"printf", "%s|", "a b", "$HOME", "'", ""})
    spec.mutable_argv()->add_args(arg);
  EXPECT_EQ(MustRun(spec).stdout(), "a b|$HOME|'||");

  spec.Clear();
  spec.set_shell("printf '%s|' \"$A\" \"$B\"; pwd");
  spec.set_cwd("/tmp");
  const auto add = [&spec](const char* name, const char* value) {
    v1::EnvVar* variable = spec.add_env();
    variable->set_name(name);
    variable->set_value(value);
  };
  add("A", "hello world");
  add("B", "l1\nl2\n`x` \"y\" \\");
  EXPECT_EQ(MustRun(spec).stdout(), "hello world|l1\nl2\n`x` \"y\" \\|/tmp\n");

  spec.Clear();
  spec.mutable_argv()->add_args("no-such-program");
  EXPECT_EQ(MustRun(spec).outcome().spawn_failed().kind(),
            v1::Outcome::SpawnFailed::KIND_NOT_FOUND);
}

TEST_P(BusyboxCases, InputArrivesWithItsEnd) {
  std::string input;
  for (int i = 0; i < 100'000; ++i) input += static_cast<char>(i * 7);
  v1::ExecSpec spec;
  spec.set_shell("cat; echo behind >&2");
  spec.set_stdin(input);
  const v1::RunResponse ran = MustRun(spec);
  EXPECT_TRUE(ran.stdout() == input);
  EXPECT_EQ(ran.stderr(), "behind\n");
  spec.set_stdin(
      "three\nbytes\0"
      "x");
  EXPECT_EQ(MustRun(spec).stdout(), "three\nbytes");
}

TEST_P(BusyboxCases, ATimeoutAndASignalEndTheWholeGroup) {
  v1::ExecSpec spec;
  spec.set_shell("sleep 7531 & echo up; sleep 7531");
  spec.mutable_timeout()->set_seconds(1);
  const v1::RunResponse ran = MustRun(spec);
  EXPECT_EQ(ran.stdout(), "up\n");
  EXPECT_TRUE(ran.outcome().has_timed_out()) << ran.outcome().ShortDebugString();

  v1::ExecuteRequest request;
  request.set_sandbox_id(id_);
  request.mutable_spec()->set_shell("sleep 7531 & echo up; sleep 7531");
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  auto stream = execs_->Execute(&context, request);
  v1::SignalExecRequest kill;
  kill.set_sandbox_id(id_);
  kill.mutable_signal()->set_number(SIGKILL);
  v1::ExecEvent event;
  v1::Outcome outcome;
  while (stream->Read(&event)) {
    if (event.has_started()) kill.set_exec_id(event.started().exec_id());
    if (event.has_exited()) outcome = event.exited().outcome();
    if (!event.has_output_batch()) continue;
    v1::SignalExecResponse sent;
    EXPECT_THAT(Call(*execs_, &Execs::SignalExec, kill, &sent), IsOk());
  }
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  EXPECT_TRUE(outcome.has_cancelled()) << outcome.ShortDebugString();
  // The sandbox itself is asked; its own command line is not among them.
  std::string left = "?";
  const absl::Time until = absl::Now() + absl::Seconds(15);
  while (!left.empty() && absl::Now() < until) left = Output("pidof sleep");
  EXPECT_EQ(left, "");
}

TEST_P(BusyboxCases, FilesComeAndGo) {
  const std::string content("one\ntwo\0three\xff", 14);
  // The last name is one that a stock daemon's routes do not take literally.
  for (const std::string path : {"/data/a b/f", "/data/a b/$HOME"}) {
    ASSERT_THAT(Write(path, content), IsOk()) << path;
    const absl::StatusOr<std::string> back = Read(path);
    ASSERT_THAT(back, IsOk()) << path;
    EXPECT_TRUE(*back == content) << path;
    v1::FileInfo info;
    ASSERT_THAT(Stat(path, &info), IsOk()) << path;
    EXPECT_EQ(info.size_bytes(), static_cast<int64_t>(content.size()));
    EXPECT_EQ(info.mode() & 0777, 0640u);
    EXPECT_EQ(info.type(), v1::FILE_TYPE_FILE);
    EXPECT_EQ(info.owner(), "root");
  }
  ASSERT_THAT(MakeDirectory("/data/new/deep"), IsOk());
  ASSERT_THAT(Move("/data/a b/f", "/data/new/f"), IsOk());
  ASSERT_THAT(SetMode("/data/new/f", 04755), IsOk());
  EXPECT_EQ(Output("stat -c %a /data/new/f"), "4755\n");
  std::vector<std::string> names;
  ASSERT_THAT(List("/data", &names), IsOk());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("/data/a b", "/data/a b/$HOME", "/data/new",
                                                     "/data/new/deep", "/data/new/f"));
  ASSERT_THAT(Remove("/data"), IsOk());
  EXPECT_THAT(Read("/data/new/f"), HasReason("PATH_NOT_FOUND"));
  EXPECT_THAT(Move("/data/x", "/data/y"), HasReason("PATH_NOT_FOUND"));
  EXPECT_THAT(MakeDirectory("/etc/passwd/x"), HasReason("NOT_A_DIRECTORY"));
  // A command of a stock daemon has a folder of its own while it runs, and that goes in the
  // background.
  const std::string own = IsOwn() ? "0\n" : "1\n";
  std::string left;
  const absl::Time until = absl::Now() + absl::Seconds(15);
  do {
    left = Output("ls -A /tmp | grep -c sandbox-bridge");
  } while (left != own && absl::Now() < until);
  EXPECT_EQ(left, own) << "nothing of the bridge stays";
}

TEST_P(BusyboxCases, ProcessesAreListedAndNotHeld) {
  v1::ListProcessesRequest list;
  list.set_sandbox_id(id_);
  list.set_all(true);
  v1::ListProcessesResponse listed;
  ASSERT_THAT(Call(*processes_, &Processes::ListProcesses, list, &listed), IsOk());
  EXPECT_GE(listed.processes_size(), 2) << "process 1 and the daemon";
  v1::StartProcessRequest start;
  start.set_sandbox_id(id_);
  start.mutable_spec()->set_shell("true");
  v1::StartProcessResponse started;
  const absl::Status refused = Call(*processes_, &Processes::StartProcess, start, &started);
  EXPECT_THAT(refused, HasReason("UNSUPPORTED_FEATURE"));
  EXPECT_THAT(refused, HasMessage("bash"));
}

// An image without the usual helpers, too: only the shell and what everything has.
class PoorImageCases : public BusyboxCases {
 protected:
  void SetUp() override {
    Begin({"base64", "timeout", "find", "setsid", "stat", "readlink", "realpath", "sort", "xargs",
           "head", "awk", "od", "sha256sum", "mktemp", "nohup", "which"});
  }
};
INSTANTIATE_TEST_SUITE_P(Daemons, PoorImageCases, ::testing::ValuesIn(kVariants), VariantName);

TEST_P(PoorImageCases, CommandsAndFilesNeedNoHelpers) {
  v1::ExecSpec spec;
  spec.set_shell("cat; exit 4");
  spec.set_stdin(std::string("in\0put", 6));
  spec.set_cwd("/tmp");
  spec.mutable_timeout()->set_seconds(30);
  const v1::RunResponse ran = MustRun(spec);
  EXPECT_EQ(ran.stdout(), std::string("in\0put", 6));
  EXPECT_EQ(ran.outcome().exit_code(), 4);
  ASSERT_THAT(Write("/tmp/d/f", "content"), IsOk());
  EXPECT_THAT(Read("/tmp/d/f"), IsOk());
  ASSERT_THAT(MakeDirectory("/tmp/e"), IsOk());
  ASSERT_THAT(Move("/tmp/d/f", "/tmp/e/f"), IsOk());
  std::vector<std::string> names;
  ASSERT_THAT(List("/tmp/e", &names), IsOk());
  EXPECT_THAT(names, ElementsAre("/tmp/e/f"));
  ASSERT_THAT(Remove("/tmp/e"), IsOk());
}

// What has no other way than a tool says which one it misses: our daemon needs none for these, and
// no route of a stock one takes a path with a $ literally.
TEST_P(PoorImageCases, WhatNeedsAToolThatIsMissingSaysSo) {
  Output("rm /bin/mv /bin/ln /bin/chmod /bin/rmdir");
  if (IsOwn()) {
    EXPECT_THAT(SetMode("/etc/group", 0600), IsOk());
    EXPECT_THAT(Move("/etc/group", "/etc/g"), IsOk());
    return;
  }
  Output("echo x >'/tmp/$f'");
  v1::FileInfo info;
  for (const absl::Status& status :
       {SetMode("/etc/passwd", 0600), Move("/etc/passwd", "/etc/p"), Stat("/tmp/$f", &info)}) {
    EXPECT_THAT(status, HasReason("UNSUPPORTED_FEATURE"));
    EXPECT_THAT(status, HasDetail("feature", "files.tools"));
    EXPECT_THAT(status, HasMessage("the image lacks a tool"));
  }
  EXPECT_EQ(Output("wc -l </etc/passwd"), "2\n") << "it is where it was";
}

}  // namespace
}  // namespace bridge
