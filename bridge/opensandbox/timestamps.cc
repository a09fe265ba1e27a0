// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/timestamps.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace bridge {
namespace {

// Reads from the front of `text`; each step says whether it succeeded.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool Number(size_t digits, int* value) {
    if (text_.size() < digits) return false;
    *value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(text_[i]))) return false;
      *value = *value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return true;
  }

  bool OneOf(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    last_ = text_.front();
    text_.remove_prefix(1);
    return true;
  }

  // The digits after the point. Those below a nanosecond are dropped.
  bool Fraction(absl::Duration* value) {
    absl::Duration unit = absl::Seconds(1) / 10;
    size_t digits = 0;
    while (digits < text_.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(text_[digits]))) {
      *value += unit * (text_[digits] - '0');
      unit = absl::Trunc(unit / 10, absl::Nanoseconds(1));
      ++digits;
    }
    text_.remove_prefix(digits);
    return digits > 0;
  }

  char last() const { return last_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string_view text_;
  char last_ = '\0';
};

// "", "Z", "+08:00", "-0130", "+02".
bool Zone(Cursor& cursor, absl::Duration* offset) {
  if (cursor.empty()) return true;
  if (cursor.OneOf("Zz")) return cursor.empty();
  if (!cursor.OneOf("+-")) return false;
  const int sign = cursor.last() == '-' ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!cursor.Number(2, &hours) || hours > 23) return false;
  if (!cursor.empty()) {
    (void)cursor.OneOf(":");
    if (!cursor.Number(2, &minutes) || minutes > 59) return false;
  }
  *offset = sign * (absl::Hours(hours) + absl::Minutes(minutes));
  return cursor.empty();
}

}  // namespace

std::optional<absl::Time> ParseTimestamp(std::string_view text) {
  Cursor cursor(text);
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  if (!cursor.Number(4, &year) || !cursor.OneOf("-") || !cursor.Number(2, &month) ||
      !cursor.OneOf("-") || !cursor.Number(2, &day) || !cursor.OneOf("Tt ") ||
      !cursor.Number(2, &hour) || !cursor.OneOf(":") || !cursor.Number(2, &minute) ||
      !cursor.OneOf(":") || !cursor.Number(2, &second)) {
    return std::nullopt;
  }
  absl::Duration fraction;
  if (cursor.OneOf(".,") && !cursor.Fraction(&fraction)) return std::nullopt;
  absl::Duration offset;
  if (!Zone(cursor, &offset)) return std::nullopt;
  // A leap second is written as :60; the days' and months' ranges are checked by normalisation.
  if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const absl::CivilDay date(year, month, day);
  if (date.month() != month || date.day() != day) return std::nullopt;
  const absl::CivilSecond civil(year, month, day, hour, minute, second);
  return absl::FromCivil(civil, absl::UTCTimeZone()) + fraction - offset;
}

std::string FormatTimestamp(absl::Time time) {
  const int64_t micros = absl::ToUnixMicros(time);
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", absl::FromUnixMicros(micros),
                          absl::UTCTimeZone());
}

std::optional<absl::Time> ParseHttpDate(std::string_view text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", absl::string_view(text.data(), text.size()),
                       &time, &error)) {
    return std::nullopt;
  }
  return time;
}

std::optional<absl::Duration> ParseRetryAfter(std::string_view text,
                                              std::optional<absl::Time> server_now) {
  int64_t seconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (rest == text.data() + text.size() && !text.empty()) {
    // More than 64 bits of seconds is a joke, and a long one.
    if (error == std::errc::result_out_of_range) return absl::InfiniteDuration();
    return std::max(absl::Seconds(seconds), absl::ZeroDuration());
  }
  const std::optional<absl::Time> date = ParseHttpDate(text);
  if (!date || !server_now) return std::nullopt;
  return std::max(*date - *server_now, absl::ZeroDuration());
}

}  // namespace bridge
