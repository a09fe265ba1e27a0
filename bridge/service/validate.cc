// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/validate.h"

#include <unordered_set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "bridge/base/error.h"
#include "bridge/base/signal_names.h"
#include "fmt/format.h"

namespace bridge {
namespace {

namespace pb = sandbox::bridge::v1;

constexpr size_t kMaxKeyInField = 64;
constexpr size_t kMaxUserBytes = 256;
constexpr uint32_t kUnchangedId = 4294967295;
constexpr int kNanosInSecond = 1'000'000'000;
// google.protobuf.Duration: about 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;
// google.protobuf.Timestamp: 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
constexpr int64_t kMinTimestampSeconds = -62'135'596'800;
constexpr int64_t kMaxTimestampSeconds = 253'402'300'799;

bool IsControl(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u < 0x20 || u == 0x7f;
}

bool IsEnvName(std::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name.front()))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

}  // namespace

std::string ElementField(std::string_view list, size_t index, std::string_view leaf) {
  return leaf.empty() ? fmt::format("{}[{}]", list, index)
                      : fmt::format("{}[{}].{}", list, index, leaf);
}

std::string KeyField(std::string_view map, std::string_view key) {
  key = key.substr(0, kMaxKeyInField);
  return fmt::format("{}[\"{}\"]", map,
                     absl::CHexEscape(absl::string_view(key.data(), key.size())));
}

absl::Status CheckId(std::string_view field, std::string_view id) {
  if (id.empty()) return InvalidField(field, "must not be empty");
  if (id.size() > kMaxIdBytes) {
    return InvalidField(
        field, fmt::format("is {} bytes long; an id has at most {}", id.size(), kMaxIdBytes));
  }
  for (const char c : id) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') {
      return InvalidField(field, "holds a character that is not one of A-Z a-z 0-9 . _ -");
    }
  }
  if (!absl::ascii_isalnum(static_cast<unsigned char>(id.front()))) {
    return InvalidField(field, "must begin with a letter or digit");
  }
  return absl::OkStatus();
}

absl::Status CheckSandboxId(std::string_view id, std::string_view field) {
  return CheckId(field, id);
}

