// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/faults/recorder.h"

#include <algorithm>
#include <utility>

#include "bridge/local/http/router.h"

namespace bridge::local::faults {
namespace {

bool Fits(const RecordedRequest& request, std::string_view method, std::string_view route) {
  if (!method.empty() && request.method != method) return false;
  return route.empty() || http::MatchPattern(route, request.path, nullptr);
}

}  // namespace

class Recorder::RecordingHook final : public http::Hook {
 public:
  RecordingHook(Recorder& recorder, std::shared_ptr<RecordedRequest> entry)
      : recorder_(recorder), entry_(std::move(entry)) {}

  void OnRequestBody(std::string_view bytes) override {
    const std::lock_guard lock(recorder_.mu_);
    entry_->body_size += bytes.size();
    const size_t room = recorder_.max_body_bytes_ - entry_->body.size();
    entry_->body.append(bytes.substr(0, room));
  }

  void BeforeHead(http::Exchange&, http::Response& head) override {
    const std::lock_guard lock(recorder_.mu_);
    entry_->status = head.status;
    recorder_.changed_.notify_all();
  }

 private:
  Recorder& recorder_;
  const std::shared_ptr<RecordedRequest> entry_;
};

std::vector<RecordedRequest> Recorder::requests() const { return Matching("", ""); }

std::vector<RecordedRequest> Recorder::Matching(std::string_view method,
                                                std::string_view route) const {
  std::vector<RecordedRequest> matching;
  const std::lock_guard lock(mu_);
  for (const auto& request : requests_) {
    if (Fits(*request, method, route)) matching.push_back(*request);
  }
  return matching;
}

bool Recorder::WaitFor(std::string_view method, std::string_view route, size_t count,
                       absl::Duration timeout) const {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [&] {
    return static_cast<size_t>(
               std::count_if(requests_.begin(), requests_.end(), [&](const auto& request) {
                 return request->status != 0 && Fits(*request, method, route);
               })) >= count;
  });
}

void Recorder::Clear() {
  const std::lock_guard lock(mu_);
  requests_.clear();
}

http::HookFactory Recorder::Hooks(Half half) {
  return [this, half](const http::Request& request) {
    auto entry = std::make_shared<RecordedRequest>();
    entry->half = half;
    entry->method = request.method;
    entry->target = request.target;
    entry->path = request.path;
    entry->headers = request.headers;
    entry->peer = request.peer;
    const std::lock_guard lock(mu_);
    requests_.push_back(entry);
    return std::make_unique<RecordingHook>(*this, std::move(entry));
  };
}

}  // namespace bridge::local::faults
