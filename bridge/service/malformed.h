// SPDX-License-Identifier: Apache-2.0
//
// service/malformed.h — the typed answer to bytes that are no message of their method: damaged
// ones, or a text field that is not UTF-8. gRPC refuses such a request before it reaches a handler,
// with an UNIMPLEMENTED without a word. Any thread.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/server_builder.h"

namespace bridge {

// INVALID_ARGUMENT.
absl::Status MalformedMessage();

// From now on gRPC's own refusal travels as MalformedMessage(), for every method of the server.
void ExplainMalformedRequests(grpc::ServerBuilder& builder);

}  // namespace bridge
