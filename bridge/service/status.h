// SPDX-License-Identifier: Apache-2.0
//
// service/status.h — absl::Status (what the product uses) ↔ grpc::Status (what travels).
//
// The payloads of the absl::Status become the google.rpc.Status in `grpc-status-details-bin`, where
// every gRPC client library looks for them. A Status that somebody made without MakeError() gets
// the ErrorInfo of its code first: no failure leaves without a reason.
//
// Pure values: any thread.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace bridge {

grpc::Status ToGrpcStatus(const absl::Status& status);

// The way back, for clients and tests. Details that cannot be read are left out; the code and the
// message always arrive. A message that gRPC's server refused for its size, which it does in words
// of its own, is INVALID_ARGUMENT.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace bridge
