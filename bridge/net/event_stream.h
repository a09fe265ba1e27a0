// SPDX-License-Identifier: Apache-2.0
//
// net/event_stream.h — the JSON texts in an event stream, whichever way they are framed.
//
// execd writes bare JSON and a blank line; proxies and other versions write text/event-stream
// ("data: {...}" with or without the space, event:, id: and retry: lines, comments). Both are read,
// mixed as one likes: LF or CRLF, a byte order mark in front, a last line without an end. A JSON
// text never holds a raw line break, so that one line is one event; a line that is neither JSON nor
// a field of an event stream is given out as well, for the JSON parser to refuse.
// Pure: no I/O, no threads, no copying of a line that lies within one chunk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace bridge {

// Feed() ((true) Next())* (false) Next() ... Finish() Next()*
class EventStreamParser {
 public:
  static constexpr size_t kDefaultMaxEventBytes = 32u << 20;
  explicit EventStreamParser(size_t max_event_bytes = kDefaultMaxEventBytes)
      : max_event_bytes_(max_event_bytes) {}

  // Gives the next bytes of the stream. They are used in place: keep them unchanged until Next()
  // has returned false. Not before that either.
  void Feed(std::string_view bytes);

  // The stream is over: what is left is the last line. Then Next() until false.
  void Finish();

  // The next event's text, which lives until the next call of anything here. False: more bytes are
  // needed, or status() is not OK.
  bool Next(std::string_view* text);

  // UPSTREAM_PROTOCOL once a line is longer than the maximum; nothing comes after that.
  const absl::Status& status() const { return status_; }

 private:
  bool NextLine(std::string_view* line);
  bool TooLong(size_t line_bytes);

  const size_t max_event_bytes_;
  std::string_view input_;  // what of the last Feed() is still to be read
  std::string partial_;     // the beginning of a line of which the end has not come
  bool given_out_ = false;  // partial_ was given out: clear it first
  bool finished_ = false;
  bool at_start_ = true;  // a byte order mark may come
  absl::Status status_;
};

}  // namespace bridge
