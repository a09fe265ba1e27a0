// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/time_convert.h"

namespace bridge {

void DurationToProto(absl::Duration duration, google::protobuf::Duration* proto) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  proto->set_seconds(seconds);
  proto->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

void TimeToProto(absl::Time time, google::protobuf::Timestamp* proto) {
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounds down, also before 1970
  proto->set_seconds(seconds);
  proto->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

}  // namespace bridge
