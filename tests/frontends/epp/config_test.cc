// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/config.h"

#include <string>
#include <utility>

#include "frontends/epp/errors.h"
#include "frontends/epp/template.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// As the host sends it when nothing is configured: the manifest's defaults.
Json Defaults() {
  return {{"use_server_proxy", false},
          {"default_image", "python:3.12-slim"},
          {"image_aliases", "code=opensandbox/code-interpreter:v1.1.0"},
          {"ready_timeout", 60},
          {"secure_access", false}};
}

Config Parsed(Json changes) {
  Json settings = Defaults();
  settings.update(changes);
  const auto config = ParseConfig(settings);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(Config());
}

// The message of the refusal, which must be E8002 and begin with the field.
std::string Refused(Json changes, const std::string& field) {
  Json settings = Defaults();
  settings.update(changes);
  const auto config = ParseConfig(settings);
  EXPECT_FALSE(config.ok()) << changes;
  if (config.ok()) return "";
  const EppError error = ToEppError(config.status());
  EXPECT_EQ(error.code, kConfigError);
  EXPECT_EQ(error.message.substr(0, field.size()), field) << error.message;
  return error.message;
}

TEST(ParseConfig, HasTheSeedsDefaults) {
  for (const Json& settings : {Defaults(), Json::object()}) {
    const auto config = ParseConfig(settings);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->base_url, "http://127.0.0.1:8080");
    EXPECT_EQ(config->api_key, "");
    EXPECT_FALSE(config->use_server_proxy);
    EXPECT_EQ(config->create.default_image, "python:3.12-slim");
    EXPECT_EQ(config->create.ready_timeout, absl::Seconds(60));
    EXPECT_FALSE(config->create.entrypoint.has_value());
    EXPECT_FALSE(config->create.secure_access);
    EXPECT_EQ(config->bridge_address, "");
  }
}

TEST(ParseConfig, ReadsUrls) {
  const std::pair<const char*, const char*> good[] = {
      {"http://h:1", "http://h:1"},
      {"http://h:1/", "http://h:1"},
      {"http://h:1/v1", "http://h:1"},
      {"http://h:1/v1//", "http://h:1"},
      {"http://h:1/gw/osb/", "http://h:1/gw/osb"},
      {"HTTPS://H:1", "https://h:1"},
      {"h:1", "http://h:1"},
      {"localhost", "http://localhost"},
      {"http://[::1]:8080", "http://[::1]:8080"},
  };
  for (const auto& [text, url] : good) {
    EXPECT_EQ(Parsed({{"base_url", text}}).base_url, url) << text;
  }
  for (const char* bad : {"ftp://h", "http://", "http://u:p@h", "http://h?q=1", "http://h#f",
                          "http://:80", "http://a b", "http://h\\x"}) {
    const std::string message = Refused({{"base_url", bad}}, "base_url:");
    EXPECT_THAT(message, Not(HasSubstr("u:p"))) << bad;
  }
}

TEST(ParseConfig, BuildsAUrlFromDomainAndProtocol) {
  EXPECT_EQ(Parsed({{"domain", "api.example.com"}}).base_url, "http://api.example.com");
  EXPECT_EQ(Parsed({{"domain", "h:9"}, {"protocol", "HTTPS"}}).base_url, "https://h:9");
  EXPECT_EQ(Parsed({{"domain", "https://h:9"}}).base_url, "https://h:9");
  // base_url wins; what domain is then for does not matter.
  EXPECT_EQ(Parsed({{"base_url", "http://a"}, {"domain", "b"}, {"protocol", "gopher"}}).base_url,
            "http://a");
  Refused({{"domain", "h"}, {"protocol", "ftp"}}, "protocol:");
  Refused({{"domain", "u@h"}}, "domain:");
}

TEST(ParseConfig, TakesEmptyTextForAbsent) {
  EXPECT_EQ(Parsed({{"base_url", ""}, {"domain", "  "}}).base_url, "http://127.0.0.1:8080");
  EXPECT_EQ(Parsed({{"default_image", ""}}).create.default_image, "python:3.12-slim");
  EXPECT_EQ(Parsed({{"ready_timeout", ""}}).create.ready_timeout, absl::Seconds(60));
  EXPECT_FALSE(Parsed({{"use_server_proxy", ""}}).use_server_proxy);
  EXPECT_FALSE(Parsed({{"network_policy", ""}}).create.network_policy.has_value());
}

