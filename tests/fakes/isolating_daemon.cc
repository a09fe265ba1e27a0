// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/isolating_daemon.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace bridge {
namespace {

using Json = nlohmann::json;

std::string Header(const std::string& head, const std::string& name) {
  const size_t at = head.find("\r\n" + name + ":");
  if (at == std::string::npos) return "";
  const size_t begin = head.find_first_not_of(' ', at + name.size() + 3);
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

void Answer(RawConnection& peer, int status, const std::string& body,
            const std::string& type = "application/json; charset=utf-8") {
  peer.Write("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + type +
             "\r\nContent-Length: " + std::to_string(body.size()) +
             "\r\nConnection: close\r\n\r\n" + body);
}

void Error(RawConnection& peer, int status, const std::string& code, const std::string& message) {
  Answer(peer, status, Json({{"code", code}, {"message", message}}).dump());
}

std::string Event(Json event) {
  event["timestamp"] = 1796021827777;
  return event.dump() + "\n\n";
}

}  // namespace

struct IsolatingDaemon::Session {
  explicit Session(Json spec) : options(std::move(spec)) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const char* argv[] = {"bash", "--noprofile", "--norc", nullptr};
    EXPECT_EQ(posix_spawnp(&pid, "bash", &actions, &attributes, const_cast<char**>(argv), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(in[0]);
    close(out[1]);
    input = in[1];
    output = out[0];
    signal(SIGPIPE, SIG_IGN);
  }
  ~Session() {
    Kill();
    close(input);
    close(output);
    waitpid(pid, nullptr, 0);
  }
  bool dead() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  }
  // As a namespace's end does: with the scripts, which are groups of their own.
  void Kill() const {
    std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) +
                           "/children");
    std::vector<pid_t> groups = {pid};
    // All of them first: a dead shell has no children any more.
    for (pid_t child = 0; children >> child;) groups.push_back(child);
    for (const pid_t group : groups) kill(-group, SIGKILL);
  }

  const Json options;
  std::string id;
  pid_t pid = -1;
  int input = -1;
  int output = -1;
  std::string rest;  // read from the shell and not yet used
  std::mutex running;
};

IsolatingDaemon::IsolatingDaemon() : execd_({"--extras=false"}) {
  server_ = std::make_unique<RawServer>([this](RawConnection& peer) { Serve(peer); });
}

IsolatingDaemon::~IsolatingDaemon() {
  for (auto& [id, session] : sessions_) session->Kill();
  server_.reset();
}

std::vector<std::string> IsolatingDaemon::opened() const {
  std::lock_guard lock(mu_);
  return opened_;
}

size_t IsolatingDaemon::live() const {
  std::lock_guard lock(mu_);
  size_t count = 0;
  for (const auto& [id, session] : sessions_) count += session->dead() ? 0 : 1;
  return count;
}

void IsolatingDaemon::KillSession(const std::string& id) {
  const auto session = Find(id);
  ASSERT_NE(session, nullptr);
  session->Kill();
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(session->pid), &info, WEXITED | WNOWAIT);
}

std::shared_ptr<IsolatingDaemon::Session> IsolatingDaemon::Find(const std::string& id) const {
  std::lock_guard lock(mu_);
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second;
}

void IsolatingDaemon::Serve(RawConnection& peer) {
  const std::string head = peer.ReadHead();
  if (head.empty()) return;
  const std::string length = Header(head, "Content-Length");
  const std::string body = peer.Read(length.empty() ? 0 : std::stoul(length));
  const std::string method = head.substr(0, head.find(' '));
  const size_t at = method.size() + 1;
  const std::string path = head.substr(at, head.find(' ', at) - at);
  if (path.rfind("/v1/isolated/", 0) == 0) {
    ServeIsolated(peer, method, path.substr(13), body);
  } else {
    Forward(peer, head, body);
  }
}

void IsolatingDaemon::ServeIsolated(RawConnection& peer, const std::string& method,
                                    const std::string& path, const std::string& body) {
  if (path == "capabilities") {
    Json page = {{"available", available.load()}, {"commit_supported", false}};
    if (available) page["isolator"] = "bwrap";
    if (!available) page["message"] = "bwrap: no such program";
    return Answer(peer, 200, page.dump());
  }
  if (!available) return Error(peer, 503, "SERVICE_UNAVAILABLE", "isolation unavailable");
  if (path == "session") return Open(peer, body);
  if (path == "sessions") {
    Json list = Json::array();
    std::lock_guard lock(mu_);
    for (const auto& [id, session] : sessions_) {
      list.push_back(Json::parse(StateJson(*session, false)));
      list.back()["session_id"] = id;
    }
    return Answer(peer, 200, Json({{"sessions", list}}).dump());
  }
  ServeSession(peer, method, path.substr(path.find('/') + 1), body);
}

