// SPDX-License-Identifier: Apache-2.0
//
// service/volume_validate.h — volumes of a sandbox to be made, checked. Pure functions.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge {

// Names are DNS labels and unique, mount paths absolute and unique, exactly one backend each.
absl::Status CheckVolumes(
    std::string_view field,
    const google::protobuf::RepeatedPtrField<sandbox::bridge::v1::Volume>& volumes);

// "512Mi", "2Gi", "256M", "268435456": whole and positive.
bool IsByteQuantity(std::string_view text);

}  // namespace bridge
