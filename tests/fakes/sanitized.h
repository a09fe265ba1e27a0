// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/sanitized.h — whether this test was built with a sanitizer, whose heap, speed and
// size are not the program's.
#pragma once

namespace bridge {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // g++
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace bridge
