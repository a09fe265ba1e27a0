// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/error_catalog.h"

#include "absl/status/status.h"

namespace bridge {
namespace {

using C = absl::StatusCode;
using F = Fault;

#define R(name) ErrorReason::ERROR_REASON_##name

constexpr CatalogEntry kCatalog[] = {
    {R(INVALID_ARGUMENT), C::kInvalidArgument, F::kCaller, false,
     "Correct the named field; nothing was sent upstream."},
    {R(CALLER_UNAUTHENTICATED), C::kUnauthenticated, F::kCaller, false,
     "Send a valid bearer token or client certificate to the bridge."},
    {R(NOT_YOUR_SANDBOX), C::kPermissionDenied, F::kCaller, false,
     "Use the token of the tenant that created the sandbox."},
    {R(SANDBOX_NOT_FOUND), C::kNotFound, F::kCaller, false,
     "The sandbox was deleted, has expired or never existed; create a new one."},
    {R(PATH_NOT_FOUND), C::kNotFound, F::kCaller, false,
     "Check the path; it is taken literally inside the sandbox."},
    {R(PROCESS_NOT_FOUND), C::kNotFound, F::kCaller, false,
     "The process is over and forgotten, or the id is wrong; list the processes."},
    {R(SNAPSHOT_NOT_FOUND), C::kNotFound, F::kCaller, false,
     "Check the snapshot id; list the snapshots."},
    {R(REQUEST_ID_REUSED), C::kAlreadyExists, F::kCaller, false,
     "Use a new request_id for a request with other content."},
    {R(AMBIGUOUS_ASSIGNMENT), C::kAborted, F::kUpstream, false,
     "Several sandboxes carry this request_id; look at them, delete the surplus ones and repeat."},
    {R(STALE_INCARNATION), C::kFailedPrecondition, F::kCaller, false,
     "The id names a newer sandbox now; get it again before you act on it."},
    {R(ALREADY_ATTACHED), C::kAborted, F::kCaller, false,
     "Another client holds the process; attach with takeover to take it."},
    {R(CANCELLED), C::kCancelled, F::kCaller, false, "The call was cancelled by its caller."},

    {R(SANDBOX_NOT_RUNNING), C::kFailedPrecondition, F::kSandbox, false,
     "Resume the sandbox, or create a new one if it has ended."},
    {R(SANDBOX_FAILED), C::kFailedPrecondition, F::kSandbox, false,
     "Read the reason and the diagnostics; correct the image or the entrypoint."},
    {R(SANDBOX_UNREACHABLE), C::kUnavailable, F::kSandbox, true,
     "Check that the bridge can reach the endpoint; the server's proxy may help."},
    {R(READY_TIMEOUT), C::kDeadlineExceeded, F::kSandbox, true,
     "Raise ready_timeout or look at the sandbox's diagnostics."},
    {R(NO_EXPIRY), C::kFailedPrecondition, F::kSandbox, false,
     "This sandbox never expires; delete it when it is not needed."},
    {R(IS_A_DIRECTORY), C::kFailedPrecondition, F::kCaller, false,
     "The path is a directory; list it, or name a file."},
    {R(NOT_A_DIRECTORY), C::kFailedPrecondition, F::kCaller, false,
     "The path is not a directory; name a directory."},
    {R(PERMISSION_DENIED), C::kPermissionDenied, F::kSandbox, false,
     "The sandbox's user may not do this; use another path or user."},
    {R(PATH_REJECTED), C::kInvalidArgument, F::kCaller, false,
     "Give an absolute path without NUL, at most 4096 bytes long, to what this call works on."},
    {R(PATH_EXISTS), C::kAlreadyExists, F::kCaller, false,
     "Ask for overwriting, or choose another destination."},
    {R(DIRECTORY_NOT_EMPTY), C::kFailedPrecondition, F::kCaller, false,
     "Ask for a recursive removal, or empty the directory first."},
    {R(FILE_TOO_LARGE), C::kOutOfRange, F::kCaller, false,
     "Use the streaming call, or read a part; nothing was lost."},
    {R(NO_SPACE), C::kResourceExhausted, F::kSandbox, false,
     "Free space in the sandbox, or create one with a larger disk."},
    {R(PRECONDITION_FAILED), C::kFailedPrecondition, F::kCaller, false,
     "The file is not as expected; read it again and decide."},
    {R(UNKNOWN_USER), C::kInvalidArgument, F::kCaller, false,
     "Name an account or group that exists in the sandbox's image, or give numbers."},

    {R(QUOTA_EXCEEDED), C::kResourceExhausted, F::kUpstream, true,
     "Delete sandboxes, raise the quota, or wait as long as the error says."},
    {R(TOO_MANY_STREAMS), C::kResourceExhausted, F::kBridge, true,
     "Close streams, wait as long as the error says, or add replicas of the bridge."},

    {R(UPSTREAM_UNAVAILABLE), C::kUnavailable, F::kUpstream, true,
     "Check that the OpenSandbox server runs and that the bridge can reach it; try again."},
    {R(UPSTREAM_TIMEOUT), C::kDeadlineExceeded, F::kUpstream, true,
     "The upstream was too slow; try again or give the call more time."},
    {R(UPSTREAM_UNAUTHENTICATED), C::kUnauthenticated, F::kUpstream, false,
     "Correct the bridge's OpenSandbox key (--api_key_file) or the caller's own."},
    {R(UPSTREAM_PERMISSION_DENIED), C::kPermissionDenied, F::kUpstream, false,
     "The OpenSandbox key is valid but not allowed to do this."},
    {R(UPSTREAM_PROTOCOL), C::kInternal, F::kUpstream, false,
     "The answer was not OpenSandbox's; check the upstream URL and what stands between."},
    {R(UPSTREAM_FAILED), C::kInternal, F::kUpstream, false,
     "The upstream failed; its own log has the cause, look it up by the request id."},
    {R(UPSTREAM_REJECTED), C::kInvalidArgument, F::kCaller, false,
     "The upstream refused the content of the request; a server's words are in the message."},
    {R(CONFLICT), C::kAborted, F::kUpstream, true,
     "Something else changes the same thing now; repeat the call a little later."},

    {R(UNSUPPORTED_FEATURE), C::kUnimplemented, F::kUpstream, false,
     "This sandbox cannot do that; GetCapabilities lists what it can."},
    {R(SIGNED_ENDPOINT_UNSUPPORTED), C::kUnimplemented, F::kUpstream, false,
     "This upstream cannot sign endpoints; use GetEndpoint and send its headers."},

    {R(REPLAY_GAP), C::kDataLoss, F::kSandbox, false,
     "Attach again at first_available; the bytes before it are gone."},
    {R(OUTPUT_TRUNCATED), C::kDataLoss, F::kCaller, false,
     "Raise max_output_bytes or use the streaming call; read a file again that changed."},

    {R(DEADLINE_EXCEEDED), C::kDeadlineExceeded, F::kCaller, true,
     "Give the call more time; the message says what it waited for."},
    {R(DRAINING), C::kUnavailable, F::kBridge, true,
     "This bridge is shutting down; connect again, another replica will serve."},
    {R(INTERNAL), C::kInternal, F::kBridge, false,
     "A defect of the bridge; please report the message and the bridge's log line."},
};

#undef R

}  // namespace

absl::Span<const CatalogEntry> ErrorCatalog() { return kCatalog; }

const CatalogEntry& CatalogEntryOf(ErrorReason reason) {
  for (const CatalogEntry& entry : kCatalog) {
    if (entry.reason == reason) return entry;
  }
  return kCatalog[std::size(kCatalog) - 1];
}

std::string_view FaultName(Fault fault) {
  switch (fault) {
    case Fault::kCaller:
      return "CALLER";
    case Fault::kSandbox:
      return "SANDBOX";
    case Fault::kUpstream:
      return "UPSTREAM";
    case Fault::kBridge:
      return "BRIDGE";
  }
  return "BRIDGE";
}

}  // namespace bridge
