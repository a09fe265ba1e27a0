// SPDX-License-Identifier: Apache-2.0
//
// Messages beyond every limit, to every method and in every field: refused in the catalogue's
// words, with nothing sent upstream.
#include <memory>
#include <string>

#include "bridge/service/method.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
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
  ForEachMethod(GetParam(), [this](const auto& method, const std::string& path) {
    const std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                               ->GetPrototype(method.input_type())
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
  });
  NothingWasSent();
}

TEST_F(HostileRequests, ALargeMessageInTheMiddleOfAnUploadChangesNothing) {
  for (const size_t size : {size_t{17} << 20, size_t{65} << 20}) {
    SCOPED_TRACE(size);
    ExpectUploadChangesNothing({Chunk(3), Chunk(size)});
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
