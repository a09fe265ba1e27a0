// SPDX-License-Identifier: Apache-2.0
//
// base/shell.h — text for POSIX shells. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace bridge {

// `text` as one word of a shell, whatever it holds but NUL.
std::string ShellQuote(std::string_view text);

}  // namespace bridge
