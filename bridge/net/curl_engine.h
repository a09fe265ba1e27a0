// SPDX-License-Identifier: Apache-2.0
//
// net/curl_engine.h — one curl multi handle as a source of an event loop. For net/ only.
//
// What curl reports inside its callbacks is only noted (MarkDirty); tasks are resumed at the end of
// the turn, after everything that is ready was read. That makes batches of what arrives together,
// and it is the only legal way: curl forbids most calls from within its callbacks.
// Loop thread only, except construction and destruction. Names curl's types as void*.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"

namespace bridge {

// Somebody who owns an easy handle in the engine.
class CurlJob {
 public:
  CurlJob() = default;
  CurlJob(const CurlJob&) = delete;
  CurlJob& operator=(const CurlJob&) = delete;

  // The handle is through with `curl_code`. Do not resume tasks; Flush() follows when marked.
  virtual void OnCurlDone(int curl_code) = 0;
  // The end of the turn: resume tasks, which may destroy this.
  virtual void Flush() = 0;

 protected:
  ~CurlJob() = default;

 private:
  friend class CurlEngine;
  bool dirty_ = false;
};

class CurlEngine final : public EventSource {
 public:
  CurlEngine(EventLoop& loop, HttpClientOptions options);
  ~CurlEngine();

  // A CURL* with the client's options set. Give it back when it is not added.
  void* TakeHandle();
  void GiveBack(void* easy);

  void Add(void* easy, CurlJob* job);
  void Remove(void* easy);  // aborts; never from inside a callback of curl

  void MarkDirty(CurlJob* job);
  void Forget(CurlJob* job);  // it is being destroyed

  void OnFd(int fd, uint32_t events) override;
  void OnTurnEnd() override;
  absl::Duration NextDeadline() const override {
    return dirty_.empty() ? deadline_ : absl::ZeroDuration();
  }

 private:
  static int OnSocket(void* easy, int fd, int what, void* self, void* socket);
  static int OnTimer(void* multi, long ms, void* self);
  void Configure(void* easy);
  void ReapFinished();
  void FlushDirty();

  EventLoop& loop_;
  const HttpClientOptions options_;
  std::string no_proxy_;  // of the environment, and loopback
  void* const multi_;
  absl::Duration deadline_ = absl::InfiniteDuration();  // of curl's timer, in real time
  int jobs_ = 0;
  std::vector<CurlJob*> dirty_;
  std::vector<CurlJob*> flushing_;
  std::vector<void*> idle_;  // easy handles to use again
};

}  // namespace bridge
