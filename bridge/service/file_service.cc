// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/file_service.h"

#include "bridge/service/file_calls.h"

namespace bridge {
namespace {

#define SB_FILE_METHOD(kind, name) kind("sandbox.bridge.v1.FileService/" name)
constexpr Method kStat = SB_FILE_METHOD(UnaryMethod, "Stat");
constexpr Method kList = SB_FILE_METHOD(StreamingMethod, "ListDirectory");
constexpr Method kSearch = SB_FILE_METHOD(StreamingMethod, "Search");
constexpr Method kRead = SB_FILE_METHOD(StreamingMethod, "ReadFile");
constexpr Method kWrite = SB_FILE_METHOD(StreamingMethod, "WriteFile");
constexpr Method kReadSmall = SB_FILE_METHOD(UnaryMethod, "ReadSmallFile");
constexpr Method kWriteSmall = SB_FILE_METHOD(UnaryMethod, "WriteSmallFile");
constexpr Method kMakeDirectory = SB_FILE_METHOD(UnaryMethod, "MakeDirectory");
constexpr Method kRemove = SB_FILE_METHOD(UnaryMethod, "Remove");
constexpr Method kMove = SB_FILE_METHOD(UnaryMethod, "Move");
constexpr Method kSetAttributes = SB_FILE_METHOD(UnaryMethod, "SetAttributes");
constexpr Method kReplace = SB_FILE_METHOD(UnaryMethod, "ReplaceText");
constexpr Method kWatch = SB_FILE_METHOD(StreamingMethod, "WatchDirectory");
#undef SB_FILE_METHOD

}  // namespace

// A unary method: the call's coroutine is `handler` of file_calls.h.
#define SB_UNARY(name, Request, Response, method, handler)                                      \
  grpc::ServerUnaryReactor* FileServiceImpl::name(Context* context, const v1::Request* request, \
                                                  v1::Response* response) {                     \
    return Start<Unary>(deps_.host, deps_.control, context, (method).Charging(*request),        \
                        [this, request, response](auto& call) {                                 \
                          return handler(deps_.control_files, call, *request, *response);       \
                        });                                                                     \
  }

SB_UNARY(Stat, StatRequest, FileInfo, kStat, HandleStat)
SB_UNARY(ReadSmallFile, ReadSmallFileRequest, ReadSmallFileResponse, kReadSmall,
         HandleReadSmallFile)
SB_UNARY(WriteSmallFile, WriteSmallFileRequest, WriteFileResponse, kWriteSmall,
         HandleWriteSmallFile)
SB_UNARY(MakeDirectory, MakeDirectoryRequest, MakeDirectoryResponse, kMakeDirectory,
         HandleMakeDirectory)
SB_UNARY(Remove, RemoveRequest, RemoveResponse, kRemove, HandleRemove)
SB_UNARY(Move, MoveRequest, MoveResponse, kMove, HandleMove)
SB_UNARY(SetAttributes, SetAttributesRequest, FileInfo, kSetAttributes, HandleSetAttributes)
SB_UNARY(ReplaceText, ReplaceTextRequest, ReplaceTextResponse, kReplace, HandleReplaceText)
#undef SB_UNARY

// A server-streaming method.
#define SB_STREAM(name, Request, Message, method, handler)                                    \
  grpc::ServerWriteReactor<v1::Message>* FileServiceImpl::name(Context* context,              \
                                                               const v1::Request* request) {  \
    return Start<Writer<v1::Message>>(                                                        \
        deps_.host, deps_.streams, context, method,                                           \
        [this, request](auto& call) { return handler(deps_.stream_files, call, *request); }); \
  }

SB_STREAM(ListDirectory, ListDirectoryRequest, FileInfoBatch, kList, HandleListDirectory)
SB_STREAM(Search, SearchRequest, FileInfoBatch, kSearch, HandleSearch)
SB_STREAM(ReadFile, ReadFileRequest, ReadFileChunk, kRead, HandleReadFile)
SB_STREAM(WatchDirectory, WatchDirectoryRequest, WatchEventBatch, kWatch, HandleWatchDirectory)
#undef SB_STREAM

grpc::ServerReadReactor<v1::WriteFileChunk>* FileServiceImpl::WriteFile(
    Context* context, v1::WriteFileResponse* response) {
  return Start<Reader<v1::WriteFileChunk>>(
      deps_.host, deps_.streams, context, kWrite, [this, response](auto& call) {
        return HandleWriteFile(deps_.stream_files, call, *response);
      });
}

}  // namespace bridge
