// SPDX-License-Identifier: Apache-2.0
//
// tests/bench/client/at_once.h — many calls in flight, kept there by one program that waits for
// none of them: as an event-driven client makes them. A thread for each would measure the threads.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "tests/bench/client/direct.h"
#include "tests/bench/client/sample.h"

namespace bridge::bench {

// `calls` GETs of the URL, `in_flight` at a time: libcurl's multi interface, on this thread.
Sample DirectAtOnce(const DirectTarget& target, int calls, int in_flight);

// `calls` GetSandbox, `in_flight` at a time: gRPC's callback interface, on its threads.
Sample GrpcAtOnce(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                  int calls, int in_flight);

}  // namespace bridge::bench
