// SPDX-License-Identifier: Apache-2.0
//
// base/random.h — unguessable names, from the kernel. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace bridge {

// Twice as many lower-case hex digits as `bytes`.
std::string RandomHex(size_t bytes);

}  // namespace bridge
