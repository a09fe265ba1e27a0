// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/policy_answers.h — what the server's /networkpolicy route answers.
#pragma once

#include <string>

#include "tests/fakes/fake_opensandbox.h"

namespace bridge {

// The official sidecar in `mode`: "dns+nft" or "dns".
inline FakeReply PolicyInMode(const std::string& mode) {
  return {.status = 200,
          .body = R"({"enforcementMode":")" + mode +
                  R"(","policy":{"defaultAction":"allow","egress":[]}})",
          .times = -1};
}

// The server's word for a sidecar that takes no connection.
inline FakeReply NoSidecar(int times = -1) {
  return {.status = 502, .body = R"({"code":"BACKEND_CONNECTION_FAILED"})", .times = times};
}

}  // namespace bridge
