// SPDX-License-Identifier: Apache-2.0
//
// Messages beyond every limit, to every method and in every field: refused in the catalogue's
// words, with nothing sent upstream.
#include <memory>
#include <string>

#include "bridge/service/method.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "tests/fakes/raw_call.h"
#include "tests/integration/hostile_fixture.h"

namespace bridge {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const std::string& Large() {
  static const std::string text = "/" + std::string(kMaxRequestBytes, 'a');
  return text;
}

// Names a sandbox wherever the request does.
void NameSandbox(Message& message) {
  const FieldDescriptor* id = message.GetDescriptor()->FindFieldByName("sandbox_id");
  if (id != nullptr) message.GetReflection()->SetString(&message, id, "sb-1");
}

// Calls `visit` with the path of each field of text or bytes, while that field alone is large.
template <class Visit>
void ForEachLargeField(Message& root, Message& message, const std::string& path, int depth,
                       const Visit& visit) {
  const auto* reflection = message.GetReflection();
  const Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string here = path + field->name();
    if (field->is_map()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const std::unique_ptr<Message> before(message.New());
      before->CopyFrom(message);
      if (field->is_repeated()) {
        reflection->AddString(&message, field, Large());
      } else {
        reflection->SetString(&message, field, Large());
      }
      visit(here);
      message.CopyFrom(*before);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth > 0) {
      Message* part = field->is_repeated() ? reflection->AddMessage(&message, field)
                                           : reflection->MutableMessage(&message, field);
      NameSandbox(*part);
      ForEachLargeField(root, *part, here + ".", depth - 1, visit);
      reflection->ClearField(&message, field);
    }
  }
}

class LargeMessages : public HostileRequests, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, LargeMessages,
                         ::testing::Values("bridge", "exec", "files", "isolation", "processes",
                                           "sandboxes"));

TEST_P(LargeMessages, AreRefusedInOurWordsWhereverTheyAreLarge) {
  const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
      "sandbox/bridge/v1/" + std::string(GetParam()) + ".proto");
  ASSERT_NE(file, nullptr);
  for (int s = 0; s < file->service_count(); ++s) {
    for (int m = 0; m < file->service(s)->method_count(); ++m) {
      const auto* method = file->service(s)->method(m);
      const std::string path = "/" + method->service()->full_name() + "/" + method->name();
      const std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                                 ->GetPrototype(method->input_type())
                                                 ->New());
      NameSandbox(*request);
      ForEachLargeField(*request, *request, "", 2, [&](const std::string& field) {
        const absl::Status status =
            FromGrpcStatus(RawCall(channel_, path, {request->SerializeAsString()}));
        EXPECT_THAT(status,
                    ::testing::AnyOf(HasReason("INVALID_ARGUMENT"), HasReason("PATH_REJECTED"),
                                     HasReason("PROCESS_NOT_FOUND")))
            << path << " " << field;
      });
    }
  }
  NothingWasSent();
}

TEST_F(HostileRequests, ALargeMessageInTheMiddleOfAnUploadChangesNothing) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "printf old > /tmp/f", &run), IsOk());
  v1::WriteFileChunk header;
  header.mutable_header()->set_sandbox_id(id);
  header.mutable_header()->mutable_options()->set_path("/tmp/f");
  v1::WriteFileChunk data;
  data.set_data("new");
  for (const size_t size : {size_t{17} << 20, size_t{65} << 20}) {
    v1::WriteFileChunk large;
    large.set_data(std::string(size, 'n'));
    const absl::Status status = FromGrpcStatus(
        RawCall(channel_, "/sandbox.bridge.v1.FileService/WriteFile",
                {header.SerializeAsString(), data.SerializeAsString(), large.SerializeAsString()}));
    EXPECT_THAT(status, HasReason("INVALID_ARGUMENT")) << size;
    ASSERT_THAT(Run(id, "cat /tmp/f; ls -A /tmp | wc -l", &run), IsOk());
    EXPECT_EQ(run.stdout().substr(0, 3), "old");
  }
}

// What gRPC does not even read is refused in its own words, which clients turn into ours.
TEST_F(HostileRequests, BeyondWhatGrpcTakesItSaysSoItself) {
  const std::string bytes(kMaxReceivedBytes + 1, 'a');
  const grpc::Status status = RawCall(channel_, "/sandbox.bridge.v1.ExecService/Run", {bytes});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(FromGrpcStatus(status), HasReason("INVALID_ARGUMENT"));
  EXPECT_THAT(FromGrpcStatus(status), HasMessage("in parts"));
  NothingWasSent();
}

}  // namespace
}  // namespace bridge
