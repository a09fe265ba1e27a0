// SPDX-License-Identifier: Apache-2.0
//
// local/execd/event.h — the events of execd's streams as bytes: one bare JSON object and an empty
// line, keys in execd's order, zero and empty values left out. Pure functions, any thread.
// Times are milliseconds since 1970.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::local::execd {

// `{"type":"init","text":ID,…}`, also for "stdout" and "stderr".
std::string TextEvent(std::string_view type, std::string_view text, int64_t now_ms);

std::string PingEvent(int64_t now_ms);

// The end of a command that exited with 0. `execution_ms` of 0 is left out, as execd does.
std::string CompleteEvent(int64_t execution_ms, int64_t now_ms);

// The end of a command that did not. `value` is a decimal exit code, "-1" for a signal, or text
// when it could not be started; `trace` says the same in words.
std::string ErrorEvent(std::string_view value, std::string_view trace, int64_t now_ms);

// `{"code":…,"message":…}`: an error answer's body, and also what execd writes, without an empty
// line behind it, when something fails in the middle of a stream.
std::string ErrorBody(std::string_view code, std::string_view message);

}  // namespace bridge::local::execd
