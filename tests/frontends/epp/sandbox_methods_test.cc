// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/sandbox_methods.h"

#include <mutex>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What ProviderSandbox.create() sends when its caller gives a template only.
Json CreateParams(Json changes = Json::object()) {
  Json params = {{"template", "base"},     {"timeout", 300}, {"metadata", Json::object()},
                 {"envs", Json::object()}, {"cpu", nullptr}, {"memory", nullptr},
                 {"disk", nullptr},        {"gpu", nullptr}, {"request_timeout", nullptr}};
  params.update(changes);
  return params;
}

absl::StatusOr<v1::CreateSandboxRequest> Made(Json changes, CreateSettings settings = {}) {
  const Json params = CreateParams(std::move(changes));
  return MakeCreateRequest(Params(params), settings);
}

TEST(MakeCreateRequest, HasTheDefaults) {
  const auto request = Made(Json::object());
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::SandboxSpec& spec = request->spec();
  EXPECT_EQ(spec.image(), "python:3.12-slim");
  EXPECT_EQ(spec.entrypoint_size(), 0);
  EXPECT_EQ(spec.ttl().seconds(), 300);
  EXPECT_EQ(request->ready_timeout().seconds(), 60);
  EXPECT_FALSE(spec.secure_access());
  EXPECT_FALSE(spec.has_network_policy());
  EXPECT_FALSE(spec.has_image_auth());
  EXPECT_EQ(spec.resource_limits_size(), 0);
}

TEST(MakeCreateRequest, PassesEverythingOn) {
  const auto request = Made({{"template", "code"},
                             {"timeout", 900},
                             {"metadata", {{"team", "a"}}},
                             {"envs", {{"K", "v"}}},
                             {"cpu", 2},
                             {"memory", 512},
                             {"gpu", "1"},
                             {"secure", true},
                             {"options",
                              {{"network_policy", {{"defaultAction", "deny"}}},
                               {"platform", "linux/arm64"},
                               {"registry_username", "u"},
                               {"registry_password", "p"},
                               {"base_url", "http://other"}}}});
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::SandboxSpec& spec = request->spec();
  EXPECT_EQ(spec.image(), "opensandbox/code-interpreter:v1.1.0");
  EXPECT_THAT(spec.entrypoint(), ElementsAre("/opt/opensandbox/code-interpreter.sh"));
  EXPECT_EQ(spec.ttl().seconds(), 900);
  EXPECT_EQ(spec.metadata().at("team"), "a");
  EXPECT_EQ(spec.env(0).name(), "K");
  EXPECT_EQ(spec.env(0).value(), "v");
  EXPECT_EQ(spec.resource_limits().at("cpu"), "2");
  EXPECT_EQ(spec.resource_limits().at("memory"), "512Mi");
  EXPECT_EQ(spec.resource_limits().at("gpu"), "1");
  EXPECT_TRUE(spec.secure_access());
  EXPECT_TRUE(spec.has_network_policy());
  EXPECT_EQ(spec.platform(), "linux/arm64");
  EXPECT_EQ(spec.image_auth().username(), "u");
  EXPECT_EQ(spec.image_auth().password(), "p");
}

TEST(MakeCreateRequest, LetsTheCallersSecureWin) {
  CreateSettings secure;
  secure.secure_access = true;
  EXPECT_TRUE(Made(Json::object(), secure)->spec().secure_access());
  EXPECT_FALSE(Made({{"secure", false}}, secure)->spec().secure_access());
  EXPECT_FALSE(Made({{"options", {{"secure_access", false}}}}, secure)->spec().secure_access());
  EXPECT_TRUE(
      Made({{"secure", true}, {"options", {{"secure_access", false}}}})->spec().secure_access());
}

TEST(MakeCreateRequest, StaysBelowTheHostsOwnTimeout) {
  const auto ready = [](Json request_timeout) {
    const auto request = Made({{"request_timeout", std::move(request_timeout)}});
    EXPECT_TRUE(request.ok()) << request.status();
    return request->ready_timeout().seconds() + request->ready_timeout().nanos() / 1e9;
  };
  EXPECT_EQ(ready(nullptr), 60);
  EXPECT_EQ(ready(30), 27);
  EXPECT_EQ(ready(600), 60);
  EXPECT_GT(ready(1), 0);
  EXPECT_LT(ready(1), 1);
  // NaN and Infinity, as the scan spells them: no limit.
  EXPECT_EQ(ready(std::string("\0NaN", 4)), 60);
  EXPECT_EQ(ready(std::string("\0Infinity", 9)), 60);
}

