// SPDX-License-Identifier: Apache-2.0
//
// Processes through a whole bridge on our own daemon and on stock ones of both versions: holders
// that come and go while input and output are under way.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using Processes = v1::ProcessService::Stub;

constexpr char kStock[] =
    R"(rule { half: EXECD route: "/v1/capabilities" action { answer { status: 404 } } } )";

struct Way {
  const char* name;
  const char* compat;
  const char* faults;
};

class ProcessCases : public BridgeOverLocal, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    local::LocalOptions options;
    options.compat = GetParam().compat;
    Start(false, std::move(options));
    Faults(GetParam().faults);
    id_ = MustCreate();
    processes_ = v1::ProcessService::NewStub(channel_);
  }
  std::string StartOne(const std::string& line) {
    v1::StartProcessRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell(line);
    v1::StartProcessResponse started;
    EXPECT_THAT(Call(*processes_, &Processes::StartProcess, request, &started), IsOk());
    return started.process_id();
  }
  void DeleteOne(const std::string& process_id) {
    v1::DeleteProcessRequest request;
    request.set_sandbox_id(id_);
    request.set_process_id(process_id);
    v1::DeleteProcessResponse deleted;
    EXPECT_THAT(Call(*processes_, &Processes::DeleteProcess, request, &deleted), IsOk());
    EXPECT_TRUE(deleted.existed());
  }

  // One who holds a process, and what it was told.
  class Holder {
   public:
    Holder(ProcessCases& test, const std::string& process_id, int64_t offset,
           bool takeover = false) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
      stream_ = test.processes_->AttachProcess(&context_);
      v1::AttachProcessRequest request;
      auto& attach = *request.mutable_attach();
      attach.set_sandbox_id(test.id_);
      attach.set_process_id(process_id);
      attach.set_offset(offset);
      attach.set_takeover(takeover);
      EXPECT_TRUE(stream_->Write(request));
      next = offset;
    }
    ~Holder() {
      context_.TryCancel();
      if (typist_.joinable()) typist_.join();
      if (!over_) (void)stream_->Finish();
    }

    void Type(const std::string& text) {
      v1::AttachProcessRequest request;
      request.mutable_stdin()->set_offset(typed_);
      request.mutable_stdin()->set_data(text);
      (void)stream_->Write(request);
      typed_ += static_cast<int64_t>(text.size());
    }
    // Goes on meanwhile, for what nobody takes.
    void TypeMany(int times, const std::string& text) {
      typist_ = std::thread([this, times, text] {
        for (int i = 0; i < times; ++i) Type(text);
      });
    }
    void Eof() {
      v1::AttachProcessRequest request;
      request.mutable_stdin_eof();
      (void)stream_->Write(request);
    }
    // Until `enough` was printed, or to the end.
    void ReadUntil(const std::string& enough) {
      v1::ProcessEvent event;
      while (printed.find(enough) == std::string::npos && stream_->Read(&event)) Take(event);
    }
    absl::Status ReadToEnd() {
      v1::ProcessEvent event;
      while (stream_->Read(&event)) Take(event);
      over_ = true;
      return FromGrpcStatus(stream_->Finish());
    }

    int64_t next = 0;
    int64_t taken = 0;
    std::string printed;
    v1::Outcome outcome;
    std::vector<std::string> told;  // "attached", "exited", "drained", "displaced"

   private:
    void Take(const v1::ProcessEvent& event) {
      if (event.has_attached()) told.emplace_back("attached");
      if (event.has_stdin_ack()) taken = event.stdin_ack().offset();
      if (event.has_exited()) {
        told.emplace_back("exited");
        outcome = event.exited().outcome();
      }
      if (event.has_displaced()) told.emplace_back("displaced");
      if (event.has_drained()) {
        told.emplace_back("drained");
        EXPECT_EQ(event.drained().end_offset(), next);
      }
      if (!event.has_output()) return;
      EXPECT_EQ(event.output().offset(), next);
      printed += event.output().data();
      next += static_cast<int64_t>(event.output().data().size());
    }

    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::AttachProcessRequest, v1::ProcessEvent>> stream_;
    int64_t typed_ = 0;
    bool over_ = false;
    std::thread typist_;
  };

  std::unique_ptr<Processes> processes_;
  std::string id_;
};

INSTANTIATE_TEST_SUITE_P(Daemons, ProcessCases,
                         ::testing::Values(Way{"own", "current", ""},
                                           Way{"current", "current", kStock},
                                           Way{"v110", "1.1.0", kStock}),
                         [](const auto& info) { return std::string(info.param.name); });

const std::vector<std::string> kWhole = {"attached", "exited", "drained"};
const std::vector<std::string> kDisplaced = {"attached", "displaced"};

