// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/network_target.h — what the target of a network policy's rule means to the egress
// sidecar. It refuses nothing: what it cannot read as an address is a name to it, and a rule for a
// name that nothing has never applies. A pure function.
#pragma once

#include <string_view>

namespace bridge {

enum class NetworkTarget {
  kName,     // "pypi.org", "*.pypi.org"
  kAddress,  // "10.0.0.1", "10.0.0.0/8", "fd00::/8"
  kMapped,   // "::ffff:10.0.0.1": no packet has it, those to 10.0.0.1 are IPv4
  kNothing,  // "10.0.0.0/33", "10.0.0.256", "a.example:443", "*", "a.example."
};

NetworkTarget KindOfTarget(std::string_view target);

}  // namespace bridge
