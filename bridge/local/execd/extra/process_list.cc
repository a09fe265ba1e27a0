// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/process_list.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/time/clock.h"
#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/proc_tree.h"
#include "bridge/local/execd/users.h"

namespace bridge::local::execd::extra {
namespace {

using http::Exchange;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  if (in) out << in.rdbuf();
  return out.str();
}

std::string Trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Effective uid and gid of /proc/PID/status.
bool ReadIds(pid_t pid, uid_t* uid, gid_t* gid) {
  std::istringstream status(ReadFile("/proc/" + std::to_string(pid) + "/status"));
  int found = 0;
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    int64_t real = 0, effective = 0;
    fields >> name >> real >> effective;
    if (name == "Uid:") *uid = static_cast<uid_t>(effective), ++found;
    if (name == "Gid:") *gid = static_cast<gid_t>(effective), ++found;
  }
  return found == 2;
}

// Arguments as the kernel has them, one JSON string each.
std::string CommandLineJson(pid_t pid) {
  const std::string text = ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
  std::string out = "[";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    if (out.size() > 1) out += ',';
    out += "\"" + Base64(std::string_view(text).substr(begin, end - begin)) + "\"";
    begin = end + 1;
  }
  return out + "]";
}

// Seconds since 1970 at which the machine was started, with a fraction.
double BootTime() {
  double up = 0;
  std::istringstream(ReadFile("/proc/uptime")) >> up;
  return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) - up;
}

class ProcessWriter {
 public:
  ProcessWriter() : users_(UserDatabase::Read()), boot_(BootTime()) {}

  // False: it has ended meanwhile.
  bool Append(std::string& out, const ProcStat& stat) const {
    uid_t uid = 0;
    gid_t gid = 0;
    if (!ReadIds(stat.pid, &uid, &gid)) return false;
    const auto number = [&](const char* name, int64_t value) {
      out += std::string(",\"") + name + "\":" + std::to_string(value);
    };
    out += "{\"pid\":" + std::to_string(stat.pid);
    number("ppid", stat.ppid);
    number("pgid", stat.pgid);
    number("sid", stat.sid);
    number("uid", uid);
    number("gid", gid);
    if (const User* user = users_.FindUser(uid)) {
      out += ',';
      AppendText(out, "user", user->name);
    }
    out += std::string(",\"state\":\"") + stat.state + "\"";
    number("start_time_ticks", stat.start_ticks);
    const double started = boot_ + static_cast<double>(stat.start_ticks) / ticks_;
    const auto seconds = static_cast<int64_t>(started);
    out += ",\"started_at\":\"" +
           GoTime(seconds, static_cast<int64_t>((started - static_cast<double>(seconds)) * 1e3) *
                               1'000'000) +
           "\",\"cmdline_b64\":" + CommandLineJson(stat.pid) + ",";
    AppendText(out, "comm", stat.comm);
    number("threads", stat.threads);
    number("rss_bytes", stat.rss_pages * sysconf(_SC_PAGESIZE));
    number("cpu_ms", stat.cpu_ticks * 1000 / ticks_);
    out += stat.pid == getpid() ? ",\"self\":true}" : ",\"self\":false}";
    return true;
  }
  int64_t ticks() const { return ticks_; }

 private:
  const UserDatabase users_;
  const double boot_;
  const int64_t ticks_ = sysconf(_SC_CLK_TCK);
};

void List(Exchange& exchange) {
  std::set<int64_t> wanted;
  for (const http::QueryParam& param : exchange.request().query) {
    if (param.name != "pid") {
      return Reply(exchange, Invalid(param.name, "there is no such parameter"));
    }
    const auto pid = JsonInteger(param.value);
    if (!pid || *pid < 1) return Reply(exchange, Invalid("pid", "pid must be a positive number"));
    wanted.insert(*pid);
  }
  const ProcessWriter writer;
  const absl::Time now = absl::Now();
  const int64_t nanos = absl::ToUnixNanos(now);
  std::string json = "{\"boot_id\":\"" + Trimmed(ReadFile("/proc/sys/kernel/random/boot_id")) +
                     "\",\"clock_ticks_per_second\":" + std::to_string(writer.ticks()) +
                     ",\"now\":\"" + GoTime(nanos / 1'000'000'000, nanos % 1'000'000'000) +
                     "\",\"processes\":[";
  bool first = true;
  for (const ProcStat& stat : ReadAllProcesses()) {
    if (!wanted.empty() && wanted.count(stat.pid) == 0) continue;
    std::string entry;
    if (!writer.Append(entry, stat)) continue;
    if (!first) json += ',';
    first = false;
    json += entry;
  }
  (void)exchange.Respond({200, {{"Content-Type", "application/json"}}, json + "]}"});
}

