// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/snapshots.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/backoff.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/opensandbox/page_token.h"
#include "bridge/opensandbox/sandbox_reader.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using R = ErrorReason;

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr absl::Duration kReserve = absl::Milliseconds(200);
constexpr std::string_view kOwner = "@sandbox-bridge/";

std::string NameUpstream(std::string_view name, std::string_view tenant) {
  if (tenant.empty()) return std::string(name);
  return std::string(name) + std::string(kOwner) + TenantLabel(tenant);
}

// Takes the owner off the name; "" when it has none.
std::string TakeOwner(std::string* name) {
  const size_t at = name->rfind(kOwner);
  if (at == std::string::npos) return "";
  std::string owner = name->substr(at + kOwner.size());
  name->resize(at);
  return owner;
}

// Is it the caller's to see? Afterwards its name is the one that it was given.
bool Admit(const CallContext& context, SnapshotRecord* record) {
  const std::string owner = TakeOwner(&record->name);
  return context.tenant.empty() || owner == TenantLabel(context.tenant);
}

absl::Status NotFound(const std::string& snapshot_id) {
  return MakeError(R::ERROR_REASON_SNAPSHOT_NOT_FOUND,
                   fmt::format("there is no snapshot {}", snapshot_id));
}

bool IsSettled(SnapshotState state) {
  return state == SnapshotState::kReady || state == SnapshotState::kFailed;
}

}  // namespace

Task<absl::StatusOr<SnapshotRecord>> CreateSnapshot(LifecycleClient& client, CallContext context,
                                                    std::string sandbox_id, std::string incarnation,
                                                    std::string name, absl::Duration wait) {
  CO_RETURN_IF_ERROR(co_await CheckSandbox(client, context, sandbox_id, incarnation));
  CO_ASSIGN_OR_RETURN(
      SnapshotRecord record,
      co_await client.CreateSnapshot(context, sandbox_id, NameUpstream(name, context.tenant)));
  EventLoop& loop = client.loop();
  const absl::Duration until = std::min(loop.Now() + wait, context.deadline - kReserve);
  Backoff pauses = Backoff::Steady(kFirstPause, kLongestPause);
  while (!IsSettled(record.state)) {
    const absl::Duration pause = std::min(pauses.Next(), until - loop.Now());
    if (pause <= absl::ZeroDuration()) break;
    const bool slept = co_await loop.Sleep(pause);
    if (!slept) break;  // it is being made, whoever looks
    absl::StatusOr<SnapshotRecord> now = co_await client.GetSnapshot(context, record.id);
    // A look that fails changes nothing about the snapshot that was made.
    if (now.ok()) record = *std::move(now);
  }
  (void)TakeOwner(&record.name);
  co_return record;
}

Task<absl::StatusOr<SnapshotList>> ListSnapshots(LifecycleClient& client, CallContext context,
                                                 SnapshotListRequest request) {
  const std::string filter =
      fmt::format("snapshots|{}|{}|{}", request.page_size, context.tenant, request.sandbox_id);
  PagePosition position;
  if (!request.page_token.empty()) {
    CO_ASSIGN_OR_RETURN(position, DecodePageToken(request.page_token, filter));
  }
  CO_ASSIGN_OR_RETURN(
      SnapshotPage page,
      co_await client.ListSnapshots(context, request.sandbox_id, position.page, request.page_size));
  SnapshotList result;
  const bool more = page.pagination.has_next && !page.items.empty();
  for (SnapshotRecord& record : page.items) {
    const bool wanted = request.sandbox_id.empty() || record.sandbox_id == request.sandbox_id;
    if (Admit(context, &record) && wanted) result.snapshots.push_back(std::move(record));
  }
  if (more && position.page < kMaxPageNumber) {
    ++position.page;
    result.next_page_token = EncodePageToken(position, filter);
  }
  co_return result;
}

Task<absl::Status> CheckSnapshot(LifecycleClient& client, CallContext context,
                                 std::string snapshot_id) {
  if (context.tenant.empty()) co_return absl::OkStatus();
  CO_ASSIGN_OR_RETURN(SnapshotRecord record, co_await client.GetSnapshot(context, snapshot_id));
  co_return Admit(context, &record) ? absl::OkStatus() : NotFound(snapshot_id);
}

Task<absl::Status> DeleteSnapshot(LifecycleClient& client, CallContext context,
                                  std::string snapshot_id) {
  CO_RETURN_IF_ERROR(co_await CheckSnapshot(client, context, snapshot_id));
  co_return co_await client.DeleteSnapshot(context, snapshot_id);
}

}  // namespace bridge