// The next holder's frames became data, and its end of input was swallowed.
TEST_P(ProcessCases, InputThatIsBrokenOffLeavesTheNextHoldersWhole) {
  const std::string id = StartOne(
      "dd bs=1 count=1 status=none >/tmp/in; echo got; while [ ! -e /tmp/go ]; do "
      "sleep 0.01; done; cat >>/tmp/in; echo end");
  Holder former(*this, id, 0);
  former.TypeMany(2, std::string(200'000, 'z'));
  former.ReadUntil("got\n");
  Holder next(*this, id, 0, /*takeover=*/true);
  next.ReadUntil("got\n");
  EXPECT_THAT(former.ReadToEnd(), IsOk());
  EXPECT_EQ(former.told, kDisplaced);
  EXPECT_EQ(former.taken, 0);
  v1::RunResponse run;
  EXPECT_THAT(Run(id_, "touch /tmp/go", &run), IsOk());
  next.Type("HELLO\n");
  next.Type("WORLD\n");
  next.Eof();
  EXPECT_THAT(next.ReadToEnd(), IsOk());
  EXPECT_EQ(next.told, kWhole);
  EXPECT_EQ(next.taken, 12);
  EXPECT_EQ(next.printed, "got\nend\n");
  EXPECT_THAT(Run(id_, "tr -d z </tmp/in", &run), IsOk());
  EXPECT_EQ(run.stdout(), "HELLO\nWORLD\n");
}

// One of four: an error, an end, an acknowledgement of what no process took, or a lost connection.
TEST_P(ProcessCases, AProcessThatIsDeletedHasEndedWhateverWasTyped) {
  for (const int times : {1, 1, 1, 40, 40}) {
    const std::string id = StartOne("echo up; exec sleep 100");
    Holder holder(*this, id, 0);
    holder.ReadUntil("up\n");
    holder.TypeMany(times, std::string(200'000, 'z'));
    DeleteOne(id);
    EXPECT_THAT(holder.ReadToEnd(), IsOk()) << times;
    EXPECT_EQ(holder.told, kWhole) << times;
    EXPECT_TRUE(holder.outcome.has_cancelled()) << holder.outcome.DebugString();
    EXPECT_EQ(holder.taken, 0) << times;
  }
}

TEST_P(ProcessCases, WhoTypesWhatNobodyTakesIsDisplacedAllTheSame) {
  const std::string id = StartOne("echo up; exec sleep 100");
  auto holder = std::make_unique<Holder>(*this, id, 0);
  holder->ReadUntil("up\n");
  for (int i = 0; i < 5; ++i) {
    holder->TypeMany(40, std::string(200'000, 'z'));
    auto next = std::make_unique<Holder>(*this, id, 0, /*takeover=*/true);
    next->ReadUntil("up\n");
    EXPECT_THAT(holder->ReadToEnd(), IsOk());
    EXPECT_EQ(holder->told, kDisplaced);
    EXPECT_EQ(holder->taken, 0);
    holder = std::move(next);
  }
  DeleteOne(id);
  EXPECT_THAT(holder->ReadToEnd(), IsOk());
  EXPECT_EQ(holder->told, kWhole);
}

// What waited behind a marker's first byte came at the end, or never to one who attached again.
TEST_P(ProcessCases, APauseBehindAMarkersFirstByte) {
  const std::string id = StartOne("printf 'out\\036'; read x; printf err >&2; read x");
  {
    Holder first(*this, id, 0);
    first.ReadUntil("out\x1e");
    first.Type("\n");
    first.ReadUntil("err");
    EXPECT_EQ(first.printed,
              "out\x1e"
              "err");
  }
  for (const int64_t offset : {4, 3, 0}) {
    Holder again(*this, id, offset, /*takeover=*/true);
    again.ReadUntil("err");
    EXPECT_EQ(again.printed, std::string("out\x1e"
                                         "err")
                                 .substr(static_cast<size_t>(offset)));
    if (offset != 0) continue;
    again.Type("\n");
    EXPECT_THAT(again.ReadToEnd(), IsOk());
    EXPECT_EQ(again.told, kWhole);
  }
}

TEST_P(ProcessCases, AStreamThatEndsInAMarkersFirstByte) {
  for (int i = 0; i < 5; ++i) {
    const std::string id = StartOne("printf out; printf '\\036' >&2");
    Holder holder(*this, id, 0);
    EXPECT_THAT(holder.ReadToEnd(), IsOk());
    EXPECT_EQ(holder.told, kWhole);
    EXPECT_THAT(holder.printed, ::testing::AnyOf("out\x1e", "\x1eout"));
  }
}

}  // namespace
}  // namespace bridge
