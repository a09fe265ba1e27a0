// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/client/over_grpc.h"
#include "tests/integration/exec_storm.h"

namespace bridge::bench {

Sample GrpcIdle(const std::shared_ptr<grpc::Channel>& channel,
                const std::vector<std::string>& sandbox_ids, int streams,
                sandbox::bridge::v1::Fidelity fidelity) {
  Sample sample;
  const double start = Now();
  testing::OpenExecs execs(channel, sandbox_ids, "exec sleep 3600", streams, fidelity);
  sample.seconds = Now() - start;
  sample.items = execs.started();
  if (execs.started() < streams) sample.Fail("not all streams started");
  std::cout << "{\"open\": " << execs.started() << "}" << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  if (execs.running() < execs.started()) sample.Fail("a stream ended by itself");
  const double cut = Now();
  execs.Cut();
  if (!execs.AwaitEnd()) sample.Fail("not all streams ended");
  sample.latencies.push_back(Now() - cut);
  return sample;
}

}  // namespace bridge::bench
