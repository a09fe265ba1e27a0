// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/message.h"

#include <string>

#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/json_scan.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

int CodeOf(const Message& message) { return ToEppError(message.error).code; }

Json Parsed(const std::string& line) {
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  return Json::parse(line, nullptr, false);
}

TEST(ParseMessage, ReadsARequest) {
  const Message message = ParseMessage(
      R"({"jsonrpc": "2.0", "id": 4, "method": "sandbox.get", "params": {"sandbox_id": "x"}})");
  ASSERT_TRUE(message.error.ok()) << message.error;
  EXPECT_EQ(message.id, "4");
  EXPECT_EQ(message.method, "sandbox.get");
  EXPECT_EQ(message.params, Json({{"sandbox_id", "x"}}));
}

TEST(ParseMessage, ReadsANotification) {
  const Message message =
      ParseMessage(R"({"jsonrpc":"2.0","method":"$/cancel","params":{"id":4}})");
  ASSERT_TRUE(message.error.ok());
  EXPECT_EQ(message.id, "");
  EXPECT_EQ(message.params["id"], 4);
}

TEST(ParseMessage, TakesMissingAndNullParamsForNone) {
  EXPECT_EQ(ParseMessage(R"({"jsonrpc":"2.0","id":1,"method":"m"})").params, Json::object());
  EXPECT_EQ(ParseMessage(R"({"jsonrpc":"2.0","id":1,"method":"m","params":null})").params,
            Json::object());
}

TEST(ParseMessage, SkipsAByteOrderMark) {
  EXPECT_TRUE(
      ParseMessage("\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}").error.ok());
}

TEST(ParseMessage, KeepsTheIdOfWhatItCannotRead) {
  const Message message = ParseMessage(
      "{\"jsonrpc\": \"2.0\", \"id\": 8, \"method\": \"m\", \"params\": {\"a\": \xFF}}");
  EXPECT_EQ(CodeOf(message), kParseError);
  EXPECT_EQ(message.id, "8");
  EXPECT_EQ(ParseMessage("{").id, "null");
  EXPECT_EQ(CodeOf(ParseMessage("{")), kParseError);
  EXPECT_EQ(CodeOf(ParseMessage("nonsense")), kParseError);
}

TEST(ParseMessage, RefusesTwoObjectsOnALine) {
  const std::string object = R"({"jsonrpc":"2.0","id":1,"method":"m"})";
  EXPECT_EQ(CodeOf(ParseMessage(object + object)), kParseError);
}

std::string Request(const std::string& params) {
  return R"({"jsonrpc":"2.0","id":1,"method":"m","params":)" + params + "}";
}

// A file of megabytes would else be in memory three times: line, parser, value.
TEST(ParseMessage, HoldsALongTextInTheMemoryOfItsLine) {
  const std::string content(kLongTextBytes, 'A');
  std::string line = Request(R"({"path":"/x","content_b64":")" + content + R"(","mode":7})");
  const void* memory = line.data();
  const Message message = ParseMessage(std::move(line));
  ASSERT_TRUE(message.error.ok()) << message.error;
  EXPECT_EQ(message.params, Json({{"path", "/x"}, {"content_b64", content}, {"mode", 7}}));
  EXPECT_EQ(message.params["content_b64"].get_ref<const std::string&>().data(), memory);
}

TEST(ParseMessage, ReadsLongTextsAsTheParserDoes) {
  const std::string a(kLongTextBytes, 'a');
  const std::string b(kLongTextBytes + 1, 'b');
  const std::string lines[] = {
      Request("{\"a\":\"" + a + "\",\"b\":\"" + b + "\"}"),
      Request("{\"a\":\"" + a + "\",\"a\":\"short\"}"),
      Request("{\"a\":\"short\",\"a\":\"" + a + "\"}"),
      Request("{\"a\":\"" + a + "\",\"a\":\"" + b + "\"}"),
      Request("{\"a\":\"" + a + "\"},\"params\":{\"a\":1}"),
      Request("{\"a\":\"" + a + "\"},\"params\":null"),
      Request("{\"a\":[\"" + a + "\"],\"b\":{\"b\":\"" + b + "\"}}"),
      Request("{\"\":\"" + a + "\"}"),
      Request("{\"a\\u0062\":\"" + a + "\"}"),
      Request("{\"a\":\"" + a + "\\n\",\"b\":\"\\u0000long\"}"),
      Request("{\"a\":\"" + a + "\xC3\xA9\"}"),
      Request("{\"a\":\"\",\"b\" :  \"" + b + "\" }"),
      Request("[\"params\",{\"a\":\"" + a + "\"}]"),
      R"({"jsonrpc":"2.0","id":1,"method":"m","other":{"a":")" + a + R"("},"params":{"b":2}})",
  };
  for (const std::string& line : lines) {
    SCOPED_TRACE(line.substr(0, 60) + " ... " + line.substr(line.size() - 30));
    const Message message = ParseMessage(line);
    const Json whole = Json::parse(line);
    EXPECT_EQ(message.id, "1");
    if (whole["params"].is_object()) {
      EXPECT_TRUE(message.params == whole["params"]);
    } else {
      EXPECT_TRUE(message.params == Json::object());
    }
  }
}

