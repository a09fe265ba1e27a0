// SPDX-License-Identifier: Apache-2.0
//
// Bodies as a real execd with isolated sessions wrote them, and as the SDK 1.1.1 reads them.
#include "bridge/opensandbox/isolation_codec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using Json = nlohmann::json;

TEST(IsolationCodec, AWorkspaceWhereItLies) {
  IsolatedSessionSpec spec{.workspace_path = "/workspace", .workspace_source = "/workspace"};
  EXPECT_EQ(Json::parse(OpenSessionJson(spec)),
            Json::parse(R"({"profile":"strict","share_net":false,
                            "workspace":{"path":"/workspace","mode":"rw"}})"));
}

TEST(IsolationCodec, EverythingThatCanBeAskedFor) {
  IsolatedSessionSpec spec{.workspace_path = "/workspace",
                           .workspace_source = "/data/7",
                           .user = {.uid = 0, .gid = 1001},
                           .share_network = true,
                           .extra_writable = {"/cache"},
                           .binds = {{"/etc/x", "/x", true}, {"/var/y", "/y", false}},
                           .idle_timeout = absl::Milliseconds(1500)};
  EXPECT_EQ(Json::parse(OpenSessionJson(spec)), Json::parse(R"({
      "profile":"strict","share_net":true,"workspace":{"path":"/data/7","mode":"rw"},
      "binds":[{"source":"/data/7","dest":"/workspace"},
               {"source":"/etc/x","dest":"/x","readonly":true},
               {"source":"/var/y","dest":"/y"}],
      "extra_writable":["/cache"],"uid":0,"gid":1001,"idle_timeout_seconds":2})"));
}

TEST(IsolationCodec, AnOpenedSession) {
  const auto session = ParseOpenedSession(
      R"({"session_id":"92a38953-0f8c-4c64-93f9-82221c8dceaa","created_at":"2026-11-30T06:57:07.176247612Z"})");
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->id, "92a38953-0f8c-4c64-93f9-82221c8dceaa");
  EXPECT_EQ(absl::ToUnixNanos(session->created_at), 1796021827176247612);
  for (const char* bad : {"", "[]", "{}", R"({"session_id":7})", "404 page not found"}) {
    EXPECT_EQ(ReasonOf(ParseOpenedSession(bad).status()),
              ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL)
        << bad;
  }
}

TEST(IsolationCodec, AListTellsWhoLives) {
  const auto list = ParseSessionList(
      R"({"sessions":[{"session_id":"a","status":"active","created_at":"2026-11-30T06:57:07Z",
                       "last_run_at":"2026-11-30T06:57:08Z"},
                      {"session_id":"b","status":"dead","created_at":"2026-11-30T06:57:07Z",
                       "last_run_at":"2026-11-30T06:57:08Z","idle_remaining_seconds":3}]})");
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_TRUE((*list)[0].active);
  EXPECT_FALSE((*list)[1].active);
  EXPECT_TRUE(ParseSessionList(R"({"sessions":[]})")->empty());
  EXPECT_FALSE(ParseSessionList(R"({"sessions":[{}]})").ok());
}

TEST(IsolationCodec, WhatASessionWasOpenedWithIsReadBack) {
  IsolatedSession session;
  ASSERT_TRUE(ParseSessionState(R"({"status":"active","created_at":"2026-11-30T06:57:07.225502727Z",
      "last_run_at":"2026-11-30T06:57:07.893991244Z","profile":"strict",
      "workspace":{"path":"/data/7","mode":"rw"},
      "binds":[{"source":"/etc/x","dest":"/x"},{"source":"/data/7","dest":"/workspace"}],
      "uid":1000,"gid":1001})",
                                &session)
                  .ok());
  EXPECT_EQ(session.workspace_source, "/data/7");
  EXPECT_EQ(session.workspace_path, "/workspace");
  EXPECT_EQ(session.uid, 1000u);
  EXPECT_EQ(session.gid, 1001u);
}

TEST(IsolationCodec, AnOlderDaemonDoesNotTell) {
  IsolatedSession session;
  ASSERT_TRUE(ParseSessionState(R"({"status":"active","created_at":"2026-11-30T06:57:07.225502727Z",
                                    "last_run_at":"2026-11-30T06:57:07.893991244Z"})",
                                &session)
                  .ok());
  EXPECT_TRUE(session.active);
  EXPECT_EQ(session.workspace_source, "");
  EXPECT_FALSE(session.uid.has_value());
}

TEST(IsolationCodec, Capabilities) {
  const auto can = ParseIsolation(
      R"({"available":true,"isolator":"bwrap","version":"0.11.0","setpriv_available":true,
          "commit_supported":false,"diff_supported":false})");
  ASSERT_TRUE(can.ok());
  EXPECT_TRUE(can->available && can->setpriv && !can->user_namespace);
  EXPECT_EQ(can->isolator, "bwrap");
  EXPECT_EQ(can->version, "0.11.0");
  EXPECT_EQ(can->detail, "");
  const auto cannot = ParseIsolation(R"({"available":false,"message":"bwrap not found"})");
  ASSERT_TRUE(cannot.ok());
  EXPECT_FALSE(cannot->available);
  EXPECT_EQ(cannot->detail, "bwrap not found");
}

}  // namespace
}  // namespace bridge
