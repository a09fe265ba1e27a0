// SPDX-License-Identifier: Apache-2.0
//
// A bridge for the plugin's tests that does what the test says: real gRPC services on an in-process
// channel, each method a function that the test sets. A method that is not set is UNIMPLEMENTED, as
// a bridge without the feature answers. Its methods run on gRPC's threads and may block.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "frontends/epp/bridge_link.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge::epp {

namespace v1 = ::sandbox::bridge::v1;

class FakeBridge {
 public:
  template <class Request, class Response>
  using Unary = std::function<absl::Status(const Request&, Response*, grpc::ServerContext*)>;
  template <class Request, class Response>
  using Streaming = std::function<absl::Status(const Request&, grpc::ServerWriter<Response>*,
                                               grpc::ServerContext*)>;

  FakeBridge();
  ~FakeBridge();

  // For Session: a link to this bridge, which must outlive it.
  LinkFactory link_factory();

  Unary<v1::CreateSandboxRequest, v1::CreateSandboxResponse> create;
  Unary<v1::GetSandboxRequest, v1::Sandbox> get;
  Unary<v1::ListSandboxesRequest, v1::ListSandboxesResponse> list;
  Unary<v1::DeleteSandboxRequest, v1::DeleteSandboxResponse> remove;
  Unary<v1::SetExpirationRequest, v1::SetExpirationResponse> set_expiration;
  Unary<v1::PauseSandboxRequest, v1::PauseSandboxResponse> pause;
  Unary<v1::ResumeSandboxRequest, v1::ResumeSandboxResponse> resume;
  Unary<v1::GetEndpointRequest, v1::Endpoint> endpoint;

  Streaming<v1::ExecuteRequest, v1::ExecEvent> execute;
  Unary<v1::SignalExecRequest, v1::SignalExecResponse> signal_exec;

  Unary<v1::ListProcessesRequest, v1::ListProcessesResponse> list_processes;
  Unary<v1::SignalProcessRequest, v1::SignalProcessResponse> signal_process;
  Unary<v1::StartProcessRequest, v1::StartProcessResponse> start_process;
  Unary<v1::DeleteProcessRequest, v1::DeleteProcessResponse> delete_process;
  std::function<absl::Status(grpc::ServerReaderWriter<v1::ProcessEvent, v1::AttachProcessRequest>*,
                             grpc::ServerContext*)>
      attach_process;

  Unary<v1::StatRequest, v1::FileInfo> stat;
  Streaming<v1::ReadFileRequest, v1::ReadFileChunk> read_file;
  std::function<absl::Status(grpc::ServerReader<v1::WriteFileChunk>*, v1::WriteFileResponse*,
                             grpc::ServerContext*)>
      write_file;
  Unary<v1::WriteSmallFileRequest, v1::WriteFileResponse> write_small_file;
  Streaming<v1::ListDirectoryRequest, v1::FileInfoBatch> list_directory;
  Streaming<v1::SearchRequest, v1::FileInfoBatch> search;
  Unary<v1::MakeDirectoryRequest, v1::MakeDirectoryResponse> make_directory;
  Unary<v1::RemoveRequest, v1::RemoveResponse> remove_file;
  Unary<v1::MoveRequest, v1::MoveResponse> move;
  Unary<v1::SetAttributesRequest, v1::FileInfo> set_attributes;

  // What Settle() does: how long what is left behind takes. Tests may block in it.
  std::function<bool(absl::Duration bound)> settle = [](absl::Duration) { return true; };
  // How many links were made.
  std::atomic<int> links{0};

 private:
  class Services;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace bridge::epp
