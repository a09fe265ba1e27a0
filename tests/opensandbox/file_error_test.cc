// SPDX-License-Identifier: Apache-2.0
//
// What daemons of several ages answer about a path, as it was recorded or is documented.
#include "bridge/opensandbox/file_error.h"

#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"
#include "bridge/opensandbox/file_codec.h"

namespace bridge {
namespace {

using R = ErrorReason;

R Reason(int status, const std::string& body) {
  return ReasonOf(FileError({status, {}, body}, "read a file"));
}

TEST(FileError, MissingFilesOfNewAndOldDaemons) {
  EXPECT_EQ(Reason(404, R"({"code":"FILE_NOT_FOUND","message":"file not found. stat /x: no such )"
                        R"(file or directory"})"),
            R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(Reason(404, R"({"code":"FILE_NOT_FOUND"})"), R::ERROR_REASON_PATH_NOT_FOUND);
  // Older ones answer 500 for everything.
  for (const char* words : {"file not found: /x", "open /x: no such file or directory",
                            "error accessing file: lstat /a/x: no such file or directory"}) {
    EXPECT_EQ(Reason(500, std::string(R"({"code":"RUNTIME_ERROR","message":")") + words + "\"}"),
              R::ERROR_REASON_PATH_NOT_FOUND)
        << words;
  }
}

TEST(FileError, GosWordsForOtherFailures) {
  const auto reason = [](const std::string& words) {
    return Reason(500,
                  R"({"code":"RUNTIME_ERROR","message":"error accessing file: )" + words + "\"}");
  };
  EXPECT_EQ(reason("open /x: permission denied"), R::ERROR_REASON_PERMISSION_DENIED);
  EXPECT_EQ(reason("open /x: read-only file system"), R::ERROR_REASON_PERMISSION_DENIED);
  EXPECT_EQ(reason("write /x: no space left on device"), R::ERROR_REASON_NO_SPACE);
  EXPECT_EQ(reason("write /x: disk quota exceeded"), R::ERROR_REASON_NO_SPACE);
  EXPECT_EQ(reason("multipart form is empty"), R::ERROR_REASON_NO_SPACE);
  EXPECT_EQ(reason("open /x: is a directory"), R::ERROR_REASON_IS_A_DIRECTORY);
  EXPECT_EQ(reason("mkdir /f/x: not a directory"), R::ERROR_REASON_NOT_A_DIRECTORY);
  EXPECT_EQ(reason("destination path already exists"), R::ERROR_REASON_PATH_EXISTS);
  EXPECT_EQ(reason("user: unknown user nosuch"), R::ERROR_REASON_UNKNOWN_USER);
}

TEST(FileError, PathsThatNothingCanBeAt) {
  for (const char* words :
       {"lstat /x: file name too long", "open /x: too many levels of symbolic links",
        "EvalSymlinks: too many links", "unlinkat /x: device or resource busy",
        "open /x: text file busy"}) {
    EXPECT_EQ(Reason(500, std::string(R"({"code":"RUNTIME_ERROR","message":")") + words + "\"}"),
              R::ERROR_REASON_PATH_REJECTED)
        << words;
  }
  const auto own = [](int status, const std::string& body) {
    return ReasonOf(OwnFileError({status, {}, body}, "move a path"));
  };
  for (const char* error : {"ENAMETOOLONG", "ELOOP", "EINVAL"}) {
    EXPECT_EQ(own(400, std::string(R"({"code":"INVALID_ARGUMENT","errno":")") + error + "\"}"),
              R::ERROR_REASON_PATH_REJECTED);
  }
  for (const char* code : {"BUSY", "INTERNAL"}) {
    EXPECT_EQ(own(409, std::string(R"({"code":")") + code + R"(","errno":"EBUSY"})"),
              R::ERROR_REASON_PATH_REJECTED);
  }
  EXPECT_EQ(own(500, R"({"code":"INTERNAL","errno":"EIO"})"), R::ERROR_REASON_UPSTREAM_FAILED);
  EXPECT_EQ(own(400, R"({"code":"INVALID_ARGUMENT","field":"parents"})"),
            R::ERROR_REASON_UPSTREAM_REJECTED);
}

TEST(FileError, WhatIsNotAboutThePathIsNot) {
  EXPECT_NE(Reason(404, "404 page not found"), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_NE(Reason(500, R"({"code":"RUNTIME_ERROR","message":"boom"})"),
            R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(Reason(401, R"({"error":"Unauthorized"})"), R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED);
  // Words of something between the bridge and the daemon mean nothing.
  EXPECT_EQ(Reason(502, "no such file or directory"), R::ERROR_REASON_SANDBOX_UNREACHABLE);
}

TEST(FileError, QuotesNoPath) {
  const absl::Status status =
      FileError({500, {}, R"({"message":"open /secret-name: permission denied"})"}, "read a file");
  EXPECT_EQ(std::string(status.message()).find("secret-name"), std::string::npos);
}

// {"path":…} as the daemons of several ages describe it.
TEST(ParseFileInfo, WithAndWithoutAType) {
  FileInfo info;
  ASSERT_TRUE(ParseFileInfo(R"({"path":"/x","type":"file","size":0,"mode":755})", &info).ok());
  EXPECT_TRUE(info.type_known);
  EXPECT_EQ(info.type, FileType::kFile);
  ASSERT_TRUE(ParseFileInfo(R"({"path":"/x","size":4096,"mode":700})", &info).ok());
  EXPECT_FALSE(info.type_known) << "4096 bytes and mode 700 are no evidence of a directory";
  EXPECT_EQ(info.mode, 0700u);
}

}  // namespace
}  // namespace bridge
