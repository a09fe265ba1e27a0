// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/labels.h — metadata of sandboxes: the rules that OpenSandbox has for it, and the
// labels that the bridge itself writes, all under "sandbox-bridge/". Pure functions.
//
// The bridge keeps no state of its own: what a repeated create, a list or another replica must know
// of a sandbox is in its labels, written before the sandbox exists.
//   create-id     names one POST; finds the sandbox of a POST whose answer was lost
//   request-id    the caller's request_id; one that is no label value is split over
//                 request-id-0, -1 and -2, each part as "x<part>x"
//   spec          digest of what was asked for, to tell a repeat from a reuse
//   from          what it was made of: "image", "template" or the digest of a snapshot's id. A
//   sandbox
//                 restored from a snapshot inherits the labels of the snapshot's source, this one
//                 included, and is recognised by it: it was made of something else.
//   tenant        whose it is
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

inline constexpr std::string_view kOwnLabelPrefix = "sandbox-bridge/";
inline constexpr std::string_view kSystemLabelPrefix = "opensandbox.io/";

// What is wrong with a key or value, by the rules of Kubernetes labels; nothing if it is fine. The
// reserved prefixes are wrong, too.
std::optional<std::string> LabelKeyProblem(std::string_view key);
std::optional<std::string> LabelValueProblem(std::string_view value);

bool IsOwnLabel(std::string_view key);

using Labels = std::map<std::string, std::string>;

// What is added to the metadata of a sandbox to be made. `spec` is as the caller gave it, before
// defaults. Every label is set, empty if need be: an image shows its own labels as metadata of the
// sandbox, those of a committed or snapshotted sandbox among them.
struct Origin {
  std::string request_id = {};  // empty: none
  std::string tenant = {};      // empty: none
  std::string create_id = {};
};
Labels OwnLabels(const CreateSpec& spec, const Origin& origin);

// For the list filter.
Labels RequestIdFilter(std::string_view request_id);
Labels CreateIdFilter(std::string_view create_id);
Labels TenantFilter(std::string_view tenant);  // none for the empty tenant

// Of a record; empty when it has none, or only inherited it.
std::string RequestIdOf(const SandboxRecord& record);
std::string SpecDigestOf(const SandboxRecord& record);
// Is this sandbox `tenant`'s? Always, when tenants are not in use.
bool BelongsTo(const SandboxRecord& record, std::string_view tenant);
// The label as it is, for comparing.
std::string TenantLabelOf(const SandboxRecord& record);
std::string TenantLabel(std::string_view tenant);
// It carries labels that were written for another sandbox.
bool InheritedItsLabels(const SandboxRecord& record);

// "v1-<40 hex digits>": of all that makes a sandbox what it is; the registry's credentials are not
// part of it, they may be renewed between two tries.
std::string SpecDigest(const CreateSpec& spec);
// Two digests of different versions cannot be compared and count as the same.
bool SameSpec(std::string_view a, std::string_view b);

}  // namespace bridge
