// SPDX-License-Identifier: Apache-2.0
//
// epp/standard_streams.h — keeps the protocol's stream for the protocol.
#pragma once

namespace bridge::epp {

// Makes sure that descriptors 0, 1 and 2 are open, takes standard output away and returns it under
// another number, closed on exec. What prints to standard output from now on goes to standard
// error, so that no library can put a stray line between two messages, for which the host would end
// us. First thing in main(), before any thread. -1: there is no descriptor left.
int TakeStandardOutput();

}  // namespace bridge::epp
