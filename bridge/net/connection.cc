// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/connection.h"

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "bridge/net/curl_engine.h"
#include "bridge/net/curl_status.h"

namespace bridge {

class Connection::Impl final : public CurlJob {
 public:
  explicit Impl(HttpClient& client)
      : engine_(client.engine()), loop_(client.loop()), timer_(loop_, &OnTimer, this) {}

  ~Impl() {
    engine_.Forget(this);
    Drop();
  }

  Task<absl::Status> Open(std::string url, absl::Duration timeout);

  void OnCurlDone(int curl_code) override {
    if (curl_code == CURLE_OK) {
      curl_socket_t fd = CURL_SOCKET_BAD;
      curl_easy_getinfo(easy_, CURLINFO_ACTIVESOCKET, &fd);
      fd_ = fd;
      End(absl::OkStatus());
      return;
    }
    long system_error = 0;
    curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &system_error);
    End(curl_code == CURLE_OPERATION_TIMEDOUT
            ? Late()
            : CurlStatus({.code = curl_code,
                          .phase = HttpPhase::kConnect,
                          .url = url_,
                          .system_error = static_cast<int>(system_error),
                          .detail = error_text_}));
  }

  void Flush() override {
    if (done_) waiter_.Notify(true);
  }

  int fd() const { return fd_; }
  CURL* easy() const { return easy_; }

 private:
  static void OnTimer(void* self) {
    auto* impl = static_cast<Impl*>(self);
    impl->End(impl->Late());
  }

  absl::Status Late() const {
    return TimeoutStatus(url_, HttpPhase::kConnect, "accepted no connection", timeout_);
  }

  void End(absl::Status status) {
    status_ = std::move(status);
    done_ = true;
    timer_.Clear();
    engine_.MarkDirty(this);
  }

  // The connection lives as long as its handle stays in the engine.
  void Drop() {
    if (easy_ == nullptr) return;
    engine_.Remove(easy_);
    engine_.GiveBack(std::exchange(easy_, nullptr));
    fd_ = -1;
  }

  CurlEngine& engine_;
  EventLoop& loop_;
  std::string url_;
  absl::Duration timeout_;
  CURL* easy_ = nullptr;
  int fd_ = -1;
  char error_text_[CURL_ERROR_SIZE] = {};
  absl::Status status_;
  bool done_ = false;
  Timer timer_;
  Waiter waiter_;
};

Task<absl::Status> Connection::Impl::Open(std::string url, absl::Duration timeout) {
  bool waiting = true;
  assert(easy_ == nullptr && !done_);
  url_ = std::move(url);
  timeout_ = timeout;
  easy_ = engine_.TakeHandle();
  const absl::Duration bound = std::clamp(timeout, absl::Milliseconds(1), absl::Hours(24));
  curl_easy_setopt(easy_, CURLOPT_URL, url_.c_str());
  curl_easy_setopt(easy_, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy_, CURLOPT_HTTPPROXYTUNNEL, 1L);  // also for http: we need a stream
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(bound)));
  engine_.Add(easy_, this);
  timer_.SetAt(loop_.Now() + timeout);
  while (waiting && !done_) waiting = co_await waiter_.Wait();
  if (!done_) status_ = CancelledStatus(url_);
  if (!status_.ok()) Drop();
  co_return status_;
}

Connection::Connection(HttpClient& client) : impl_(std::make_unique<Impl>(client)) {}

Connection::~Connection() = default;

Task<absl::Status> Connection::Open(std::string url, absl::Duration timeout) {
  return impl_->Open(std::move(url), timeout);
}

int Connection::fd() const { return impl_->fd(); }

void Connection::ResetWhenClosed() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (fd() >= 0) (void)setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

Connection::Io Connection::TryRead(char* data, size_t capacity, size_t* bytes) {
  *bytes = 0;
  const CURLcode code = curl_easy_recv(impl_->easy(), data, capacity, bytes);
  if (code == CURLE_AGAIN) return Io::kWouldBlock;
  if (code != CURLE_OK) return Io::kBroken;
  return *bytes == 0 ? Io::kEnd : Io::kOk;
}

Connection::Io Connection::TryWrite(std::string_view data, size_t* bytes) {
  *bytes = 0;
  const CURLcode code = curl_easy_send(impl_->easy(), data.data(), data.size(), bytes);
  if (code == CURLE_AGAIN) return Io::kWouldBlock;
  return code == CURLE_OK ? Io::kOk : Io::kBroken;
}

}  // namespace bridge