TEST(MakeCreateRequest, RefusesWhatItCannotDo) {
  const auto code = [](Json changes) { return ToEppError(Made(std::move(changes)).status()).code; };
  EXPECT_EQ(code({{"disk", 10}}), kUnsupported);
  EXPECT_EQ(code({{"timeout", 0}}), kConfigError);
  EXPECT_EQ(code({{"timeout", "x"}}), kConfigError);
  EXPECT_EQ(code({{"cpu", 0}}), kConfigError);
  EXPECT_EQ(code({{"memory", -1}}), kConfigError);
  EXPECT_EQ(code({{"template", 5}}), kInvalidParams);
  EXPECT_EQ(code({{"options", Json::array()}}), kInvalidParams);
  EXPECT_EQ(code({{"options", {{"ready_timeout", "x"}}}}), kConfigError);
  EXPECT_EQ(code({{"envs", {{"A", std::string("\0", 1)}}}}), kConfigError);
}

TEST(LifetimeOf, RefusesWhatIsNoTimeFromNow) {
  const auto seconds = [](Json value) -> double {
    const Json object = {{"timeout", std::move(value)}};
    const auto lifetime = LifetimeOf(Params(object), "timeout");
    return lifetime.ok() ? absl::ToDoubleSeconds(*lifetime) : -1;
  };
  EXPECT_EQ(seconds(60), 60);
  EXPECT_EQ(seconds(1.5), 2);
  EXPECT_EQ(seconds("90"), 90);
  EXPECT_EQ(seconds(0.0001), 1);
  for (const Json& bad : {Json(0), Json(-5), Json(nullptr), Json("x"), Json(1e30), Json(true),
                          Json(std::string("\0Infinity", 9)), Json(std::string("\0NaN", 4))}) {
    EXPECT_EQ(seconds(bad), -1) << bad;
  }
}

v1::Sandbox Sandbox(const std::string& id, v1::SandboxState state = v1::SANDBOX_STATE_RUNNING) {
  v1::Sandbox sandbox;
  sandbox.set_sandbox_id(id);
  sandbox.set_state(state);
  return sandbox;
}

class SandboxMethods : public testing::Test {
 protected:
  SandboxMethods() : host_(bridge_.link_factory()) { host_.Initialize(); }
  FakeBridge bridge_;
  PluginHost host_;
};

TEST_F(SandboxMethods, CreateAnswersTheRecordItself) {
  bridge_.create = [](const v1::CreateSandboxRequest& request, v1::CreateSandboxResponse* response,
                      auto*) {
    *response->mutable_sandbox() = Sandbox("sb-1");
    response->set_ttl_clamped(request.spec().ttl().seconds() < 60);
    return absl::OkStatus();
  };
  const Json record = host_.Result("sandbox.create", CreateParams({{"timeout", 5}}));
  EXPECT_EQ(record["sandbox_id"], "sb-1");
  EXPECT_EQ(record["status"], "running");
  EXPECT_EQ(record["template"], "base");
  EXPECT_EQ(record["timeout_raised"], true);
}

TEST_F(SandboxMethods, CreateReportsFailuresAsTheHostWants) {
  bridge_.create = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_READY_TIMEOUT, "not ready",
                     {.metadata = {{"leaked_sandbox_id", "sb-9"}}});
  };
  const Json error = host_.Error("sandbox.create", CreateParams());
  EXPECT_EQ(error["code"], kTimeout);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("sb-9"));
}

TEST_F(SandboxMethods, ConnectWakesAPausedSandbox) {
  bridge_.get = [](const auto& request, v1::Sandbox* sandbox, auto*) {
    *sandbox = Sandbox(request.sandbox_id(), v1::SANDBOX_STATE_PAUSED);
    return absl::OkStatus();
  };
  bridge_.resume = [](const auto& request, v1::ResumeSandboxResponse* response, auto*) {
    *response->mutable_sandbox() = Sandbox(request.sandbox_id());
    response->set_settled(true);
    return absl::OkStatus();
  };
  EXPECT_EQ(host_.Result("sandbox.connect", {{"sandbox_id", "p"}})["status"], "running");
  // A look changes nothing.
  EXPECT_EQ(host_.Result("sandbox.get", {{"sandbox_id", "p"}})["status"], "paused");
}

// A handle was given out, and its first command said that the sandbox had ended.
TEST_F(SandboxMethods, ConnectRefusesWhatDoesNotRun) {
  v1::SandboxState state = v1::SANDBOX_STATE_UNSPECIFIED;
  bridge_.get = [&](const auto& request, v1::Sandbox* sandbox, auto*) {
    *sandbox = Sandbox(request.sandbox_id(), state);
    sandbox->set_upstream_state("Text" + std::to_string(state));
    return absl::OkStatus();
  };
  for (const auto refused :
       {v1::SANDBOX_STATE_PENDING, v1::SANDBOX_STATE_STOPPING, v1::SANDBOX_STATE_TERMINATED,
        v1::SANDBOX_STATE_FAILED, v1::SANDBOX_STATE_UNKNOWN}) {
    state = refused;
    const Json error = host_.Error("sandbox.connect", {{"sandbox_id", "p"}});
    const bool over = state == v1::SANDBOX_STATE_TERMINATED;
    EXPECT_EQ(error["code"], over ? kNotFound : kProviderError) << error;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("Text" + std::to_string(state)));
    EXPECT_TRUE(host_.Result("sandbox.get", {{"sandbox_id", "p"}}).contains("status"));
  }
}

