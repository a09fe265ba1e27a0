// SPDX-License-Identifier: Apache-2.0
//
//     bazel build --config=fuzz //tests/frontends/epp/fuzz:conversation
//     .../conversation -dict=tests/frontends/epp/fuzz/epp.dict FOLDER
//     tests/frontends/epp/fuzz/corpus
#include <cstdio>
#include <cstdlib>

#include "tests/frontends/epp/fuzz/conversation_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string wrong =
      bridge::epp::PlayConversation({reinterpret_cast<const char*>(data), size});
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}
