// SPDX-License-Identifier: Apache-2.0
//
// Sends every recorded request to our execd (--compat=1.1.0) and expects the recorded answer. What
// differs is listed here with its reason, and nothing is listed that does not differ.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/fakes/sanitized.h"
#include "tests/local/execd/replay/jail.h"
#include "tests/local/execd/replay/replayer.h"

namespace bridge::local::execd {
namespace {

constexpr char kBinary[] = "bridge/local/execd/execd";
constexpr char kRecordings[] = "tests/testdata/recordings/";

// Recording -> why it differs. With "(by luck)" in front it need not differ in every run.
using Known = std::map<std::string, std::string>;

void ExpectAsRecorded(const ReplayOptions& wanted, const JailOptions& surroundings,
                      const Known& known) {
  JailOptions jail_options = surroundings;
  jail_options.binary = kBinary;
  jail_options.flags.insert(jail_options.flags.begin(), "--compat=1.1.0");
  const Jail jail(jail_options);
  ReplayOptions options = wanted;
  options.file = kRecordings + options.file;
  options.port = jail.port();
  const auto results = Replayer(options).Run();
  EXPECT_FALSE(results.empty());
  for (const auto& [name, differences] : results) {
    const auto excuse = known.find(name);
    if (excuse == known.end()) {
      for (const std::string& difference : differences) {
        ADD_FAILURE() << name << ": " << difference;
      }
    } else if (differences.empty() && !excuse->second.starts_with("(by luck)")) {
      ADD_FAILURE() << name << " is listed as different and is not: " << excuse->second;
    }
  }
  for (const auto& [name, reason] : known) {
    EXPECT_EQ(results.count(name), 1u) << "listed but not replayed: " << name;
  }
}

TEST(Replay, Commands) {
  ExpectAsRecorded(
      {.file = "command.jsonl",
       .read_to_end = {"echo-hi", "echo-hi-connection-close", "exit-3", "background-start",
                       "background-start-failure", "background-timeout", "background-to-interrupt",
                       "code-no-language"}},
      {}, {});
}

TEST(Replay, Sessions) {
  ExpectAsRecorded({.file = "session.jsonl",
                    .read_to_end = {"session-echo", "session-exit-5", "session-timeout-exec",
                                    "session-timeout-child", "session-pings", "session-killed"}},
                   {}, {});
}

TEST(Replay, Files) {
  // The recorder's /tmp was an overlay and its subdirectories ext4; here all is tmpfs.
  ExpectAsRecorded(
      {.file = "files.jsonl"}, {},
      {{"download-directory-new", "where the end of a directory is depends on the file system"},
       {"download-directory-range", "the size of a directory depends on the file system"}});
}

// These wait for half a minute or more: apart, so that they run beside the others.
const std::set<std::string> kSlowPtys = {"pty-create-idle", "pty-idle-server-ping"};

TEST(Replay, Ptys) {
  Known known = {
      {"pty-attach-no-query", "(by luck) whether input is echoed before the prompt"},
      {"pty-viewer-mode-ignored", "(by luck) whether input is echoed before the prompt"},
      {"pty-command-status-after", "(by luck) the end can outrun output"},
      {"pty-mask-pipe", "(by luck) whether the end is seen before the input that it meets"},
      {"pty-command-pipe-rerun", "(by luck) which of stdout and stderr came first"}};
  // These show the output of one interactive shell, of which each is a later view.
  for (const char* name :
       {"pty-attach-interactive", "pty-status-after-detach", "pty-reattach-full-replay",
        "pty-reattach-since-10", "pty-reattach-since-bad", "pty-status-after-exit"}) {
    known[name] = "(by luck) whether the shell redraws its prompt for a new size";
  }
  if (kSanitized) {  // reads slower than the time that the daemon gives to output after the end
    for (const char* name : {"pty-big-output", "pty-big-status", "pty-replay-gap"}) {
      known[name] = "(by luck) the end can outrun output";
    }
  }
  ExpectAsRecorded({.file = "pty.jsonl", .skip = kSlowPtys}, {}, known);
}

TEST(Replay, SlowPtys) { ExpectAsRecorded({.file = "pty.jsonl", .only = kSlowPtys}, {}, {}); }

const std::set<std::string> kWithToken = {"token-missing-ping",    "token-missing-metrics",
                                          "token-missing-unknown", "token-missing-proxy",
                                          "token-wrong",           "token-right",
                                          "token-missing-command", "token-visible-to-command"};

TEST(Replay, Metrics) { ExpectAsRecorded({.file = "metrics.jsonl", .skip = kWithToken}, {}, {}); }

TEST(Replay, Token) {
  ExpectAsRecorded({.file = "metrics.jsonl", .only = kWithToken},
                   {.env = {"EXECD_ACCESS_TOKEN=tok-golden"}}, {});
}

}  // namespace
}  // namespace bridge::local::execd
