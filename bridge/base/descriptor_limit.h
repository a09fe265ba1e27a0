// SPDX-License-Identifier: Apache-2.0
//
// base/descriptor_limit.h — how many descriptors this program and those that it starts may have.
//
// A shell gives 1,024: too few for a thousand streams or for a daemon with some hundred commands,
// which could then not even accept the connections that would end them. So a server raises its own
// limit as far as it may. Programs that it starts get what it was given: some of them walk through
// every descriptor that there could be.
#pragma once

#include <sys/resource.h>

namespace bridge {

// Raises the soft limit to the hard one. Call it once, before any thread exists.
void RaiseDescriptorLimit();

// For programs that this one starts: the limits as they were before RaiseDescriptorLimit(). Any
// thread.
rlimit InheritedDescriptorLimit();

}  // namespace bridge
