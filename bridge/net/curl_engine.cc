// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/curl_engine.h"

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace bridge {
namespace {

constexpr size_t kMaxIdleHandles = 256;  // each keeps about 6 KiB

// An option that cannot be set is a defect of the build, not of the request.
template <class T>
void Set(void* easy, CURLoption option, T value) {
  if (curl_easy_setopt(easy, option, value) != CURLE_OK) std::abort();
}

void* NewMulti() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) std::abort();
  });
  CURLM* multi = curl_multi_init();
  if (multi == nullptr) std::abort();  // out of memory
  return multi;
}

// Loopback is never proxied; otherwise what the environment says. "*" must stay alone.
std::string NoProxy() {
  const char* value = std::getenv("no_proxy");
  if (value == nullptr) value = std::getenv("NO_PROXY");
  std::string list = value == nullptr ? "" : value;
  if (list != "*") list += ",localhost,127.0.0.0/8,::1";
  return list;
}

// curl's own sockets are inherited by child processes, which would keep them in the epoll set after
// they are closed here.
curl_socket_t OpenSocket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

CurlEngine::CurlEngine(EventLoop& loop, HttpClientOptions options)
    : loop_(loop), options_(std::move(options)), no_proxy_(NoProxy()), multi_(NewMulti()) {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.max_idle_connections));
  loop_.RunAndWait([this] { loop_.AddSource(this); });
}

CurlEngine::~CurlEngine() {
  loop_.RunAndWait([this] {
    assert(jobs_ == 0 && dirty_.empty());
    for (void* easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);  // closes the idle connections; calls OnSocket
    loop_.RemoveSource(this);
  });
}

void* CurlEngine::TakeHandle() {
  if (!idle_.empty()) {
    void* easy = idle_.back();
    idle_.pop_back();
    return easy;
  }
  CURL* easy = curl_easy_init();
  if (easy == nullptr) std::abort();  // out of memory
  Configure(easy);
  return easy;
}

void CurlEngine::GiveBack(void* easy) {
  if (idle_.size() >= kMaxIdleHandles) {
    curl_easy_cleanup(easy);
    return;
  }
  curl_easy_reset(easy);
  Configure(easy);
  idle_.push_back(easy);
}

void CurlEngine::Configure(void* easy) {
  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_QUICK_EXIT, 1L);  // an abort must not wait for a getaddrinfo() that hangs
  Set(easy, CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  Set(easy, CURLOPT_TCP_KEEPALIVE, 1L);  // finds out about a peer that is gone without a word
  Set(easy, CURLOPT_TCP_KEEPIDLE, 30L);
  Set(easy, CURLOPT_TCP_KEEPINTVL, 10L);
  if (!options_.user_agent.empty()) Set(easy, CURLOPT_USERAGENT, options_.user_agent.c_str());
  if (options_.use_environment_proxy) {
    Set(easy, CURLOPT_NOPROXY, no_proxy_.c_str());
  } else {
    Set(easy, CURLOPT_PROXY, "");
  }
  if (!options_.ca_file.empty()) {
    Set(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
    Set<const char*>(easy, CURLOPT_CAPATH, nullptr);
  }
  if (!options_.ca_bundle.empty()) {
    curl_blob blob{};
    blob.data = const_cast<char*>(options_.ca_bundle.data());  // NOLINT: curl only reads it
    blob.len = options_.ca_bundle.size();
    blob.flags = CURL_BLOB_NOCOPY;  // options_ outlives the handles
    Set(easy, CURLOPT_CAINFO_BLOB, &blob);
    Set<const char*>(easy, CURLOPT_CAPATH, nullptr);
  }
}

void CurlEngine::Add(void* easy, CurlJob* job) {
  ++jobs_;
  Set(easy, CURLOPT_PRIVATE, job);
  curl_multi_add_handle(multi_, easy);
}

void CurlEngine::Remove(void* easy) {
  --jobs_;
  curl_multi_remove_handle(multi_, easy);
}

void CurlEngine::MarkDirty(CurlJob* job) {
  if (std::exchange(job->dirty_, true)) return;
  dirty_.push_back(job);
}

void CurlEngine::Forget(CurlJob* job) {
  if (!job->dirty_) return;
  std::erase(dirty_, job);
  std::replace(flushing_.begin(), flushing_.end(), job, static_cast<CurlJob*>(nullptr));
}

// `socket` is curl's memory of the number and may be stale (see EventLoop::Watch): not used.
int CurlEngine::OnSocket(void*, int fd, int what, void* self, void*) {
  auto* engine = static_cast<CurlEngine*>(self);
  if (what == CURL_POLL_REMOVE) {
    engine->loop_.Unwatch(fd, engine);
    return 0;
  }
  uint32_t events = 0;
  if ((what & CURL_POLL_IN) != 0) events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
  engine->loop_.Watch(fd, events, engine);
  return 0;
}

int CurlEngine::OnTimer(void*, long ms, void* self) {
  static_cast<CurlEngine*>(self)->deadline_ =
      ms < 0 ? absl::InfiniteDuration() : Clock::Real().Monotonic() + absl::Milliseconds(ms);
  return 0;
}

void CurlEngine::OnFd(int fd, uint32_t events) {
  int mask = 0;
  if ((events & EPOLLIN) != 0) mask |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) mask |= CURL_CSELECT_ERR;
  int running = 0;
  curl_multi_socket_action(multi_, fd, mask, &running);
}

void CurlEngine::OnTurnEnd() {
  if (deadline_ != absl::InfiniteDuration() && deadline_ <= Clock::Real().Monotonic()) {
    deadline_ = absl::InfiniteDuration();
    int running = 0;
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  ReapFinished();
  FlushDirty();
}

void CurlEngine::ReapFinished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // the message dies with the handle's removal
    CurlJob* job = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &job);
    job->OnCurlDone(code);
  }
}

// In the order in which they got something. Resumed tasks may destroy any of the jobs, and may mark
// some again: those are the next turn's, which NextDeadline() then wants at once.
void CurlEngine::FlushDirty() {
  flushing_.swap(dirty_);
  for (size_t i = 0; i < flushing_.size(); ++i) {
    CurlJob* job = flushing_[i];
    if (job == nullptr) continue;
    job->dirty_ = false;
    flushing_[i] = nullptr;
    job->Flush();
  }
  flushing_.clear();
}

}  // namespace bridge
