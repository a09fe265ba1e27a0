// SPDX-License-Identifier: Apache-2.0
//
// service/time_convert.h — times: absl → proto. The way back is a check: see validate.h. Pure.
#pragma once

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace bridge {

void DurationToProto(absl::Duration duration, google::protobuf::Duration* proto);

// Finite times only.
void TimeToProto(absl::Time time, google::protobuf::Timestamp* proto);

}  // namespace bridge
