// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Result = Router::Match::Result;

Router Sample() {
  Router router;
  const Handler nothing = [](Exchange&) {};
  router.Add("POST", "/sandboxes", nothing);
  router.Add("GET", "/sandboxes", nothing);
  router.Add("GET", "/sandboxes/{id}", nothing);
  router.Add("GET", "/sandboxes/all", nothing);
  router.Add("*", "/sandboxes/{id}/proxy/{port}", nothing);
  router.Add("*", "/sandboxes/{id}/proxy/{port}/{path...}", nothing);
  router.AddWebSocket("/sandboxes/{id}/proxy/{port}/{path...}", nothing);
  router.AddWebSocket("/ws", nothing);
  return router;
}

TEST(Router, FindsByMethodAndPath) {
  const Router router = Sample();
  EXPECT_EQ(router.Find("GET", "/sandboxes").pattern, "/sandboxes");
  const auto match = router.Find("GET", "/sandboxes/a b");
  EXPECT_EQ(match.result, Result::kFound);
  EXPECT_THAT(match.params, ElementsAre(Pair("id", "a b")));
}

TEST(Router, LiteralsWinOverParameters) {
  EXPECT_EQ(Sample().Find("GET", "/sandboxes/all").pattern, "/sandboxes/all");
}

TEST(Router, TheRestMayBeEmptyAndHoldSlashes) {
  const Router router = Sample();
  EXPECT_EQ(router.Find("PUT", "/sandboxes/x/proxy/80").pattern, "/sandboxes/{id}/proxy/{port}");
  const auto empty = router.Find("PUT", "/sandboxes/x/proxy/80/");
  EXPECT_EQ(empty.params.at("path"), "");
  const auto deep = router.Find("PUT", "/sandboxes/x/proxy/80//a/b/");
  EXPECT_THAT(deep.params, ElementsAre(Pair("id", "x"), Pair("path", "/a/b/"), Pair("port", "80")));
}

TEST(Router, TellsWrongMethodFromUnknownPath) {
  const Router router = Sample();
  const auto wrong = router.Find("PUT", "/sandboxes");
  EXPECT_EQ(wrong.result, Result::kWrongMethod);
  EXPECT_THAT(wrong.allowed, ElementsAre("POST", "GET"));
  for (const char* path : {"/", "", "/sandbox", "/sandboxes/", "/sandboxes/x/y", "/ws"}) {
    EXPECT_EQ(router.Find("GET", path).result, Result::kNotFound) << path;
  }
}

TEST(Router, WebSocketRoutesAreForHandshakesAndWinThere) {
  const Router router = Sample();
  const auto plain = router.Find("GET", "/sandboxes/x/proxy/80/p", false);
  const auto handshake = router.Find("GET", "/sandboxes/x/proxy/80/p", true);
  EXPECT_EQ(handshake.result, Result::kFound);
  EXPECT_NE(plain.handler, handshake.handler);
  EXPECT_EQ(router.Find("GET", "/sandboxes", true).result, Result::kFound);
  EXPECT_EQ(router.Find("GET", "/ws", true).result, Result::kFound);
}

TEST(Pattern, Matches) {
  std::map<std::string, std::string> params;
  EXPECT_TRUE(MatchPattern("/a/{b}/c", "/a/1/c", &params));
  EXPECT_THAT(params, ElementsAre(Pair("b", "1")));
  EXPECT_FALSE(MatchPattern("/a/{b}", "/a/", nullptr));
  EXPECT_FALSE(MatchPattern("/a/{b}", "/a", nullptr));
  EXPECT_TRUE(MatchPattern("/{all...}", "/", nullptr));
  EXPECT_TRUE(MatchPattern("/{all...}", "/x/y", nullptr));
  EXPECT_FALSE(MatchPattern("/a/{rest...}", "/a", nullptr));
  EXPECT_FALSE(MatchPattern("/{}x", "/yx", nullptr)) << "braces within a segment are literal";
}

}  // namespace
}  // namespace bridge::local::http