TEST_F(SandboxMethods, AnUnknownSandboxIsE2009Everywhere) {
  const auto unknown = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND, "none");
  };
  bridge_.get = unknown;
  bridge_.set_expiration = unknown;
  bridge_.pause = unknown;
  bridge_.resume = unknown;
  bridge_.endpoint = unknown;
  for (const char* method : {"sandbox.connect", "sandbox.get", "sandbox.set_timeout",
                             "sandbox.pause", "sandbox.resume", "ports.url"}) {
    const Json error =
        host_.Error(method, {{"sandbox_id", "does-not-exist-0000"}, {"timeout", 60}, {"port", 80}});
    EXPECT_EQ(error["code"], kNotFound) << method;
    EXPECT_EQ(error["data"]["sdk_code"], "E2009") << method;
  }
}

TEST_F(SandboxMethods, AnIdOfNoPossibleFormIsUnknownToo) {
  bridge_.get = [](const auto&, auto*, auto*) {
    return InvalidField("sandbox_id", "holds a slash");
  };
  EXPECT_EQ(host_.Error("sandbox.get", {{"sandbox_id", "../x"}})["data"]["sdk_code"], "E2009");
  // Nobody means an empty one.
  EXPECT_EQ(host_.Error("sandbox.get", {{"sandbox_id", ""}})["code"], kConfigError);
  EXPECT_EQ(host_.Error("sandbox.get", Json::object())["code"], kInvalidParams);
}

// gRPC's server ends what meets its shutdown with a bare CANCELLED: the host cancelled nothing.
TEST_F(SandboxMethods, ACallThatTheBridgeEndsWithoutAWordIsTriedAgainElsewhere) {
  bridge_.get = [](const auto&, auto*, grpc::ServerContext* context) {
    context->TryCancel();
    return absl::OkStatus();
  };
  const Json error = host_.Error("sandbox.get", {{"sandbox_id", "x"}});
  EXPECT_EQ(error["data"]["sdk_code"], "E5001") << error;
  EXPECT_NE(error["message"].get<std::string>().find("shutting down"), std::string::npos) << error;
}

TEST_F(SandboxMethods, KillIsIdempotent) {
  bridge_.remove = [](const auto&, v1::DeleteSandboxResponse* response, auto*) {
    response->set_verdict(v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE);
    return absl::OkStatus();
  };
  EXPECT_EQ(host_.Result("sandbox.kill", {{"sandbox_id", "x"}})["verdict"], "already_gone");
  bridge_.remove = [](const auto&, auto*, auto*) { return InvalidField("sandbox_id", "odd"); };
  EXPECT_EQ(host_.Result("sandbox.kill", {{"sandbox_id", "a/b"}})["verdict"], "already_gone");
  bridge_.remove = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, "down");
  };
  EXPECT_EQ(host_.Error("sandbox.kill", {{"sandbox_id", "x"}})["data"]["sdk_code"], "E5001");
}

TEST_F(SandboxMethods, SetTimeoutTellsWhatTheServerStored) {
  bridge_.set_expiration = [](const v1::SetExpirationRequest& request,
                              v1::SetExpirationResponse* response, auto*) {
    response->mutable_expires_at()->set_seconds(100 + request.ttl().seconds());
    response->set_clamped(request.ttl().seconds() < 60);
    return absl::OkStatus();
  };
  const Json stored = host_.Result("sandbox.set_timeout", {{"sandbox_id", "s"}, {"timeout", 1.5}});
  EXPECT_EQ(stored["expires_at"], "1970-01-01T00:01:42.000Z");
  EXPECT_EQ(stored["timeout_raised"], true);
  for (const char* bad :
       {"0", "-5", "null", "\"x\"", "1000000000000000000000000000000", "Infinity", "NaN", "true"}) {
    const std::string id =
        std::string("\"") + "t" + std::to_string(std::hash<std::string>()(bad)) + "\"";
    host_.SendLine(R"({"jsonrpc":"2.0","id":)" + id +
                   R"(,"method":"sandbox.set_timeout","params":{"sandbox_id":"s","timeout":)" +
                   bad + "}}");
    size_t position = 0;
    const Json answer = host_.NextMessage(
        &position, [&](const Json& m) { return m.contains("id") && m["id"] == Json::parse(id); });
    EXPECT_EQ(answer["error"]["code"], kConfigError) << bad << " " << answer;
  }
}

