// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/base/utf8.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr size_t kColumns = 79;
constexpr int kBarCells = 20;
constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string SizeText(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string Bar(int64_t done, int64_t total) {
  const int full = static_cast<int>(static_cast<double>(done) / static_cast<double>(total) *
                                    static_cast<double>(kBarCells));
  const int cells = std::clamp(full, 0, kBarCells);
  return "[" + std::string(static_cast<size_t>(cells), '#') +
         std::string(static_cast<size_t>(kBarCells - cells), '.') + "]";
}

// The end of a path tells more than its beginning.
std::string Utf8Suffix(std::string_view text, size_t max_bytes) {
  size_t begin = text.size() - std::min(text.size(), max_bytes);
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return std::string(text.substr(begin));
}

}  // namespace

absl::StatusOr<Place> ParsePlace(const std::string& word) {
  const size_t colon = word.find(':');
  const size_t slash = word.find('/');
  if (colon == std::string::npos || colon == 0 || slash < colon) return Place{"", word};
  Place place{word.substr(0, colon), word.substr(colon + 1)};
  if (!IsValidUtf8(word)) return absl::InvalidArgumentError(NotUtf8("a place in a sandbox"));
  if (place.path.starts_with('/')) return place;
  return absl::InvalidArgumentError(fmt::format(
      "a path in a sandbox is absolute: \"{0}:/…\" (a file of this machine with a colon in its "
      "name is ./{1})",
      place.sandbox_id, word));
}

std::string LastPart(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::string_view part = path.substr(path.rfind('/') + 1);
  return part == "." || part == ".." ? std::string() : std::string(part);
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

bool IsSafeRelative(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Json CopyReport::ToJson() const {
  return Json{{"files", files}, {"unchanged", unchanged}, {"directories", directories},
              {"links", links}, {"bytes", bytes},         {"failed", failed}};
}

std::string CopyReport::ToText() const {
  std::string text = fmt::format("{} file{} copied, {}", files, files == 1 ? "" : "s",
                                 SizeText(static_cast<double>(bytes)));
  if (unchanged > 0) text += fmt::format(", {} already there", unchanged);
  if (links > 0) text += fmt::format(", {} link{}", links, links == 1 ? "" : "s");
  if (failed > 0) text += fmt::format(", {} failed", failed);
  return text + "\n";
}

std::string ProgressLine(std::string_view name, int64_t done, int64_t total,
                         double bytes_a_second) {
  std::string tail = "  " + SizeText(static_cast<double>(done));
  if (total > 0) {
    const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
    tail = fmt::format("  {} {:3.0f}%{} of {}", Bar(done, total), share * 100, tail,
                       SizeText(static_cast<double>(total)));
  }
  tail += fmt::format("  {}/s", SizeText(bytes_a_second));
  std::string shown = Printable(name);
  const size_t room = tail.size() < kColumns ? kColumns - tail.size() : 0;
  if (shown.size() > room) shown = "~" + Utf8Suffix(shown, room > 1 ? room - 1 : 0);
  return shown + tail;
}

void Progress::Begin(std::string_view name, int64_t total, int64_t done) {
  if (!enabled_) return;
  name_ = std::string(name);
  total_ = total;
  done_ = skipped_ = done;
  began_ = Clock::now();
  if (began_ - drawn_ >= kRedraw) Draw(began_);
}

void Progress::Add(int64_t bytes) {
  if (!enabled_) return;
  done_ += bytes;
  const auto now = Clock::now();
  if (now - drawn_ >= kRedraw) Draw(now);
}

void Progress::Draw(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_ - skipped_) / seconds : 0;
  streams_.Say(std::string(kEraseLine) + ProgressLine(name_, done_, total_, rate));
  drawn_ = now;
  visible_ = true;
}

void Progress::Clear() {
  if (visible_) streams_.Say(kEraseLine);
  visible_ = false;
}

void Copy::Fail(std::string_view what, std::string_view message) {
  Fail(what, LocalFailure(message, "Mend it and copy again; what is there is left alone."));
}

void Copy::Fail(std::string_view what, const grpc::Status& status) {
  if (interrupted()) return;  // the end of the whole copy says so
  Fail(what, FailureOf(status, context.bridge.where()));
}

void Copy::Fail(std::string_view what, Failure failure) {
  progress.Clear();
  ++report.failed;
  failure.message = fmt::format("{}: {}", what, failure.message);
  bridge::cli::Fail(context, failure);
}

}  // namespace bridge::cli
