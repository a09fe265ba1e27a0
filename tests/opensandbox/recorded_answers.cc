// SPDX-License-Identifier: Apache-2.0
#include "tests/opensandbox/recorded_answers.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace bridge {
namespace {

constexpr char kPath[] = "tests/opensandbox/testdata/lifecycle_answers.jsonl";

[[noreturn]] void Die(std::string_view what) {
  std::fprintf(stderr, "recordings: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

std::vector<RecordedAnswer> Load() {
  std::ifstream file(kPath);
  if (!file) Die(kPath);
  std::vector<RecordedAnswer> result;
  for (std::string line; std::getline(file, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_discarded()) Die(line);
    RecordedAnswer answer;
    answer.name = record["name"];
    answer.method = record["method"];
    answer.path = record["path"];
    answer.response.status = record["status"];
    answer.response.body = record["body"];
    for (const auto& header : record["headers"]) {
      answer.response.headers.Add(header[0].get<std::string>(), header[1].get<std::string>());
    }
    result.push_back(std::move(answer));
  }
  return result;
}

}  // namespace

const std::vector<RecordedAnswer>& RecordedAnswers() {
  static const auto* answers = new std::vector<RecordedAnswer>(Load());
  return *answers;
}

const HttpResponse& Recorded(std::string_view name) {
  for (const RecordedAnswer& answer : RecordedAnswers()) {
    if (answer.name == name) return answer.response;
  }
  Die(name);
}

}  // namespace bridge
