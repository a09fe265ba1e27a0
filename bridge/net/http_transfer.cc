// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/http_transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/net/url.h"

namespace bridge {
namespace {

constexpr size_t kMaxHeadBytes = 256 * 1024;

// RFC 9112, 6.3: two lengths that differ are an attack or a broken proxy. curl takes the last one.
bool HasTwoLengths(const HttpHeaders& headers) {
  const auto first = headers.Get("Content-Length");
  if (!first) return false;
  return std::any_of(headers.begin(), headers.end(), [&first](const HttpHeaders::Field& field) {
    return SameHeaderName(field.name, "Content-Length") && field.value != *first;
  });
}

}  // namespace

static_assert(CURL_ERROR_SIZE == 256);

Transfer::Impl::Impl(HttpClient& client, HttpRequest request)
    : engine_(client.engine()),
      loop_(client.loop()),
      request_(std::move(request)),
      easy_(engine_.TakeHandle()),
      started_(loop_.Now()),
      last_activity_(started_),
      timer_(loop_, &OnTimer, this) {
  assert(loop_.OnLoop());
  const absl::Status prepared = Prepare();
  if (!prepared.ok()) {
    engine_.GiveBack(std::exchange(easy_, nullptr));
    result_ = prepared;
    done_ = true;
    return;
  }
  engine_.Add(easy_, this);
  OnTimer(this);
}

Transfer::Impl::~Impl() {
  if (!done_) End(absl::OkStatus());
  engine_.Forget(this);
  curl_slist_free_all(static_cast<curl_slist*>(header_list_));
  if (gone_ != nullptr) *gone_ = true;
}

// ---- For the reading task

Task<absl::StatusOr<HttpHead>> Transfer::Impl::Head() {
  bool waiting = true;
  want_ = Want::kHead;
  while (waiting && !ReaderReady()) waiting = co_await reader_.Wait();
  if (head_complete_) co_return head_;
  co_return result();
}

Task<bool> Transfer::Impl::Read(std::string* chunk) {
  bool waiting = true;
  want_ = Want::kChunk;
  while (waiting && !ReaderReady()) waiting = co_await reader_.Wait();
  if (!Readable()) co_return false;
  chunk->swap(chunks_.front());
  spare_ = std::move(chunks_.front());
  chunks_.pop_front();
  if (read_paused_ && !done_) Resume();
  co_return true;
}

Task<absl::StatusOr<std::string>> Transfer::Impl::ReadAll(size_t limit) {
  bool waiting = true;
  want_ = Want::kAll;
  limit_ = limit;
  if (read_paused_ && !done_) Resume();
  while (waiting && !done_) waiting = co_await reader_.Wait();
  const absl::Status ended = result();
  if (!ended.ok()) co_return ended;
  if (body_bytes_ > limit) co_return ProtocolStatus(request_.url, "sent too large an answer");
  std::string all;
  if (!chunks_.empty()) all = std::move(chunks_.front());
  for (size_t i = 1; i < chunks_.size(); ++i) all += chunks_[i];
  chunks_.clear();
  co_return all;
}

absl::Status Transfer::Impl::result() const {
  return done_ ? result_ : CancelledStatus(request_.url);
}

bool Transfer::Impl::Readable() const {
  if (chunks_.empty()) return false;
  return done_ || !request_.whole_chunks || chunks_.size() > 1 ||
         chunks_.front().size() >= request_.chunk_bytes;
}

bool Transfer::Impl::ReaderReady() const {
  if (done_) return true;
  if (want_ == Want::kHead) return head_complete_;
  return want_ == Want::kChunk && Readable();
}

// ---- For the sending task

Task<bool> Transfer::Impl::SendParts(std::vector<std::string_view> parts) {
  bool waiting = true;
  assert(request_.upload && !send_closed_ && AllTaken());
  out_ = std::move(parts);
  out_index_ = out_offset_ = 0;
  while (!AllTaken() && out_[out_index_].empty()) ++out_index_;
  if (send_paused_ && !done_ && !AllTaken()) Resume();
  while (waiting && !done_ && !AllTaken()) waiting = co_await sender_.Wait();
  const bool all = AllTaken() && !done_;
  out_.clear();  // the memory is the caller's again
  out_index_ = 0;
  co_return all;
}

void Transfer::Impl::CloseSend() {
  send_closed_ = true;
  Touch();
  if (send_paused_ && !done_) Resume();
}

// curl may call OnBody and OnSend from inside; they pause again if they must.
void Transfer::Impl::Resume() {
  const bool keep_sending_paused = send_paused_ && !send_closed_ && AllTaken();
  read_paused_ = false;
  send_paused_ = keep_sending_paused;
  Touch();
  curl_easy_pause(easy_, keep_sending_paused ? CURLPAUSE_SEND : CURLPAUSE_CONT);
}

// ---- Callbacks of curl

int Transfer::Impl::OnConnected(void* self, char*, char*, int, int) {
  auto* impl = static_cast<Impl*>(self);
  if (impl->sends_ > 0 && !impl->MaySendAgain()) {
    impl->resend_refused_ = true;
    return CURL_PREREQFUNC_ABORT;
  }
  ++impl->sends_;
  impl->Touch();
  return CURL_PREREQFUNC_OK;
}

size_t Transfer::Impl::OnHeader(char* data, size_t size, size_t count, void* self) {
  const size_t bytes = size * count;
  return static_cast<Impl*>(self)->TakeHeaderLine(std::string_view(data, bytes)) ? bytes : 0;
}

// A status line begins a head, an empty line ends it. Interim answers (1xx) are forgotten, trailers
// are not looked at.
bool Transfer::Impl::TakeHeaderLine(std::string_view line) {
  Touch();
  if (head_complete_) return true;
  head_bytes_ += line.size();
  if (head_bytes_ > kMaxHeadBytes) {
    peer_fault_ = "sent a head that is too large";
    return false;
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.empty()) {
    if (head_.status < 200) return true;
    if (HasTwoLengths(head_.headers)) {
      peer_fault_ = "announced two different lengths";
      return false;
    }
    if (head_.status >= 400) head_.host = HostAndPort(request_.url);
    head_complete_ = true;
    engine_.MarkDirty(this);
  } else if (line.substr(0, 5) == "HTTP/") {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    head_ = {.status = static_cast<int>(status)};
  } else if (auto field = ParseHeaderLine(line); field.has_value()) {
    head_.headers.Add(field->name, field->value);
  }
  return true;
}

size_t Transfer::Impl::OnBody(char* data, size_t size, size_t count, void* self) {
  return static_cast<Impl*>(self)->TakeBody(std::string_view(data, size * count));
}

size_t Transfer::Impl::TakeBody(std::string_view bytes) {
  const bool collecting = want_ == Want::kAll;
  const bool full =
      chunks_.empty() || (!collecting && chunks_.back().size() >= request_.chunk_bytes);
  if (collecting && body_bytes_ + bytes.size() > limit_) {
    peer_fault_ = "sent too large an answer";
    return 0;
  }
  if (full && !collecting && chunks_.size() >= request_.max_chunks) {
    read_paused_ = true;  // curl keeps these bytes and offers them again
    return CURL_WRITEFUNC_PAUSE;
  }
  Touch();
  if (full) {
    chunks_.push_back(std::exchange(spare_, std::string()));
    chunks_.back().clear();
    if (request_.whole_chunks) {
      chunks_.back().reserve(request_.chunk_bytes + request_.receive_buffer);
    }
  }
  chunks_.back().append(bytes);
  body_bytes_ += bytes.size();
  if (!collecting) engine_.MarkDirty(this);
  return bytes.size();
}

size_t Transfer::Impl::OnSend(char* data, size_t size, size_t count, void* self) {
  return static_cast<Impl*>(self)->FillSend(data, size * count);
}

size_t Transfer::Impl::FillSend(char* data, size_t capacity) {
  size_t filled = 0;
  while (filled < capacity && !AllTaken()) {
    const std::string_view part = out_[out_index_].substr(out_offset_);
    const size_t n = std::min(capacity - filled, part.size());
    if (n != 0) std::memcpy(data + filled, part.data(), n);
    filled += n;
    out_offset_ += n;
    if (n == part.size()) {
      ++out_index_;
      out_offset_ = 0;
    }
  }
  sent_bytes_ += static_cast<int64_t>(filled);
  if (request_.upload_bytes.has_value() &&
      (sent_bytes_ > *request_.upload_bytes ||
       (filled == 0 && send_closed_ && sent_bytes_ < *request_.upload_bytes))) {
    own_fault_ = "was sent another number of bytes than announced";
    return CURL_READFUNC_ABORT;
  }
  if (filled != 0) {
    Touch();
    if (AllTaken()) engine_.MarkDirty(this);
  } else if (!send_closed_) {
    send_paused_ = true;
    return CURL_READFUNC_PAUSE;
  }
  return filled;
}

// ---- The end

HttpPhase Transfer::Impl::phase() const {
  if (head_complete_) return HttpPhase::kBody;
  return sends_ > 0 ? HttpPhase::kAnswer : HttpPhase::kConnect;
}

void Transfer::Impl::OnCurlDone(int curl_code) {
  if (resend_refused_) return End(NotResentStatus(request_.url));
  if (peer_fault_ != nullptr) return End(ProtocolStatus(request_.url, peer_fault_));
  if (own_fault_ != nullptr) {
    return End(MakeError(ErrorReason::ERROR_REASON_INTERNAL,
                         fmt::format("{} {}", HostAndPort(request_.url), own_fault_)));
  }
  if (curl_code == CURLE_OK && !head_complete_) {
    curl_code = CURLE_PARTIAL_FILE;  // it ended inside the head
  }
  if (curl_code == CURLE_OPERATION_TIMEDOUT && phase() == HttpPhase::kConnect) {
    return End(
        TimeoutStatus(request_.url, phase(), "accepted no connection", request_.connect_timeout));
  }
  long system_error = 0;
  curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &system_error);
  End(CurlStatus({.code = curl_code,
                  .phase = phase(),
                  .url = request_.url,
                  .system_error = static_cast<int>(system_error),
                  .detail = error_text_}));
}

