// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace bridge::local::execd::extra {
namespace {

using ::testing::HasSubstr;

// "field: message" of the failure, or "" for none.
std::string Shown(const std::optional<Failure>& failure) {
  if (!failure) return "";
  EXPECT_EQ(failure->status, 400);
  EXPECT_EQ(failure->code, "INVALID_ARGUMENT");
  return failure->field + ": " + failure->message;
}

std::string Check(const std::string& body) {
  StrictObject object(body);
  std::optional<std::string> text, id;
  bool flag = false;
  std::optional<int64_t> number;
  std::vector<std::string> list;
  std::map<std::string, std::string> map;
  object.String("text", &text);
  object.Bool("flag", &flag);
  object.Integer("number", 1, 10, &number);
  object.StringList("list", &list);
  object.StringMap("map", &map);
  object.StringOrInteger("id", &id);
  return Shown(object.Finish());
}

TEST(StrictObject, Accepts) {
  EXPECT_EQ(Check("{}"), "");
  EXPECT_EQ(
      Check(R"( {"text":"x","flag":true,"number":10,"list":["a",""],"map":{"a":"b"},"id":7} )"),
      "");
  EXPECT_EQ(Check(R"({"text":null,"flag":null,"number":null,"list":null,"map":null})"), "");
}

TEST(StrictObject, Refuses) {
  EXPECT_EQ(Check("[]"), ": the body is not an object");
  EXPECT_THAT(Check("{"), HasSubstr("the body is not JSON: unexpected EOF"));
  EXPECT_EQ(Check("{} x"), ": something follows the body's object");
  EXPECT_EQ(Check("{\"text\":\"\xff\"}"), ": the body is not UTF-8");
  EXPECT_EQ(Check(R"({"txt":"x"})"), "txt: there is no such field");
  EXPECT_EQ(Check(R"({"Text":"x"})"), "Text: there is no such field");
  EXPECT_EQ(Check(R"({"text":"x","text":"y"})"), "text: text is given twice");
  EXPECT_EQ(Check(R"({"text":1})"), "text: text has the wrong type: number");
  EXPECT_EQ(Check(R"({"text":"a\u0000"})"), "text: text holds NUL");
  EXPECT_EQ(Check(R"({"number":0})"), "number: number must be a whole number from 1 to 10");
  EXPECT_EQ(Check(R"({"number":1.5})"), "number: number must be a whole number from 1 to 10");
  EXPECT_EQ(Check(R"({"list":[1]})"), "list: list must hold strings only");
  EXPECT_EQ(Check(R"({"map":{"a":1}})"), "map: map must hold strings only");
  EXPECT_EQ(Check(R"({"map":{"a":"1","a":"2"}})"), "map: map has a name twice");
}

std::string CheckQuery(const std::string& target) {
  http::Request request;
  request.target = target;
  request.SplitTarget();
  StrictQuery query(request);
  std::string path;
  bool flag = false;
  std::optional<int64_t> number;
  query.Path("path", &path);
  query.Flag("flag", &flag);
  query.Integer("number", 0, 9, &number);
  return Shown(query.Finish());
}

TEST(StrictQuery, AcceptsAndRefuses) {
  EXPECT_EQ(CheckQuery("/x?path=/a%ff%20$~&flag=1&number=9"), "");
  EXPECT_EQ(CheckQuery("/x"), "path: path is missing");
  EXPECT_EQ(CheckQuery("/x?path="), "path: path is missing");
  EXPECT_EQ(CheckQuery("/x?path=a"), "path: path must be absolute");
  EXPECT_EQ(CheckQuery("/x?path=/a%00"), "path: path holds NUL");
  EXPECT_EQ(CheckQuery("/x?path=/a%zz"), "path: path has a bad escape");
  EXPECT_EQ(CheckQuery("/x?path=/a&path=/b"), "path: path is given twice");
  EXPECT_EQ(CheckQuery("/x?path=/a&flag=true"), "flag: flag must be 0 or 1");
  EXPECT_EQ(CheckQuery("/x?path=/a&number=10"),
            "number: number must be a whole number from 0 to 9");
  EXPECT_EQ(CheckQuery("/x?path=/a&other=1"), "other: there is no such parameter");
}

TEST(ParseSignal, NamesAndNumbers) {
  EXPECT_EQ(ParseSignal("TERM", false), 15);
  EXPECT_EQ(ParseSignal("SIGUSR1", false), 10);
  EXPECT_EQ(ParseSignal("64", false), 64);
  EXPECT_EQ(ParseSignal("0", true), 0);
  for (const char* bad : {"0", "65", "-1", "term", "SIGNOPE", ""}) {
    EXPECT_EQ(ParseSignal(bad, false), std::nullopt) << bad;
  }
}

TEST(Failure, JsonAndErrnos) {
  EXPECT_EQ(FromErrno("open", "/a", ENOENT).Json(),
            "{\"code\":\"NOT_FOUND\",\"message\":\"open /a: no such file or "
            "directory\",\"errno\":\"ENOENT\"}");
  Failure failure = Invalid("x", "bad");
  EXPECT_EQ(failure.With("taken", "5").Json(),
            "{\"code\":\"INVALID_ARGUMENT\",\"message\":\"bad\",\"field\":\"x\",\"taken\":5}");
  for (const auto& [error, status, code] :
       std::initializer_list<std::tuple<int, int, const char*>>{{EACCES, 403, "PERMISSION_DENIED"},
                                                                {EPERM, 403, "PERMISSION_DENIED"},
                                                                {EROFS, 403, "READ_ONLY"},
                                                                {ESRCH, 404, "NOT_FOUND"},
                                                                {ENOTDIR, 409, "NOT_A_DIRECTORY"},
                                                                {EISDIR, 409, "IS_A_DIRECTORY"},
                                                                {ENOSPC, 507, "NO_SPACE"},
                                                                {EDQUOT, 507, "NO_SPACE"},
                                                                {ENOSYS, 501, "UNSUPPORTED"},
                                                                {EIO, 500, "INTERNAL"}}) {
    EXPECT_EQ(FromErrno("x", "y", error).status, status) << code;
    EXPECT_EQ(FromErrno("x", "y", error).code, code);
  }
}

TEST(AppendText, ExactBytesWhereTextIsNotEnough) {
  std::string out;
  AppendText(out, "path", "/a");
  EXPECT_EQ(out, "\"path\":\"/a\"");
  out.clear();
  AppendText(out, "path", "/a\xff");
  EXPECT_EQ(out, "\"path\":\"/a\\ufffd\",\"path_b64\":\"L2H/\"");
}

}  // namespace
}  // namespace bridge::local::execd::extra