struct SignalRequest {
  std::optional<int64_t> pid;
  std::optional<int64_t> pgid;
  std::optional<int64_t> start_ticks;
  int number = 0;
};

std::optional<Failure> ParseSignalRequest(std::string_view body, SignalRequest* out) {
  StrictObject object(body);
  std::optional<std::string> signal;
  object.Integer("pid", 2, INT32_MAX, &out->pid);
  object.Integer("pgid", 2, INT32_MAX, &out->pgid);
  object.Integer("start_time_ticks", 0, INT64_MAX, &out->start_ticks);
  object.StringOrInteger("signal", &signal);
  if (out->pid.has_value() == out->pgid.has_value()) {
    object.Fail("pid", "or pgid, exactly one of them, is required");
  }
  const auto number = signal ? ParseSignal(*signal, /*zero_allowed=*/true) : std::nullopt;
  if (!number) object.Fail("signal", "must be a signal's name or a number from 0 to 64");
  if (auto failure = object.Finish()) return failure;
  out->number = *number;
  return std::nullopt;
}

Failure NoSuchProcess() { return FromErrno("kill", "the process", ESRCH); }

// Is there a member that is no zombie?
bool GroupLives(pid_t pgid) {
  for (const ProcStat& stat : ReadAllProcesses()) {
    if (stat.pgid == pgid && stat.state != 'Z' && stat.state != 'X') return true;
  }
  return false;
}

std::optional<Failure> SignalGroup(pid_t pgid, const SignalRequest& request) {
  const auto leader = ReadProcStat(pgid);
  if (request.start_ticks && (!leader || leader->start_ticks != *request.start_ticks)) {
    return NoSuchProcess();
  }
  if (!GroupLives(pgid)) return NoSuchProcess();
  if (kill(-pgid, request.number) != 0) return FromErrno("kill", "the group", errno);
  return std::nullopt;
}

// By a descriptor of the process where the kernel has them: its pid cannot become another's
// meanwhile.
std::optional<Failure> SignalProcess(pid_t pid, const SignalRequest& request) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0 && errno == ESRCH) return NoSuchProcess();
  std::optional<Failure> failure;
  const auto stat = ReadProcStat(pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X' ||
      (request.start_ticks && stat->start_ticks != *request.start_ticks)) {
    failure = NoSuchProcess();
  } else {
    const int64_t rc = fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, request.number, nullptr, 0)
                               : kill(pid, request.number);
    if (rc != 0) failure = FromErrno("kill", "the process", errno);
  }
  if (fd >= 0) close(fd);
  return failure;
}

void Signal(Exchange& exchange) {
  const auto body = exchange.ReadAll(64 * 1024);
  if (!body.ok()) return Reply(exchange, Invalid("", "the body is too long or broke off"));
  SignalRequest request;
  if (const auto failure = ParseSignalRequest(*body, &request)) return Reply(exchange, *failure);
  const pid_t target = static_cast<pid_t>(request.pid ? *request.pid : *request.pgid);
  if (request.pid ? target == getpid() : target == getpgrp()) {
    return Reply(exchange, {403, "PERMISSION_DENIED", "the daemon does not signal itself"});
  }
  const auto failure = request.pid ? SignalProcess(target, request) : SignalGroup(target, request);
  if (failure) return Reply(exchange, *failure);
  (void)exchange.Respond({200, {{"Content-Type", "application/json"}}, "{}"});
}

}  // namespace

void AddProcessRoutes(http::Router& router) {
  router.Add("GET", "/v1/processes", List);
  router.Add("POST", "/v1/signal", Signal);
}

}  // namespace bridge::local::execd::extra
