// SPDX-License-Identifier: Apache-2.0
//
// cli/options.h — the options of a command as a table: parsed and explained from the same rows.
//
// Options stand anywhere before "--" and before the command's first foreign word (see
// CommandLine::free_form); "--name=value" and "--name value" mean the same. Pure values, any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace bridge::cli {

struct Option {
  enum class Kind { kFlag, kValue, kList };  // kList may be repeated; the others: the last one wins

  std::string name;  // "--image"
  char letter = 0;   // 'e' for -e; 0: none
  Kind kind = Kind::kFlag;
  std::string value_name = {};  // "REF", in the help
  std::string help = {};        // one sentence
};

// What a command takes besides its options.
struct CommandLine {
  std::vector<Option> options = {};
  size_t min_words = 0;
  size_t max_words = 0;
  // After the last of max_words everything is the user's own command: `exec ID ls -l`. "--" before
  // it is dropped.
  bool free_form = false;
  // Words may be names of this machine, which are any bytes. All else is sent, and is UTF-8.
  bool local_words = false;
};

class Arguments {
 public:
  bool Has(std::string_view option) const;
  // The last value given, or `otherwise`.
  std::string Value(std::string_view option, std::string_view otherwise = "") const;
  std::vector<std::string> List(std::string_view option) const;

  const std::vector<std::string>& words() const { return words_; }
  // What follows: the user's own command. Empty unless free_form.
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  friend absl::StatusOr<Arguments> ParseArguments(const CommandLine&,
                                                  const std::vector<std::string>&);
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
  std::vector<std::string> words_;
  std::vector<std::string> rest_;
};

// InvalidArgument with a message for people: "unknown option --foo".
absl::StatusOr<Arguments> ParseArguments(const CommandLine& line,
                                         const std::vector<std::string>& args);

// That something cannot be sent, in words.
std::string NotUtf8(std::string_view what);

// The rows of a help text, aligned and wrapped at 80 columns.
std::string ExplainOptions(const std::vector<Option>& options);

}  // namespace bridge::cli