void IsolatingDaemon::ServeSession(RawConnection& peer, const std::string& method,
                                   const std::string& rest, const std::string& body) {
  const std::string id = rest.substr(0, rest.find('/'));
  const auto session = Find(id);
  if (session == nullptr) return Error(peer, 404, "SESSION_NOT_FOUND", "session not found");
  if (method == "DELETE") {
    session->Kill();
    std::lock_guard lock(mu_);
    sessions_.erase(id);
    return Answer(peer, 200, "");
  }
  if (method == "POST") return Run(peer, *session, Json::parse(body)["code"].get<std::string>());
  Answer(peer, 200, StateJson(*session, tells_options));
}

std::string IsolatingDaemon::StateJson(const Session& session, bool with_options) const {
  Json state = with_options ? session.options : Json::object();
  state["status"] = session.dead() ? "dead" : "active";
  state["created_at"] = state["last_run_at"] = "2026-11-30T06:57:07.225502727Z";
  return state.dump();
}

void IsolatingDaemon::Open(RawConnection& peer, const std::string& body) {
  auto session = std::make_shared<Session>(Json::parse(body));
  {
    std::lock_guard lock(mu_);
    opened_.push_back(body);
    session->id = "6f5c8638-91ce-4b8d-9b0d-" + std::to_string(100000000000 + opened_.size());
    sessions_[session->id] = session;
  }
  Answer(
      peer, 201,
      Json({{"session_id", session->id}, {"created_at", "2026-11-30T06:57:07.176247612Z"}}).dump());
}

void IsolatingDaemon::Run(RawConnection& peer, Session& session, const std::string& code) {
  std::lock_guard one_at_a_time(session.running);
  const std::string mark = "__ISOLATED_RUN_END__";
  const std::string text = code + "\necho " + mark + " $?\n";
  std::string headers =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
  if (session.dead() || write(session.input, text.data(), text.size()) < 0) {
    peer.Write(
        headers +
        Event({{"type", "error"},
               {"text", "session process has exited"},
               {"error", {{"ename", "RuntimeError"}, {"evalue", "session process has exited"}}}}));
    return;
  }
  std::atomic<bool> over = false;
  std::thread watch([&] {
    peer.AwaitClose();
    if (!over) session.Kill();
  });
  char buffer[4096];
  Json end;
  while (end.is_null()) {
    const size_t line_end = session.rest.find('\n');
    if (line_end == std::string::npos) {
      const ssize_t n = read(session.output, buffer, sizeof(buffer));
      if (n <= 0) {
        const std::string why = "session process exited without end marker";
        end = {{"type", "error"},
               {"text", why},
               {"error", {{"ename", "RuntimeError"}, {"evalue", why}}}};
      } else {
        session.rest.append(buffer, static_cast<size_t>(n));
      }
      continue;
    }
    std::string line = session.rest.substr(0, line_end);
    session.rest.erase(0, line_end + 1);
    const size_t at = line.find(mark);
    if (at != std::string::npos) {
      const std::string status = line.substr(at + mark.size() + 1);
      end = {{"type", "execution_complete"}};
      if (status != "0") {
        end = {{"type", "error"},
               {"text", "command exited with code " + status},
               {"error", {{"ename", "ExitError"}, {"evalue", status}}}};
      }
      line.resize(at);
    }
    if (!line.empty()) {
      peer.Write(std::exchange(headers, "") + Event({{"type", "stdout"}, {"text", line}}));
    }
  }
  over = true;
  peer.Write(headers + Event(end));
  peer.EndWriting();
  watch.join();
}

void IsolatingDaemon::Forward(RawConnection& peer, const std::string& head,
                              const std::string& body) const {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(execd_.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  std::string request = head;
  request.insert(request.find("\r\n"), "\r\nConnection: close");
  request += body;
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  char buffer[16384];
  ssize_t n = 0;
  while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    if (!peer.Write(std::string_view(buffer, static_cast<size_t>(n)))) break;
  }
  close(fd);
}

}  // namespace bridge
