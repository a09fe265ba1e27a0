// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/raw_call.h — a call whose messages are whatever bytes a test wants, as of a client
// that no library made.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace bridge {

// Sends the messages, closes its half and reads to the end. `method`: "/package.Service/Method", of
// any kind.
inline grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& method, const std::vector<std::string>& messages) {
  using Bytes = grpc::ByteBuffer;
  using Method = grpc::internal::RpcMethod;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const Method rpc(method.c_str(), Method::BIDI_STREAMING, channel);
  const std::unique_ptr<grpc::ClientReaderWriter<Bytes, Bytes>> stream(
      grpc::internal::ClientReaderWriterFactory<Bytes, Bytes>::Create(channel.get(), rpc,
                                                                      &context));
  for (const std::string& message : messages) {
    const grpc::Slice slice(message);
    if (!stream->Write(Bytes(&slice, 1))) break;  // it ended; Finish() tells how
  }
  stream->WritesDone();
  Bytes answer;
  while (stream->Read(&answer)) continue;
  return stream->Finish();
}

}  // namespace bridge
