// SPDX-License-Identifier: Apache-2.0
//
// local/local_opensandbox.h — a whole OpenSandbox in this process: the lifecycle server on a
// loopback port, with sandboxes that are processes of this machine. What `--upstream=local` embeds
// and what tests run against. Talk to it over HTTP at url(), as to any other.
//
//   ASSIGN_OR_RETURN(auto local, LocalOpenSandbox::Start({.api_key = "…"}));
//   … http client to local->url() …
//
// The destructor ends the server and, unless they are kept, all sandboxes. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/local/faults/fault_injector.h"
#include "bridge/local/faults/recorder.h"
#include "bridge/local/runtime/isolation.h"

namespace bridge::local {

struct LocalOptions {
  std::string host = "127.0.0.1";  // also where the daemons listen
  int port = 0;                    // 0: any free one
  std::string api_key = {};        // empty: everything is open

  // Nothing: the best that works here, overlay before bwrap; never none.
  std::optional<runtime::Isolation> isolation = {};
  std::string compat = "current";  // the version of execd that is imitated, or "1.1.0"

  // Sandboxes' records and volumes. Empty: a private temporary directory.
  std::string state_dir = {};
  // Sandboxes outlive this object and even this process, and the next one with the same state_dir
  // adopts them. Without it they die with this process, however that ends.
  bool keep_sandboxes = false;

  std::string image_dir = {};  // unpacked images, see lifecycle/storage.h
  bool fail_on_missing_image = false;
  std::vector<std::string> allowed_host_paths = {};
  long long disk_bytes = 4LL << 30;  // of a sandbox's writable root: memory, used as needed
  std::optional<absl::Duration> max_timeout = {};

  // Programs; empty: beside the running one, or where Bazel puts them.
  std::string execd = {};
  std::string bootstrap = {};

  // For tests: faults and the recorder see the daemons' exchanges too.
  bool intercept_execd = false;
  bool shared_cookie_jar = false;  // a bad habit of the real server, see lifecycle/server_proxy.h
  Clock* clock = &Clock::Real();

  std::function<void(std::string_view)> log = [](std::string_view) {};
};

class LocalOpenSandbox {
 public:
  // Errors are made by MakeError: UNSUPPORTED_FEATURE when this machine cannot wall sandboxes off,
  // CONFLICT when the state directory is in use, UPSTREAM_UNAVAILABLE when a program is missing or
  // the address cannot be listened on. The message says what to do.
  static absl::StatusOr<std::unique_ptr<LocalOpenSandbox>> Start(LocalOptions options);
  ~LocalOpenSandbox();

  std::string url() const;  // "http://127.0.0.1:40404", without /v1
  int port() const;
  runtime::Isolation isolation() const;

  // ---- for tests
  faults::Recorder& recorder();
  faults::FaultInjector& faults();
  // In text form, see faults.proto; "" = none.
  absl::Status set_fault_plan(std::string_view text);

  class Impl;

 private:
  explicit LocalOpenSandbox(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge::local
