// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/file_transfer.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "absl/strings/escaping.h"
#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

using testing::HasSubstr;

std::string Encoded(const std::string& bytes) { return absl::Base64Escape(bytes); }

std::string Decoded(const Json& text) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(text.get<std::string>(), &bytes));
  return bytes;
}

// A sandbox whose files are a map.
class FileTransfer : public testing::Test {
 protected:
  FileTransfer() : host_(bridge_.link_factory()) {
    host_.Initialize();
    bridge_.read_file = [this](const auto& request, auto* writer, auto*) {
      return Read(request, writer);
    };
    bridge_.write_small_file = [this](const v1::WriteSmallFileRequest& request,
                                      v1::WriteFileResponse* response, auto*) {
      std::lock_guard lock(mu_);
      files_[request.options().path()] = request.data();
      options_ = request.options();
      response->set_size_bytes(static_cast<int64_t>(request.data().size()));
      return absl::OkStatus();
    };
    bridge_.write_file = [this](grpc::ServerReader<v1::WriteFileChunk>* reader,
                                v1::WriteFileResponse* response,
                                auto*) { return Write(reader, response); };
  }

  absl::Status Read(const v1::ReadFileRequest& request,
                    grpc::ServerWriter<v1::ReadFileChunk>* writer) {
    std::string content;
    {
      std::lock_guard lock(mu_);
      const auto it = files_.find(request.path());
      if (it == files_.end()) return MakeError(ErrorReason::ERROR_REASON_PATH_NOT_FOUND, "none");
      content = it->second;
    }
    v1::ReadFileChunk chunk;
    chunk.mutable_info()->set_size_bytes(no_sizes_ ? 0 : static_cast<int64_t>(content.size()));
    if (claimed_size_ > 0) chunk.mutable_info()->set_size_bytes(claimed_size_);
    writer->Write(chunk);
    std::string_view rest = std::string_view(content).substr(
        std::min<size_t>(static_cast<size_t>(request.offset()), content.size()));
    if (request.has_length()) rest = rest.substr(0, static_cast<size_t>(request.length()));
    for (; !rest.empty(); rest.remove_prefix(std::min<size_t>(rest.size(), 100'000))) {
      chunk.set_data(std::string(rest.substr(0, 100'000)));
      if (!writer->Write(chunk)) break;
      sent_ += chunk.data().size();
    }
    return absl::OkStatus();
  }

  absl::Status Write(grpc::ServerReader<v1::WriteFileChunk>* reader,
                     v1::WriteFileResponse* response) {
    v1::WriteFileChunk chunk;
    EXPECT_TRUE(reader->Read(&chunk));
    const v1::WriteFileChunk::Header header = chunk.header();
    std::string content;
    while (reader->Read(&chunk)) {
      EXPECT_LE(chunk.data().size(), 256u * 1024);
      content += chunk.data();
    }
    if (static_cast<int64_t>(content.size()) != header.size_bytes()) {
      return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT, "short");
    }
    std::lock_guard lock(mu_);
    files_[header.options().path()] = content;
    options_ = header.options();
    response->set_size_bytes(static_cast<int64_t>(content.size()));
    return absl::OkStatus();
  }

  Json Write(const std::string& content, Json changes = Json::object()) {
    Json params = {{"sandbox_id", "sb"}, {"path", "/f"}, {"content_b64", Encoded(content)}};
    params.update(changes);
    return host_.Call("files.write", params);
  }
  Json ReadBack(Json changes = Json::object()) {
    Json params = {{"sandbox_id", "sb"}, {"path", "/f"}};
    params.update(changes);
    return host_.Call("files.read", params);
  }

  FakeBridge bridge_;
  PluginHost host_;
  std::mutex mu_;
  std::map<std::string, std::string> files_;
  v1::WriteOptions options_;
  bool no_sizes_ = false;
  int64_t claimed_size_ = 0;
  std::atomic<size_t> sent_{0};
};

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

TEST_F(FileTransfer, WritesAndReadsEverySize) {
  for (const size_t size : {0u, 1u, 2u, 3u, 1024u, 524'287u, 524'288u, 524'289u, 1'000'001u}) {
    const std::string content = Pattern(size);
    ASSERT_EQ(Write(content)["result"]["size"], size);
    const Json read = ReadBack()["result"];
    ASSERT_TRUE(read["content_b64"].is_string());
    ASSERT_EQ(Decoded(read["content_b64"]), content) << size;
    EXPECT_EQ(read.size(), 1u);  // no members of a part
  }
}

TEST_F(FileTransfer, WritesMakeParentsAndTakeAMode) {
  Write("x", {{"mode", "0600"}});
  EXPECT_TRUE(options_.create_parents());
  EXPECT_EQ(options_.mode(), 0600u);
  Write("x");
  EXPECT_FALSE(options_.has_mode());
  EXPECT_FALSE(options_.has_atomic());  // the default is atomic
}

TEST_F(FileTransfer, TheLargestUploadThatALineHolds) {
  const std::string content = Pattern(6'291'300);
  EXPECT_EQ(Write(content)["result"]["size"], content.size());
  EXPECT_EQ(files_["/f"], content);
}

TEST_F(FileTransfer, RefusesWhatIsNoBase64BeforeOrDuringTheWrite) {
  for (const std::string& bad :
       {std::string("!!!!"), std::string(2'000'000, 'A') + "*AAA", std::string("QQ==QQ==")}) {
    const Json answer =
        host_.Call("files.write", {{"sandbox_id", "sb"}, {"path", "/bad"}, {"content_b64", bad}});
    EXPECT_EQ(answer["error"]["code"], kConfigError);
  }
  EXPECT_FALSE(files_.contains("/bad"));
  EXPECT_EQ(host_.Error("files.write", {{"sandbox_id", "sb"}, {"path", "/f"}})["code"],
            kInvalidParams);
}

TEST_F(FileTransfer, ReadsToTheLimitAndNoFurther) {
  files_["/f"] = Pattern(6'291'408);
  EXPECT_EQ(Decoded(ReadBack()["result"]["content_b64"]), files_["/f"]);
  files_["/f"] = Pattern(6'300'000);
  sent_ = 0;
  const Json error = ReadBack()["error"];
  EXPECT_EQ(error["code"], kProviderError);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("6300000"));
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("offset"));
}

TEST_F(FileTransfer, StopsReadingWhatHasNoSize) {
  no_sizes_ = true;
  files_["/f"] = Pattern(50'000'000);
  const Json error = ReadBack()["error"];
  EXPECT_EQ(error["code"], kProviderError);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("more than"));
  EXPECT_LT(sent_.load(), 20'000'000u);
  files_["/f"] = "cpu 1\n";
  EXPECT_EQ(Decoded(ReadBack()["result"]["content_b64"]), "cpu 1\n");
}

TEST_F(FileTransfer, ReadsParts) {
  files_["/f"] = Pattern(10'000'000);
  Json part = ReadBack({{"offset", 5}, {"length", 7}})["result"];
  EXPECT_EQ(Decoded(part["content_b64"]), files_["/f"].substr(5, 7));
  EXPECT_EQ(part["size"], 10'000'000);
  EXPECT_EQ(part["offset"], 5);
  EXPECT_EQ(part["eof"], false);
  // A part has at most 4 MiB, whatever is asked for.
  part = ReadBack({{"length", 100'000'000}})["result"];
  EXPECT_EQ(Decoded(part["content_b64"]).size(), 4u << 20);
  part = ReadBack({{"offset", 9'999'999}})["result"];
  EXPECT_EQ(Decoded(part["content_b64"]).size(), 1u);
  EXPECT_EQ(part["eof"], true);
  part = ReadBack({{"offset", 99'000'000}})["result"];
  EXPECT_EQ(part["content_b64"], "");
  EXPECT_EQ(part["eof"], true);
  EXPECT_EQ(ReadBack({{"offset", -1}})["error"]["code"], kConfigError);
  EXPECT_EQ(ReadBack({{"length", 1.5}})["error"]["code"], kConfigError);
}

TEST_F(FileTransfer, AFileInPartsIsTheFile) {
  files_["/f"] = Pattern(9'000'001);
  std::string whole;
  Json part;
  do {
    part = ReadBack({{"offset", whole.size()}})["result"];
    whole += Decoded(part["content_b64"]);
  } while (!part["eof"].get<bool>());
  EXPECT_EQ(whole, files_["/f"]);
}

// As those of /sys do.
TEST_F(FileTransfer, AFileThatClaimsMoreThanItHasEnds) {
  files_["/f"] = "always [madvise] never\n";
  claimed_size_ = 4096;
  Json part = ReadBack({{"offset", 0}})["result"];
  EXPECT_EQ(Decoded(part["content_b64"]), files_["/f"]);
  EXPECT_EQ(part["eof"], true);
  part = ReadBack({{"offset", 7}, {"length", 3}})["result"];
  EXPECT_EQ(part["eof"], false);
}

TEST_F(FileTransfer, AMissingFileIsE4001) {
  const Json error = ReadBack({{"path", "/none"}})["error"];
  EXPECT_EQ(error["code"], kNotFound);
  EXPECT_EQ(error["data"]["sdk_code"], "E4001");
}

}  // namespace
}  // namespace bridge::epp
