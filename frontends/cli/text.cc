// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "bridge/base/utf8.h"
#include "frontends/cli/exit_code.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::Outcome;

constexpr absl::Duration kLongest = absl::Hours(24 * 3650);

absl::Duration UnitOf(std::string_view unit) {
  if (unit == "ms") return absl::Milliseconds(1);
  if (unit == "s" || unit.empty()) return absl::Seconds(1);
  if (unit == "m") return absl::Minutes(1);
  if (unit == "h") return absl::Hours(1);
  if (unit == "d") return absl::Hours(24);
  return absl::ZeroDuration();
}

// Length of the UTF-8 sequence at the front of `bytes`, 0 if there is none.
size_t Utf8Length(std::string_view bytes) {
  for (size_t length = 1; length <= std::min<size_t>(bytes.size(), 4); ++length) {
    if (IsValidUtf8(bytes.substr(0, length))) return length;
  }
  return 0;
}

// C0, DEL and the C1 controls (U+0080..U+009F), which terminals obey as well.
bool IsControl(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

std::string_view SpawnFailure(Outcome::SpawnFailed::Kind kind) {
  switch (kind) {
    case Outcome::SpawnFailed::KIND_NOT_FOUND:
      return "no such program";
    case Outcome::SpawnFailed::KIND_NOT_EXECUTABLE:
      return "not executable";
    case Outcome::SpawnFailed::KIND_ARGUMENTS_TOO_LONG:
      return "arguments too long";
    case Outcome::SpawnFailed::KIND_BAD_CWD:
      return "no such working directory";
    case Outcome::SpawnFailed::KIND_BAD_USER:
      return "no such user";
    default:
      return "reason unknown";
  }
}

std::string SignalText(const Outcome::Signalled& signal) {
  const std::string name = !signal.name().empty() ? Printable(signal.name())
                           : signal.number() != 0 ? fmt::format("signal {}", signal.number())
                                                  : std::string("a signal");
  return fmt::format("was killed by {}{}", name, signal.core() ? " (core dumped)" : "");
}

std::string CancelledText(const Outcome::Cancelled& cancelled) {
  std::string how = "was cancelled";
  if (cancelled.has_exit_code()) how += fmt::format(", exit code {}", cancelled.exit_code());
  if (cancelled.has_signal()) how = SignalText(cancelled.signal());
  return fmt::format("{}; {}", how,
                     cancelled.confirmed() ? "it is gone" : "its end could not be confirmed");
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  const absl::Status wrong =
      absl::InvalidArgumentError(fmt::format("\"{}\" is no duration: 30s, 5m, 1h30m", text));
  absl::Duration total;
  std::string_view left = text;
  while (!left.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(left.data(), left.data() + left.size(), number, std::chars_format::fixed);
    if (error != std::errc() || number < 0 || !std::isfinite(number)) return wrong;
    left.remove_prefix(static_cast<size_t>(end - left.data()));
    const auto unit_end =
        std::find_if(left.begin(), left.end(), [](char c) { return c < 'a' || c > 'z'; });
    const auto unit = left.substr(0, static_cast<size_t>(unit_end - left.begin()));
    // Only a number that stands alone may go without its unit.
    const bool alone = total == absl::ZeroDuration() && unit_end == left.end();
    if (UnitOf(unit) == absl::ZeroDuration() || (unit.empty() && !alone)) return wrong;
    total += number * UnitOf(unit);
    left.remove_prefix(unit.size());
  }
  if (total <= absl::ZeroDuration() || total > kLongest) return wrong;
  return total;
}

std::string DurationText(double seconds) {
  if (seconds < 0) return fmt::format("-{}", DurationText(-seconds));
  if (seconds < 1) return fmt::format("{:.0f}ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.3g}s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  struct Unit {
    int64_t size;
    char letter;
    int64_t smaller;
    char smaller_letter;
  };
  for (const Unit unit :
       {Unit{86400, 'd', 3600, 'h'}, Unit{3600, 'h', 60, 'm'}, Unit{60, 'm', 1, 's'}}) {
    if (whole < unit.size) continue;
    const int64_t rest = whole % unit.size / unit.smaller;
    const std::string main = fmt::format("{}{}", whole / unit.size, unit.letter);
    return rest == 0 ? main : fmt::format("{}{}{}", main, rest, unit.smaller_letter);
  }
  return fmt::format("{}s", whole);
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const std::string_view sequence = text.substr(0, std::max<size_t>(length, 1));
    if (length != 0 && !IsControl(sequence)) {
      out += sequence;
    } else if (sequence == "\n") {
      out += "\\n";
    } else {
      for (const char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      out += last ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    out += '\n';
  }
  return out;
}

std::string OutcomeText(const Outcome& outcome) {
  switch (outcome.kind_case()) {
    case Outcome::kExitCode:
      return fmt::format("ended with exit code {}", outcome.exit_code());
    case Outcome::kSignal:
      return SignalText(outcome.signal());
    case Outcome::kTimedOut: {
      const auto& after = outcome.timed_out().after();
      return fmt::format("timed out after {} and was killed",
                         DurationText(static_cast<double>(after.seconds()) + after.nanos() * 1e-9));
    }
    case Outcome::kCancelled:
      return CancelledText(outcome.cancelled());
    case Outcome::kSpawnFailed: {
      const auto& failed = outcome.spawn_failed();
      const std::string words = Printable(failed.message());
      return fmt::format("could not be started: {}{}{}", SpawnFailure(failed.kind()),
                         words.empty() ? "" : ": ", words);
    }
    case Outcome::kLost:
      return fmt::format("ended in a way that is not known: {}{}",
                         Printable(outcome.lost().reason()),
                         outcome.lost().maybe_running() ? "; it may still run" : "");
    case Outcome::KIND_NOT_SET:
      break;
  }
  return "ended in a way that the bridge did not name";
}

int OutcomeExitCode(const Outcome& outcome) {
  switch (outcome.kind_case()) {
    case Outcome::kExitCode:
      return outcome.exit_code();
    case Outcome::kSignal:
      return kExitSignalBase + outcome.signal().number();
    case Outcome::kTimedOut:
      return kExitTimedOut;
    case Outcome::kSpawnFailed:
      return outcome.spawn_failed().kind() == Outcome::SpawnFailed::KIND_NOT_FOUND
                 ? kExitNotFound
                 : kExitCannotExecute;
    case Outcome::kCancelled:
      if (outcome.cancelled().has_exit_code()) return outcome.cancelled().exit_code();
      if (outcome.cancelled().has_signal()) {
        return kExitSignalBase + outcome.cancelled().signal().number();
      }
      return kExitNoVerdict;
    default:
      return kExitNoVerdict;
  }
}

}  // namespace bridge::cli