TEST(ParseConfig, CoercesWhatSourcesWrite) {
  EXPECT_TRUE(Parsed({{"use_server_proxy", "yes"}}).use_server_proxy);
  EXPECT_TRUE(Parsed({{"secure_access", 1}}).create.secure_access);
  EXPECT_EQ(Parsed({{"ready_timeout", "90"}}).create.ready_timeout, absl::Seconds(90));
  EXPECT_EQ(Parsed({{"ready_timeout", 0.5}}).create.ready_timeout, absl::Milliseconds(500));
  EXPECT_EQ(Parsed({{"ready_timeout", "inf"}}).create.ready_timeout, absl::Seconds(60));
  EXPECT_EQ(Parsed({{"registry_username", 7}, {"registry_password", 8}}).create.registry_password,
            "8");
  Refused({{"use_server_proxy", "maybe"}}, "use_server_proxy:");
  Refused({{"ready_timeout", "abc"}}, "ready_timeout:");
  Refused({{"ready_timeout", -1}}, "ready_timeout:");
  Refused({{"ready_timeout", 0}}, "ready_timeout:");
  Refused({{"ready_timeout", 3601}}, "ready_timeout:");
  Refused({{"platform", true}}, "platform:");
}

TEST(ParseConfig, NeverShowsASecret) {
  const std::string canary = "CANARY-4711";
  EXPECT_THAT(Refused({{"registry_password", canary}}, "registry_username:"),
              Not(HasSubstr(canary)));
  EXPECT_THAT(Refused({{"api_key", canary + "\n"}}, "api_key:"), Not(HasSubstr(canary)));
  EXPECT_THAT(Refused({{"api_key", Json::array({canary})}}, "api_key:"), Not(HasSubstr(canary)));
  EXPECT_THAT(
      Refused({{"bridge_address", "far.example:1"}, {"bridge_token", canary}}, "bridge_address:"),
      Not(HasSubstr(canary)));
}

TEST(ParseConfig, WantsBothHalvesOfRegistryCredentials) {
  Refused({{"registry_username", "u"}}, "registry_password:");
  EXPECT_EQ(
      Parsed({{"registry_username", "u"}, {"registry_password", "p"}}).create.registry_username,
      "u");
}

TEST(ParseConfig, ReadsAliases) {
  const auto aliases = [](Json value) {
    return Parsed({{"image_aliases", std::move(value)}}).create.image_aliases;
  };
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(aliases("a=x:1, b = y ,,"), (Map{{"a", "x:1"}, {"b", "y"}}));
  EXPECT_EQ(aliases(Json{{"a", "x"}}), (Map{{"a", "x"}}));
  EXPECT_EQ(aliases("a=x=y"), (Map{{"a", "x=y"}}));
  for (const char* bad : {"a", "=x", "a=", "a=x,b"})
    Refused({{"image_aliases", bad}}, "image_aliases:");
  Refused({{"image_aliases", 5}}, "image_aliases:");
}

TEST(ParseConfig, ReadsEntrypoints) {
  EXPECT_THAT(*Parsed({{"entrypoint", "python3 'my app.py'"}}).create.entrypoint,
              ElementsAre("python3", "my app.py"));
  EXPECT_THAT(*Parsed({{"entrypoint", Json::array({"sh", "-c", "a b"})}}).create.entrypoint,
              ElementsAre("sh", "-c", "a b"));
  Refused({{"entrypoint", "a 'b"}}, "entrypoint:");
  Refused({{"entrypoint", Json::array()}}, "entrypoint:");
  Refused({{"entrypoint", Json::array({1})}}, "entrypoint[0]:");
  Refused({{"entrypoint", 5}}, "entrypoint:");
}

TEST(ParseConfig, ReadsNetworkPolicies) {
  using sandbox::bridge::v1::NetworkPolicy;
  const Json policy = {{"defaultAction", "deny"},
                       {"egress", {{{"action", "allow"}, {"target", "pypi.org"}}}}};
  for (const Json& form : {policy, Json(policy.dump())}) {
    const auto parsed = Parsed({{"network_policy", form}}).create.network_policy;
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->default_action(), NetworkPolicy::ACTION_DENY);
    ASSERT_EQ(parsed->rules_size(), 1);
    EXPECT_EQ(parsed->rules(0).action(), NetworkPolicy::ACTION_ALLOW);
    EXPECT_EQ(parsed->rules(0).target(), "pypi.org");
  }
  // Empty and present: everything is denied, which the bridge says of an empty message.
  EXPECT_TRUE(Parsed({{"network_policy", Json::object()}}).create.network_policy.has_value());
  EXPECT_THAT(Refused({{"network_policy", "{'defaultAction': 'deny'}"}}, "network_policy:"),
              HasSubstr("JSON text"));
  for (const char* bad :
       {"[]", "5", R"({"default":"deny"})", R"({"defaultAction":"maybe"})", R"({"egress":{}})",
        R"({"egress":[{"action":"allow"}]})", R"({"egress":[{"target":"x"}]})",
        R"({"egress":[{"action":"allow","target":"x","port":1}]})"}) {
    Refused({{"network_policy", bad}}, "network_policy");
  }
}

