// SPDX-License-Identifier: Apache-2.0
//
// The events of a stream do not depend on how it is cut, and one that is too long ends it.
#include <string>
#include <vector>

#include "bridge/net/event_stream.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr size_t kMaxEvent = 64;

struct Result {
  std::vector<std::string> events;
  bool ok = true;
  bool operator==(const Result&) const = default;
};

Result Parse(const std::vector<std::string_view>& pieces) {
  bridge::EventStreamParser parser(kMaxEvent);
  Result result;
  std::string_view text;
  for (const std::string_view piece : pieces) {
    parser.Feed(piece);
    while (parser.Next(&text)) result.events.emplace_back(text);
  }
  parser.Finish();
  while (parser.Next(&text)) result.events.emplace_back(text);
  result.ok = parser.status().ok();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  const Result whole = Parse({text});
  for (const std::string& event : whole.events) FUZZ_CHECK(event.size() <= kMaxEvent);
  FUZZ_CHECK(Parse(bridge::FuzzPieces(text, choice)) == whole);
  return 0;
}
