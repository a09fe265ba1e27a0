// SPDX-License-Identifier: Apache-2.0
//
// local/execd/uuid.h — random names. Any thread.
#pragma once

#include <string>

namespace bridge::local::execd {

// 32 hex digits.
std::string RandomHex32();

// "36a2cde3-0c65-45be-bbe9-233799592af0" (version 4).
std::string RandomUuid();

}  // namespace bridge::local::execd
