// SPDX-License-Identifier: Apache-2.0
//
// tests/local/recording.h — the recorded exchanges of tests/testdata/recordings, and what one must
// forget before two answers can be compared. Pure, but for reading the files.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bridge/local/http/types.h"

namespace bridge::local {

using Json = nlohmann::ordered_json;

struct Recording {
  std::string name;
  std::string target;  // "lifecycle", "server_proxy", …
  std::vector<std::string> setup;
  std::map<std::string, std::string> bindings;
  std::string method;
  std::string path;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;             // as sent, placeholders not yet replaced
  bool body_truncated = false;  // then it must be made anew
  http::Response response;      // status 0: there was none
  bool websocket = false;
};

// All recordings of "tests/testdata/recordings/<area>.jsonl".
std::vector<Recording> LoadRecordings(const std::string& area);

std::string Base64Decode(std::string_view text);

// Replaces what differs from run to run: uuids, times, request ids, ports of this machine.
std::string Normalize(std::string text);
// A body for comparison: JSON with sorted keys where it is JSON, else the text; normalized.
std::string NormalizeBody(const http::Response& response);
// Names and values of the headers, in order; values normalized, lengths and dates left out.
std::string NormalizeHeaders(const http::Response& response);

}  // namespace bridge::local
