// SPDX-License-Identifier: Apache-2.0
//
// epp/record.h — sandboxes and files of the bridge as the host reads them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/epp/json.h"
#include "google/protobuf/timestamp.pb.h"
#include "sandbox/bridge/v1/files.pb.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge::epp {

// A word of the host's seven. A state that is not known is "error", never "running".
std::string_view StatusWord(sandbox::bridge::v1::SandboxState state);

// The states that a word stands for; nothing for a word that is none of the seven.
std::optional<std::vector<sandbox::bridge::v1::SandboxState>> StatesOf(std::string_view word);

// "2026-11-30T03:51:00.123Z": three digits, which every Python can read.
std::string TimeText(const google::protobuf::Timestamp& time);

// The host's SandboxRecord. `template_name` is what the caller asked for, empty when it is not
// known: then the image stands for it.
Json SandboxRecord(const sandbox::bridge::v1::Sandbox& sandbox, std::string_view template_name);

// The host's FileEntry. A name that is not UTF-8 is escaped and `path_b64` has its bytes.
Json FileEntry(const sandbox::bridge::v1::FileInfo& info);

}  // namespace bridge::epp