TEST_F(SandboxMethods, PauseThatDoesNotSettleIsATimeout) {
  bridge_.pause = [](const auto&, v1::PauseSandboxResponse* response, auto*) {
    response->set_settled(false);
    return absl::OkStatus();
  };
  bridge_.resume = [](const auto&, v1::ResumeSandboxResponse* response, auto*) {
    response->set_settled(false);
    return absl::OkStatus();
  };
  EXPECT_EQ(host_.Error("sandbox.pause", {{"sandbox_id", "s"}})["code"], kTimeout);
  EXPECT_EQ(host_.Error("sandbox.resume", {{"sandbox_id", "s"}})["code"], kTimeout);
}

TEST_F(SandboxMethods, ListNeverGivesACursorWithoutSandboxes) {
  std::vector<std::string> tokens;
  std::mutex mu;
  bridge_.list = [&](const v1::ListSandboxesRequest& request, v1::ListSandboxesResponse* response,
                     auto*) {
    std::lock_guard lock(mu);
    tokens.push_back(request.page_token());
    if (tokens.size() < 3) {  // two empty pages first
      response->set_next_page_token("p" + std::to_string(tokens.size()));
    } else {
      *response->add_sandboxes() = Sandbox("a");
      response->set_next_page_token("more");
    }
    return absl::OkStatus();
  };
  const Json page = host_.Result("sandbox.list", {{"limit", 100}});
  EXPECT_EQ(page["sandboxes"].size(), 1u);
  EXPECT_EQ(page["next"], "more");
  EXPECT_THAT(tokens, ElementsAre("", "p1", "p2"));
}

TEST_F(SandboxMethods, ListTranslatesFilterLimitAndCursor) {
  v1::ListSandboxesRequest seen;
  bridge_.list = [&](const v1::ListSandboxesRequest& request, v1::ListSandboxesResponse*, auto*) {
    seen = request;
    return absl::OkStatus();
  };
  const Json page =
      host_.Result("sandbox.list", {{"limit", 1'000'000}, {"status", "creating"}, {"cursor", 7}});
  EXPECT_EQ(page["sandboxes"], Json::array());
  EXPECT_TRUE(page["next"].is_null());
  EXPECT_EQ(seen.page_size(), 100);
  EXPECT_EQ(seen.page_token(), "7");
  EXPECT_THAT(seen.states(), ElementsAre(v1::SANDBOX_STATE_PENDING, v1::SANDBOX_STATE_RESUMING));
  host_.Result("sandbox.list", {{"limit", 3}});
  EXPECT_EQ(seen.page_size(), 3);
  EXPECT_EQ(host_.Error("sandbox.list", {{"status", "alive"}})["code"], kConfigError);
}

TEST_F(SandboxMethods, PortUrlIsADescriptorToo) {
  bridge_.endpoint = [](const v1::GetEndpointRequest& request, v1::Endpoint* endpoint, auto*) {
    EXPECT_EQ(request.route(), v1::ENDPOINT_ROUTE_UNSPECIFIED);
    endpoint->set_url("http://127.0.0.1:40000");
    auto* header = endpoint->add_headers();
    header->set_name("X-Token");
    header->set_value("t");
    endpoint->mutable_expires_at()->set_seconds(4'000'000'000);
    return absl::OkStatus();
  };
  const Json url = host_.Result("ports.url", {{"sandbox_id", "sb"}, {"port", 8080}});
  EXPECT_EQ(url, Json({{"url", "http://127.0.0.1:40000"},
                       {"headers", {{"X-Token", "t"}}},
                       {"provider_id", "opensandbox"},
                       {"sandbox_id", "sb"},
                       {"port", 8080},
                       {"authentication_audience", "gateway"},
                       {"path_mode", "prefix"},
                       {"expires_at", "2096-10-02T07:06:40.000Z"}}));
  for (const Json& bad :
       {Json(0), Json(-1), Json(65536), Json(true), Json("80"), Json(80.5), Json()}) {
    EXPECT_EQ(host_.Error("ports.url", {{"sandbox_id", "sb"}, {"port", bad}})["code"], kConfigError)
        << bad;
  }
}

TEST(PortUrl, GoesThroughTheServerWhereConfigured) {
  FakeBridge bridge;
  bridge.endpoint = [](const v1::GetEndpointRequest& request, v1::Endpoint* endpoint, auto*) {
    EXPECT_EQ(request.route(), v1::ENDPOINT_ROUTE_SERVER_PROXY);
    endpoint->set_url("http://s/proxy");
    return absl::OkStatus();
  };
  PluginHost host(bridge.link_factory());
  host.Initialize({{"use_server_proxy", true}});
  host.Result("ports.url", {{"sandbox_id", "sb"}, {"port", 80}});
}

}  // namespace
}  // namespace bridge::epp
