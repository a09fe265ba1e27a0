// SPDX-License-Identifier: Apache-2.0
//
// Prints docs/upstream-errors.md from the rules that decide (bridge/opensandbox/upstream_error.cc).
#include <cstdio>
#include <string>

#include "bridge/base/error.h"
#include "bridge/opensandbox/upstream_error.h"

namespace bridge {
namespace {

constexpr char kHead[] =
    R"(# What becomes of OpenSandbox' errors

An HTTP error of the lifecycle server becomes a reason of [errors.md](errors.md). The first rule that
applies decides. *Routes* are the server's, all where nothing is said. *Code* is what the error's code
ends with. *Said by*: `OpenSandbox` means its own error object (`{"code": ..., "message": ...}` or one of
the shapes of its parts), `others` a web page, bare text, nothing, or a router's "Not Found": what a
proxy says, or a server that is not OpenSandbox.

The message holds at most 300 characters of the server's own words, the metadata its status, code and
request id. Of a 422 only places and rules are passed on, because its body repeats the whole request.
Failures of the connection are `UPSTREAM_UNAVAILABLE` and `UPSTREAM_TIMEOUT`, with the phase in which
they happened.

A read that is answered 429, 502, 503 or 504 is asked again, three times at most, after the delay that
`Retry-After` names; one of more than 10 s goes to the caller, as `RetryInfo`. Creates and commands are sent once.

A sandbox's daemon has the same meaning for a status, and its failures the same metadata. Its words are
not passed on: they may repeat the command, the environment or the content that it was sent.

This page is generated: `bazel run //tests/docs:upstream_errors_md > docs/upstream-errors.md`.

| Routes | Status | Code | Said by | Reason |
|---|---|---|---|---|
)";

std::string Routes(uint32_t routes) {
  std::string text;
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if ((routes & (1u << bit)) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(RouteName(static_cast<Route>(1u << bit)));
  }
  return text;
}

std::string Statuses(const UpstreamErrorRule& rule) {
  if (rule.status_from == rule.status_to) return std::to_string(rule.status_from);
  if (rule.status_from == 0) return "any other";
  return std::to_string(rule.status_from) + "–" + std::to_string(rule.status_to);
}

const char* SaidBy(Speaker speaker) {
  switch (speaker) {
    case Speaker::kAnyone:
      return "";
    case Speaker::kApplication:
      return "OpenSandbox";
    case Speaker::kNotApplication:
      return "others";
    case Speaker::kPage:
      return "a web page";
    case Speaker::kLoginPage:
      return "a page that asks to sign in";
  }
  return "";
}

void Print() {
  std::fputs(kHead, stdout);
  for (const UpstreamErrorRule& rule : UpstreamErrorRules()) {
    const std::string code = rule.code_end.empty() ? "" : "`…" + std::string(rule.code_end) + "`";
    std::printf("| %s | %s | %s | %s | `%s` |\n", Routes(rule.routes).c_str(),
                Statuses(rule).c_str(), code.c_str(), SaidBy(rule.speaker),
                std::string(ReasonName(rule.reason)).c_str());
  }
}

}  // namespace
}  // namespace bridge

int main() {
  bridge::Print();
  return 0;
}
