// SPDX-License-Identifier: Apache-2.0
#include "tests/local/recording.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

namespace bridge::local {
namespace {

std::string JoinChunks(const Json& chunks) {
  std::string body;
  for (const Json& chunk : chunks) body += Base64Decode(chunk["b64"].get<std::string>());
  return body;
}

// Python's json.dumps: a space behind every comma and colon, everything beyond ASCII escaped.
void DumpPython(const Json& value, std::string& out) {
  if (value.is_object()) {
    out += "{";
    bool first = true;
    for (const auto& [key, item] : value.items()) {
      out += (first ? "" : ", ") + Json(key).dump(-1, ' ', true) + ": ";
      DumpPython(item, out);
      first = false;
    }
    out += "}";
  } else if (value.is_array()) {
    out += "[";
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      DumpPython(value[i], out);
    }
    out += "]";
  } else {
    out += value.dump(-1, ' ', true);
  }
}

Recording Parse(const Json& json) {
  Recording r;
  r.name = json["name"];
  r.target = json["target"];
  for (const Json& item : json["setup"]) r.setup.push_back(item);
  if (json.contains("bindings")) {
    for (const auto& [key, value] : json["bindings"].items()) r.bindings[key] = value;
  }
  const Json& request = json["request"];
  r.method = request["method"];
  r.path = request["path"];
  for (const Json& header : request["headers"]) r.headers.emplace_back(header[0], header[1]);
  if (request.contains("body_json")) DumpPython(request["body_json"], r.body);
  if (request.contains("body_b64")) r.body = Base64Decode(request["body_b64"].get<std::string>());
  r.body_truncated = request.contains("body_truncated");
  const Json& response = json["response"];
  r.response.status = response["status"].is_null() ? 0 : response["status"].get<int>();
  for (const Json& header : response["headers"]) {
    r.response.headers.Add(header[0].get<std::string>(), header[1].get<std::string>());
  }
  r.response.body = JoinChunks(response["chunks"]);
  r.websocket = json.contains("frames");
  return r;
}

}  // namespace

std::string Base64Decode(std::string_view text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count));
  }
  return out;
}

std::vector<Recording> LoadRecordings(const std::string& area) {
  const std::string path = "tests/testdata/recordings/" + area + ".jsonl";
  std::ifstream in(path);
  EXPECT_TRUE(in.is_open()) << path;
  std::vector<Recording> recordings;
  std::string line;
  while (std::getline(in, line)) recordings.push_back(Parse(Json::parse(line)));
  return recordings;
}

std::string Normalize(std::string text) {
  static const std::pair<std::regex, const char*> kRules[] = {
      {std::regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"},
      {std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00))"), "TIME"},
      {std::regex("[0-9a-f]{32}"), "HEX32"},
      {std::regex(R"(\b[0-9a-f]{12}\b)"), "HEX12"},
      {std::regex(R"("timestamp":\d+)"), "\"timestamp\":0"},
      {std::regex(R"("contentLength": \d+)"), "\"contentLength\": 0"},
      // A ping comes where it likes.
      {std::regex(R"(\{"type":"ping","text":"pong","timestamp":\d+\}\n\n)"), ""},
      {std::regex(R"(\b(127\.0\.0\.1|172\.17\.0\.\d+):\d{4,5}\b)"), "HOST:PORT"},
  };
  for (const auto& [pattern, replacement] : kRules) {
    text = std::regex_replace(text, pattern, replacement);
  }
  return text;
}

std::string NormalizeBody(const http::Response& response) {
  const auto type = response.headers.Get("content-type");
  if (!type || !type->starts_with("application/json")) return Normalize(response.body);
  // Plain json sorts the members.
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (json.is_discarded()) return Normalize(response.body);
  return Normalize(json.dump(1));
}

std::string NormalizeHeaders(const http::Response& response) {
  std::string out;
  for (const auto& [name, value] : response.headers) {
    const bool varies = http::EqualsIgnoreCase(name, "date") ||
                        http::EqualsIgnoreCase(name, "content-length") ||
                        http::EqualsIgnoreCase(name, "connection");
    // The recorder kept its connections, this test's client does not.
    if (http::EqualsIgnoreCase(name, "connection")) continue;
    out += name + ": " + (varies ? "*" : Normalize(value)) + "\n";
  }
  return out;
}

}  // namespace bridge::local
