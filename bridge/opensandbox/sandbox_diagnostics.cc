// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_diagnostics.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/redact.h"
#include "bridge/opensandbox/sandbox_reader.h"

namespace bridge {
namespace {

// What is read to find the newest megabyte in: logs of long lines are longer than asked for.
constexpr size_t kMaxReadBytes = 8 << 20;

bool IsTooLarge(const absl::Status& failure) {
  return ReasonOf(failure) == ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL &&
         !MetadataOf(failure).contains("upstream_status");
}

// The end of the text from the beginning of a line on.
std::string Newest(std::string text, bool* truncated) {
  if (text.size() <= kMaxDiagnosticsBytes) return text;
  *truncated = true;
  size_t start = text.size() - kMaxDiagnosticsBytes;
  const size_t line = text.find('\n', start);
  if (line != std::string::npos && line + 1 < text.size()) start = line + 1;
  return text.substr(start);
}

}  // namespace

Task<absl::StatusOr<SandboxDiagnostics>> GetDiagnostics(LifecycleClient& client,
                                                        CallContext context, std::string sandbox_id,
                                                        std::string incarnation,
                                                        DiagnosticsKind kind, int tail) {
  CO_RETURN_IF_ERROR(co_await CheckSandbox(client, context, sandbox_id, incarnation));
  SandboxDiagnostics result;
  absl::StatusOr<std::string> text =
      co_await client.Diagnostics(context, sandbox_id, kind, tail, kMaxReadBytes);
  while (!text.ok() && IsTooLarge(text.status()) && tail > 1) {
    tail = std::max(1, tail / 8);
    result.truncated = true;
    text = co_await client.Diagnostics(context, sandbox_id, kind, tail, kMaxReadBytes);
  }
  if (!text.ok()) co_return text.status();
  // Redacted as a whole first: a secret must not escape by being cut in two.
  std::string clean = RedactDiagnostics(*text, &result.redacted);
  clean = WithoutSecrets(std::move(clean), {context.api_key});
  result.text = Newest(std::move(clean), &result.truncated);
  co_return result;
}

}  // namespace bridge
