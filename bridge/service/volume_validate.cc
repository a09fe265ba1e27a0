// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/volume_validate.h"

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr int kMaxVolumes = 32;
constexpr size_t kMaxLabelBytes = 63;
constexpr std::string_view kAccessModes[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                             "ReadWriteOncePod"};

// [a-z0-9]([-a-z0-9]*[a-z0-9])?
bool IsDnsLabel(std::string_view text) {
  if (text.empty() || text.size() > kMaxLabelBytes || text.front() == '-' || text.back() == '-') {
    return false;
  }
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (!absl::ascii_islower(u) && !absl::ascii_isdigit(u) && c != '-') return false;
  }
  return true;
}

// A path of the sandbox or its host: the same rules as CheckPath, but the upstream's business.
absl::Status CheckAbsolute(std::string_view field, std::string_view path) {
  const absl::Status status = CheckPath(field, path);
  if (status.ok()) return status;
  return InvalidField(field, "must be an absolute path of at most 4096 bytes, without NUL");
}

absl::Status CheckSubPath(std::string_view field, std::string_view path) {
  RETURN_IF_ERROR(CheckText(field, path, kMaxPathBytes));
  if (!path.empty() && path.front() == '/') return InvalidField(field, "must be relative");
  for (const absl::string_view step :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/')) {
    if (step == "..") return InvalidField(field, "must not hold '..'");
  }
  return absl::OkStatus();
}

absl::Status CheckNamed(const std::string& field, const v1::Volume::NamedVolume& named) {
  RETURN_IF_ERROR(CheckId(field + ".claim", named.claim()));
  if (!named.storage_class().empty()) {
    RETURN_IF_ERROR(CheckId(field + ".storage_class", named.storage_class()));
  }
  if (!named.size().empty() && !IsByteQuantity(named.size())) {
    return InvalidField(field + ".size", "must be a whole number like 10Gi");
  }
  for (int i = 0; i < named.access_modes_size(); ++i) {
    bool known = false;
    for (const std::string_view mode : kAccessModes) known = known || mode == named.access_modes(i);
    if (known) continue;
    return InvalidField(ElementField(field + ".access_modes", static_cast<size_t>(i)),
                        "is no access mode of Kubernetes");
  }
  return absl::OkStatus();
}

absl::Status CheckVolume(const std::string& field, const v1::Volume& volume) {
  if (!IsDnsLabel(volume.name())) {
    return InvalidField(field + ".name", "must be 1 to 63 of a-z 0-9 -, without - at the ends");
  }
  RETURN_IF_ERROR(CheckAbsolute(field + ".mount_path", volume.mount_path()));
  RETURN_IF_ERROR(CheckSubPath(field + ".sub_path", volume.sub_path()));
  switch (volume.backend_case()) {
    case v1::Volume::BACKEND_NOT_SET:
      return InvalidField(field + ".backend", "needs host_path or named");
    case v1::Volume::kHostPath:
      return CheckAbsolute(field + ".host_path", volume.host_path());
    case v1::Volume::kNamed:
      return CheckNamed(field + ".named", volume.named());
  }
  return InvalidField(field + ".backend", "is of an unknown kind");
}

}  // namespace

bool IsByteQuantity(std::string_view text) {
  size_t digits = 0;
  bool positive = false;
  while (digits < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[digits]))) {
    positive = positive || text[digits] != '0';
    ++digits;
  }
  if (!positive || digits > 18) return false;
  const std::string_view unit = text.substr(digits);
  for (const char* known : {"", "k", "K", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"}) {
    if (unit == known) return true;
  }
  return false;
}

absl::Status CheckVolumes(std::string_view field,
                          const google::protobuf::RepeatedPtrField<v1::Volume>& volumes) {
  if (volumes.size() > kMaxVolumes) return InvalidField(field, "has more than 32 volumes");
  std::set<std::string_view> names;
  std::set<std::string_view> paths;
  for (int i = 0; i < volumes.size(); ++i) {
    const std::string element = ElementField(field, static_cast<size_t>(i));
    RETURN_IF_ERROR(CheckVolume(element, volumes[i]));
    if (!names.insert(volumes[i].name()).second) {
      return InvalidField(element + ".name", "is given twice");
    }
    if (!paths.insert(volumes[i].mount_path()).second) {
      return InvalidField(element + ".mount_path", "is given twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace bridge
