// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/exec_streams.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/execd/extra/frame.h"
#include "bridge/local/execd/extra/request.h"

namespace bridge::local::execd::extra {
namespace {

constexpr size_t kBatchBytes = 512 * 1024;
constexpr absl::Duration kWriteDeadline = absl::Seconds(60);
constexpr absl::Duration kPingInterval = absl::Seconds(30);

// Sends frames until all is said (true) or `send` fails or `gone_fd` becomes ready (false).
bool Pump(Exec& exec, Exec::Reader& reader, absl::Duration heartbeat, int gone_fd,
          short gone_events, const std::function<bool(const std::vector<std::string>&)>& send) {
  if (!send({exec.StartedFrame()})) return false;
  absl::Time last_sent = absl::Now();
  while (true) {
    bool last = false;
    std::vector<std::string> frames = exec.NextFrames(reader, kBatchBytes, &last);
    if (frames.empty() && absl::Now() >= last_sent + heartbeat) {
      frames.push_back(EncodeFrame(FrameType::kHeartbeat, 0, ""));
    }
    if (!frames.empty()) {
      if (!send(frames)) return false;
      last_sent = absl::Now();
    }
    if (last) return true;
    const absl::Duration wait = std::max(last_sent + heartbeat - absl::Now(), absl::ZeroDuration());
    pollfd fds[2] = {{reader.wake_fd(), POLLIN, 0}, {gone_fd, gone_events, 0}};
    poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (fds[1].revents != 0) return false;
  }
}

}  // namespace

void StreamOverHttp(http::Exchange& exchange, Exec& exec, Exec::Reader& reader,
                    const ReadPlan& plan) {
  const http::Response head{
      200,
      {{"Content-Type", "application/vnd.sandbox.frames.v1"}, {"Cache-Control", "no-store"}},
      ""};
  bool whole = exchange.Start(head).ok();
  whole = whole && Pump(exec, reader, plan.heartbeat, exchange.fd(), POLLRDHUP,
                        [&](const std::vector<std::string>& frames) {
                          std::string bytes;
                          for (const std::string& frame : frames) bytes += frame;
                          return exchange.Write(bytes).ok();
                        });
  if (whole) {
    (void)exchange.Finish();
  } else if (plan.kill_on_disconnect) {
    exec.Kill();
  }
}

std::unique_ptr<http::WebSocket> AcceptSocket(http::Exchange& exchange) {
  auto socket = exchange.AcceptWebSocket({.ping_interval = kPingInterval,
                                          .write_timeout = kWriteDeadline,
                                          .max_message_bytes = kFrameHeaderBytes + (16 << 20)});
  return socket.ok() ? *std::move(socket) : nullptr;
}

void CloseWith(http::WebSocket& socket, const Failure& failure) {
  (void)socket.WriteBinary(EncodeFrame(FrameType::kError, 0, failure.Json()));
  (void)socket.Close(1000);
  while (socket.Read(absl::Seconds(5)).ok()) {
  }
}

namespace {

std::optional<Failure> TakeInput(Exec& exec, const Frame& frame) {
  const auto offset = static_cast<int64_t>(frame.offset);
  if (offset + static_cast<int64_t>(frame.payload.size()) > exec.taken() + kStdinWindowBytes) {
    return Invalid("", "input is further ahead than stdin_window allows");
  }
  size_t accepted = 0;
  auto failure = exec.WriteInput(offset, frame.payload, &accepted);
  // The end of the program and input on its way cross each other; STDIN_CLOSED says what was taken.
  if (failure && failure->code == "STDIN_CLOSED") return std::nullopt;
  return failure;
}

// One message of the client.
std::optional<Failure> TakeMessage(Exec& exec, const http::WebSocket::Message& message) {
  const auto frame = DecodeFrame(message.data);
  if (message.kind != http::WebSocket::Kind::kBinary || !frame) {
    return Invalid("", "a message must be one frame");
  }
  switch (static_cast<FrameType>(frame->type)) {
    case FrameType::kStdin:
      return TakeInput(exec, *frame);
    case FrameType::kStdinEof: {
      auto failure = exec.EndInput(static_cast<int64_t>(frame->offset));
      if (failure && failure->code == "STDIN_CLOSED") return std::nullopt;
      return failure;
    }
    case FrameType::kSignal: {
      int number = 0;
      bool group = true;
      if (auto failure = ParseExecSignal(frame->payload, &number, &group)) return failure;
      (void)exec.Signal(number, group);  // EXITED says it when it came too late
      return std::nullopt;
    }
    default:
      return Invalid("", "a frame of this type is not for the daemon");
  }
}

}  // namespace

void StreamOverSocket(http::WebSocket& socket, Exec& exec, Exec::Reader& reader,
                      const ReadPlan& plan, ReadyThread ready) {
  const int gone = eventfd(0, EFD_CLOEXEC);
  bool whole = false;
  std::thread writer = std::move(ready).Run([&] {
    whole = Pump(exec, reader, plan.heartbeat, gone, POLLIN,
                 [&](const std::vector<std::string>& frames) {
                   for (const std::string& frame : frames) {
                     if (!socket.WriteBinary(frame).ok()) return false;
                   }
                   return true;
                 });
    if (whole) {
      (void)socket.Close(1000);
      // The client's answer ends the listening below; one that does not answer is not waited for
      // long.
      pollfd answered{gone, POLLIN, 0};
      poll(&answered, 1, 5000);
    }
    socket.socket().ShutdownRead();  // nothing more can be said: stop listening
  });
  std::optional<Failure> failure;
  while (!failure) {
    const auto message = socket.Read();
    if (!message.ok()) break;
    failure = TakeMessage(exec, *message);
  }
  const uint64_t one = 1;
  (void)!write(gone, &one, sizeof(one));
  writer.join();
  close(gone);
  if (failure && !whole) CloseWith(socket, *failure);
  if (!whole && plan.kill_on_disconnect) exec.Kill();
}

std::optional<Failure> FeedInput(http::Exchange& exchange, Exec& exec, int64_t offset, bool eof) {
  std::string buffer(64 * 1024, '\0');
  const auto wait = [&](int64_t number) {
    while (!exec.AwaitTaken(number, absl::Milliseconds(200))) {
      if (exchange.PeerClosed() || exchange.stop_token().stop_requested()) return false;
      size_t none = 0;
      if (exec.WriteInput(number, "", &none)) return false;  // closed: the next write says so
    }
    return true;
  };
  while (true) {
    const auto n = exchange.ReadBody(buffer.data(), buffer.size());
    if (!n.ok()) return Failure{422, "SHORT_BODY", "the body broke off"};
    if (*n == 0) break;
    std::string_view bytes = std::string_view(buffer).substr(0, *n);
    while (!bytes.empty()) {
      size_t accepted = 0;
      if (auto failure = exec.WriteInput(offset, bytes, &accepted)) return failure;
      offset += static_cast<int64_t>(accepted);
      bytes.remove_prefix(accepted);
      // There is room again as soon as the pipe has taken a part.
      if (!bytes.empty() && !wait(offset - kStdinWindowBytes + 1) && exchange.PeerClosed()) {
        return std::nullopt;
      }
    }
  }
  if (eof) {
    if (auto failure = exec.EndInput(offset)) return failure;
  }
  if (wait(offset) || exchange.PeerClosed()) return std::nullopt;
  size_t none = 0;
  return exec.WriteInput(offset, "", &none);
}

std::optional<Failure> ParseExecSignal(std::string_view body, int* number, bool* group) {
  StrictObject object(body);
  std::optional<std::string> signal, to;
  object.StringOrInteger("signal", &signal);
  object.String("to", &to);
  if (to && *to != "group" && *to != "process") {
    object.Fail("to", "must be \"group\" or \"process\"");
  }
  const auto parsed = signal ? ParseSignal(*signal, /*zero_allowed=*/false) : std::nullopt;
  if (!parsed) object.Fail("signal", "must be a signal's name or a number from 1 to 64");
  if (auto failure = object.Finish()) return failure;
  *number = *parsed;
  *group = to.value_or("group") == "group";
  return std::nullopt;
}

}  // namespace bridge::local::execd::extra
