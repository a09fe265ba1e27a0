// SPDX-License-Identifier: Apache-2.0
//
// tests/bench/client/direct.h — the same work straight over HTTP with libcurl, as a careful user
// would write it without the bridge: one connection a thread, kept alive, no proxy, no Expect
// header.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/client/sample.h"

namespace bridge::bench {

struct DirectTarget {
  std::string url;  // "http://127.0.0.1:8080/v1/sandboxes/ID" or a daemon's "…/command"
  std::vector<std::string> headers;  // "NAME: value"
};

// GETs the URL `calls` times, one after the other, after ten that are not counted.
Sample DirectUnary(const DirectTarget& target, int calls);

// POSTs the command to the daemon and reads its event stream to the terminal event. `items` are the
// output events. With `stamped` each event's text is a time of the monotonic clock in nanoseconds,
// and the latencies say how much later it arrived.
Sample DirectExec(const DirectTarget& target, const std::string& command, bool stamped);

// GETs the URL and counts the bytes.
Sample DirectDownload(const DirectTarget& target);

// POSTs `bytes` zeros as a file of the sandbox to the daemon's upload route; `items` are the bytes.
Sample DirectUpload(const DirectTarget& target, const std::string& path, int64_t bytes);

}  // namespace bridge::bench
