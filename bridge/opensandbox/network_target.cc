// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/network_target.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace bridge {
namespace {

constexpr size_t kMaxNameBytes = 253;
constexpr size_t kMaxLabelBytes = 63;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// The sidecar reads "8"; "08" and "+8" it does not.
bool IsPrefixLength(std::string_view text, int most) {
  int bits = 0;
  const bool plain = std::all_of(text.begin(), text.end(), IsDigit) &&
                     (text.size() == 1 || !text.starts_with('0'));
  return plain && absl::SimpleAtoi(std::string(text), &bits) && bits <= most;
}

bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabelBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_';
         });
}

// "256", "0x0a": such a label at the end belongs to an address, never to a name.
bool IsNumber(std::string_view label) {
  if (label.starts_with("0x") || label.starts_with("0X")) {
    return std::all_of(label.begin() + 2, label.end(),
                       [](unsigned char c) { return absl::ascii_isxdigit(c); });
  }
  return std::all_of(label.begin(), label.end(), IsDigit);
}

bool IsName(std::string_view text) {
  if (text.starts_with("*.")) text.remove_prefix(2);
  const std::vector<std::string> labels = absl::StrSplit(std::string(text), '.');
  return text.size() <= kMaxNameBytes && std::all_of(labels.begin(), labels.end(), IsLabel) &&
         !IsNumber(labels.back());
}

}  // namespace

NetworkTarget KindOfTarget(std::string_view target) {
  const size_t slash = target.find('/');
  const bool is_network = slash != std::string_view::npos;
  const std::string_view bits = is_network ? target.substr(slash + 1) : std::string_view();
  const std::string address(target.substr(0, slash));
  in_addr v4 = {};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    return !is_network || IsPrefixLength(bits, 32) ? NetworkTarget::kAddress
                                                   : NetworkTarget::kNothing;
  }
  in6_addr v6 = {};
  if (inet_pton(AF_INET6, address.c_str(), &v6) == 1) {
    if (is_network && !IsPrefixLength(bits, 128)) return NetworkTarget::kNothing;
    return IN6_IS_ADDR_V4MAPPED(&v6) ? NetworkTarget::kMapped : NetworkTarget::kAddress;
  }
  return IsName(target) ? NetworkTarget::kName : NetworkTarget::kNothing;
}

}  // namespace bridge
