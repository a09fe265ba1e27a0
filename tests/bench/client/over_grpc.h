// SPDX-License-Identifier: Apache-2.0
//
// tests/bench/client/over_grpc.h — the work through the bridge, as a user's C++ program would do
// it. Blocking; any thread.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/common.pb.h"
#include "tests/bench/client/sample.h"

namespace bridge::bench {

// A channel with the settings that the bridge recommends to its clients.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address);

// GetServerInfo: what gRPC itself costs, as nothing goes upstream.
Sample GrpcEcho(const std::shared_ptr<grpc::Channel>& channel, int calls);
// GetSandbox: one request upstream each. Sleeps a random 0.7 to 1.6 s before each when `gaps`.
Sample GrpcUnary(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                 int calls, bool gaps);
// One command to its end. `items` are its lines of output (output events of the daemon); with
// `stamped` each line is a time of the monotonic clock in nanoseconds.
Sample GrpcExec(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                const std::string& command, sandbox::bridge::v1::Fidelity fidelity, bool stamped);
// Makes a sandbox, waits until it can be used and deletes it, so many times; the latencies are of
// the making alone.
Sample GrpcCreate(const std::shared_ptr<grpc::Channel>& channel, const std::string& image,
                  int times);
// One file; `items` are its bytes.
Sample GrpcDownload(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                    const std::string& path);
// Writes `bytes` zeros as one file, in place, in messages of 256 KiB; `items` are its bytes.
Sample GrpcUpload(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                  const std::string& path, int64_t bytes);
// Opens `streams` commands that print nothing, prints {"open": n} when all have started, and holds
// them until standard input ends. Then cancels all.
Sample GrpcIdle(const std::shared_ptr<grpc::Channel>& channel,
                const std::vector<std::string>& sandbox_ids, int streams,
                sandbox::bridge::v1::Fidelity fidelity);

// A terminal with `cat` in it: the time from a key to its echo, one after the other.
Sample GrpcTerminalEcho(const std::shared_ptr<grpc::Channel>& channel,
                        const std::string& sandbox_id, int keys);

// As GrpcIdle, with attached terminals in which a program sleeps.
Sample GrpcIdleProcesses(const std::shared_ptr<grpc::Channel>& channel,
                         const std::vector<std::string>& sandbox_ids, int processes);

}  // namespace bridge::bench
