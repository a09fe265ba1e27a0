// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/redact.h — takes secrets out of text that others wrote. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bridge {

inline constexpr std::string_view kRedacted = "[redacted]";

// Every occurrence of each of `secrets` replaced. Secrets below 4 bytes are no secrets.
std::string WithoutSecrets(std::string text, const std::vector<std::string_view>& secrets);

// Replaces what looks like a secret in logs, container descriptions and events:
//   the values of assignments and JSON members whose names say so (TOKEN, PASSWORD, API_KEY, ...),
//   all values in a container's "Environment:" block but those of a few harmless names,
//   credentials in URLs, Authorization headers, JWTs, private key blocks and keys with the prefixes
//   of well-known issuers.
// `*redacted` is set when anything was replaced, and left alone otherwise. Works line by line and
// never makes a line disappear.
std::string RedactDiagnostics(std::string_view text, bool* redacted);

}  // namespace bridge