TEST(ParseMessage, RefusesBrokenLinesWithLongTexts) {
  const std::string a(kLongTextBytes, 'a');
  for (const std::string& line :
       {Request("{\"a\":\"" + a + "\\\"}"), Request("{\"a\":\"" + a + "\x01\"}"),
        Request("{\"a\":\"" + a + "\xFF\"}"), Request("{\"a\":\"" + a + "\" \"b\"}"),
        Request("{\"a\":\"" + a + "\"}") + "}", Request("{\"a\":\"" + a)}) {
    const Message message = ParseMessage(line);
    EXPECT_EQ(CodeOf(message), kParseError) << line.substr(line.size() - 20);
    EXPECT_EQ(message.id, "1");
  }
}

TEST(ParseMessage, KeepsALongTextBesideWhatIsRewritten) {
  const std::string a(kLongTextBytes, 'a');
  const Message message = ParseMessage(Request("{\"n\":NaN,\"a\":\"" + a + "\"}"));
  ASSERT_TRUE(message.error.ok()) << message.error;
  EXPECT_EQ(message.params["a"], a);
}

TEST(ParseMessage, TellsInvalidRequestsApart) {
  struct Case {
    const char* line;
    int code;
    const char* id;
  };
  const Case cases[] = {
      {"[]", kInvalidRequest, "null"},
      {R"([{"jsonrpc":"2.0","id":1,"method":"m"}])", kInvalidRequest, "null"},
      {"5", kInvalidRequest, "null"},
      {R"({"id":1,"method":"m"})", kInvalidRequest, "1"},
      {R"({"jsonrpc":"1.0","id":"q","method":"m"})", kInvalidRequest, "\"q\""},
      {R"({"jsonrpc":"2.0","id":1})", kInvalidRequest, "1"},
      {R"({"jsonrpc":"2.0","id":1,"method":5})", kInvalidRequest, "1"},
      {R"({"jsonrpc":"2.0","id":1,"method":""})", kInvalidRequest, "1"},
      {R"({"jsonrpc":"2.0","id":{},"method":"m"})", kInvalidRequest, "null"},
      {R"({"jsonrpc":"2.0","id":true,"method":"m"})", kInvalidRequest, "null"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m","params":[1]})", kInvalidParams, "1"},
      {R"({"jsonrpc":"2.0","id":1,"method":"m","params":"x"})", kInvalidParams, "1"},
  };
  for (const Case& c : cases) {
    const Message message = ParseMessage(c.line);
    EXPECT_EQ(CodeOf(message), c.code) << c.line;
    EXPECT_EQ(message.id, c.id) << c.line;
  }
}

