// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/labels.h"

#include <openssl/evp.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "bridge/opensandbox/lifecycle_codec.h"
#include "fmt/format.h"

namespace bridge {
namespace {

constexpr size_t kMaxName = 63;
constexpr size_t kMaxValue = 63;
constexpr size_t kMaxPrefix = 253;
// Of an id that is split: a part and the two characters around it fill a label.
constexpr size_t kPartBytes = kMaxValue - 2;
constexpr int kParts = 3;
constexpr size_t kDigestDigits = 40;
constexpr std::string_view kHashed = "sha256-";

std::string Key(std::string_view name) { return std::string(kOwnLabelPrefix) + std::string(name); }

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?
bool IsLabelText(std::string_view text) {
  if (text.empty() || !IsAlnum(text.front()) || !IsAlnum(text.back())) return false;
  for (const char c : text) {
    if (!IsAlnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

// Lower-case DNS labels with dots between.
bool IsDnsSubdomain(std::string_view text) {
  char before = '.';
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '.' || c == '-') {
      if (before == '.' || (c == '.' && before == '-')) return false;
    } else if (!absl::ascii_islower(u) && !absl::ascii_isdigit(u)) {
      return false;
    }
    before = c;
  }
  return before != '.' && before != '-';
}

std::string Sha256Hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string Get(const SandboxRecord& record, std::string_view name) {
  const auto it = record.metadata.find(Key(name));
  return it == record.metadata.end() ? "" : it->second;
}

std::string FromLabel(std::string_view snapshot_id, std::string_view template_id) {
  if (!template_id.empty()) return "template";
  if (snapshot_id.empty()) return "image";
  return "snapshot-" + Sha256Hex(snapshot_id).substr(0, kDigestDigits);
}

}  // namespace

std::optional<std::string> LabelKeyProblem(std::string_view key) {
  const size_t slash = key.find('/');
  std::string_view name = key;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = key.substr(0, slash);
    name = key.substr(slash + 1);
    if (prefix.empty() || prefix.size() > kMaxPrefix || !IsDnsSubdomain(prefix)) {
      return "has a prefix that is no lower-case DNS name";
    }
    const std::string with_slash = std::string(prefix) + "/";
    if (with_slash == kSystemLabelPrefix || with_slash == kOwnLabelPrefix) {
      return fmt::format("is reserved (prefix {})", with_slash);
    }
  }
  if (name.size() > kMaxName || !IsLabelText(name)) {
    return "must be 1 to 63 of A-Z a-z 0-9 - _ . with a letter or digit at both ends, after an "
           "optional DNS prefix and '/'";
  }
  return std::nullopt;
}

std::optional<std::string> LabelValueProblem(std::string_view value) {
  if (value.empty()) return std::nullopt;
  if (value.size() > kMaxValue || !IsLabelText(value)) {
    return "must be empty or 1 to 63 of A-Z a-z 0-9 - _ . with a letter or digit at both ends";
  }
  return std::nullopt;
}

bool IsOwnLabel(std::string_view key) {
  return key.substr(0, kOwnLabelPrefix.size()) == kOwnLabelPrefix;
}

Labels RequestIdFilter(std::string_view request_id) {
  if (request_id.empty()) return {};
  if (!LabelValueProblem(request_id)) return {{Key("request-id"), std::string(request_id)}};
  Labels labels;
  for (int i = 0; i < kParts; ++i) {
    const std::string_view part = request_id.substr(0, kPartBytes);
    request_id.remove_prefix(part.size());
    labels[Key(fmt::format("request-id-{}", i))] = part.empty() ? "" : fmt::format("x{}x", part);
  }
  return labels;
}

Labels CreateIdFilter(std::string_view create_id) {
  return {{Key("create-id"), std::string(create_id)}};
}

std::string TenantLabel(std::string_view tenant) {
  if (tenant.empty()) return "";
  if (!LabelValueProblem(tenant) && tenant.substr(0, kHashed.size()) != kHashed) {
    return std::string(tenant);
  }
  return std::string(kHashed) + Sha256Hex(tenant).substr(0, kDigestDigits);
}

Labels TenantFilter(std::string_view tenant) {
  if (tenant.empty()) return {};
  return {{Key("tenant"), TenantLabel(tenant)}};
}

Labels OwnLabels(const CreateSpec& spec, const Origin& origin) {
  Labels labels = RequestIdFilter(origin.request_id);
  labels[Key("create-id")] = origin.create_id;
  labels[Key("spec")] = SpecDigest(spec);
  labels[Key("from")] = FromLabel(spec.snapshot_id, spec.template_id);
  if (!origin.tenant.empty()) labels[Key("tenant")] = TenantLabel(origin.tenant);
  for (const char* name :
       {"request-id", "request-id-0", "request-id-1", "request-id-2", "tenant"}) {
    labels.emplace(Key(name), "");
  }
  return labels;
}

bool InheritedItsLabels(const SandboxRecord& record) {
  const std::string from = Get(record, "from");
  if (from.empty() || from == "template") return false;
  return from != FromLabel(record.snapshot_id, "");
}

std::string RequestIdOf(const SandboxRecord& record) {
  if (InheritedItsLabels(record)) return "";
  std::string whole = Get(record, "request-id");
  if (!whole.empty()) return whole;
  for (int i = 0; i < kParts; ++i) {
    const std::string part = Get(record, fmt::format("request-id-{}", i));
    if (part.size() > 2) whole += part.substr(1, part.size() - 2);
  }
  return whole;
}

std::string SpecDigestOf(const SandboxRecord& record) { return Get(record, "spec"); }

std::string TenantLabelOf(const SandboxRecord& record) { return Get(record, "tenant"); }

bool BelongsTo(const SandboxRecord& record, std::string_view tenant) {
  return tenant.empty() || Get(record, "tenant") == TenantLabel(tenant);
}

std::string SpecDigest(const CreateSpec& spec) {
  CreateSpec content = spec;
  content.image_user.clear();
  content.image_password.clear();
  return "v1-" + Sha256Hex(CreateSandboxJson(content)).substr(0, kDigestDigits);
}

bool SameSpec(std::string_view a, std::string_view b) {
  if (a.substr(0, a.find('-')) != b.substr(0, b.find('-'))) return true;
  return a == b;
}

}  // namespace bridge