TEST(ParseConfig, ReadsTheBridge) {
  using Address = std::pair<std::string, bool>;
  const auto address = [](Json changes) {
    const Config config = Parsed(std::move(changes));
    return Address(config.bridge_address, config.bridge_tls);
  };
  EXPECT_EQ(address({{"bridge_address", "127.0.0.1:50051"}}), Address("127.0.0.1:50051", false));
  EXPECT_EQ(address({{"bridge_address", "https://b:443/"}}), Address("b:443", true));
  EXPECT_EQ(address({{"bridge_address", "b:443"}, {"bridge_ca_file", "/ca.pem"}}),
            Address("b:443", true));
  EXPECT_EQ(address({{"bridge_address", "https://b:443"}, {"bridge_token", "t"}}),
            Address("b:443", true));
  EXPECT_EQ(address({{"bridge_address", "localhost:1"}, {"bridge_token", "t"}}),
            Address("localhost:1", false));
  for (const char* bad : {"b", "b:", ":1", "https://b", "b:1/path", "u@b:1"}) {
    Refused({{"bridge_address", bad}}, "bridge_address:");
  }
  Refused({{"bridge_address", "b:1"}, {"bridge_token_file", "/t"}}, "bridge_address:");
}

TEST(WithOptions, ChangesTheNineSettings) {
  const CreateSettings configured =
      Parsed({{"default_image", "a"}, {"platform", "linux/amd64"}}).create;
  const auto changed = WithOptions(configured, {{"default_image", "b"},
                                                {"image_aliases", "x=y"},
                                                {"entrypoint", "run me"},
                                                {"ready_timeout", 5},
                                                {"registry_username", "u"},
                                                {"registry_password", "p"},
                                                {"network_policy", Json::object()},
                                                {"secure_access", true}});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->default_image, "b");
  EXPECT_EQ(changed->image_aliases.at("x"), "y");
  EXPECT_THAT(*changed->entrypoint, ElementsAre("run", "me"));
  EXPECT_EQ(changed->ready_timeout, absl::Seconds(5));
  EXPECT_EQ(changed->registry_username, "u");
  EXPECT_TRUE(changed->network_policy.has_value());
  EXPECT_TRUE(changed->secure_access);
  EXPECT_EQ(changed->platform, "linux/amd64");
}

TEST(WithOptions, IgnoresWhatTheHostHasMergedAlready) {
  const auto same = WithOptions(CreateSettings(), {{"base_url", "http://evil"},
                                                   {"api_key", 5},
                                                   {"domain", nullptr},
                                                   {"use_server_proxy", "maybe"},
                                                   {"bridge_address", "x"},
                                                   {"default_image", nullptr}});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->default_image, CreateSettings().default_image);
}

TEST(WithOptions, RefusesWhatIsNoSetting) {
  const auto refused = WithOptions(CreateSettings(), {{"defalt_image", "x"}});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("provider_options.defalt_image"));
}

TEST(ImageFor, TakesAliasesBeforeBase) {
  CreateSettings settings;
  EXPECT_EQ(ImageFor("base", settings), "python:3.12-slim");
  EXPECT_EQ(ImageFor("", settings), "python:3.12-slim");
  EXPECT_EQ(ImageFor("code", settings), "opensandbox/code-interpreter:v1.1.0");
  EXPECT_EQ(ImageFor("ubuntu:24.04", settings), "ubuntu:24.04");
  settings.image_aliases["base"] = "mine";
  EXPECT_EQ(ImageFor("base", settings), "mine");
}

TEST(EntrypointFor, LeavesCodeInterpretersTheirScript) {
  CreateSettings settings;
  EXPECT_THAT(EntrypointFor("python:3.12-slim", settings), IsEmpty());
  for (const char* image : {"opensandbox/code-interpreter:v1.1.0", "code-interpreter",
                            "reg.example:5000/x/code-interpreter@sha256:abc"}) {
    EXPECT_THAT(EntrypointFor(image, settings), ElementsAre("/opt/opensandbox/code-interpreter.sh"))
        << image;
  }
  EXPECT_THAT(EntrypointFor("my-code-interpreter:1", settings), IsEmpty());
  settings.entrypoint = {"sleep", "1"};
  EXPECT_THAT(EntrypointFor("opensandbox/code-interpreter:v1.1.0", settings),
              ElementsAre("sleep", "1"));
}

}  // namespace
}  // namespace bridge::epp
