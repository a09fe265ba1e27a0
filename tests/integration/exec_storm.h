// SPDX-License-Identifier: Apache-2.0
//
// tests/integration/exec_storm.h — many exec streams at once over one channel, each cut at a moment
// of its own: before the answer, while it starts, in the middle of its output.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/common.pb.h"

namespace bridge::testing {

struct StormResult {
  int cut = 0;      // ended CANCELLED, as asked for
  int refused = 0;  // ended in another way: a fault, unless the bridge was told to end
  std::string first_refusal = {};
};

// Opens `streams` execs of `command` in the sandbox, at most `at_once` at the same time, and cuts
// each up to `longest_ms` later. Half of them ask for exact bytes, half for lines. Returns when all
// ended.
StormResult CutExecs(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                     const std::string& command, int streams, int at_once, int longest_ms,
                     uint32_t seed);

// Exec streams that are held open.
class OpenExecs {
 public:
  // Opens them, in these sandboxes in turn, and waits until each command has started. Unspecified
  // fidelity: half of them ask for exact bytes, half for lines.
  OpenExecs(const std::shared_ptr<grpc::Channel>& channel,
            const std::vector<std::string>& sandbox_ids, const std::string& command, int streams,
            sandbox::bridge::v1::Fidelity fidelity = sandbox::bridge::v1::FIDELITY_UNSPECIFIED);
  ~OpenExecs();  // cuts what is left and waits

  int started() const;
  int running() const;
  void Cut();
  // Waits for the end of all, however it comes. False: some still run after 60 s.
  bool AwaitEnd();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The value of a metric of the admin server on this port, summed over its labels, or over the lines
// that hold each of these `labels` (`code="OK"`); -1 when it has none.
double Metric(int admin_port, const std::string& name, const std::vector<std::string>& labels = {});

}  // namespace bridge::testing
