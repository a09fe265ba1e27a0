// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_codec.h"

#include <nlohmann/json.hpp>

#include "bridge/base/error.h"

namespace bridge {

absl::StatusOr<int64_t> ParseFileSize(std::string_view json, const std::string& path) {
  const auto files = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (files.is_object()) {
    const auto file = files.find(path);
    if (file != files.end() && file->is_object()) {
      const auto size = file->find("size");
      if (size != file->end() && size->is_number_integer()) return size->get<int64_t>();
    }
  }
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon described a file in a way that cannot be read");
}

}  // namespace bridge
