// SPDX-License-Identifier: Apache-2.0
//
// Recorded exchanges (tests/testdata/recordings) as values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bridge/local/http/types.h"

namespace bridge::local::execd {

struct RecordedChunk {
  double t_ms = 0;
  std::string bytes;
};

struct RecordedFrame {
  bool out = false;  // from the client
  double t_ms = 0;
  int opcode = 0;
  std::string bytes;
};

struct Recording {
  std::string name;
  std::string target;
  std::vector<std::string> setup;
  std::map<std::string, std::string> bindings;

  std::string method;
  std::string path;  // with {placeholders}
  http::Headers request_headers;
  std::string body;  // as it goes on the wire

  int status = 0;  // 0: no answer
  http::Headers response_headers;
  std::vector<RecordedChunk> chunks;
  std::string framing;
  bool complete = false;
  std::string closed_by;
  double t_end_ms = 0;
  bool truncated = false;  // chunks are both ends of the body only
  int64_t body_length = -1;
  int n_chunks = 0;

  bool websocket = false;
  std::vector<RecordedFrame> frames;
  bool frames_omitted = false;
  int64_t output_bytes_total = -1;
  std::optional<int> close_code;
  std::string close_reason;

  std::string Body() const;  // of the response
};

// All recordings of one file, in order. Dies when the file cannot be read.
std::vector<Recording> LoadRecordings(const std::string& path);

}  // namespace bridge::local::execd
