// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "bridge/local/http/types.h"

namespace bridge::local::api {
namespace {

constexpr std::string_view kKeyRule =
    "must be either a name or a DNS-subdomain prefix and name separated by /, where the name is up "
    "to 63 characters and matches [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?, and the optional "
    "prefix "
    "is a valid DNS subdomain up to 253 characters.";
constexpr std::string_view kValueRule =
    "must be 63 characters or less, start/end with an alphanumeric character, and contain only "
    "alphanumeric, '-', '_', or '.' characters.";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsAlnum(char c) { return IsDigit(c) || IsLower(c) || (c >= 'A' && c <= 'Z'); }

// [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])? of at most 63
bool IsQualifiedName(std::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  if (!IsAlnum(name.front()) || !IsAlnum(name.back())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsDnsSubdomain(std::string_view prefix) {
  if (prefix.empty() || prefix.size() > 253) return false;
  while (true) {
    const size_t dot = prefix.find('.');
    if (!IsDnsLabel(prefix.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    prefix.remove_prefix(dot + 1);
  }
}

template <class Number>
std::optional<Number> WholeNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Failure LabelFailure(const std::string& message) {
  return CodeFailure(400, "SANDBOX::INVALID_METADATA_LABEL", message);
}

}  // namespace

bool IsDnsLabel(std::string_view name) {
  if (name.empty() || name.front() == '-' || name.back() == '-') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsQualifiedName(key);
  return IsDnsSubdomain(key.substr(0, slash)) && IsQualifiedName(key.substr(slash + 1));
}

bool IsLabelValue(std::string_view value) { return value.empty() || IsQualifiedName(value); }

std::optional<Failure> CheckLabels(const std::map<std::string, std::string>& labels) {
  for (const auto& [key, value] : labels) {
    if (!IsLabelKey(key)) {
      return LabelFailure("Metadata key '" + key + "' is invalid: " + std::string(kKeyRule));
    }
    if (key.starts_with(kReservedPrefix)) {
      return LabelFailure(
          "Metadata key '" + key +
          "' uses the reserved prefix 'opensandbox.io/'. Keys under this prefix are "
          "managed by the system and cannot be set via metadata.");
    }
    if (!IsLabelValue(value)) {
      return LabelFailure("Metadata value '" + value + "' is invalid: " + std::string(kValueRule));
    }
  }
  return std::nullopt;
}

std::optional<int64_t> ParseCpuMillis(std::string_view text) {
  double factor = 1000;
  if (text.ends_with('m')) {
    factor = 1;
    text.remove_suffix(1);
  }
  const std::optional<double> number = WholeNumber<double>(text);
  if (!number || !std::isfinite(*number) || *number <= 0 || *number > 1e6) return std::nullopt;
  return std::max<int64_t>(1, std::llround(*number * factor));
}

std::optional<int64_t> ParseMemoryBytes(std::string_view text) {
  static constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"Ki", int64_t{1} << 10},
                                                                    {"Mi", int64_t{1} << 20},
                                                                    {"Gi", int64_t{1} << 30},
                                                                    {"Ti", int64_t{1} << 40},
                                                                    {"K", 1000},
                                                                    {"k", 1000},
                                                                    {"M", 1'000'000},
                                                                    {"G", 1'000'000'000},
                                                                    {"T", 1'000'000'000'000}};
  int64_t factor = 1;
  for (const auto& [unit, size] : kUnits) {
    if (!text.ends_with(unit)) continue;
    factor = size;
    text.remove_suffix(unit.size());
    break;
  }
  const std::optional<int64_t> number = WholeNumber<int64_t>(text);
  if (!number || *number <= 0 || *number > INT64_MAX / factor) return std::nullopt;
  return *number * factor;
}

bool IsImageReference(std::string_view uri) {
  if (uri.empty() || uri.size() > 1024) return false;
  const size_t at = uri.find('@');
  std::string_view name = uri.substr(0, at);
  // A colon behind the last slash begins a tag; one before it belongs to a registry's port.
  const size_t slash = name.rfind('/');
  const size_t colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
  const bool tagged = colon != std::string_view::npos;
  const std::string_view tag = tagged ? name.substr(colon + 1) : "latest";
  name = name.substr(0, colon);
  if (tag.empty() || tag.size() > 128 || name.empty() || name.size() > 255) return false;
  const auto is_tag_char = [](char c) { return IsAlnum(c) || c == '.' || c == '_' || c == '-'; };
  if (!std::all_of(tag.begin(), tag.end(), is_tag_char)) return false;
  bool first = true;
  while (true) {
    const size_t end = name.find('/');
    const std::string_view part = name.substr(0, end);
    const bool registry = first && end != std::string_view::npos;
    if (part.empty()) return false;
    const bool good = std::all_of(part.begin(), part.end(), [registry](char c) {
      if (IsLower(c) || IsDigit(c) || c == '.' || c == '-' || c == '_') return true;
      return registry && (IsAlnum(c) || c == ':');
    });
    if (!good || part == "." || part == "..") return false;
    if (end == std::string_view::npos) return true;
    name.remove_prefix(end + 1);
    first = false;
  }
}

std::string FormatTime(absl::Time time) {
  const bool whole = absl::ToUnixMicros(time) % 1'000'000 == 0;
  return absl::FormatTime(whole ? "%Y-%m-%d%ET%H:%M:%SZ" : "%Y-%m-%d%ET%H:%M:%E6SZ", time,
                          absl::UTCTimeZone());
}

std::string FormatDockerTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

std::string FormatLogTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

std::optional<absl::Time> ParseTimeField(const Json& value, const Json& loc,
                                         ValidationErrors& errors) {
  // Numbers beyond this are milliseconds (the year 2603 in seconds).
  constexpr double kMaxSeconds = 2e10;
  if (value.is_number() && !value.is_boolean()) {
    const double number = value.get<double>();
    if (std::abs(number) <= kMaxSeconds) return absl::UnixEpoch() + absl::Seconds(number);
    if (std::abs(number) <= kMaxSeconds * 1000) {
      return absl::UnixEpoch() + absl::Milliseconds(number);
    }
  }
  if (!value.is_string()) {
    errors.Add("datetime_type", loc, "Input should be a valid datetime", value);
    return std::nullopt;
  }
  std::string text = value.get<std::string>();
  if (const std::optional<double> number = WholeNumber<double>(text)) {
    return ParseTimeField(Json(*number), loc, errors);
  }
  std::replace(text.begin(), text.end(), ' ', 'T');
  absl::Time time;
  for (const char* format : {"%Y-%m-%d%ET%H:%M:%E*S%Ez", "%Y-%m-%d%ET%H:%M:%E*S",
                             "%Y-%m-%d%ET%H:%M%Ez", "%Y-%m-%d%ET%H:%M", "%Y-%m-%d"}) {
    std::string error;
    if (absl::ParseTime(format, text, absl::UTCTimeZone(), &time, &error)) return time;
  }
  const char* problem = text.size() < 10 ? "input is too short" : "invalid character in year";
  errors.Add("datetime_from_date_parsing", loc,
             "Input should be a valid datetime or date, " + std::string(problem), value,
             {{"error", problem}});
  return std::nullopt;
}

std::optional<absl::Time> ParseSince(std::string_view text, absl::Time now) {
  if (text.size() > 1) {
    const char unit = text.back();
    const int64_t seconds = unit == 's'   ? 1
                            : unit == 'm' ? 60
                            : unit == 'h' ? 3600
                            : unit == 'd' ? 86400
                                          : 0;
    if (seconds != 0) {
      const std::optional<int64_t> number = WholeNumber<int64_t>(text.substr(0, text.size() - 1));
      if (number && *number >= 0 && *number < 1'000'000) {
        return now - absl::Seconds(*number * seconds);
      }
    }
  }
  ValidationErrors ignored;
  return ParseTimeField(Json(std::string(text)), Json::array(), ignored);
}

std::optional<Failure> ParseMetadataFilter(std::string_view text,
                                           std::map<std::string, std::string>* filter) {
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (pair.find('=') == std::string_view::npos) {
      return CodeFailure(400, "INVALID_METADATA_FORMAT",
                         "Invalid metadata format: bad query field: '" + std::string(pair) + "'");
    }
    for (const http::QueryParam& param : http::ParseQuery(pair)) {
      (*filter)[param.name] = param.value;
    }
  }
  return std::nullopt;
}

}  // namespace bridge::local::api
