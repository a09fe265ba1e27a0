// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/lifecycle_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "bridge/opensandbox/timestamps.h"
#include "tests/opensandbox/recorded_answers.h"

namespace bridge {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ParseSandbox, ReadsARecordedRecord) {
  const auto record = ParseSandbox(Recorded("get").body);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->id, "72a40d7d-03b9-4b0d-aaf7-7ca73cb2d977");
  EXPECT_EQ(record->state, SandboxState::kRunning);
  EXPECT_EQ(record->state_text, "Running");
  EXPECT_EQ(record->state_reason, "CONTAINER_RUNNING");
  EXPECT_EQ(record->state_message, "Sandbox container is running.");
  EXPECT_EQ(record->image, "osb-base:latest");
  EXPECT_EQ(record->snapshot_id, "");
  EXPECT_THAT(record->entrypoint, ElementsAre("tail", "-f", "/dev/null"));
  EXPECT_THAT(record->metadata, ElementsAre(Pair("example.org/run", "r-2"), Pair("team", "core")));
  EXPECT_EQ(record->platform, "linux/amd64");
  EXPECT_EQ(record->created_at, ParseTimestamp("2026-11-29T16:46:38.290233Z"));
  EXPECT_EQ(record->expires_at, ParseTimestamp("2026-11-29T17:16:38.281345Z"));
  EXPECT_EQ(IncarnationOf(*record), "2026-11-29T16:46:38.290233Z");
}

TEST(ParseSandbox, ReadsEveryRecordedState) {
  EXPECT_EQ(ParseSandbox(Recorded("get-paused").body)->state, SandboxState::kPaused);
  EXPECT_EQ(ParseSandbox(Recorded("get-ended-true").body)->state, SandboxState::kTerminated);
  const auto failed = ParseSandbox(Recorded("get-ended-exit-3").body);
  EXPECT_EQ(failed->state, SandboxState::kFailed);
  EXPECT_EQ(failed->state_message, "Sandbox container exited with code 3.");
  const auto restored = ParseSandbox(Recorded("get-restored").body);
  EXPECT_EQ(restored->image, "");
  EXPECT_EQ(restored->snapshot_id, "5c337fc1-3cec-423e-b5ae-d736f33648d2");
  // It never expires: there is no expiresAt.
  EXPECT_EQ(ParseSandbox(Recorded("get-minimal").body)->expires_at, std::nullopt);
  EXPECT_TRUE(ParseSandbox(Recorded("create-every-field").body).ok());
  EXPECT_TRUE(ParseSandbox(Recorded("patch-metadata").body).ok());
}

TEST(ParseSandbox, NullIsAbsentAndUnknownFieldsAreSkipped) {
  const auto record = ParseSandbox(
      R"({"id":"a","metadata":null,"expiresAt":null,"platform":null,"image":null,"snapshotId":null,
          "status":{"state":"Running","reason":null,"message":null,"extra":[1,{"x":2}]},
          "entrypoint":null,"createdAt":null,"brandNew":{"deep":[[]]}})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->state, SandboxState::kRunning);
  EXPECT_EQ(record->expires_at, std::nullopt);
  EXPECT_THAT(record->metadata, IsEmpty());
  EXPECT_EQ(IncarnationOf(*record), "0");
}

TEST(ParseSandbox, UnknownStatesArePassedOnAndNeverRunning) {
  for (const char* state : {"Allocated", "Unknown", "", "runningish", "Succeeded", "Run"}) {
    const auto record =
        ParseSandbox(std::string(R"({"id":"a","status":{"state":")") + state + "\"}}");
    ASSERT_TRUE(record.ok());
    EXPECT_EQ(record->state, SandboxState::kUnknown) << state;
    EXPECT_EQ(record->state_text, state);
  }
  EXPECT_EQ(ParseSandbox(R"({"id":"a"})")->state, SandboxState::kUnknown);
  EXPECT_EQ(ParseSandbox(R"({"id":"a","status":"Paused"})")->state, SandboxState::kPaused);
  EXPECT_EQ(ParseSandbox(R"({"id":"a","status":{"state":"RUNNING"}})")->state,
            SandboxState::kRunning);
}

TEST(ParseSandbox, OddTypesDoNotBreakIt) {
  const auto record = ParseSandbox(
      R"({"id":"a","metadata":{"n":1,"b":true,"gone":null,"s":"x"},"image":"osb","entrypoint":["a",1],
          "platform":{"os":"linux"},"expiresAt":1795972999,"status":{"state":7}})");
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_THAT(record->metadata, ElementsAre(Pair("b", "true"), Pair("n", "1"), Pair("s", "x")));
  EXPECT_EQ(record->image, "osb");
  EXPECT_EQ(record->platform, "linux");
  EXPECT_EQ(record->expires_at, absl::FromUnixSeconds(1795972999));
}

