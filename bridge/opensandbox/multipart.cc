// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/multipart.h"

#include <nlohmann/json.hpp>

#include "bridge/base/random.h"

namespace bridge {

MultipartUpload::MultipartUpload(std::string_view path, std::optional<unsigned> mode,
                                 std::string_view owner, std::string_view group) {
  using Json = nlohmann::json;
  Json metadata = {{"path", path}};
  if (mode) metadata["mode"] = ModeDigits(*mode);
  if (!owner.empty()) metadata["owner"] = owner;
  if (!group.empty()) metadata["group"] = group;
  // Unguessable, so that no file's content can hold it.
  const std::string boundary = "sandbox-bridge-" + RandomHex(16);
  content_type_ = "multipart/form-data; boundary=" + boundary;
  preamble_ = "--" + boundary +
              "\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n"
              "Content-Type: application/json\r\n\r\n" +
              metadata.dump(-1, ' ', true, Json::error_handler_t::replace) + "\r\n--" + boundary +
              "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
              "Content-Type: application/octet-stream\r\n\r\n";
  epilogue_ = "\r\n--" + boundary + "--\r\n";
}

int ModeDigits(unsigned mode) {
  return static_cast<int>(((mode >> 6) & 7) * 100 + ((mode >> 3) & 7) * 10 + (mode & 7));
}

std::optional<unsigned> ModeFromDigits(int digits) {
  if (digits < 0 || digits > 7777) return std::nullopt;
  unsigned mode = 0;
  for (int unit = 1000; unit >= 1; unit /= 10) {
    const int digit = digits / unit % 10;
    if (digit > 7) return std::nullopt;
    mode = mode << 3 | static_cast<unsigned>(digit);
  }
  return mode;
}

}  // namespace bridge
