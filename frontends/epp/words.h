// SPDX-License-Identifier: Apache-2.0
//
// epp/words.h — a line of words as a POSIX shell reads it: blanks, '…', "…" and backslashes.
// Nothing is expanded. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace bridge::epp {

// INVALID_ARGUMENT without a field when a quote is not closed or the line ends with a backslash.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

// Words as a line that SplitWords() reads back: for showing, not for running.
std::string JoinWords(const std::vector<std::string>& words);

}  // namespace bridge::epp
