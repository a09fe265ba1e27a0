// SPDX-License-Identifier: Apache-2.0
//
// The built `sbx shell` on a terminal, with a bridge that cuts it off. With a real bridge:
// tests/integration/programs/shell_reconnect_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/frontends/cli/fake_bridge.h"
#include "tests/frontends/cli/terminal.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ShellReconnectTest : public ::testing::Test {
 protected:
  using Stream = FakeBridge::ProcessStream;

  ShellReconnectTest() {
    fake_.on_start_process = [](const pb::StartProcessRequest&, pb::StartProcessResponse* made) {
      made->set_process_id("t.p.1");
      return grpc::Status::OK;
    };
    fake_.on_delete_process = [](const pb::DeleteProcessRequest&, auto*) {
      return grpc::Status::OK;
    };
    fake_.on_attach_process = [this](grpc::ServerContext* context, Stream* stream) {
      pb::AttachProcessRequest first;
      EXPECT_TRUE(stream->Read(&first));
      return Attachment(++attached_, first.attach(), context, stream);
    };
  }

  // Before the test's own class, whose Attachment() may be running.
  void TearDown() override { fake_.Stop(); }

  // The n-th, from 1.
  virtual grpc::Status Attachment(int number, const pb::AttachProcessRequest::Attach& attach,
                                  grpc::ServerContext* context, Stream* stream) = 0;

  static void Answer(Stream* stream, int64_t offset = 0) {
    pb::ProcessEvent event;
    event.mutable_attached()->set_offset(offset);
    event.mutable_attached()->set_running(true);
    stream->Write(event);
  }
  static void Print(Stream* stream, int64_t offset, const std::string& text) {
    pb::ProcessEvent event;
    event.mutable_output()->set_offset(offset);
    event.mutable_output()->set_data(text);
    stream->Write(event);
  }
  static void Acknowledge(Stream* stream, int64_t offset) {
    pb::ProcessEvent event;
    event.mutable_stdin_ack()->set_offset(offset);
    stream->Write(event);
  }
  static grpc::Status End(Stream* stream) {
    pb::ProcessEvent event;
    event.mutable_exited()->mutable_outcome()->set_exit_code(5);
    stream->Write(event);
    event.mutable_drained();
    stream->Write(event);
    return grpc::Status::OK;
  }
  static grpc::Status Cut() {
    return ErrorStatus(pb::ERROR_REASON_SANDBOX_UNREACHABLE, grpc::StatusCode::UNAVAILABLE,
                       "it was cut");
  }
  // What is typed, until there are so many bytes of it.
  static std::string Typed(Stream* stream, size_t count) {
    std::string typed;
    pb::AttachProcessRequest request;
    while (typed.size() < count && stream->Read(&request)) {
      if (!request.has_stdin()) continue;
      EXPECT_EQ(request.stdin().offset(), static_cast<int64_t>(typed.size()));
      typed += request.stdin().data();
    }
    return typed;
  }

  Terminal Start() { return Terminal(SbxBinary(), {"shell", "sb-1"}, fake_.address()); }

  std::atomic<int> attached_ = 0;
  FakeBridge fake_;
};

// Each attachment prints a line; every one but the last is cut.
class ShellIsCut : public ShellReconnectTest {
 protected:
  grpc::Status Attachment(int number, const pb::AttachProcessRequest::Attach& attach,
                          grpc::ServerContext*, Stream* stream) override {
    const std::string line = "line " + std::to_string(number) + "\r\n";
    const auto offset = static_cast<int64_t>(line.size()) * (number - 1);
    EXPECT_EQ(attach.offset(), offset);
    EXPECT_EQ(attach.takeover(), number > 1);
    Answer(stream, offset);
    Print(stream, offset, line);
    return number < 4 ? Cut() : End(stream);
  }
};

TEST_F(ShellIsCut, GoesOnAtTheByte) {
  Terminal terminal = Start();
  EXPECT_EQ(terminal.Wait(), 5);
  EXPECT_EQ(terminal.screen(), "line 1\r\nline 2\r\nline 3\r\nline 4\r\n");
  const std::vector<std::string> calls = fake_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "StartProcess"), 1);
  EXPECT_EQ(calls.back(), "DeleteProcess");
}

// Nothing is printed, and the connection breaks more often than is borne in a row.
class ShellIsCutOnAQuietDay : public ShellReconnectTest {
 protected:
  grpc::Status Attachment(int number, const pb::AttachProcessRequest::Attach&, grpc::ServerContext*,
                          Stream* stream) override {
    Answer(stream);
    pb::ProcessEvent event;
    event.mutable_keepalive();
    stream->Write(event);
    return number < 9 ? Cut() : End(stream);
  }
};

