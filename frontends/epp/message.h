// SPDX-License-Identifier: Apache-2.0
//
// epp/message.h — lines ↔ JSON-RPC messages, as the host of EPP/1 writes and reads them.
//
// Reading is tolerant (json_scan.h) and never loses an id: a line that cannot be understood becomes
// a message with an error that answers the right call. Writing is strict: every line is one JSON
// object in valid UTF-8 that ends with "\n" and has at most kMaxLineBytes.
//
// Pure: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "frontends/epp/json.h"

namespace bridge::epp {

// Of a line with its "\n". One byte more and the host kills the plugin, and the sandbox leaks.
inline constexpr size_t kMaxLineBytes = 8 * 1024 * 1024;

struct Message {
  // How the answer names its call: JSON text, as the host wrote it. Empty: a notification.
  std::string id = {};
  std::string method = {};
  Json params = Json::object();  // always an object
  absl::Status error = {};       // not OK: nothing else counts but the id
  size_t bytes = 0;              // of the line
};

// `line` without its end. Blank lines are the splitter's business.
Message ParseMessage(std::string line);

// A line of more than kMaxLineBytes, of which only the beginning was kept.
Message OverlongMessage(std::string_view beginning, uint64_t line_bytes);

// JSON text of a value; what is no UTF-8 in it is replaced.
std::string Dump(const Json& value);

// Lines, "\n" included. `id` is JSON text. The result of a call that does not fit into a line
// becomes an error that says so.
std::string RenderResult(std::string_view id, const Json& result);
std::string RenderError(std::string_view id, const absl::Status& error);

// A notification that would not fit is cut by the caller beforehand (see exec_output.h).
std::string RenderNotification(std::string_view method, const Json& params);

// A result made in place because it may be as large as a line: begin with JSON text such as
// {"content_b64":" and append the content, end with JSON text such as "}.
std::string BeginLargeResult(std::string_view id, std::string_view beginning);
std::string EndLargeResult(std::string_view id, std::string line, std::string_view end);

// How many bytes of content there may be between the two.
size_t LargeResultCapacity(std::string_view id, std::string_view beginning, std::string_view end);

// How many bytes `text` takes as a JSON string between its quotes.
size_t EncodedSize(std::string_view text);

}  // namespace bridge::epp
