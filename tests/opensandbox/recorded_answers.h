// SPDX-License-Identifier: Apache-2.0
//
// Answers of a real lifecycle server 1.1.1 (Docker runtime) and a June execd, by the name of their
// recording. Bodies are complete; of the headers those that clients look at.
#pragma once

#include <string_view>
#include <vector>

#include "bridge/net/http.h"

namespace bridge {

struct RecordedAnswer {
  std::string name;
  std::string method;
  std::string path;
  HttpResponse response;
};

const std::vector<RecordedAnswer>& RecordedAnswers();
// Ends the process when there is no such recording.
const HttpResponse& Recorded(std::string_view name);

}  // namespace bridge