absl::Status CheckIncarnation(std::string_view text, std::string_view field) {
  constexpr size_t kMaxIncarnationBytes = 128;
  if (text.size() > kMaxIncarnationBytes) return InvalidField(field, "is longer than 128 bytes");
  for (const char c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) {
      return InvalidField(field, "holds a character that is not printable ASCII");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> CheckDuration(std::string_view field,
                                             const google::protobuf::Duration& value,
                                             absl::Duration min, absl::Duration max) {
  const int64_t seconds = value.seconds();
  const int32_t nanos = value.nanos();
  if (seconds > kMaxDurationSeconds || seconds < -kMaxDurationSeconds || nanos >= kNanosInSecond ||
      nanos <= -kNanosInSecond || (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0)) {
    return InvalidField(field, "is not a valid Duration");
  }
  const absl::Duration result = absl::Seconds(seconds) + absl::Nanoseconds(nanos);
  if (result < absl::ZeroDuration() && min >= absl::ZeroDuration()) {
    return InvalidField(field, "must not be negative");
  }
  if (result < min) {
    return InvalidField(field, min == absl::Nanoseconds(1)
                                   ? std::string("must be positive")
                                   : "must be at least " + absl::FormatDuration(min));
  }
  if (result > max) return InvalidField(field, "must be at most " + absl::FormatDuration(max));
  return result;
}

absl::StatusOr<absl::Time> CheckTimestamp(std::string_view field,
                                          const google::protobuf::Timestamp& value) {
  if (value.seconds() < kMinTimestampSeconds || value.seconds() > kMaxTimestampSeconds ||
      value.nanos() < 0 || value.nanos() >= kNanosInSecond) {
    return InvalidField(field, "is not a valid Timestamp");
  }
  return absl::FromUnixSeconds(value.seconds()) + absl::Nanoseconds(value.nanos());
}

absl::Status CheckPath(std::string_view field, std::string_view path) {
  std::string_view problem;
  if (path.empty()) {
    problem = "must not be empty";
  } else if (path.front() != '/') {
    problem = "must be absolute; it is taken literally, without ~ or $";
  } else if (path.size() > kMaxPathBytes) {
    problem = "is longer than 4096 bytes";
  } else if (path.find('\0') != std::string_view::npos) {
    problem = "must not hold NUL";
  }
  if (problem.empty()) return absl::OkStatus();
  return MakeError(ErrorReason::ERROR_REASON_PATH_REJECTED, fmt::format("{}: {}", field, problem),
                   {.field = std::string(field)});
}

absl::Status CheckText(std::string_view field, std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return InvalidField(
        field, fmt::format("is {} bytes long; at most {} are allowed", text.size(), max_bytes));
  }
  if (text.find('\0') != std::string_view::npos) return InvalidField(field, "must not hold NUL");
  return absl::OkStatus();
}

absl::Status CheckPlainText(std::string_view field, std::string_view text, size_t max_bytes) {
  if (absl::Status status = CheckText(field, text, max_bytes); !status.ok()) return status;
  for (const char c : text) {
    if (IsControl(c)) return InvalidField(field, "must not hold control characters");
  }
  return absl::OkStatus();
}

absl::Status CheckEnv(std::string_view field,
                      const google::protobuf::RepeatedPtrField<pb::EnvVar>& env) {
  if (static_cast<size_t>(env.size()) > kMaxEnvVars) {
    return InvalidField(
        field, fmt::format("has {} entries; at most {} are allowed", env.size(), kMaxEnvVars));
  }
  std::unordered_set<std::string_view> seen;
  for (int i = 0; i < env.size(); ++i) {
    const size_t index = static_cast<size_t>(i);
    if (!IsEnvName(env[i].name())) {
      return InvalidField(ElementField(field, index, "name"), "must match [A-Za-z_][A-Za-z0-9_]*");
    }
    if (!seen.insert(env[i].name()).second) {
      return InvalidField(ElementField(field, index, "name"), "is given twice");
    }
    if (env[i].value().find('\0') != std::string::npos) {
      return InvalidField(ElementField(field, index, "value"), "must not hold NUL");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUser(std::string_view field, const pb::User& user) {
  const std::string base(field);
  switch (user.kind_case()) {
    case pb::User::KIND_NOT_SET:
      return InvalidField(field, "needs a name or ids");
    case pb::User::kName: {
      const std::string& name = user.name();
      if (name.empty()) return InvalidField(base + ".name", "must not be empty");
      if (name.size() > kMaxUserBytes) return InvalidField(base + ".name", "is too long");
      for (const char c : name) {
        if (IsControl(c) || c == ' ' || c == ':' || c == '/') {
          return InvalidField(base + ".name", "holds a character that account names do not have");
        }
      }
      if (name.front() == '-') return InvalidField(base + ".name", "must not begin with '-'");
      return absl::OkStatus();
    }
    case pb::User::kIds:
      return CheckUserIds(base + ".ids", user.ids());
  }
  return InvalidField(field, "is of an unknown kind");
}

absl::Status CheckUserIds(std::string_view field, const pb::User::Ids& ids) {
  const std::string base(field);
  if (ids.uid() == kUnchangedId) {
    return InvalidField(base + ".uid", "must be below 4294967295");
  }
  if (ids.has_gid() && ids.gid() == kUnchangedId) {
    return InvalidField(base + ".gid", "must be below 4294967295");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> CheckSignal(std::string_view field, const pb::Signal& signal) {
  const std::string base(field);
  switch (signal.kind_case()) {
    case pb::Signal::KIND_NOT_SET:
      return InvalidField(field, "needs a number or a name");
    case pb::Signal::kNumber:
      if (signal.number() < 1 || signal.number() > kMaxSignal) {
        return InvalidField(base + ".number", "must be between 1 and 64");
      }
      return signal.number();
    case pb::Signal::kName:
      if (const std::optional<int> number = SignalNumber(signal.name())) return *number;
      return InvalidField(base + ".name", "is no signal of Linux; write TERM or SIGTERM");
  }
  return InvalidField(field, "is of an unknown kind");
}

absl::Status CheckPort(std::string_view field, int64_t port) {
  if (port < 1 || port > 65535) return InvalidField(field, "must be between 1 and 65535");
  return absl::OkStatus();
}

absl::StatusOr<int> CheckPageSize(std::string_view field, int64_t size) {
  if (size == 0) return kDefaultPageSize;
  if (size < 0 || size > kMaxPageSize) return InvalidField(field, "must be between 1 and 200");
  return static_cast<int>(size);
}

absl::Status CheckEnum(std::string_view field, int value, bool known) {
  if (known) return absl::OkStatus();
  return InvalidField(field, fmt::format("{} is no value that this bridge knows", value));
}

}  // namespace bridge
