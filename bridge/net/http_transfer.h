// SPDX-License-Identifier: Apache-2.0
//
// net/http_transfer.h — what is behind a Transfer: one easy handle of curl and two waiting tasks.
//
// curl's callbacks (On*) move bytes and note things; Flush() resumes the tasks at the end of the
// turn. Backpressure: OnBody refuses bytes when max_chunks wait, and curl then reads no more.
// Timeouts are timers of the loop, so that a fake clock moves them. For net/ only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/curl_engine.h"
#include "bridge/net/curl_status.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"

namespace bridge {

class Transfer::Impl final : public CurlJob {
 public:
  Impl(HttpClient& client, HttpRequest request);
  ~Impl();

  Task<absl::StatusOr<HttpHead>> Head();
  Task<bool> Read(std::string* chunk);
  Task<absl::StatusOr<std::string>> ReadAll(size_t limit);
  Task<bool> SendParts(std::vector<std::string_view> parts);
  void CloseSend();
  bool done() const { return done_; }
  absl::Status result() const;

  void OnCurlDone(int curl_code) override;
  void Flush() override;

 private:
  // What the reading task waits for.
  enum class Want { kHead, kChunk, kAll };

  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  static size_t OnSend(char* data, size_t size, size_t count, void* self);
  static int OnConnected(void* self, char* ip, char* local_ip, int port, int local_port);
  static void OnTimer(void* self);

  // http_request.cc: the request as options of the handle.
  absl::Status Prepare();
  absl::Status PrepareHeaders();
  void PrepareBody();
  void PrepareCallbacks();

  bool TakeHeaderLine(std::string_view line);
  size_t TakeBody(std::string_view bytes);
  size_t FillSend(char* data, size_t capacity);
  bool MaySendAgain() const;

  bool Readable() const;
  bool ReaderReady() const;
  bool AllTaken() const { return out_index_ == out_.size(); }
  void Resume();

  HttpPhase phase() const;
  bool WaitsForUs() const { return read_paused_ || (send_paused_ && !send_closed_); }
  void Touch() { last_activity_ = loop_.TurnStart(); }
  absl::Status Overdue(absl::Duration now, absl::Duration* next) const;
  void End(absl::Status result);

  CurlEngine& engine_;
  EventLoop& loop_;
  HttpRequest request_;
  void* easy_ = nullptr;         // CURL*; null when done
  void* header_list_ = nullptr;  // curl_slist*
  char error_text_[256] = {};    // CURL_ERROR_SIZE: curl's own words
  absl::Status result_;
  bool done_ = false;

  int sends_ = 0;                     // how often the request went out
  bool resend_refused_ = false;       // it would have gone out once too often
  const char* peer_fault_ = nullptr;  // why a callback gave the exchange up
  const char* own_fault_ = nullptr;   // the same, and it is our doing

  HttpHead head_;
  size_t head_bytes_ = 0;
  bool head_complete_ = false;

  Want want_ = Want::kHead;
  std::deque<std::string> chunks_;  // all full but the last
  std::string spare_;               // memory of a chunk that was read
  size_t body_bytes_ = 0;           // received so far
  size_t limit_ = 0;                // of ReadAll
  bool read_paused_ = false;

  std::vector<std::string_view> out_;  // the sending task's memory
  size_t out_index_ = 0;
  size_t out_offset_ = 0;
  int64_t sent_bytes_ = 0;
  bool send_paused_ = false;
  bool send_closed_ = false;

  const absl::Duration started_;
  absl::Duration last_activity_;
  Timer timer_;
  Waiter reader_;
  Waiter sender_;
  bool* gone_ = nullptr;  // set while Flush runs: a resumed task destroyed this
};

}  // namespace bridge
