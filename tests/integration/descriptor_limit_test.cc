// SPDX-License-Identifier: Apache-2.0
//
// A bridge with its own OpenSandbox, started from a shell that allows few descriptors: it takes
// what it may have, and the commands in its sandboxes get what the shell gave.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/server/bridge_process.h"

namespace bridge::testing {
namespace {

namespace v1 = sandbox::bridge::v1;

TEST(DescriptorLimit, OfTheBridgeAndOfItsCommands) {
  BridgeProcess process({.wrapper = {"prlimit", "--nofile=200:4000"},
                         .arguments = {"--listen=127.0.0.1:0", "--upstream=local"},
                         .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  std::ifstream file("/proc/" + std::to_string(process.pid()) + "/limits");
  const std::string limits{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(limits.find("Max open files            4000                 4000"), std::string::npos)
      << limits;

  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  v1::CreateSandboxRequest wanted;
  wanted.mutable_spec()->set_image("base");
  v1::CreateSandboxResponse created;
  grpc::ClientContext create;
  const auto made = v1::SandboxService::NewStub(channel)->CreateSandbox(&create, wanted, &created);
  ASSERT_TRUE(made.ok()) << made.error_message();

  v1::RunRequest command;
  command.set_sandbox_id(created.sandbox().sandbox_id());
  command.mutable_spec()->set_shell("ulimit -Sn; ulimit -Hn");
  v1::RunResponse ran;
  grpc::ClientContext run;
  const auto done = v1::ExecService::NewStub(channel)->Run(&run, command, &ran);
  ASSERT_TRUE(done.ok()) << done.error_message();
  EXPECT_EQ(ran.stdout(), "200\n4000\n");
}

}  // namespace
}  // namespace bridge::testing