TEST(ParseSandbox, RefusesWhatCannotBeASandbox) {
  for (const char* text :
       {"", "null", "[]", "\"x\"", "{}", R"({"id":null})", R"({"id":7})", R"({"id":""})", "{",
        "<html>", R"({"id":"a","expiresAt":"soon"})", R"({"id":"a","expiresAt":{}})"}) {
    const auto record = ParseSandbox(text);
    EXPECT_FALSE(record.ok()) << text;
  }
}

TEST(ParseSandbox, DeepNestingAndTruncationAreHarmless) {
  const std::string deep =
      R"({"id":"a","x":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_FALSE(ParseSandbox(deep).ok());
  const std::string& body = Recorded("get").body;
  for (size_t n = 0; n < body.size(); ++n) EXPECT_FALSE(ParseSandbox(body.substr(0, n)).ok()) << n;
}

TEST(ParseSandbox, BadUtf8NeverReachesAString) {
  const auto record = ParseSandbox("{\"id\":\"a\",\"metadata\":{\"k\":\"\xff\"}}");
  if (record.ok()) {
    EXPECT_EQ(record->metadata.at("k"), "\xef\xbf\xbd");
  }
}

TEST(ParseSandboxPage, ReadsRecordedPages) {
  const auto page = ParseSandboxPage(Recorded("list").body);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->items.size(), 5u);
  EXPECT_EQ(page->pagination.page, 1);
  EXPECT_EQ(page->pagination.total_items, 5);
  EXPECT_FALSE(page->pagination.has_next);
  EXPECT_TRUE(ParseSandboxPage(Recorded("list-page-1").body)->pagination.has_next);
  const auto end = ParseSandboxPage(Recorded("list-page-past-end").body);
  EXPECT_THAT(end->items, IsEmpty());
  EXPECT_EQ(end->pagination.total_items, 2);
}

TEST(ParseSandboxPage, CountsWithoutTheFlag) {
  const auto next = [](const char* pagination) {
    return ParseSandboxPage(std::string(R"({"items":[],"pagination":)") + pagination + "}")
        ->pagination.has_next;
  };
  EXPECT_TRUE(next(R"({"page":1,"pageSize":20,"totalItems":21})"));
  EXPECT_FALSE(next(R"({"page":2,"pageSize":20,"totalItems":40})"));
  EXPECT_FALSE(next("null"));
  EXPECT_FALSE(next(R"({"page":2147483648000,"pageSize":"x"})"));
}

TEST(ParseSandboxPage, AnItemWithoutAnIdIsNotDroppedSilently) {
  EXPECT_FALSE(ParseSandboxPage(R"({"items":[{"id":"a"},{}]})").ok());
  EXPECT_FALSE(ParseSandboxPage(R"({"items":null})").ok());
  EXPECT_FALSE(ParseSandboxPage(R"([])").ok());
}

TEST(ParseRenewal, ReadsWhatWasStored) {
  EXPECT_EQ(*ParseRenewal(Recorded("renew-ok").body), ParseTimestamp("2026-11-29T17:46:39Z"));
  EXPECT_EQ(*ParseRenewal(Recorded("renew-offset-zone").body),
            ParseTimestamp("2026-11-29T17:19:59.091Z"));
  EXPECT_EQ(*ParseRenewal("{}"), std::nullopt);
  EXPECT_FALSE(ParseRenewal(R"({"expiresAt":"soon"})").ok());
  EXPECT_FALSE(ParseRenewal("").ok());
}

TEST(ParseEndpointAnswer, ReadsTextAndHeaders) {
  EXPECT_EQ(ParseEndpointAnswer(Recorded("endpoint-44772").body)->endpoint,
            "127.0.0.1:44064/proxy/44772");
  const auto egress = ParseEndpointAnswer(Recorded("endpoint-egress").body);
  EXPECT_EQ(egress->headers.Get("opensandbox-egress-auth"), "TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT");
  EXPECT_TRUE(ParseEndpointAnswer(R"({"endpoint":"h:1","headers":null})")->headers.empty());
}

TEST(ParseEndpointAnswer, RefusesHeadersThatWouldSmuggle) {
  EXPECT_FALSE(ParseEndpointAnswer(R"({"endpoint":"h:1","headers":{"A":"x\r\nB: y"}})").ok());
  EXPECT_FALSE(ParseEndpointAnswer(R"({"endpoint":"h:1","headers":{"A B":"x"}})").ok());
  EXPECT_FALSE(ParseEndpointAnswer(R"({"endpoint":""})").ok());
  EXPECT_FALSE(ParseEndpointAnswer(R"({})").ok());
}