void Transfer::Impl::End(absl::Status result) {
  result_ = std::move(result);
  done_ = true;
  timer_.Clear();
  engine_.Remove(easy_);
  engine_.GiveBack(std::exchange(easy_, nullptr));
  engine_.MarkDirty(this);
}

void Transfer::Impl::Flush() {
  bool gone = false;
  gone_ = &gone;
  if (done_ || AllTaken()) sender_.Notify(true);
  if (gone) return;
  gone_ = nullptr;
  if (ReaderReady()) reader_.Notify(true);
}

// The timer is set once for the nearest limit and looks at the facts when it fires, so that a byte
// that comes costs nothing.
void Transfer::Impl::OnTimer(void* self) {
  auto* impl = static_cast<Impl*>(self);
  absl::Duration next = absl::InfiniteDuration();
  const absl::Status overdue = impl->Overdue(impl->loop_.Now(), &next);
  if (!overdue.ok()) return impl->End(overdue);
  impl->timer_.SetAt(next);
}

absl::Status Transfer::Impl::Overdue(absl::Duration now, absl::Duration* next) const {
  const absl::Duration total_end = started_ + request_.total_timeout;
  if (sends_ == 0) {
    const absl::Duration connect_end = started_ + request_.connect_timeout;
    if (now >= connect_end) {
      return TimeoutStatus(request_.url, phase(), "accepted no connection",
                           request_.connect_timeout);
    }
    *next = std::min(connect_end, now + request_.idle_timeout);
  } else {
    const absl::Duration idle_end = (WaitsForUs() ? now : last_activity_) + request_.idle_timeout;
    if (now >= idle_end) {
      return TimeoutStatus(request_.url, phase(), "sent nothing", request_.idle_timeout);
    }
    *next = idle_end;
  }
  if (now >= total_end) {
    return TimeoutStatus(request_.url, phase(), "did not complete its answer",
                         request_.total_timeout);
  }
  *next = std::min(*next, total_end);
  return absl::OkStatus();
}

}  // namespace bridge
