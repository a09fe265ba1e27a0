// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/output_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "bridge/base/utf8.h"

namespace bridge::epp {
namespace {

// How long a sequence is that begins with `lead`; 0 when none begins so.
size_t SequenceLength(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// How many bytes at the end may still become one sequence.
size_t UnfinishedBytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    return SequenceLength(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string OutputText::Feed(std::string_view bytes) {
  std::string text = std::exchange(tail_, {});
  text.append(bytes);
  const size_t keep = UnfinishedBytes(text);
  tail_ = text.substr(text.size() - keep);
  text.resize(text.size() - keep);
  return ToValidUtf8(text);
}

std::string OutputText::Finish() { return ToValidUtf8(std::exchange(tail_, {})); }

}  // namespace bridge::epp
