// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/faults/fault_hook.h"

#include <algorithm>

#include "absl/time/time.h"
#include "bridge/local/lifecycle/notes.h"

namespace bridge::local::faults {
namespace {

constexpr std::string_view kEventEnd = "\n\n";

}  // namespace

bool FaultHook::BeforeHandler(http::Exchange& exchange) {
  if (action_.write_bytes() > 0) {
    exchange.socket().set_max_write(static_cast<size_t>(action_.write_bytes()));
  }
  if (action_.hide_new_seconds() > 0) {
    exchange.SetNote(lifecycle::kNoteHideNew, std::to_string(action_.hide_new_seconds()));
  }
  if (action_.pending_seconds() > 0) {
    exchange.SetNote(lifecycle::kNotePending, std::to_string(action_.pending_seconds()));
  }
  if (action_.keep_on_delete()) exchange.SetNote(lifecycle::kNoteKeepOnDelete, "1");

  if (action_.delay_seconds() > 0 && !exchange.Sleep(absl::Seconds(action_.delay_seconds()))) {
    return true;  // the client has gone
  }
  if (action_.never_answer()) {
    exchange.Sleep(absl::InfiniteDuration());
    return true;
  }
  if (action_.reset()) {
    exchange.Reset();
    return true;
  }
  if (action_.close()) return true;  // nothing answered ends the connection
  if (!action_.has_answer()) return false;
  http::Response response{action_.answer().status(), {}, action_.answer().body()};
  for (const Header& header : action_.answer().header()) {
    response.headers.Add(header.name(), header.value());
  }
  (void)exchange.Respond(std::move(response));
  return true;
}

void FaultHook::BeforeHead(http::Exchange& exchange, http::Response& head) {
  websocket_ = head.status == 101;
  const auto type = head.headers.Get("content-type");
  event_stream_ = type && type->starts_with("text/event-stream");
  if (action_.has_content_length()) {
    head.headers.Set("content-length", std::to_string(action_.content_length()));
  }
  if (action_.date_skew_seconds() != 0) {
    const auto skew = static_cast<long long>(action_.date_skew_seconds());
    head.headers.Set("date", http::HttpDate(exchange.UnixTime() + skew));
  }
  for (const std::string& name : action_.remove_header()) head.headers.Remove(name);
  for (const Header& header : action_.set_header()) {
    head.headers.Set(header.name(), header.value());
  }
}

bool FaultHook::WantsEvents() const {
  return !action_.drop_event().empty() || action_.insert_size() > 0 ||
         action_.has_close_after_events() || action_.has_reset_after_events();
}

http::Hook::After FaultHook::CountEvent(std::string event, std::string* out) {
  const auto insert_after = [&](int count) {
    for (const InsertEvent& insert : action_.insert()) {
      if (insert.after() == count) *out += insert.text();
    }
  };
  if (events_ == 0) insert_after(0);
  if (!action_.drop_event().empty() && event.find(action_.drop_event()) != std::string::npos) {
    return After::kGoOn;
  }
  *out += event;
  insert_after(++events_);
  if (action_.has_close_after_events() && events_ >= action_.close_after_events()) {
    return After::kClose;
  }
  if (action_.has_reset_after_events() && events_ >= action_.reset_after_events()) {
    return After::kReset;
  }
  return After::kGoOn;
}

http::Hook::After FaultHook::FilterEvents(std::string& bytes, bool message) {
  std::string out;
  After after = After::kGoOn;
  if (message) {
    after = CountEvent(std::move(bytes), &out);
    bytes = std::move(out);
    return after;
  }
  unfinished_ += bytes;
  size_t end = 0;
  while (after == After::kGoOn && (end = unfinished_.find(kEventEnd)) != std::string::npos) {
    end += kEventEnd.size();
    after = CountEvent(unfinished_.substr(0, end), &out);
    unfinished_.erase(0, end);
  }
  bytes = std::move(out);
  return after;
}

bool FaultHook::Cut(int64_t limit, std::string& bytes) const {
  const int64_t room = std::max<int64_t>(limit - bytes_sent_, 0);
  if (static_cast<int64_t>(bytes.size()) < room) return false;
  bytes.resize(static_cast<size_t>(room));
  return true;
}

http::Hook::After FaultHook::BeforeBody(http::Exchange& exchange, std::string& bytes) {
  if (action_.pause_between_writes_seconds() > 0) {
    exchange.Sleep(absl::Seconds(action_.pause_between_writes_seconds()));
  }
  After after = After::kGoOn;
  // Anything but an event stream comes in pieces that are events enough.
  if (WantsEvents()) after = FilterEvents(bytes, websocket_ || !event_stream_);
  if (action_.has_close_after_bytes() && Cut(action_.close_after_bytes(), bytes)) {
    after = After::kClose;
  }
  if (action_.has_reset_after_bytes() && Cut(action_.reset_after_bytes(), bytes)) {
    after = After::kReset;
  }
  if (action_.has_hang_after_bytes() && Cut(action_.hang_after_bytes(), bytes)) {
    after = After::kHang;
  }
  bytes_sent_ += static_cast<int64_t>(bytes.size());
  return after;
}

void FaultHook::BeforeEnd(http::Exchange&, std::string& bytes) {
  bytes += unfinished_;
  unfinished_.clear();
}

void FaultHook::AfterHandler(http::Exchange& exchange) {
  // The next exchange on this connection is another's business.
  exchange.socket().set_max_write(0);
}

}  // namespace bridge::local::faults
