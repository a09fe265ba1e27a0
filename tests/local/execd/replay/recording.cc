// SPDX-License-Identifier: Apache-2.0
#include "tests/local/execd/replay/recording.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"

namespace bridge::local::execd {
namespace {

using Json = nlohmann::ordered_json;

std::string Base64(const Json& object, const char* key) {
  std::string out;
  if (object.contains(key) && object[key].is_string()) {
    absl::Base64Unescape(object[key].get<std::string>(), &out);
  }
  return out;
}

http::Headers ReadHeaders(const Json& pairs) {
  http::Headers out;
  for (const Json& pair : pairs) out.Add(pair[0].get<std::string>(), pair[1].get<std::string>());
  return out;
}

// Of a body of which both ends are kept, the middle repeats the last byte of the first end: the
// only such requests are made of one character.
std::string RequestBody(const Json& request) {
  if (request.contains("body_json")) return request["body_json"].dump();
  std::string body = Base64(request, "body_b64");
  if (!request.value("body_truncated", false)) return body;
  const std::string tail = Base64(request, "body_tail_b64");
  const auto length = request["body_len"].get<size_t>();
  body.resize(length - tail.size(), body.back());
  return body + tail;
}

void ReadResponse(const Json& response, Recording* out) {
  if (response["status"].is_number()) out->status = response["status"];
  out->response_headers = ReadHeaders(response["headers"]);
  for (const Json& chunk : response["chunks"]) {
    out->chunks.push_back({chunk["t_ms"].get<double>(), Base64(chunk, "b64")});
  }
  if (response["framing"].is_string()) out->framing = response["framing"];
  out->complete = response.value("complete", false);
  out->closed_by = response.value("closed_by", "");
  out->t_end_ms = response.value("t_end_ms", 0.0);
  out->truncated = response.value("truncated", false);
  out->body_length = response.value("body_len", int64_t{-1});
  out->n_chunks = response.value("n_chunks", static_cast<int>(out->chunks.size()));
}

void ReadFrames(const Json& record, Recording* out) {
  out->websocket = true;
  for (const Json& frame : record["frames"]) {
    std::string bytes = Base64(frame, "b64");
    if (frame.value("truncated", false) && frame.contains("tail_b64")) {
      // As with requests: the middle is one character.
      const std::string tail = Base64(frame, "tail_b64");
      bytes.resize(frame["length"].get<size_t>() - tail.size(), bytes.back());
      bytes += tail;
    }
    out->frames.push_back({frame["dir"] == "out", frame["t_ms"].get<double>(),
                           frame["opcode"].get<int>(), std::move(bytes)});
  }
  out->frames_omitted = record.contains("frames_omitted");
  out->output_bytes_total = record.value("output_bytes_total", int64_t{-1});
  if (record["close"].is_object()) {
    out->close_code = record["close"]["code"].get<int>();
    out->close_reason = record["close"]["reason"].get<std::string>();
  }
}

Recording ReadRecording(const Json& record) {
  Recording out;
  out.name = record["name"];
  out.target = record["target"];
  for (const Json& item : record["setup"]) out.setup.push_back(item);
  if (record.contains("bindings")) {
    for (const auto& [name, value] : record["bindings"].items()) out.bindings[name] = value;
  }
  const Json& request = record["request"];
  out.method = request["method"];
  out.path = request["path"];
  out.request_headers = ReadHeaders(request["headers"]);
  out.body = RequestBody(request);
  if (out.request_headers.Has("Content-Length")) {
    out.request_headers.Set("Content-Length", std::to_string(out.body.size()));
  }
  ReadResponse(record["response"], &out);
  if (record.contains("frames")) ReadFrames(record, &out);
  return out;
}

}  // namespace

std::string Recording::Body() const {
  std::string out;
  for (const RecordedChunk& chunk : chunks) out += chunk.bytes;
  return out;
}

std::vector<Recording> LoadRecordings(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    fprintf(stderr, "cannot read %s\n", path.c_str());
    abort();
  }
  std::vector<Recording> out;
  for (std::string line; std::getline(in, line);) {
    out.push_back(ReadRecording(Json::parse(line)));
  }
  return out;
}

}  // namespace bridge::local::execd