TEST_F(ShellIsCutOnAQuietDay, CutsDoNotAddUp) {
  Terminal terminal = Start();
  EXPECT_EQ(terminal.Wait(), 5);
  EXPECT_EQ(attached_, 9);
}

TEST_F(ShellIsCut, AWindowThatChangesMeanwhileDoesNotEndIt) {
  Terminal terminal = Start();
  terminal.ReadUntil("line 1");
  const absl::Time patience = absl::Now() + absl::Seconds(10);
  for (unsigned short rows = 30; attached_ < 3 && absl::Now() < patience; ++rows) {
    terminal.Resize(rows, 80);
  }
  EXPECT_EQ(terminal.Wait(), 5);
  EXPECT_EQ(terminal.screen(), "line 1\r\nline 2\r\nline 3\r\nline 4\r\n");
}

// Keys: the first attachment takes "ab" of which one byte is known to have arrived, the second one
// is not answered before more was typed.
class ShellKeysMeetACut : public ShellReconnectTest {
 protected:
  grpc::Status Attachment(int number, const pb::AttachProcessRequest::Attach&, grpc::ServerContext*,
                          Stream* stream) override {
    if (number == 1) {
      Answer(stream);
      Print(stream, 0, "ready");
      EXPECT_EQ(Typed(stream, 2), "ab");
      Acknowledge(stream, 1);
      return Cut();
    }
    again_.set_value();
    typed_more_.get_future().wait();
    Answer(stream, 5);
    EXPECT_EQ(Typed(stream, 3), "cde");
    Acknowledge(stream, 3);
    return End(stream);
  }
  std::promise<void> again_, typed_more_;
};

TEST_F(ShellKeysMeetACut, WhatIsInDoubtIsSaidAndTheRestArrives) {
  Terminal terminal = Start();
  terminal.ReadUntil("ready");
  terminal.Type("ab");
  again_.get_future().wait();
  terminal.Type("cde");
  typed_more_.set_value();
  EXPECT_EQ(terminal.Wait(), 5);
  EXPECT_THAT(terminal.screen(), HasSubstr("1 typed byte may not have arrived\r\n"));
}

class ShellIsNotAnswered : public ShellReconnectTest {
 protected:
  grpc::Status Attachment(int, const pb::AttachProcessRequest::Attach&, grpc::ServerContext*,
                          Stream* stream) override {
    asked_.set_value();
    pb::AttachProcessRequest request;
    while (stream->Read(&request)) {
    }
    return grpc::Status::CANCELLED;
  }
  std::promise<void> asked_;
};

TEST_F(ShellIsNotAnswered, CanBeLeft) {
  Terminal terminal = Start();
  asked_.get_future().wait();
  terminal.Type("~.");
  EXPECT_EQ(terminal.Wait(), 125);
  EXPECT_THAT(terminal.screen(), HasSubstr("left; the process is ended"));
  EXPECT_EQ(fake_.calls().back(), "DeleteProcess");
}

// Every attachment is cut at once, so that the pauses grow.
class ShellIsAlwaysCut : public ShellReconnectTest {
 protected:
  grpc::Status Attachment(int number, const pb::AttachProcessRequest::Attach&, grpc::ServerContext*,
                          Stream* stream) override {
    Answer(stream);
    if (number == 4) fourth_.set_value();
    return Cut();
  }
  std::promise<void> fourth_;
};

TEST_F(ShellIsAlwaysCut, CanBeLeftWhileItWaits) {
  fake_.on_delete_process = [](const pb::DeleteProcessRequest&, auto*) { return Cut(); };
  Terminal terminal = Start();
  fourth_.get_future().wait();
  terminal.Type("~.");
  EXPECT_EQ(terminal.Wait(), 125);
  EXPECT_LE(attached_, 5);  // it did not go on to the end of its patience
  EXPECT_THAT(terminal.screen(), HasSubstr("may be left behind"));
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("the process is ended")));
}

TEST_F(ShellIsAlwaysCut, ASignalEndsTheWaiting) {
  Terminal terminal = Start();
  fourth_.get_future().wait();
  terminal.Signal(SIGTERM);
  EXPECT_EQ(terminal.Wait(), 128 + SIGTERM);
  EXPECT_LE(attached_, 5);
  EXPECT_EQ(fake_.calls().back(), "DeleteProcess");
}

}  // namespace
}  // namespace bridge::cli
