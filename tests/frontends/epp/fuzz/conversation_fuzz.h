// SPDX-License-Identifier: Apache-2.0
//
// One conversation of a host whose bytes may be anything: line reader, parser, dispatcher, methods,
// writer. The bridge behind it answers every call with a failure, at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::epp {

// Feeds `bytes` in pieces whose sizes the first byte decides, then ends the input. Returns what the
// host would count as a violation, empty if there was none: a line that is no JSON-RPC object or
// too long, a second answer, a request that was understood and never answered. Any thread.
std::string PlayConversation(std::string_view bytes);

}  // namespace bridge::epp
