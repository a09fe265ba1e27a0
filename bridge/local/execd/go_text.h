// SPDX-License-Identifier: Apache-2.0
//
// local/execd/go_text.h — words as a Go program says them. The daemon that this one stands in for
// is written in Go, and clients see its runtime's wording: in error messages, in `traceback` and in
// the escaping of JSON strings. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::local::execd {

// "no such file or directory": an errno in Go's words.
std::string GoErrno(int error);

// "open /x: no such file or directory": a failed system call on a path (os.PathError).
std::string GoPathError(std::string_view operation, std::string_view path, int error);

// "killed", "segmentation fault", "signal 34": a signal in Go's words.
std::string GoSignal(int signal);

// "exit status 3", "signal: killed", "signal: aborted (core dumped)"; empty for exit status 0.
std::string GoWaitStatus(int wait_status);

// The text between double quotes with Go's escapes (%q).
std::string GoQuote(std::string_view text);

// Appends `text` as a JSON string, quotes included, escaped as encoding/json does by default: <, >,
// & and U+2028/2029 escaped, each byte that is not UTF-8 written as the six characters \ufffd.
void AppendGoJsonString(std::string& out, std::string_view text);

// Length of the UTF-8 sequence that begins at text[0], or 0 when there is none (Go's utf8 rules: no
// overlong forms, no surrogates, nothing above U+10FFFF). `text` must not be empty.
int Utf8SequenceLength(std::string_view text);

// "2026-11-29T16:40:47.310192444Z": RFC 3339 in UTC with as many digits of the fraction as needed.
std::string GoTime(int64_t seconds, int64_t nanoseconds);

// "300ms", "1.5s", "24h0m0s": a duration in Go's words.
std::string GoDuration(int64_t milliseconds);

// Seconds since 1970 of "Sun, 29 Nov 2026 16:42:21 GMT"; -1 when `text` is not in that form.
int64_t ParseHttpTime(std::string_view text);

}  // namespace bridge::local::execd
