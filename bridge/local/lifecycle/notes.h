// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/notes.h — what fault plans tell the lifecycle handlers by http::Exchange::note.
#pragma once

namespace bridge::local::lifecycle {

inline constexpr char kNoteHideNew[] = "hide_new_seconds";  // lists leave out younger sandboxes
inline constexpr char kNotePending[] = "pending_seconds";   // younger sandboxes are Pending
inline constexpr char kNoteKeepOnDelete[] = "keep_on_delete";

}  // namespace bridge::local::lifecycle
