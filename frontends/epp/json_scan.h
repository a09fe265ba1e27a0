// SPDX-License-Identifier: Apache-2.0
//
// epp/json_scan.h — one pass over a line of the host before a strict JSON parser sees it.
//
// The host writes with Python's json module, which is laxer than JSON: NaN and Infinity, integers
// of any length and surrogates without a partner all occur in what users pass. Each is replaced by
// something that JSON has and that no request may contain, so that the request keeps its meaning
// and its id, and the field in question is refused by name:
//   NaN, Infinity, -Infinity, a number beyond double  → the string "\u0000" + its text (params.h
//                                                       turns it back into a number)
//   \ud800 without a partner                          → \u0000 (NUL is refused in every text)
// It finds the id as well, in the host's own spelling, also in a line that is cut off or broken.
//
// Pure: any thread. Knows no grammar beyond strings and nesting; the parser judges the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bridge::epp {

// A member of "params" whose value is a long text that a parser would keep as it is: printable
// ASCII without escapes, as base64 is.
struct LongText {
  std::string key;
  size_t begin = 0;  // of the text, behind its quote
  size_t size = 0;   // 0: there is none
};

struct JsonScan {
  // The JSON text of the top-level "id" (`7`, `"a"`, `null`); empty when there is none, or when it
  // is neither a number nor a string nor null.
  std::string id;
  int depth = 0;  // how deep arrays and objects are nested
  // The first one of at least kLongTextBytes, in lines that need no rewriting.
  LongText long_text;
  bool changed = false;
};

inline constexpr size_t kLongTextBytes = 64 * 1024;

// Rewrites `*text` where needed; in all other lines not a byte is moved.
JsonScan ScanJson(std::string* text);

// The id alone, of a line of which only the beginning is known.
std::string ScanId(std::string_view beginning);

}  // namespace bridge::epp
