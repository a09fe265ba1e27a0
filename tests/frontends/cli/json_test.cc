// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/json.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "sandbox/bridge/v1/exec.pb.h"
#include "sandbox/bridge/v1/processes.pb.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge::cli {
namespace {

template <typename Message>
std::string JsonOf(const char* text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return ToJson(message).dump();
}

TEST(Json, ASandboxInFull) {
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::Sandbox>(R"pb(
              sandbox_id: "sb-1"
              state: SANDBOX_STATE_RUNNING
              upstream_state: "Running"
              image: "x:1"
              entrypoint: [ "tail", "-f" ]
              metadata { key: "b" value: "2" }
              metadata { key: "a" value: "1" }
              created_at { seconds: 1700000000 nanos: 500000000 }
            )pb"),
            R"({"sandbox_id":"sb-1","state":"RUNNING","upstream_state":"Running",)"
            R"("state_reason":"","state_message":"","image":"x:1","snapshot_id":"",)"
            R"("entrypoint":["tail","-f"],"metadata":{"a":"1","b":"2"},"platform":"",)"
            R"("created_at":"2023-11-14T22:13:20.500Z","incarnation":"","request_id":""})");
}

TEST(Json, PrefixesOfNestedEnumsGo) {
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::DeleteSandboxResponse>(
                "verdict: VERDICT_CONFIRMED_GONE evidence { action: 'GET' upstream_status: 404 }"),
            R"({"verdict":"CONFIRMED_GONE","evidence":[{"action":"GET","upstream_status":404,)"
            R"("detail":""}]})");
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::ExecEvent::Output>("stream: OUTPUT_STREAM_STDERR"),
            R"({"stream":"STDERR","data":"","offset":0})");
}

TEST(Json, OnlyTheSetMemberOfAOneofIsThere) {
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::Outcome>("exit_code: 0"), R"({"exit_code":0})");
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::Outcome>("timed_out { after { seconds: 2 } }"),
            R"({"timed_out":{"after":2.0}})");
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::Outcome>(""), "{}");
}

TEST(Json, OptionalZeroIsAValue) {
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::User>("ids { uid: 0 gid: 0 }"),
            R"({"ids":{"uid":0,"gid":0}})");
  EXPECT_EQ(JsonOf<sandbox::bridge::v1::User>("ids { uid: 0 }"), R"({"ids":{"uid":0}})");
}

TEST(Json, BytesAreTextOrBase64) {
  Json object = Json::object();
  PutBytes(object, "data", "a\r\nb");
  PutBytes(object, "odd", "a\r\n\377b");
  PutBytes(object, "nul", std::string("\0", 1));
  PutBytes(object, "cut", "\xe6\x97");
  EXPECT_EQ(object.dump(),
            R"({"data":"a\r\nb","odd_base64":"YQ0K/2I=","nul":"\u0000","cut_base64":"5pc="})");
}

TEST(Json, ListsOfBytesMarkTheOddOnes) {
  EXPECT_EQ(ToJson([] {
              sandbox::bridge::v1::ProcessInfo info;
              info.add_command_line("ls");
              info.add_command_line("\xff");
              return info;
            }())["command_line"]
                .dump(),
            R"(["ls",{"data_base64":"/w=="}])");
}

TEST(Json, EveryLineIsOneLine) { EXPECT_EQ(JsonLine(Json{{"a", "x\ny"}}), "{\"a\":\"x\\ny\"}\n"); }

TEST(Json, WordsThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(TextOrEscaped("é"), "é");
  EXPECT_EQ(TextOrEscaped("\xff"), "\\xff");
}

}  // namespace
}  // namespace bridge::cli
