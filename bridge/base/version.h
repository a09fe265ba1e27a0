// SPDX-License-Identifier: Apache-2.0
//
// base/version.h — the version of the product, the same in every program of it.
#pragma once

namespace bridge {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace bridge
