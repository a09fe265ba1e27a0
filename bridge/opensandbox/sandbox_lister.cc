// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_lister.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/page_token.h"
#include "fmt/format.h"

namespace bridge {
namespace {

// A message is at most 1 MiB; a page that would be larger ends early.
constexpr size_t kMaxPageBytes = 900 << 10;
// Pages of the upstream that one call reads while all they hold is not asked for.
constexpr int kMaxRounds = 10;

bool Matches(const SandboxRecord& record, const SandboxFilter& filter, std::string_view tenant) {
  for (const auto& [key, value] : filter.metadata) {
    const auto it = record.metadata.find(key);
    if (it == record.metadata.end() || it->second != value) return false;
  }
  if (!filter.states.empty() &&
      std::find(filter.states.begin(), filter.states.end(), record.state) == filter.states.end()) {
    return false;
  }
  if (!filter.request_id.empty() && RequestIdOf(record) != filter.request_id) return false;
  return BelongsTo(record, tenant);
}

// In one text what a token must agree with.
std::string Describe(const SandboxListRequest& request, std::string_view tenant) {
  std::string text = fmt::format("{}|{}|{}", request.page_size, tenant, request.filter.request_id);
  for (const SandboxState state : request.filter.states) {
    text += fmt::format("|{}", static_cast<int>(state));
  }
  for (const auto& [key, value] : request.filter.metadata)
    text += fmt::format("|{}={}", key, value);
  return text;
}

bool IsNewestFirst(const std::vector<SandboxRecord>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].created_at) return false;
    if (i > 0 && *items[i].created_at > *items[i - 1].created_at) return false;
  }
  return true;
}

class Lister {
 public:
  Lister(LifecycleClient& client, CallContext context, SandboxListRequest request)
      : client_(client), context_(std::move(context)), request_(std::move(request)) {}

  Task<absl::StatusOr<SandboxList>> Run() {
    const std::string filter = Describe(request_, context_.tenant);
    if (!request_.page_token.empty()) {
      CO_ASSIGN_OR_RETURN(position_, DecodePageToken(request_.page_token, filter));
    } else {
      position_.page = request_.skip / request_.page_size + 1;
      position_.offset = request_.skip % request_.page_size;
      if (position_.page > kMaxPageNumber) co_return SandboxList{};
    }
    PrepareQuery();
    for (int round = 0; round < kMaxRounds; ++round) {
      query_.page = position_.page;
      CO_ASSIGN_OR_RETURN(const SandboxPage page, co_await client_.List(context_, query_));
      if (round == 0 && StepBack(page)) continue;
      const bool more = Take(page);
      if (!more) co_return std::move(result_);
      if (!result_.sandboxes.empty()) break;
    }
    result_.next_page_token = EncodePageToken(position_, filter);
    co_return std::move(result_);
  }

 private:
  void PrepareQuery() {
    query_.page_size = request_.page_size;
    query_.metadata = request_.filter.metadata;
    query_.metadata.merge(RequestIdFilter(request_.filter.request_id));
    query_.metadata.merge(TenantFilter(context_.tenant));
    for (const SandboxState state : request_.filter.states) {
      const std::string_view word = SandboxStateText(state);
      if (word.empty()) {  // what this build has no word for can only be looked for here
        query_.states.clear();
        counts_ = false;
        return;
      }
      query_.states.emplace_back(word);
    }
  }

  // Entries were deleted since the page before: those behind them have moved forward.
  bool StepBack(const SandboxPage& page) {
    const int64_t total = page.pagination.total_items;
    if (!position_.last || position_.total < 0 || total < 0 || total >= position_.total) {
      return false;
    }
    const int64_t pages = (position_.total - total + request_.page_size - 1) / request_.page_size;
    position_.total = total;
    const int before = position_.page;
    position_.page = static_cast<int>(std::max<int64_t>(1, position_.page - pages));
    position_.offset = 0;
    return position_.page != before;
  }

  bool IsRepeat(const SandboxRecord& record, bool ordered) const {
    if (!ordered || !position_.last) return false;
    if (*record.created_at != *position_.last) return *record.created_at > *position_.last;
    return std::find(position_.ties.begin(), position_.ties.end(), ShortHash(record.id)) !=
           position_.ties.end();
  }

  void Advance(const SandboxRecord& record, bool ordered) {
    if (!ordered) {
      position_.last.reset();
      position_.ties.clear();
      return;
    }
    if (position_.last != record.created_at) position_.ties.clear();
    position_.last = record.created_at;
    if (position_.ties.size() < kMaxTies) position_.ties.push_back(ShortHash(record.id));
  }

  void Count(const SandboxPage& page, bool removed) {
    position_.total = page.pagination.total_items;
    if (counts_ && !removed && position_.total >= 0) result_.total = position_.total;
  }

  // Adds what of the page is wanted and new. False: this was the last page.
  bool Take(const SandboxPage& page) {
    const auto& items = page.items;
    const bool ordered = IsNewestFirst(items);
    size_t bytes = 0;
    bool removed = false;
    bool progress = false;
    for (size_t i = static_cast<size_t>(position_.offset); i < items.size(); ++i) {
      const SandboxRecord& record = items[i];
      if (IsRepeat(record, ordered) || !seen_.insert(record.id).second) continue;
      progress = true;
      if (!Matches(record, request_.filter, context_.tenant)) {
        removed = true;
        Advance(record, ordered);
        continue;
      }
      bytes += EstimatedBytes(record);
      const bool full = result_.sandboxes.size() == static_cast<size_t>(request_.page_size) ||
                        (bytes > kMaxPageBytes && !result_.sandboxes.empty());
      if (full) {
        position_.offset = static_cast<int>(i);
        Count(page, removed);
        return true;  // the rest of this page is the next one
      }
      Advance(record, ordered);
      result_.sandboxes.push_back(record);
    }
    Count(page, removed);
    position_.offset = 0;
    ++position_.page;
    // A server that answers the same page for every number would never end.
    const std::string first = items.empty() ? "" : items.front().id;
    const bool stuck = !progress && first == first_id_;
    first_id_ = first;
    return page.pagination.has_next && !items.empty() && !stuck && position_.page <= kMaxPageNumber;
  }

  LifecycleClient& client_;
  const CallContext context_;
  const SandboxListRequest request_;
  ListQuery query_;
  PagePosition position_;
  SandboxList result_;
  std::unordered_set<std::string> seen_;
  std::string first_id_;
  bool counts_ = true;  // the upstream applies the whole filter
};

}  // namespace

size_t EstimatedBytes(const SandboxRecord& record) {
  size_t bytes = 200 + record.id.size() + record.state_text.size() + record.state_reason.size() +
                 record.state_message.size() + record.image.size() + record.snapshot_id.size();
  for (const std::string& word : record.entrypoint) bytes += word.size() + 8;
  for (const auto& [key, value] : record.metadata) bytes += key.size() + value.size() + 16;
  return bytes;
}

Task<absl::StatusOr<SandboxList>> ListSandboxes(LifecycleClient& client, CallContext context,
                                                SandboxListRequest request) {
  Lister lister(client, std::move(context), std::move(request));
  co_return co_await lister.Run();
}

}  // namespace bridge
