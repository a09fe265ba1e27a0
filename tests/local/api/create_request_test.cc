// SPDX-License-Identifier: Apache-2.0
//
// What the recordings do not say; the rest is in replay_test.cc.
#include "bridge/local/api/create_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Json Minimal() {
  return {
      {"image", {{"uri", "base"}}}, {"entrypoint", {"true"}}, {"resourceLimits", Json::object()}};
}

std::string Problem(const Json& body, CreateLimits limits = {}) {
  CreateRequest request;
  auto failure = ParseCreateRequest(body, &request);
  if (!failure) failure = CheckCreateRequest(request, limits);
  if (!failure) return "";
  if (failure->body.contains("message")) {
    return std::to_string(failure->status) + " " + failure->body["message"].get<std::string>();
  }
  return std::to_string(failure->status) + " " +
         failure->body["detail"][0]["msg"].get<std::string>();
}

TEST(CreateRequest, ReadsEverything) {
  Json body = Minimal();
  body["timeout"] = 600;
  body["env"] = {{"A", "1"}, {"DROPPED", nullptr}};
  body["metadata"] = {{"z", "1"}, {"a", "2"}};
  body["platform"] = {{"os", "linux"}, {"arch", "amd64"}};
  body["extensions"] = {{"opensandbox.extensions.note", "x"}, {"other", "y"}};
  body["volumes"] = Json::parse(
      R"([{"name":"v","mountPath":"/v","pvc":{"claimName":"c","createIfNotExists":false,
           "deleteOnSandboxTermination":true},"readOnly":true,"subPath":"a/b"},
          {"name":"h","mountPath":"/h","host":{"path":"/srv"}}])");
  CreateRequest request;
  ASSERT_FALSE(ParseCreateRequest(body, &request).has_value());
  EXPECT_FALSE(CheckCreateRequest(request, {}).has_value());
  EXPECT_EQ(request.timeout_seconds, 600);
  EXPECT_THAT(request.env, ElementsAre(Pair("A", "1")));
  EXPECT_EQ(request.metadata_as_sent.dump(), R"({"z":"1","a":"2"})");
  EXPECT_THAT(request.KeptExtensions(), ElementsAre(Pair("opensandbox.extensions.note", "x")));
  ASSERT_EQ(request.volumes.size(), 2u);
  EXPECT_EQ(request.volumes[0].backend, VolumeRequest::Backend::kNamed);
  EXPECT_TRUE(request.volumes[0].read_only);
  EXPECT_TRUE(request.volumes[0].delete_with_sandbox);
  EXPECT_FALSE(request.volumes[0].create_if_not_exists);
  EXPECT_EQ(request.volumes[0].sub_path, "a/b");
  EXPECT_EQ(request.volumes[1].backend, VolumeRequest::Backend::kHost);
}

TEST(CreateRequest, SeveralProblemsInTheOrderOfTheSchema) {
  const Json body = {{"entrypoint", "x"}, {"timeout", 1}, {"image", 3}};
  CreateRequest request;
  const auto failure = ParseCreateRequest(body, &request);
  std::vector<std::string> where;
  for (const Json& error : failure->body["detail"]) where.push_back(error["loc"][1]);
  EXPECT_THAT(where, ElementsAre("image", "timeout", "entrypoint"));
}

TEST(CreateRequest, TimeoutsWithoutAMaximum) {
  Json body = Minimal();
  body["timeout"] = 10'000'000;
  EXPECT_EQ(Problem(body), "");
  EXPECT_THAT(Problem(body, {.max_timeout_seconds = 86400}),
              HasSubstr("exceeds configured maximum"));
}

TEST(CreateRequest, TemplatesNeedATimeout) {
  EXPECT_THAT(Problem({{"templateId", "t"}}), HasSubstr("422 Value error, timeout is required"));
}

TEST(CreateRequest, PoolsAreRefusedWithAndWithoutAnImage) {
  const Json bare = {{"extensions", {{"poolRef", "p"}}}};
  EXPECT_THAT(Problem(bare), HasSubstr("400 poolRef is not supported"));
}

TEST(CreateRequest, RenewExtensionMustBeANumber) {
  Json body = Minimal();
  body["extensions"] = {{"access.renew.extend.seconds", "x"}};
  EXPECT_THAT(Problem(body), HasSubstr("decimal integer"));
  body["extensions"] = {{"access.renew.extend.seconds", "600"}};
  EXPECT_EQ(Problem(body), "");
}

TEST(CreateRequest, NetworkPolicyIsRefusedRatherThanIgnored) {
  Json body = Minimal();
  body["networkPolicy"] = Json::object();
  EXPECT_THAT(Problem(body), HasSubstr("400 networkPolicy is not supported on the host network"));
  body["networkPolicy"] = {{"egress", {{{"action", "deny"}}}}};
  EXPECT_THAT(Problem(body), HasSubstr("422 Field required"));
}

TEST(CreateRequest, VolumePathsStayInside) {
  Json body = Minimal();
  const auto with_sub_path = [&](const char* path) {
    body["volumes"] = {
        {{"name", "v"}, {"mountPath", "/v"}, {"pvc", {{"claimName", "c"}}}, {"subPath", path}}};
    return Problem(body);
  };
  EXPECT_EQ(with_sub_path("a/b"), "");
  EXPECT_EQ(with_sub_path("a..b"), "");
  EXPECT_THAT(with_sub_path("a/../.."), HasSubstr("path traversal"));
  EXPECT_THAT(with_sub_path("/etc"), HasSubstr("must be a relative path"));
}

TEST(CreateRequest, ObjectStoresAreRefusedWithAReason) {
  Json body = Minimal();
  body["volumes"] = {
      {{"name", "v"}, {"mountPath", "/v"}, {"ossfs", {{"bucket", "abc"}, {"endpoint", "e"}}}}};
  EXPECT_THAT(Problem(body), HasSubstr("400 Volume 'v': ossfs is not available here"));
}

}  // namespace
}  // namespace bridge::local::api
