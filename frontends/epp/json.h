// SPDX-License-Identifier: Apache-2.0
//
// epp/json.h — the JSON value of the plugin. Built with exceptions off: what the host sent is read
// through params.h only, which asks for the type first; values made here are built in place.
#pragma once

#include <nlohmann/json.hpp>

namespace bridge::epp {

using Json = nlohmann::json;

}  // namespace bridge::epp
