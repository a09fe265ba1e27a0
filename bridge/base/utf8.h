// SPDX-License-Identifier: Apache-2.0
//
// base/utf8.h — text of others made fit for protobuf strings, which must be UTF-8: one bad byte in
// a `string` field and the other side drops the whole message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bridge {

// Is `text` UTF-8 as RFC 3629 has it (no surrogates, no overlong forms, nothing above U+10FFFF)?
bool IsValidUtf8(std::string_view text);

// `text` with U+FFFD for every byte that is no part of a valid sequence.
std::string ToValidUtf8(std::string_view text);

// `text` with "\xNN" for every byte that is no part of a valid sequence; all else stays. For
// people: a backslash of the text itself is not told apart.
std::string EscapeNonUtf8(std::string_view text);

// The longest prefix of at most `max_bytes` that does not cut a sequence in two.
std::string_view Utf8Prefix(std::string_view text, size_t max_bytes);

}  // namespace bridge
