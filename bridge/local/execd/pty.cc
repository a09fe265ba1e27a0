// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/pty.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/time/clock.h"
#include "bridge/base/ready_thread.h"
#include "bridge/local/execd/environment.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/pty_frames.h"
#include "bridge/local/execd/terminal.h"

namespace bridge::local::execd {
namespace {

constexpr size_t kFrameBytes = 32 * 1024;
constexpr absl::Duration kTakeoverPatience = absl::Seconds(5);
constexpr absl::Duration kAnswerPatience = absl::Milliseconds(200);  // to a close frame
// The real daemon closes a terminal right after its process ended, and now and then loses output
// that way: 7 of 50 times on a busy machine. So long a busy machine may take here.
constexpr absl::Duration kTerminalGrace = absl::Milliseconds(2);

}  // namespace

// A process with its descriptors; they are closed when nobody uses them any more.
struct Pty::Running {
  std::shared_ptr<Process> process;
  bool terminal = true;
  int input = -1;  // never blocks
  int output = -1;
  int error_output = -1;                // pipes only
  int ended = eventfd(0, EFD_CLOEXEC);  // readable: stop reading the terminal

  ~Running() {
    for (const int fd : {input, output, error_output, ended}) {
      if (fd >= 0) close(fd);
    }
  }
};

Pty::Pty(Processes& processes, PtySpec spec) : processes_(processes), spec_(std::move(spec)) {}

void Pty::Kill() {
  const std::lock_guard lock(mu_);
  if (running_) running_->process->SignalGroup(SIGKILL);
}

std::string Pty::StatusJson() const {
  const std::lock_guard lock(mu_);
  std::string out = "{\"session_id\":\"" + spec_.id + "\",\"running\":";
  out += running_ ? "true" : "false";
  return out + ",\"output_offset\":" + std::to_string(ring_.end()) + "}";
}

void Pty::Attach(http::WebSocket& socket, const AttachOptions& options) {
  const auto holder = std::make_shared<PtyHolder>(socket);
  if (!Acquire(holder, options.takeover)) {
    (void)socket.WriteText(PtyErrorFrame(
        "another client is already connected to pty session " + spec_.id, "ALREADY_CONNECTED"));
    (void)socket.Close(1000);
    return;
  }
  bool running = false;
  {
    // Held from the start to the greeting: live output comes after it.
    const std::lock_guard<FairMutex> delivery(delivery_);
    const std::string failure = Start(options);
    running = failure.empty();
    if (running) {
      Greet(*holder, options);
    } else {
      (void)socket.WriteText(PtyErrorFrame(failure, "START_FAILED"));
      (void)socket.Close(1011);
    }
  }
  if (running) Serve(*holder);
  Release(holder);
  socket.socket().CloseGently();  // or what it still sends would destroy the close frame
}

bool Pty::Acquire(const std::shared_ptr<PtyHolder>& holder, bool takeover) {
  std::unique_lock lock(mu_);
  if (holder_ && !takeover) return false;
  if (const auto former = holder_) {
    lock.unlock();
    former->Displace();
    lock.lock();
    const auto free = [this] { return !holder_; };
    (void)changed_.wait_for(lock, absl::ToChronoMilliseconds(kAnswerPatience), free);
    lock.unlock();
    former->StopListening();
    lock.lock();
    if (!changed_.wait_for(lock, absl::ToChronoMilliseconds(kTakeoverPatience), free)) {
      return false;
    }
  }
  holder_ = holder;
  holder_count_ = 1;
  return true;
}

void Pty::Release(const std::shared_ptr<PtyHolder>& holder) {
  holder->AwaitDisplaced();
  // Waits for a delivery to this client that is under way. One that is stuck is ended by whoever
  // takes over, who needs the socket for it: so the socket stays until here.
  const std::lock_guard<FairMutex> delivery(delivery_);
  holder->Leave();
  const std::lock_guard lock(mu_);
  if (holder_ != holder) return;
  holder_ = nullptr;
  holder_count_ = 0;
  changed_.notify_all();
}

void Pty::Greet(PtyHolder& holder, const AttachOptions& options) {
  int64_t offset = 0;
  std::string replay;
  bool terminal = true;
  {
    const std::lock_guard lock(mu_);
    replay = ring_.ReadFrom(options.since, &offset);
    if (running_) terminal = running_->terminal;
  }
  if (!replay.empty()) (void)holder.socket().WriteBinary(PtyReplayFrame(offset, replay));
  (void)holder.socket().WriteText("{\"type\":\"connected\",\"session_id\":\"" + spec_.id +
                                  "\",\"mode\":\"" + (terminal ? "pty" : "pipe") + "\"}\n");
  holder.greeted = true;
}

// ---- starting

std::string Pty::Start(const AttachOptions& options) {
  {
    const std::lock_guard lock(mu_);
    if (running_) return "";
  }
  const char* path = getenv("PATH");
  const auto bash = LookPath("bash", path != nullptr ? path : "/usr/bin:/bin");
  if (!bash) return "exec: \"bash\": executable file not found in $PATH";
  SpawnSpec spec;
  spec.program = *bash;
  spec.argv = {"bash", "--norc", "--noprofile"};
  if (!spec_.command.empty()) {
    spec.argv.insert(spec.argv.end(), {"-c", spec_.command});
  }
  spec.env = EnvList(OwnEnvironment());
  spec.cwd = spec_.cwd;
  spec.ignore_sigint = options.ignore_sigint;
  const auto running = std::make_shared<Running>();
  running->terminal = options.terminal;
  auto output = ReadyThread::Make();
  auto error_output = options.terminal ? std::nullopt : ReadyThread::Make();
  auto waiter = ReadyThread::Make();
  if (!output || (!error_output && !options.terminal) || !waiter) {
    return GoPathError("fork/exec", spec.program, EAGAIN);
  }
  const std::string failure = options.terminal ? StartOnTerminal(std::move(spec), running)
                                               : StartOnPipes(std::move(spec), running);
  if (!failure.empty()) return failure;
  {
    const std::lock_guard lock(mu_);
    running_ = running;
  }
  std::vector<std::thread> pumps;
  pumps.push_back(
      std::move(*output).Run([this, running] { Pump(running, running->output, kStdoutTag); }));
  if (error_output) {
    pumps.push_back(std::move(*error_output).Run([this, running] {
      Pump(running, running->error_output, kStderrTag);
    }));
  }
  std::move(*waiter)
      .Run([self = shared_from_this(), running, threads = std::move(pumps)]() mutable {
        self->AwaitEnd(running, std::move(threads));
      })
      .detach();
  return "";
}

std::string Pty::StartOnTerminal(SpawnSpec spec, const std::shared_ptr<Running>& running) {
  Terminal terminal;
  if (const int error = OpenTerminal(&terminal); error != 0) {
    return GoPathError("open", "/dev/ptmx", error);
  }
  spec.controlling_terminal = true;
  spec.stdin_fd = spec.stdout_fd = spec.stderr_fd = terminal.slave;
  const auto spawned = processes_.Spawn(spec);
  close(terminal.slave);
  running->output = terminal.master;
  if (!spawned.process) return GoPathError("fork/exec", spec.program, spawned.error);
  running->process = spawned.process;
  running->input = fcntl(terminal.master, F_DUPFD_CLOEXEC, 3);
  // Both are one open file: neither side blocks, so the reader polls as well.
  fcntl(terminal.master, F_SETFL, O_RDWR | O_NONBLOCK);
  return "";
}

std::string Pty::StartOnPipes(SpawnSpec spec, const std::shared_ptr<Running>& running) {
  int fds[3][2];
  for (auto& pair : fds) {
    if (pipe2(pair, O_CLOEXEC) != 0) return GoPathError("pipe", "", errno);
  }
  spec.stdin_fd = fds[0][0];
  spec.stdout_fd = fds[1][1];
  spec.stderr_fd = fds[2][1];
  const auto spawned = processes_.Spawn(spec);
  for (const int fd : {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd}) close(fd);
  running->input = fds[0][1];
  running->output = fds[1][0];
  running->error_output = fds[2][0];
  if (!spawned.process) return GoPathError("fork/exec", spec.program, spawned.error);
  running->process = spawned.process;
  fcntl(running->input, F_SETFL, O_WRONLY | O_NONBLOCK);
  return "";
}

// ---- output

void Pty::Pump(const std::shared_ptr<Running>& running, int fd, char tag) {
  std::string buffer(kFrameBytes, '\0');
  while (true) {
    pollfd fds[2] = {{fd, POLLIN, 0}, {running->ended, POLLIN, 0}};
    poll(fds, running->terminal ? 2 : 1, -1);
    // What the terminal still holds is lost.
    if (fds[1].revents != 0) return;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return;  // EIO: the other side of the terminal was closed
    Deliver(tag, std::string_view(buffer).substr(0, n));
  }
}

void Pty::Deliver(char tag, std::string_view bytes) {
  const std::lock_guard<FairMutex> delivery(delivery_);
  std::shared_ptr<PtyHolder> holder;
  {
    const std::lock_guard lock(mu_);
    ring_.Append(bytes);
    holder = holder_;
  }
  if (holder && holder->greeted) holder->Deliver(std::string(1, tag).append(bytes));
}

void Pty::AwaitEnd(std::shared_ptr<Running> running, std::vector<std::thread> pumps) {
  int status = 0;
  if (running->terminal) {
    status = *running->process->Wait(absl::InfiniteDuration());
    absl::SleepFor(kTerminalGrace);
    const uint64_t one = 1;
    (void)!write(running->ended, &one, sizeof(one));
  }
  for (std::thread& pump : pumps) pump.join();
  // Pipes are read to their end first, however long somebody else holds on to them.
  status = *running->process->Wait(absl::InfiniteDuration());
  {
    const std::lock_guard<FairMutex> delivery(delivery_);
    std::shared_ptr<PtyHolder> holder;
    {
      const std::lock_guard lock(mu_);
      running_ = nullptr;
      holder = holder_;
    }
    if (holder && holder->greeted && !holder->displaced()) {
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      (void)holder->socket().WriteText("{\"type\":\"exit\",\"exit_code\":" + std::to_string(code) +
                                       "}\n");
      (void)holder->socket().Close(1000, "process exited");
    }
  }
}

// ---- input

void Pty::Serve(PtyHolder& holder) {
  while (true) {
    const auto message = holder.socket().Read();
    if (!message.ok() || holder.displaced()) return;
    if (!HandleFrame(holder, *message)) return;
  }
}

bool Pty::HandleFrame(PtyHolder& holder, const http::WebSocket::Message& message) {
  if (message.kind == http::WebSocket::Kind::kText) return HandleText(holder, message.data);
  std::string_view data = message.data;
  if (data.empty() || data[0] != '\0') return true;  // other tags mean nothing
  return WriteInput(holder, data.substr(1));
}

bool Pty::HandleText(PtyHolder& holder, std::string_view text) {
  const JsonParse parsed = ParseGoJson(text);
  if (!parsed.error.empty()) return true;
  JsonFields fields(parsed.value, "frame", "frame");
  std::string type, data, signal;
  int64_t columns = 0, rows = 0;
  fields.String("type", &type);
  fields.String("data", &data);
  fields.String("signal", &signal);
  fields.Int64("cols", &columns);
  fields.Int64("rows", &rows);
  if (!fields.ok()) return true;
  if (type == "stdin") return WriteInput(holder, data);
  std::shared_ptr<Running> running;
  {
    const std::lock_guard lock(mu_);
    running = running_;
  }
  if (type == "ping") {
    (void)holder.socket().WriteText("{\"type\":\"pong\"}\n");
  } else if (type == "resize") {
    if (running && running->terminal) {
      ResizeTerminal(running->output, static_cast<int>(std::min<int64_t>(columns, 65535)),
                     static_cast<int>(std::min<int64_t>(rows, 65535)));
    }
  } else if (type == "signal") {
    const int number = PtySignalNumber(signal);
    if (running && number != 0) running->process->SignalGroup(number);
  } else {
    (void)holder.socket().WriteText(
        PtyErrorFrame("unknown frame type " + GoQuote(type), "INVALID_FRAME"));
  }
  return true;
}

// Waits as long as the process does not read, or until the client is displaced or goes, and with it
// the client's other frames. None of them is answered behind input which nobody took.
bool Pty::WriteInput(PtyHolder& holder, std::string_view bytes) {
  std::shared_ptr<Running> running;
  {
    const std::lock_guard lock(mu_);
    running = running_;
  }
  if (!running) return false;
  while (!bytes.empty()) {
    const ssize_t n = write(running->input, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      (void)holder.socket().WriteText(
          PtyErrorFrame(GoPathError("write", "|1", errno), "STDIN_WRITE_FAILED"));
      (void)holder.socket().Close(1011);
      return false;
    }
    pollfd fds[2] = {{running->input, POLLOUT, 0}, {holder.socket().socket().fd(), POLLRDHUP, 0}};
    poll(fds, 2, 100);
    if (holder.displaced() || fds[1].revents != 0) return false;
  }
  return true;
}

}  // namespace bridge::local::execd
