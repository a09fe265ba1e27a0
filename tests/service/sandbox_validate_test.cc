// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/sandbox_validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/fakes/status_matchers.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;
using Change = std::function<void(v1::SandboxSpec&)>;

v1::SandboxSpec GoodSpec() {
  v1::SandboxSpec spec;
  spec.set_image("python:3.12-slim");
  return spec;
}

absl::Status Check(const Change& change) {
  v1::CreateSandboxRequest request;
  *request.mutable_spec() = GoodSpec();
  change(*request.mutable_spec());
  return CheckCreateSandbox(request);
}

struct BadSpec {
  const char* field;
  Change change;
};

TEST(CheckCreateSandbox, GoodOnes) {
  const Change kGood[] = {
      [](auto&) {},
      [](auto& s) { s.set_image("127.0.0.1:5000/team/x@sha256:0123456789abcdef"); },
      [](auto& s) { s.set_snapshot_id("5c337fc1-3cec-423e-b5ae-d736f33648d2"); },
      [](auto& s) { s.set_template_id("tpl-1"); },
      [](auto& s) {
        s.mutable_image_auth()->set_username("u");
        s.mutable_image_auth()->set_password("p w");
      },
      [](auto& s) {
        s.add_entrypoint("sh");
        s.add_entrypoint("");
        s.add_entrypoint("echo 'x'\n");
      },
      [](auto& s) {
        s.add_env()->set_name("A");
        s.mutable_env(0)->set_value(std::string(100'000, 'x'));
      },
      [](auto& s) { (*s.mutable_metadata())["example.com/team"] = "a.b_c-1"; },
      [](auto& s) { (*s.mutable_metadata())["empty"] = ""; },
      [](auto& s) { s.mutable_ttl()->set_nanos(1); },
      [](auto& s) { s.mutable_ttl()->set_seconds(86400); },
      [](auto& s) { s.set_never(true); },
      [](auto& s) {
        (*s.mutable_resource_limits())["cpu"] = "500m";
        (*s.mutable_resource_limits())["memory"] = "512Mi";
        (*s.mutable_resource_limits())["gpu"] = "all";
        (*s.mutable_resource_requests())["cpu"] = "0.25";
        (*s.mutable_resource_requests())["memory"] = "268435456";
      },
      [](auto& s) { s.set_platform("linux/arm64"); },
      [](auto& s) { s.mutable_network_policy(); },
      [](auto& s) {
        auto* rule = s.mutable_network_policy()->add_rules();
        rule->set_action(v1::NetworkPolicy::ACTION_ALLOW);
        rule->set_target("*.example.com");
      },
      [](auto& s) { (*s.mutable_extensions())["access.renew.extend.seconds"] = "600"; },
  };
  for (const Change& change : kGood) EXPECT_THAT(Check(change), IsOk());
}

TEST(CheckCreateSandbox, SourcesAndCredentials) {
  const BadSpec kBad[] = {
      {"spec.source", [](auto& s) { s.clear_source(); }},
      {"spec.image", [](auto& s) { s.set_image(""); }},
      {"spec.image", [](auto& s) { s.set_image("a b"); }},
      {"spec.image", [](auto& s) { s.set_image("a\nb"); }},
      {"spec.image", [](auto& s) { s.set_image("--privileged"); }},
      {"spec.image", [](auto& s) { s.set_image(std::string("a\0", 2)); }},
      {"spec.image", [](auto& s) { s.set_image(std::string(1025, 'x')); }},
      {"spec.snapshot_id", [](auto& s) { s.set_snapshot_id(""); }},
      {"spec.snapshot_id", [](auto& s) { s.set_snapshot_id("../x"); }},
      {"spec.template_id", [](auto& s) { s.set_template_id("a/b"); }},
      {"spec.image_auth.username", [](auto& s) { s.mutable_image_auth()->set_password("p"); }},
      {"spec.image_auth.password", [](auto& s) { s.mutable_image_auth()->set_username("u"); }},
      {"spec.image_auth.password",
       [](auto& s) {
         s.mutable_image_auth()->set_username("u");
         s.mutable_image_auth()->set_password("p\nq");
       }},
      {"spec.image_auth",
       [](auto& s) {
         s.set_snapshot_id("s");
         s.mutable_image_auth()->set_username("u");
       }},
      {"spec.entrypoint",
       [](auto& s) {
         s.set_template_id("t");
         s.add_entrypoint("sh");
       }},
      {"spec.env",
       [](auto& s) {
         s.set_template_id("t");
         s.add_env()->set_name("A");
       }},
      {"spec.resource_limits",
       [](auto& s) {
         s.set_template_id("t");
         (*s.mutable_resource_limits())["cpu"] = "1";
       }},
      {"spec.never",
       [](auto& s) {
         s.set_template_id("t");
         s.set_never(true);
       }},
  };
  for (const BadSpec& bad : kBad) EXPECT_THAT(Check(bad.change), RejectsField(bad.field));
}

TEST(CheckCreateSandbox, ProgramsAndEnvironment) {
  const BadSpec kBad[] = {
      {"spec.entrypoint[0]", [](auto& s) { s.add_entrypoint(""); }},
      {"spec.entrypoint[1]",
       [](auto& s) {
         s.add_entrypoint("sh");
         s.add_entrypoint(std::string("a\0b", 3));
       }},
      {"spec.entrypoint[0]", [](auto& s) { s.add_entrypoint(std::string(131'072, 'x')); }},
      {"spec.entrypoint",
       [](auto& s) {
         for (int i = 0; i < 1001; ++i) s.add_entrypoint("x");
       }},
      {"spec.env[0].name", [](auto& s) { s.add_env()->set_name("A;touch /tmp/pwn"); }},
      {"spec.env[0].value",
       [](auto& s) {
         s.add_env()->set_name("A");
         s.mutable_env(0)->set_value(std::string("\0", 1));
       }},
      // 202, Running, and then dead with "argument list too long".
      {"spec.env[0].value",
       [](auto& s) {
         s.add_env()->set_name("A");
         s.mutable_env(0)->set_value(std::string(200'000, 'x'));
       }},
      {"spec.env",
       [](auto& s) {
         for (int i = 0; i < 1001; ++i) s.add_env()->set_name("A" + std::to_string(i));
       }},
  };
  for (const BadSpec& bad : kBad) EXPECT_THAT(Check(bad.change), RejectsField(bad.field));
}

TEST(CheckCreateSandbox, MetadataNamesItsKey) {
  const struct {
    const char* key;
    std::string value;
    const char* field;
  } kBad[] = {
      {"a b", "x", "spec.metadata[\"a b\"]"},
      {"", "x", "spec.metadata[\"\"]"},
      {"-a", "x", "spec.metadata[\"-a\"]"},
      {"opensandbox.io/x", "x", "spec.metadata[\"opensandbox.io/x\"]"},
      {"sandbox-bridge/tenant", "x", "spec.metadata[\"sandbox-bridge/tenant\"]"},
      {"a", "/Users/x", "spec.metadata[\"a\"]"},
      {"a", "x&y", "spec.metadata[\"a\"]"},
      {"a", "x=y", "spec.metadata[\"a\"]"},
      {"a", std::string(64, 'x'), "spec.metadata[\"a\"]"},
      {"a", "\xc3\xbc", "spec.metadata[\"a\"]"},
  };
  for (const auto& bad : kBad) {
    EXPECT_THAT(Check([&bad](auto& s) { (*s.mutable_metadata())[bad.key] = bad.value; }),
                RejectsField(bad.field));
  }
  EXPECT_THAT(Check([](auto& s) {
                for (int i = 0; i < 65; ++i) (*s.mutable_metadata())["k" + std::to_string(i)] = "";
              }),
              RejectsField("spec.metadata"));
}

TEST(CheckCreateSandbox, TheFirstOfTwoMistakesIsAlwaysTheSame) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(Check([](auto& s) {
                  for (const char* key : {"z z", "m m", "a a", "q q"}) {
                    (*s.mutable_metadata())[key] = "x";
                  }
                }),
                RejectsField("spec.metadata[\"a a\"]"));
  }
}

TEST(CheckCreateSandbox, Lifetimes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const int64_t seconds : {int64_t{0}, int64_t{-5}, int64_t{1} << 53, kMax, -kMax}) {
    EXPECT_THAT(Check([=](auto& s) { s.mutable_ttl()->set_seconds(seconds); }),
                RejectsField("spec.ttl"))
        << seconds;
  }
  EXPECT_THAT(Check([](auto& s) { s.set_never(false); }), RejectsField("spec.never"));
}

TEST(CheckCreateSandbox, Resources) {
  const struct {
    const char* key;
    const char* value;
  } kBad[] = {{"cpu", "abc"},
              {"cpu", "0"},
              {"cpu", ""},
              {"cpu", "-1"},
              {"cpu", "1.5m"},
              {"cpu", "0m"},
              {"cpu", "."},
              {"cpu", "1."},
              {"cpu", "1e3"},
              {"memory", "12xyz"},
              {"memory", "1.5Gi"},
              {"memory", "0"},
              {"memory", ""},
              {"memory", "Gi"},
              {"memory", "-1Gi"},
              {"memory", "1 Gi"},
              {"memory", "9999999999999999999"},
              {"gpu", "0"},
              {"gpu", "some"},
              {"gpu", "1.5"},
              {"disk", "1Gi"},
              {"CPU", "1"},
              {"", "1"}};
  for (const auto& bad : kBad) {
    const std::string field = std::string("[\"") + bad.key + "\"]";
    EXPECT_THAT(Check([&](auto& s) { (*s.mutable_resource_limits())[bad.key] = bad.value; }),
                RejectsField("spec.resource_limits" + field))
        << bad.value;
    EXPECT_THAT(Check([&](auto& s) { (*s.mutable_resource_requests())[bad.key] = bad.value; }),
                RejectsField("spec.resource_requests" + field))
        << bad.value;
  }
}

TEST(CheckCreateSandbox, PoliciesPlatformsExtensions) {
  const BadSpec kBad[] = {
      {"spec.platform", [](auto& s) { s.set_platform("plan9/amd64"); }},
      {"spec.platform", [](auto& s) { s.set_platform("linux"); }},
      {"spec.network_policy.default_action",
       [](auto& s) {
         s.mutable_network_policy()->set_default_action(static_cast<v1::NetworkPolicy::Action>(9));
       }},
      {"spec.extensions[\"\"]", [](auto& s) { (*s.mutable_extensions())[""] = "x"; }},
      {"spec.extensions[\"a\\n\"]", [](auto& s) { (*s.mutable_extensions())["a\n"] = "x"; }},
      {"spec.extensions[\"a\"]",
       [](auto& s) { (*s.mutable_extensions())["a"] = std::string(4097, 'x'); }},
  };
  for (const BadSpec& bad : kBad) EXPECT_THAT(Check(bad.change), RejectsField(bad.field));
}

TEST(CheckCreateSandbox, TheRequestAroundTheSpec) {
  v1::CreateSandboxRequest request;
  EXPECT_THAT(CheckCreateSandbox(request), RejectsField("spec"));
  *request.mutable_spec() = GoodSpec();
  for (const std::string& id : {std::string("a b"), std::string("a/b"), std::string("\n"),
                                std::string(129, 'a'), std::string("\xc3\xbc")}) {
    request.set_request_id(id);
    EXPECT_THAT(CheckCreateSandbox(request), RejectsField("request_id")) << id;
  }
  request.set_request_id(std::string(128, '-'));
  EXPECT_THAT(CheckCreateSandbox(request), IsOk());
  for (const int64_t seconds : {int64_t{0}, int64_t{-1}, int64_t{3601}}) {
    request.mutable_ready_timeout()->set_seconds(seconds);
    EXPECT_THAT(CheckCreateSandbox(request), RejectsField("ready_timeout")) << seconds;
  }
  request.mutable_ready_timeout()->set_seconds(3600);
  EXPECT_THAT(CheckCreateSandbox(request), IsOk());
}

TEST(CheckListSandboxes, FiltersAndPages) {
  const struct {
    const char* field;
    std::function<void(v1::ListSandboxesRequest&)> change;
  } kBad[] = {
      {"metadata[\"a b\"]", [](auto& r) { (*r.mutable_metadata())["a b"] = "x"; }},
      {"metadata[\"sandbox-bridge/tenant\"]",
       [](auto& r) { (*r.mutable_metadata())["sandbox-bridge/tenant"] = "blue"; }},
      {"metadata[\"k\"]", [](auto& r) { (*r.mutable_metadata())["k"] = "a&b"; }},
      {"states[0]", [](auto& r) { r.add_states(v1::SANDBOX_STATE_UNSPECIFIED); }},
      {"states[1]",
       [](auto& r) {
         r.add_states(v1::SANDBOX_STATE_RUNNING);
         r.add_states(static_cast<v1::SandboxState>(77));
       }},
      {"page_size", [](auto& r) { r.set_page_size(-1); }},
      {"page_size", [](auto& r) { r.set_page_size(201); }},
      {"request_id", [](auto& r) { r.set_request_id("a b"); }},
      {"skip", [](auto& r) { r.set_skip(-1); }},
      {"skip",
       [](auto& r) {
         r.set_skip(1);
         r.set_page_token("x");
       }},
  };
  for (const auto& bad : kBad) {
    v1::ListSandboxesRequest request;
    bad.change(request);
    EXPECT_THAT(CheckListSandboxes(request), RejectsField(bad.field));
  }
  EXPECT_THAT(CheckListSandboxes({}), IsOk());
}

TEST(CheckSetExpiration, OneOfTheTwo) {
  v1::SetExpirationRequest request;
  EXPECT_THAT(CheckSetExpiration(request), RejectsField("expiration"));
  request.set_never(false);
  EXPECT_THAT(CheckSetExpiration(request), RejectsField("never"));
  request.set_never(true);
  EXPECT_THAT(CheckSetExpiration(request), IsOk());
  for (const int64_t seconds : {int64_t{0}, int64_t{-5}, int64_t{1} << 53}) {
    request.mutable_ttl()->set_seconds(seconds);
    EXPECT_THAT(CheckSetExpiration(request), RejectsField("ttl")) << seconds;
  }
  request.mutable_ttl()->set_seconds(1);
  EXPECT_THAT(CheckSetExpiration(request), IsOk());
}

TEST(CheckUpdateMetadata, KeysAndValues) {
  v1::UpdateMetadataRequest request;
  EXPECT_THAT(CheckUpdateMetadata(request), IsOk());
  (*request.mutable_set())["team"] = "core";
  request.add_delete_("old");
  EXPECT_THAT(CheckUpdateMetadata(request), IsOk());
  request.add_delete_("team");
  EXPECT_THAT(CheckUpdateMetadata(request), RejectsField("delete[1]"));
  request.set_delete_(1, "sandbox-bridge/tenant");
  EXPECT_THAT(CheckUpdateMetadata(request), RejectsField("delete[1]"));
  request.clear_delete_();
  (*request.mutable_set())["opensandbox.io/id"] = "x";
  EXPECT_THAT(CheckUpdateMetadata(request), RejectsField("set[\"opensandbox.io/id\"]"));
  request.clear_set();
  for (int i = 0; i < 65; ++i) request.add_delete_("k");
  EXPECT_THAT(CheckUpdateMetadata(request), RejectsField("delete"));
}

TEST(WaitOf, DefaultsAndBounds) {
  EXPECT_EQ(*WaitOf(v1::CreateSandboxRequest()), absl::Seconds(60));
  EXPECT_EQ(*WaitOf(v1::DeleteSandboxRequest()), absl::Seconds(20));
  EXPECT_EQ(*WaitOf(v1::PauseSandboxRequest()), absl::Seconds(30));
  EXPECT_EQ(*WaitOf(v1::ResumeSandboxRequest()), absl::Seconds(60));
  EXPECT_EQ(*WaitOf(v1::CreateSnapshotRequest()), absl::Seconds(60));
  v1::DeleteSandboxRequest request;
  request.mutable_wait_for_proof();
  EXPECT_EQ(*WaitOf(request), absl::ZeroDuration());  // one look
  request.mutable_wait_for_proof()->set_seconds(-1);
  EXPECT_THAT(WaitOf(request), RejectsField("wait_for_proof"));
  request.mutable_wait_for_proof()->set_seconds(3601);
  EXPECT_THAT(WaitOf(request), RejectsField("wait_for_proof"));
  v1::PauseSandboxRequest pause;
  pause.mutable_wait()->set_nanos(2'000'000'000);
  EXPECT_THAT(WaitOf(pause), RejectsField("wait"));
}

}  // namespace
}  // namespace bridge