TEST(ParseMessage, RefusesBottomlessNesting) {
  const std::string line = R"({"jsonrpc":"2.0","id":6,"method":"m","params":{"a":)" +
                           std::string(100'000, '[') + std::string(100'000, ']') + "}}";
  const Message message = ParseMessage(line);
  EXPECT_EQ(CodeOf(message), kInvalidRequest);
  EXPECT_EQ(message.id, "6");
}

TEST(ParseMessage, ReadsPythonsNumbersAndHalfSurrogates) {
  const Message message = ParseMessage(
      R"({"jsonrpc":"2.0","id":2,"method":"m","params":{"t":NaN,"c":"a\ud800","n":1e999}})");
  ASSERT_TRUE(message.error.ok()) << message.error;
  EXPECT_EQ(message.params["c"].get<std::string>(), std::string("a\0", 2));
}

TEST(OverlongMessage, AnswersTheRightCall) {
  const Message message = OverlongMessage(
      R"({"jsonrpc": "2.0", "id": 31, "method": "files.write", "params": {"content_b64": ")",
      44'700'000);
  EXPECT_EQ(message.id, "31");
  const EppError error = ToEppError(message.error);
  EXPECT_EQ(error.code, kProviderError);
  EXPECT_NE(error.message.find("44700000"), std::string::npos) << error.message;
  EXPECT_EQ(OverlongMessage("xxxx", 9'000'000).id, "null");
}

TEST(RenderResult, IsOneObjectOnOneLine) {
  const Json result = {{"text", "a\nb\r\u2028 \"q\" \\"}, {"n", 1}};
  const Json line = Parsed(RenderResult("7", result));
  EXPECT_EQ(line, Json({{"jsonrpc", "2.0"}, {"id", 7}, {"result", result}}));
}

TEST(RenderResult, ReplacesWhatIsNoUtf8) {
  const Json line = Parsed(RenderResult("1", {{"t", "a\xFF"}}));
  EXPECT_EQ(line["result"]["t"], "a\xEF\xBF\xBD");
}

TEST(RenderResult, NeverExceedsTheLimit) {
  const std::string text(kMaxLineBytes - 52, 'x');
  const std::string line = RenderResult("1", {{"text", text}});
  EXPECT_LE(line.size(), kMaxLineBytes);
  // One byte more does not fit.
  for (const size_t more : {1, 100}) {
    const std::string rendered = RenderResult("1", {{"text", text + std::string(more, 'y')}});
    ASSERT_LE(rendered.size(), kMaxLineBytes);
    if (rendered.size() < 10'000) {
      EXPECT_EQ(Parsed(rendered)["error"]["code"], kProviderError);
    }
  }
}

TEST(RenderError, HasWhatTheHostReads) {
  const Json line = Parsed(RenderError("\"x\"", Unsupported("process.stdin", "no")));
  EXPECT_EQ(line["id"], "x");
  EXPECT_EQ(line["error"]["code"], kUnsupported);
  EXPECT_EQ(line["error"]["data"]["details"]["feature"], "process.stdin");
  EXPECT_FALSE(line.contains("result"));
}

TEST(RenderError, CutsEndlessMessages) {
  const std::string line =
      RenderError("1", MakeError(ErrorReason::ERROR_REASON_INTERNAL, std::string(1 << 20, 'z')));
  EXPECT_LT(line.size(), 20'000u);
}

constexpr std::string_view kContent = R"({"content_b64":")";
constexpr std::string_view kEnd = "\"}";

TEST(LargeResult, FillsALineToTheLastByte) {
  for (const std::string id : {"1", "123456", "\"abc\""}) {
    const size_t room = LargeResultCapacity(id, kContent, kEnd);
    const std::string full =
        EndLargeResult(id, BeginLargeResult(id, kContent) + std::string(room, 'A'), kEnd);
    EXPECT_EQ(full.size(), kMaxLineBytes);
    EXPECT_EQ(Parsed(full)["result"]["content_b64"].get<std::string>().size(), room);
    const std::string over =
        EndLargeResult(id, BeginLargeResult(id, kContent) + std::string(room + 1, 'A'), kEnd);
    EXPECT_EQ(Parsed(over)["error"]["code"], kProviderError);
  }
}

TEST(LargeResult, HoldsTheLargestFileThatTheHostIsPromised) {
  // 6,291,408 bytes and ids of up to twelve digits.
  EXPECT_GE(LargeResultCapacity("123456789012", kContent, kEnd) / 4 * 3, 6'291'408u);
}

TEST(EncodedSize, IsWhatTheRendererWrites) {
  std::string text = "plain \xE4\xB8\xAD \"\\\n\t";
  for (char c = 1; c < 0x20; ++c) text += c;
  const std::string line = RenderNotification("m", {{"d", text}});
  const std::string empty = RenderNotification("m", {{"d", ""}});
  EXPECT_EQ(EncodedSize(text), line.size() - empty.size());
}

}  // namespace
}  // namespace bridge::epp
