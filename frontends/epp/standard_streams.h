// SPDX-License-Identifier: Apache-2.0
//
// epp/standard_streams.h — keeps the protocol's stream for the protocol.
#pragma once

namespace bridge::epp {

// Takes standard output away and returns it under another number, closed on exec. What prints to
// standard output from now on goes to standard error (to nowhere, if there is none), so that no
// library can put a stray line between two messages, for which the host would end us. First thing
// in main(), before any thread, with the closed ones reserved (base/standard_streams.h). -1:
// standard input or output is missing, there is nobody to talk to.
int TakeStandardOutput();

}  // namespace bridge::epp
