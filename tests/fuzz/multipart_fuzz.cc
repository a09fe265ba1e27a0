// SPDX-License-Identifier: Apache-2.0
//
// Uploads: what the parser finds does not depend on how the body is cut; what the writer makes of a
// path and a content is found again by the parser, exactly.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bridge/base/utf8.h"
#include "bridge/local/execd/multipart.h"
#include "bridge/opensandbox/multipart.h"
#include "tests/fuzz/fuzz.h"

namespace {

using bridge::local::execd::MultipartParser;

struct Part {
  std::string name, filename, data;
  bool ended = false;
  bool operator==(const Part&) const = default;
};

class Parts final : public bridge::local::execd::PartSink {
 public:
  bool BeginPart(const bridge::local::execd::PartHead& head) override {
    parts.push_back({head.name, head.filename, "", false});
    return true;
  }
  bool PartData(std::string_view bytes) override {
    parts.back().data += bytes;
    return true;
  }
  bool EndPart() override {
    parts.back().ended = true;
    return true;
  }
  std::vector<Part> parts;
};

struct Result {
  std::vector<Part> parts;
  bool ok = true, done = false;
};

Result Parse(const std::vector<std::string_view>& pieces, std::string_view boundary) {
  Parts sink;
  MultipartParser parser(boundary, sink);
  Result result;
  for (const std::string_view piece : pieces) result.ok = result.ok && parser.Feed(piece);
  result.done = parser.done();
  result.parts = std::move(sink.parts);
  return result;
}

void CheckWriter(std::string_view path, std::string_view content, uint8_t choice) {
  const bridge::MultipartUpload upload(path,
                                       choice & 1 ? std::optional<unsigned>(0640) : std::nullopt);
  const auto type = bridge::local::execd::ParseMediaType(upload.content_type());
  FUZZ_CHECK(type.has_value());
  const std::string body = upload.preamble() + std::string(content) + upload.epilogue();
  const Result read = Parse(bridge::FuzzPieces(body, choice), type->params.at("boundary"));
  FUZZ_CHECK(read.ok && read.done && read.parts.size() == 2);
  FUZZ_CHECK(read.parts[0].name == "metadata" && read.parts[1].name == "file");
  FUZZ_CHECK(read.parts[1].data == content);
  const auto metadata = nlohmann::json::parse(read.parts[0].data);
  if (bridge::IsValidUtf8(path)) FUZZ_CHECK(metadata["path"] == std::string(path));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  const Result whole = Parse({text}, "b");
  const Result cut = Parse(bridge::FuzzPieces(text, choice), "b");
  FUZZ_CHECK(cut.ok == whole.ok && cut.done == whole.done);
  // How much of a part that broke off was given out may differ.
  if (whole.ok && whole.done) FUZZ_CHECK(cut.parts == whole.parts);
  const size_t path_size = std::min<size_t>(choice, text.size());
  CheckWriter(text.substr(0, path_size), text.substr(path_size), choice);
  return 0;
}
