// SPDX-License-Identifier: Apache-2.0
//
// service/file_calls.h — the coroutines of FileService, one a method: validate → ask → convert.
// The client belongs to the call's lane; request and response live until the call has ended.
#pragma once

#include "absl/status/status.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/file_client.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/files.pb.h"

namespace bridge {

namespace v1 = sandbox::bridge::v1;

Task<absl::Status> HandleStat(FileClient& files, Unary& call, const v1::StatRequest& request,
                              v1::FileInfo& response);
Task<absl::Status> HandleListDirectory(FileClient& files, Writer<v1::FileInfoBatch>& call,
                                       const v1::ListDirectoryRequest& request);
Task<absl::Status> HandleSearch(FileClient& files, Writer<v1::FileInfoBatch>& call,
                                const v1::SearchRequest& request);
Task<absl::Status> HandleReadFile(FileClient& files, Writer<v1::ReadFileChunk>& call,
                                  const v1::ReadFileRequest& request);
Task<absl::Status> HandleWriteFile(FileClient& files, Reader<v1::WriteFileChunk>& call,
                                   v1::WriteFileResponse& response);
Task<absl::Status> HandleReadSmallFile(FileClient& files, Unary& call,
                                       const v1::ReadSmallFileRequest& request,
                                       v1::ReadSmallFileResponse& response);
Task<absl::Status> HandleWriteSmallFile(FileClient& files, Unary& call,
                                        const v1::WriteSmallFileRequest& request,
                                        v1::WriteFileResponse& response);
Task<absl::Status> HandleMakeDirectory(FileClient& files, Unary& call,
                                       const v1::MakeDirectoryRequest& request,
                                       v1::MakeDirectoryResponse& response);
Task<absl::Status> HandleRemove(FileClient& files, Unary& call, const v1::RemoveRequest& request,
                                v1::RemoveResponse& response);
Task<absl::Status> HandleMove(FileClient& files, Unary& call, const v1::MoveRequest& request,
                              v1::MoveResponse& response);
Task<absl::Status> HandleSetAttributes(FileClient& files, Unary& call,
                                       const v1::SetAttributesRequest& request,
                                       v1::FileInfo& response);
Task<absl::Status> HandleReplaceText(FileClient& files, Unary& call,
                                     const v1::ReplaceTextRequest& request,
                                     v1::ReplaceTextResponse& response);
Task<absl::Status> HandleWatchDirectory(FileClient& files, Writer<v1::WatchEventBatch>& call,
                                        const v1::WatchDirectoryRequest& request);

}  // namespace bridge
