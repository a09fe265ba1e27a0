// SPDX-License-Identifier: Apache-2.0
//
// Conditions of writes hold when the file is replaced, not only when the upload begins: what
// somebody else does in between, through real daemon processes.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>

#include "bridge/base/error.h"
#include "bridge/base/sha256.h"
#include "tests/opensandbox/file_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using R = ErrorReason;
namespace fs = std::filesystem;

class FileConditions : public Files {
 protected:
  void PutOld() {
    Put("f", "old");
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, P("f").c_str(), times, 0), 0);
  }
  // On what PutOld made.
  FileWrite Conditional(bool by_time) const {
    if (by_time) return {.path = P("f"), .if_modified_at = absl::FromUnixSeconds(1'000'000'000)};
    Sha256 digest;
    digest.Update("old");
    return {.path = P("f"), .if_sha256 = digest.FinishHex()};
  }
  // A write that has begun when `meanwhile` happens.
  absl::Status WriteWhile(FileWrite write, const std::function<void()>& meanwhile) {
    return RunTask(bench.loop, [&]() -> Task<absl::Status> {
      auto writer = co_await files.Write(bench.context, bench.box, std::move(write));
      if (!writer.ok()) co_return writer.status();
      const absl::Status sent = co_await (*writer)->Send("new");
      if (!sent.ok()) co_return sent;
      meanwhile();
      const auto written = co_await (*writer)->Finish();
      co_return written.status();
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Daemons, FileConditions, EveryDaemon(), WayName);

TEST_P(FileConditions, WhatChangesDuringAnUploadStays) {
  for (const bool by_time : {false, true}) {
    PutOld();
    const absl::Status written =
        WriteWhile(Conditional(by_time), [this] { Put("f", "somebody else's"); });
    EXPECT_EQ(ReasonOf(written), R::ERROR_REASON_PRECONDITION_FAILED) << written;
    EXPECT_EQ(ReadAll(P("f")), "somebody else's");
    bench.Settle();
    EXPECT_THAT(Names(), ElementsAre("f"));
  }
}

TEST_P(FileConditions, WhatGoesDuringAnUploadStaysAway) {
  for (const bool by_time : {false, true}) {
    PutOld();
    const absl::Status written = WriteWhile(Conditional(by_time), [this] { fs::remove(P("f")); });
    EXPECT_EQ(ReasonOf(written), R::ERROR_REASON_PRECONDITION_FAILED) << written;
    bench.Settle();
    EXPECT_THAT(Names(), IsEmpty());
  }
}

TEST_P(FileConditions, WhatIsAsExpectedIsReplaced) {
  for (const bool by_time : {false, true}) {
    PutOld();
    EXPECT_TRUE(WriteWhile(Conditional(by_time), [] {}).ok());
    EXPECT_EQ(ReadAll(P("f")), "new");
    EXPECT_THAT(Names(), ElementsAre("f"));
  }
}

// As the daemon tells it.
TEST_P(FileConditions, ATimeThatWasToldIsTaken) {
  Put("f", "old");
  const auto info = Stat(P("f"));
  ASSERT_TRUE(info.ok()) << info.status();
  const auto written = Write({.path = P("f"), .if_modified_at = info->modified_at}, "new");
  EXPECT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(ReadAll(P("f")), "new");
}

// Of a program in the sandbox.
TEST_P(FileConditions, ALockOnTheDirectory) {
  if (GetParam().flags.empty()) GTEST_SKIP() << "our own daemon needs none";
  PutOld();
  const int lock = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const absl::Status held = WriteWhile(Conditional(false), [] {});
  EXPECT_EQ(ReasonOf(held), R::ERROR_REASON_CONFLICT) << held;
  EXPECT_EQ(ReadAll(P("f")), "old");
  close(lock);
  bench.Settle();
  EXPECT_THAT(Names(), ElementsAre("f"));
  EXPECT_TRUE(WriteWhile(Conditional(false), [] {}).ok());
}

}  // namespace
}  // namespace bridge
