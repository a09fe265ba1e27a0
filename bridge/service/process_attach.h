// SPDX-License-Identifier: Apache-2.0
//
// service/process_attach.h — AttachProcess: two pumps over one attachment, output to the client and
// the client's input to the process.
#pragma once

#include "absl/status/status.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/process_client.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/processes.pb.h"

namespace bridge {

using AttachCall =
    Bidi<sandbox::bridge::v1::AttachProcessRequest, sandbox::bridge::v1::ProcessEvent>;

Task<absl::Status> HandleAttachProcess(ProcessClient& processes, AttachCall& call);

}  // namespace bridge
