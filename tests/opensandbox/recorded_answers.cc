// SPDX-License-Identifier: Apache-2.0
#include "tests/opensandbox/recorded_answers.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"

namespace bridge {
namespace {

using nlohmann::json;

[[noreturn]] void Die(std::string_view what) {
  std::fprintf(stderr, "recordings: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void Load(const std::string& area, std::map<std::string, HttpResponse, std::less<>>* answers) {
  std::ifstream file("tests/testdata/recordings/" + area + ".jsonl");
  if (!file) Die(area);
  for (std::string line; std::getline(file, line);) {
    const json record = json::parse(line, nullptr, false);
    if (record.is_discarded()) Die(line);
    const json& response = record["response"];
    if (response["status"].is_null() || response.value("truncated", false)) continue;
    HttpResponse& answer = (*answers)[record["name"]];
    answer.status = response["status"];
    for (const json& header : response["headers"]) {
      answer.headers.Add(header[0].get<std::string>(), header[1].get<std::string>());
    }
    for (const json& chunk : response.value("chunks", json::array())) {
      std::string bytes;
      if (!absl::Base64Unescape(chunk["b64"].get<std::string>(), &bytes)) Die("base64");
      answer.body += bytes;
    }
  }
}

}  // namespace

const HttpResponse& Recorded(std::string_view name) {
  static const auto* answers = [] {
    auto* loaded = new std::map<std::string, HttpResponse, std::less<>>();
    for (const char* area : {"lifecycle", "errors", "metrics"}) Load(area, loaded);
    return loaded;
  }();
  const auto it = answers->find(name);
  if (it == answers->end()) Die(name);
  return it->second;
}

}  // namespace bridge
