// SPDX-License-Identifier: Apache-2.0
//
// tests/integration/hostile_fixture.h — tables of malformed and hostile requests: each must be
// refused with the field's path, and nothing may be sent upstream. Those of SandboxService are in
// tests/service/sandbox_service_hostile_test.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/isolation.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/fakes/raw_call.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {

inline const std::string kNul("a\0b", 3);
inline const std::string kHuge(5000, 'a');

class HostileRequests : public BridgeOverLocal {
 protected:
  using Files = v1::FileService::Stub;
  using Processes = v1::ProcessService::Stub;
  using Isolation = v1::IsolationService::Stub;

  void SetUp() override {
    BridgeOverLocal::SetUp();
    files_ = v1::FileService::NewStub(channel_);
    processes_ = v1::ProcessService::NewStub(channel_);
    isolation_ = v1::IsolationService::NewStub(channel_);
  }

  // A unary method.
  template <class Stub, class Request, class Response>
  absl::Status Ask(Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const Request& request) {
    Response response;
    return Call(stub, method, request, &response);
  }
  // A server-streaming one.
  template <class Stub, class Request, class Message>
  absl::Status Ask(Stub& stub,
                   std::unique_ptr<grpc::ClientReader<Message>> (Stub::*method)(
                       grpc::ClientContext*, const Request&),
                   const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    auto stream = (stub.*method)(&context, request);
    Message message;
    while (stream->Read(&message)) ADD_FAILURE() << "an answer to " << request.DebugString();
    return FromGrpcStatus(stream->Finish());
  }

  // All methods of the services of a file of the API ("exec"), with what RawCall wants.
  template <class Visit>
  static void ForEachMethod(const std::string& file, const Visit& visit) {
    const auto* described = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        "sandbox/bridge/v1/" + file + ".proto");
    ASSERT_NE(described, nullptr) << file;
    for (int s = 0; s < described->service_count(); ++s) {
      const auto* service = described->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        visit(*service->method(m), "/" + service->full_name() + "/" + service->method(m)->name());
      }
    }
  }
  // An upload over a file, in these chunks after its header, is refused and leaves the file alone.
  void ExpectUploadChangesNothing(const std::vector<std::string>& chunks) {
    const std::string id = MustCreate();
    v1::RunResponse run;
    ASSERT_THAT(Run(id, "printf old > /tmp/f", &run), IsOk());
    v1::WriteFileChunk header;
    header.mutable_header()->set_sandbox_id(id);
    header.mutable_header()->mutable_options()->set_path("/tmp/f");
    std::vector<std::string> messages = {header.SerializeAsString()};
    messages.insert(messages.end(), chunks.begin(), chunks.end());
    const absl::Status status =
        FromGrpcStatus(RawCall(channel_, "/sandbox.bridge.v1.FileService/WriteFile", messages));
    EXPECT_THAT(status, HasReason("INVALID_ARGUMENT"));
    ASSERT_THAT(Run(id, "cat /tmp/f; ls -A /tmp | wc -l", &run), IsOk());
    EXPECT_EQ(run.stdout().substr(0, 3), "old");
  }
  static std::string Chunk(size_t bytes) {
    v1::WriteFileChunk chunk;
    chunk.set_data(std::string(bytes, 'n'));
    return chunk.SerializeAsString();
  }

  void NothingWasSent() { EXPECT_TRUE(local_->recorder().requests().empty()); }

  std::unique_ptr<Files> files_;
  std::unique_ptr<Processes> processes_;
  std::unique_ptr<Isolation> isolation_;
};

// One method and a good request to it, which each refusal changes in one place.
template <class Request>
class Table {
 public:
  Table(std::function<absl::Status(const Request&)> ask, Request good)
      : ask_(std::move(ask)), good_(std::move(good)) {}

  Table& Refuses(const std::string& field, const std::function<void(Request&)>& change) {
    Request request = good_;
    change(request);
    EXPECT_THAT(ask_(request), RejectsField(field)) << request.DebugString().substr(0, 300);
    return *this;
  }
  // What every method about one sandbox refuses. `within`: the path of the request ("attach.").
  Table& RefusesTargets(const std::string& within = "") {
    for (const std::string& id :
         {std::string(), std::string("../sandboxes"), std::string("a/b"), std::string("a%2Fb"),
          std::string("a?x=1"), std::string("a#b"), std::string("A B"), std::string("a\n"),
          std::string("\xc3\xbc"), kHuge, kNul}) {
      Refuses(within + "sandbox_id", [&](Request& r) { r.set_sandbox_id(id); });
    }
    for (const std::string& text : {std::string("a\nb"), kHuge, kNul}) {
      Refuses(within + "expected_incarnation",
              [&](Request& r) { r.set_expected_incarnation(text); });
    }
    return *this;
  }
  // A path of the request. `set`: how it gets there.
  Table& RefusesPaths(const std::string& field,
                      const std::function<void(Request&, const std::string&)>& set,
                      bool may_be_empty = false) {
    for (const std::string& path : {std::string(), std::string("relative"), std::string("./f"),
                                    std::string("~"), "/" + kNul, "/" + kHuge}) {
      if (path.empty() && may_be_empty) continue;
      Refuses(field, [&](Request& r) { set(r, path); });
    }
    return *this;
  }

 private:
  std::function<absl::Status(const Request&)> ask_;
  const Request good_;
};

#define TABLE(stub, Stub, method, good)                                                         \
  Table<std::decay_t<decltype(good)>>(                                                          \
      [this](const std::decay_t<decltype(good)>& r) { return Ask(*(stub), &Stub::method, r); }, \
      good)

template <class Request>
Request To() {
  Request request;
  request.set_sandbox_id("sb-1");
  return request;
}
template <class Request>
Request At() {
  Request request = To<Request>();
  request.set_path("/f");
  return request;
}
template <class Request>
void SetPath(Request& request, const std::string& path) {
  request.set_path(path);
}

}  // namespace bridge