TEST(ParseSnapshot, ReadsRecordedOnes) {
  const auto created = ParseSnapshot(Recorded("snapshot-create").body);
  EXPECT_EQ(created->state, SnapshotState::kCreating);
  EXPECT_EQ(created->sandbox_id, "72a40d7d-03b9-4b0d-aaf7-7ca73cb2d977");
  EXPECT_EQ(created->name, "golden-snap");
  EXPECT_EQ(ParseSnapshot(Recorded("snapshot-get-ready").body)->state, SnapshotState::kReady);
  const auto page = ParseSnapshotPage(Recorded("snapshot-list").body);
  ASSERT_EQ(page->items.size(), 1u);
  EXPECT_EQ(page->items[0].created_at, ParseTimestamp("2026-11-29T16:46:39.390272Z"));
}

TEST(ParseNetworkPolicy, ReadsARecordedOne) {
  const auto status = ParseNetworkPolicy(Recorded("networkpolicy-get").body);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->enforcement, "dns");
  EXPECT_EQ(status->policy.default_action, PolicyAction::kDeny);
  ASSERT_EQ(status->policy.rules.size(), 2u);
  EXPECT_EQ(status->policy.rules[0].action, PolicyAction::kAllow);
  EXPECT_EQ(status->policy.rules[0].target, "example.com");
  // The answer of a patch holds no policy.
  EXPECT_FALSE(ParseNetworkPolicy(Recorded("networkpolicy-patch").body).ok());
}

TEST(ParseDiagnostics, TakesTheContentOut) {
  EXPECT_THAT(*ParseDiagnostics(Recorded("diagnostics-logs-scope-container").body),
              HasSubstr("starting OpenSandbox Execd daemon"));
  EXPECT_FALSE(ParseDiagnostics(R"({"content":null})").ok());
}

TEST(ParseResourceSample, ReadsRecordedOnes) {
  // {"cpu_count":2,"cpu_used_pct":1.4925373134213549,"mem_total_mib":24105.5625,
  //  "mem_used_mib":648.18359375,"timestamp":1795970673642}
  const auto sample = ParseResourceSample(Recorded("metrics").body);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->cpu_count, 2);
  EXPECT_DOUBLE_EQ(sample->cpu_used_percent, 1.4925373134213549);
  EXPECT_EQ(sample->memory_total_bytes, 25276514304);  // 24105.5625 * 2^20
  EXPECT_EQ(sample->memory_used_bytes, 679669760);     // 648.18359375 * 2^20
  EXPECT_EQ(sample->at, absl::FromUnixMillis(1795970673642));
  for (const char* text : {"", "{}", "[]", R"({"cpu_count":2})"}) {
    EXPECT_FALSE(ParseResourceSample(text).ok()) << text;
  }
  const auto huge = ParseResourceSample(
      R"({"cpu_count":2,"mem_total_mib":1e300,"mem_used_mib":-5,"timestamp":-1})");
  EXPECT_EQ(huge->memory_total_bytes, 1'000'000'000'000'000'000);
  EXPECT_EQ(huge->memory_used_bytes, 0);
  EXPECT_EQ(huge->at, std::nullopt);
}

TEST(ParseVersion, ReadsIt) { EXPECT_EQ(*ParseVersion(Recorded("version").body), "1.1.1"); }

TEST(CreateSandboxJson, HasWhatTheServerDemands) {
  CreateSpec spec;
  spec.image = "osb-base:latest";
  spec.entrypoint = {"tail", "-f", "/dev/null"};
  spec.resource_limits = {{"cpu", "1"}, {"memory", "2Gi"}};
  spec.ttl = absl::Hours(1);
  // The body that the official SDK sends for this, without its empty parts.
  EXPECT_EQ(json::parse(CreateSandboxJson(spec)),
            json::parse(R"({"image":{"uri":"osb-base:latest"},"timeout":3600,
                            "resourceLimits":{"cpu":"1","memory":"2Gi"},
                            "entrypoint":["tail","-f","/dev/null"]})"));
}

