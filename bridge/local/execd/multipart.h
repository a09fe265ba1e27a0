// SPDX-License-Identifier: Apache-2.0
//
// local/execd/multipart.h — multipart/form-data, incrementally and in constant memory. The body may
// come in any pieces. Pure; one parser a body, one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bridge::local::execd {

// "type/subtype; name=value; name="quoted"", as in Content-Type and Content-Disposition. The type
// and names are lower case. `name*=UTF-8''%41` counts as `name`.
struct MediaType {
  std::string type;
  std::map<std::string, std::string> params;
};
std::optional<MediaType> ParseMediaType(std::string_view text);

// One part's head.
struct PartHead {
  std::string name;      // of a "form-data" disposition, else empty
  std::string filename;  // empty: none, it is an ordinary field
};

// Receives what a MultipartParser finds: BeginPart (PartData)* EndPart, again and again.
class PartSink {
 public:
  virtual ~PartSink() = default;
  virtual bool BeginPart(const PartHead& head) = 0;   // false stops the parser
  virtual bool PartData(std::string_view bytes) = 0;  // as above
  virtual bool EndPart() = 0;                         // as above
};

class MultipartParser {
 public:
  // `sink` outlives the parser.
  MultipartParser(std::string_view boundary, PartSink& sink);

  // False: the body is malformed or the sink stopped it; nothing more may be fed.
  bool Feed(std::string_view bytes);
  // Has the closing boundary been seen?
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kPreamble, kAfterBoundary, kHeaders, kBody, kDone, kFailed };

  bool Step();  // true: it made progress and may make more
  bool StepPreamble();
  bool StepAfterBoundary();
  bool StepHeaders();
  bool StepBody();
  bool Fail();
  void Consume(size_t n) { position_ += n; }
  std::string_view rest() const { return std::string_view(buffer_).substr(position_); }

  const std::string delimiter_;  // "\r\n--boundary"
  PartSink& sink_;
  State state_ = State::kPreamble;
  bool at_body_start_ = false;
  std::string buffer_;
  size_t position_ = 0;  // of buffer_, what is before it is used up
};

}  // namespace bridge::local::execd
