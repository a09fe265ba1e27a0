// SPDX-License-Identifier: Apache-2.0
//
// Commands and terminals that are silent for longer than any limit of a single answer (30 s), by
// every way: what is tested is that time alone ends nothing. All of them at once, so that it takes
// no longer than one.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"
#include "tests/server/bridge_process.h"

namespace bridge {
namespace {

constexpr char kLong[] = "sleep 41; echo done";
constexpr int kPingMs = 10'000;  // the shortest that gRPC's own clients allow

// What Execute said.
struct Seen {
  std::string out;
  int exit_code = -1;
  int keepalives = 0;
  absl::Duration longest_silence;
  absl::Status status;
};

Seen Execute(const std::shared_ptr<grpc::Channel>& channel, const std::string& id) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(100)));
  v1::ExecuteRequest request;
  request.set_sandbox_id(id);
  request.mutable_spec()->set_shell(kLong);
  auto stream = v1::ExecService::NewStub(channel)->Execute(&context, request);
  Seen seen;
  v1::ExecEvent event;
  absl::Time last = absl::Now();
  while (stream->Read(&event)) {
    seen.longest_silence = std::max(seen.longest_silence, absl::Now() - last);
    last = absl::Now();
    for (const auto& output : event.output_batch().outputs()) seen.out += output.data();
    if (event.has_keepalive()) ++seen.keepalives;
    if (event.has_exited()) seen.exit_code = event.exited().outcome().exit_code();
  }
  seen.status = FromGrpcStatus(stream->Finish());
  return seen;
}

// The same of a terminal, which takes a line when the silence is over. It is one attachment.
Seen Attach(const std::shared_ptr<grpc::Channel>& channel, const std::string& id) {
  const auto stub = v1::ProcessService::NewStub(channel);
  Seen seen;
  v1::StartProcessRequest start;
  v1::StartProcessResponse started;
  start.set_sandbox_id(id);
  start.mutable_spec()->set_shell(std::string(kLong) + "; read x; echo got $x");
  start.mutable_spec()->mutable_terminal()->set_rows(30);
  grpc::ClientContext starting;
  seen.status = FromGrpcStatus(stub->StartProcess(&starting, start, &started));
  if (!seen.status.ok()) return seen;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(100)));
  auto stream = stub->AttachProcess(&context);
  v1::AttachProcessRequest request;
  request.mutable_attach()->set_sandbox_id(id);
  request.mutable_attach()->set_process_id(started.process_id());
  request.mutable_attach()->set_offset(0);
  (void)stream->Write(request);
  v1::ProcessEvent event;
  absl::Time last = absl::Now();
  bool typed = false;
  while (stream->Read(&event)) {
    seen.longest_silence = std::max(seen.longest_silence, absl::Now() - last);
    last = absl::Now();
    if (event.has_output()) seen.out += event.output().data();
    if (event.has_keepalive()) ++seen.keepalives;
    if (event.has_exited()) seen.exit_code = event.exited().outcome().exit_code();
    if (typed || seen.out != "done\r\n") continue;
    typed = true;
    request.mutable_stdin()->set_data("hi\n");
    (void)stream->Write(request);
  }
  seen.status = FromGrpcStatus(stream->Finish());
  return seen;
}

using LongCommands = BridgeOverLocal;

// Commands over 30 s always failed; quiet streams were cut by what stood between client and bridge;
// and clients that pinged against that were sent away.
TEST_F(LongCommands, SilenceEndsNothing) {
  const std::string id = MustCreate();
  // A daemon that only knows the stock routes, to a bridge that has not met it yet.
  const std::string stock_id = MustCreate();
  Faults(
      R"(rule { half: EXECD route: "/v1/capabilities" times: 1 action { answer { status: 404 } } })");
  v1::RunResponse probed;
  ASSERT_THAT(Run(stock_id, "true", &probed), IsOk());

  testing::BridgeProcess process(
      {.arguments = {"--listen=127.0.0.1:0", "--use_server_proxy", "--upstream=" + local_->url()},
       .environment = {"SANDBOX_BRIDGE_API_KEY=" + std::string(kKey)}});
  const std::string address = process.WaitForAddress();
  ASSERT_NE(address, "") << process.log();
  grpc::ChannelArguments pinging;
  pinging.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  pinging.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  const auto proxied =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), pinging);

  Seen own, stock, through_server, terminal, proxied_terminal;
  v1::RunResponse run;
  absl::Status run_status;
  std::vector<std::thread> all;
  all.emplace_back([&] { own = Execute(channel_, id); });
  all.emplace_back([&] { stock = Execute(channel_, stock_id); });
  all.emplace_back([&] { through_server = Execute(proxied, id); });
  all.emplace_back([&] {
    v1::RunRequest request;
    request.set_sandbox_id(id);
    request.mutable_spec()->set_shell(kLong);
    grpc::ClientContext context;  // without a deadline
    run_status = FromGrpcStatus(execs_->Run(&context, request, &run));
  });
  all.emplace_back([&] { terminal = Attach(channel_, id); });
  all.emplace_back([&] { proxied_terminal = Attach(proxied, id); });
  for (std::thread& call : all) call.join();
  for (const Seen* seen : {&own, &stock, &through_server}) EXPECT_EQ(seen->out, "done\n");
  for (const Seen* seen : {&terminal, &proxied_terminal}) {
    EXPECT_EQ(seen->out, "done\r\nhi\r\ngot hi\r\n");
  }
  for (const Seen* seen : {&own, &stock, &through_server, &terminal, &proxied_terminal}) {
    EXPECT_THAT(seen->status, IsOk());
    EXPECT_EQ(seen->exit_code, 0);
    EXPECT_GE(seen->keepalives, 2);
    EXPECT_LE(seen->longest_silence, absl::Seconds(20));  // what stands between sees bytes
  }
  EXPECT_THAT(run_status, IsOk());
  EXPECT_EQ(run.stdout(), "done\n");
}

}  // namespace
}  // namespace bridge