TEST(CreateSandboxJson, EveryField) {
  CreateSpec spec;
  spec.image = "osb-base:latest";
  spec.image_user = "u";
  spec.image_password = "p";
  spec.entrypoint = {"sh"};
  spec.env = {{"A", "1"}, {"EMPTY", ""}, {"UNI", "ü"}};
  spec.metadata = {{"team", "core"}};
  spec.ttl = absl::Milliseconds(1799'001);
  spec.resource_limits = {{"cpu", "1"}};
  spec.resource_requests = {{"cpu", "100m"}};
  spec.platform = "linux/amd64";
  spec.network_policy =
      NetworkPolicy{.default_action = PolicyAction::kDeny,
                    .rules = {{.action = PolicyAction::kAllow, .target = "example.com"}}};
  spec.secure_access = true;
  spec.volumes = {
      {.name = "data",
       .mount_path = "/data",
       .claim = "golden-vol",
       .delete_with_sandbox = true,
       .storage_class = "fast",
       .size = "10Gi",
       .access_modes = {"ReadWriteOnce"}},
      {.name = "h", .mount_path = "/h", .read_only = true, .sub_path = "s", .host_path = "/srv"}};
  spec.extensions = {{"opensandbox.extensions.note", "x"}};
  EXPECT_EQ(json::parse(CreateSandboxJson(spec)), json::parse(R"({
      "image":{"uri":"osb-base:latest","auth":{"username":"u","password":"p"}},
      "entrypoint":["sh"],"resourceLimits":{"cpu":"1"},"timeout":1800,
      "env":{"A":"1","EMPTY":"","UNI":"ü"},"metadata":{"team":"core"},
      "resourceRequests":{"cpu":"100m"},"platform":{"os":"linux","arch":"amd64"},
      "networkPolicy":{"defaultAction":"deny","egress":[{"action":"allow","target":"example.com"}]},
      "secureAccess":true,
      "volumes":[{"name":"data","mountPath":"/data","readOnly":false,
                  "pvc":{"claimName":"golden-vol","createIfNotExists":true,
                         "deleteOnSandboxTermination":true,"storageClass":"fast","storage":"10Gi",
                         "accessModes":["ReadWriteOnce"]}},
                 {"name":"h","mountPath":"/h","readOnly":true,"subPath":"s","host":{"path":"/srv"}}],
      "extensions":{"opensandbox.extensions.note":"x"}})"));
}

TEST(CreateSandboxJson, ExactlyOneSource) {
  CreateSpec snapshot;
  snapshot.snapshot_id = "s1";
  snapshot.entrypoint = {"tail"};
  const json from_snapshot = json::parse(CreateSandboxJson(snapshot));
  EXPECT_EQ(from_snapshot["snapshotId"], "s1");
  EXPECT_FALSE(from_snapshot.contains("image"));
  EXPECT_TRUE(from_snapshot.contains("resourceLimits"));
  EXPECT_FALSE(from_snapshot.contains("timeout"));  // never expires

  CreateSpec from_template;
  from_template.template_id = "t1";
  from_template.ttl = absl::Seconds(60);
  EXPECT_EQ(json::parse(CreateSandboxJson(from_template)),
            json::parse(R"({"templateId":"t1","timeout":60})"));
}

TEST(CreateSandboxJson, AnEmptyPolicyDeniesInSoManyWords) {
  CreateSpec spec;
  spec.image = "x";
  spec.network_policy = NetworkPolicy{};
  EXPECT_EQ(json::parse(CreateSandboxJson(spec))["networkPolicy"],
            json::parse(R"({"defaultAction":"deny","egress":[]})"));
}

TEST(SmallRequests, AreWhatTheRoutesWant) {
  EXPECT_EQ(RenewJson(*ParseTimestamp("2026-11-29T19:46:39.5+02:00")),
            R"({"expiresAt":"2026-11-29T17:46:39.5Z"})");
  EXPECT_EQ(json::parse(MetadataPatchJson({{"team", "infra"}}, {"old"})),
            json::parse(R"({"team":"infra","old":null})"));
  EXPECT_EQ(CreateSnapshotJson("n"), R"({"name":"n"})");
  EXPECT_EQ(CreateSnapshotJson(""), "{}");
  EXPECT_EQ(json::parse(NetworkRulesJson({{PolicyAction::kAllow, "a.example.net"}})),
            json::parse(R"([{"action":"allow","target":"a.example.net"}])"));
  EXPECT_EQ(TargetsJson({"a", "*.b"}), R"(["a","*.b"])");
}

TEST(MetadataFilter, CannotBeSplitByValues) {
  // As recorded: metadata=team%3Dcore%26example.org%2Frun%3Dr-2, decoded once.
  EXPECT_EQ(MetadataFilter({{"example.org/run", "r-2"}, {"team", "core"}}),
            "example.org/run=r-2&team=core");
  EXPECT_EQ(MetadataFilter({{"k", "a&b=c%d"}}), "k=a%26b%3Dc%25d");
  EXPECT_EQ(MetadataFilter({{"empty", ""}}), "empty=");
  EXPECT_EQ(MetadataFilter({}), "");
}

}  // namespace
}  // namespace bridge
