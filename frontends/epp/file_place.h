// SPDX-License-Identifier: Apache-2.0
//
// epp/file_place.h — what every method of files.* begins and ends with. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/base/status_macros.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/values.h"

namespace bridge::epp {

// Of calls that move much data or touch many files: below the host's own 15 minutes.
inline constexpr absl::Duration kTransferTimeout = absl::Minutes(14);

struct FilePlace {
  std::string sandbox_id;
  std::string path;
};

inline absl::StatusOr<FilePlace> FilePlaceOf(const Params& params) {
  FilePlace place;
  ASSIGN_OR_RETURN(place.sandbox_id, params.NonEmptyText("sandbox_id"));
  ASSIGN_OR_RETURN(place.path, params.NonEmptyText("path"));
  return place;
}

// A failure of the bridge, with the host's own word for an unknown sandbox.
inline absl::Status RefinedFileError(const absl::Status& failure, const std::string& sandbox_id) {
  return IsUnknownSandbox(failure) ? UnknownSandbox(sandbox_id) : failure;
}

}  // namespace bridge::epp
