// SPDX-License-Identifier: Apache-2.0
//
// service/file_service.h — FileService: validate, ask, pass on. Streams on the streams lane, the
// rest on the control lane.
#pragma once

#include "bridge/opensandbox/file_client.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"

namespace bridge {

class FileServiceImpl final : public sandbox::bridge::v1::FileService::CallbackService {
 public:
  // One client a lane. All of it outlives the gRPC server.
  struct Deps {
    CallHost& host;
    EventLoop& control;
    FileClient& control_files;
    EventLoop& streams;
    FileClient& stream_files;
  };
  explicit FileServiceImpl(Deps deps) : deps_(deps) {}

 private:
  using Context = grpc::CallbackServerContext;
  template <class Message>
  using Stream = grpc::ServerWriteReactor<Message>;
  using Reply = grpc::ServerUnaryReactor;

  // clang-format off
  Reply* Stat(Context*, const sandbox::bridge::v1::StatRequest*, sandbox::bridge::v1::FileInfo*) override;
  Stream<sandbox::bridge::v1::FileInfoBatch>* ListDirectory(Context*, const sandbox::bridge::v1::ListDirectoryRequest*) override;
  Stream<sandbox::bridge::v1::FileInfoBatch>* Search(Context*, const sandbox::bridge::v1::SearchRequest*) override;
  Stream<sandbox::bridge::v1::ReadFileChunk>* ReadFile(Context*, const sandbox::bridge::v1::ReadFileRequest*) override;
  grpc::ServerReadReactor<sandbox::bridge::v1::WriteFileChunk>* WriteFile(Context*, sandbox::bridge::v1::WriteFileResponse*) override;
  Reply* ReadSmallFile(Context*, const sandbox::bridge::v1::ReadSmallFileRequest*, sandbox::bridge::v1::ReadSmallFileResponse*) override;
  Reply* WriteSmallFile(Context*, const sandbox::bridge::v1::WriteSmallFileRequest*, sandbox::bridge::v1::WriteFileResponse*) override;
  Reply* MakeDirectory(Context*, const sandbox::bridge::v1::MakeDirectoryRequest*, sandbox::bridge::v1::MakeDirectoryResponse*) override;
  Reply* Remove(Context*, const sandbox::bridge::v1::RemoveRequest*, sandbox::bridge::v1::RemoveResponse*) override;
  Reply* Move(Context*, const sandbox::bridge::v1::MoveRequest*, sandbox::bridge::v1::MoveResponse*) override;
  Reply* SetAttributes(Context*, const sandbox::bridge::v1::SetAttributesRequest*, sandbox::bridge::v1::FileInfo*) override;
  Reply* ReplaceText(Context*, const sandbox::bridge::v1::ReplaceTextRequest*, sandbox::bridge::v1::ReplaceTextResponse*) override;
  Stream<sandbox::bridge::v1::WatchEventBatch>* WatchDirectory(Context*, const sandbox::bridge::v1::WatchDirectoryRequest*) override;
  // clang-format on

  const Deps deps_;
};

}  // namespace bridge
