// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bridge/base/utf8.h"

namespace bridge::cli {
namespace {

constexpr size_t kHelpColumn = 26;
constexpr size_t kHelpWidth = 80;

// One option as written: "--name", "--name=value", "-n", "-nvalue", "-nm".
struct Written {
  const Option* option = nullptr;
  std::optional<std::string> value;
  std::string more = {};  // the options behind a flag of one letter, as an argument of their own
};

absl::StatusOr<Written> Recognise(const std::vector<Option>& options, std::string_view arg) {
  const bool is_long = arg.substr(0, 2) == "--";
  const size_t equals = is_long ? arg.find('=') : std::string_view::npos;
  const std::string_view name = arg.substr(0, is_long ? equals : 2);
  const auto found = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return is_long ? option.name == name : option.letter == name[1];
  });
  if (found == options.end()) {
    return absl::InvalidArgumentError(fmt::format("unknown option {}", name));
  }
  Written written{&*found, std::nullopt};
  if (equals != std::string_view::npos) {
    written.value = arg.substr(equals + 1);
  } else if (!is_long && arg.size() > 2) {
    written.value = arg.substr(2);
  }
  if (written.value && !is_long && found->kind == Option::Kind::kFlag) {
    // "-rq": more flags behind a flag, if there is one of this letter.
    const char next = written.value->front();
    const bool known = std::any_of(options.begin(), options.end(),
                                   [next](const Option& option) { return option.letter == next; });
    if (known) return Written{&*found, std::nullopt, "-" + *written.value};
  }
  if (written.value && found->kind == Option::Kind::kFlag) {
    return absl::InvalidArgumentError(fmt::format("{} takes no value", found->name));
  }
  return written;
}

absl::Status CheckWords(const CommandLine& line, const Arguments& arguments) {
  if (arguments.words().size() < line.min_words) return absl::InvalidArgumentError("too few words");
  if (arguments.words().size() > line.max_words) {
    return absl::InvalidArgumentError(
        fmt::format("unexpected word \"{}\"", arguments.words()[line.max_words]));
  }
  return absl::OkStatus();
}

// Texts of calls are UTF-8. The text itself is not repeated: it may be a secret.
absl::Status CheckTexts(const std::map<std::string, std::vector<std::string>, std::less<>>& options,
                        const std::vector<std::string>& words,
                        const std::vector<std::string>& command) {
  for (const auto& [name, values] : options) {
    if (!std::all_of(values.begin(), values.end(), IsValidUtf8)) {
      return absl::InvalidArgumentError(NotUtf8(name));
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsValidUtf8(words[i])) {
      return absl::InvalidArgumentError(NotUtf8(fmt::format("word {}", i + 1)));
    }
  }
  for (size_t i = 0; i < command.size(); ++i) {
    if (!IsValidUtf8(command[i])) {
      return absl::InvalidArgumentError(
          NotUtf8(i == 0 ? std::string("the command")
                         : fmt::format("argument {} of the command", i)) +
          "; let the sandbox's shell make such bytes (-c), or send them on stdin");
    }
  }
  return absl::OkStatus();
}

// `text` broken at spaces so that no line passes the width; continuation lines are indented.
std::string Wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kHelpWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

}  // namespace

bool Arguments::Has(std::string_view option) const {
  return options_.find(option) != options_.end();
}

std::string Arguments::Value(std::string_view option, std::string_view otherwise) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::string(otherwise) : found->second.back();
}

std::vector<std::string> Arguments::List(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::vector<std::string>() : found->second;
}

absl::StatusOr<Arguments> ParseArguments(const CommandLine& line,
                                         const std::vector<std::string>& given) {
  Arguments result;
  std::vector<std::string> args = given;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    const bool words_full = line.free_form && result.words_.size() == line.max_words;
    const bool is_option = arg.size() > 1 && arg[0] == '-';
    if (arg == "--") {
      auto& target = line.free_form ? result.rest_ : result.words_;
      target.insert(target.end(), args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
      break;
    }
    if (!is_option && words_full) {
      result.rest_.assign(args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
      break;
    }
    if (!is_option) {
      result.words_.push_back(arg);
      continue;
    }
    absl::StatusOr<Written> written = Recognise(line.options, arg);
    if (!written.ok()) return written.status();
    const Option& option = *written->option;
    if (option.kind != Option::Kind::kFlag && !written->value) {
      if (i + 1 == args.size()) {
        return absl::InvalidArgumentError(
            fmt::format("{} wants a value ({})", option.name, option.value_name));
      }
      written->value = args[++i];
    }
    result.options_[option.name].push_back(std::move(written->value).value_or(""));
    if (!written->more.empty()) args[i--] = std::move(written->more);
  }
  absl::Status status = CheckWords(line, result);
  if (status.ok()) {
    const std::vector<std::string> none;
    status = CheckTexts(result.options_, line.local_words ? none : result.words_, result.rest_);
  }
  if (!status.ok()) return status;
  return result;
}

std::string NotUtf8(std::string_view what) {
  return fmt::format("{} is not UTF-8 and cannot be sent", what);
}

std::string ExplainOptions(const std::vector<Option>& options) {
  std::string out;
  for (const Option& option : options) {
    std::string left = option.letter != 0 ? fmt::format("  -{}, {}", option.letter, option.name)
                                          : fmt::format("      {}", option.name);
    if (option.kind != Option::Kind::kFlag) left += ' ' + option.value_name;
    if (left.size() + 2 > kHelpColumn) {
      left += '\n' + std::string(kHelpColumn, ' ');
    } else {
      left.resize(kHelpColumn, ' ');
    }
    out += left + Wrapped(option.help, kHelpColumn) + '\n';
  }
  return out;
}

}  // namespace bridge::cli
