// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/network_policy.h"

#include <string>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/values.h"

namespace bridge::epp {
namespace {

using sandbox::bridge::v1::NetworkPolicy;

absl::StatusOr<NetworkPolicy::Action> ParseAction(const Json& value, const std::string& field) {
  ASSIGN_OR_RETURN(const std::string word, AsText(value, field));
  if (word == "allow") return NetworkPolicy::ACTION_ALLOW;
  if (word == "deny") return NetworkPolicy::ACTION_DENY;
  return InvalidField(field, "must be \"allow\" or \"deny\"");
}

absl::Status ParseRule(const Json& value, const std::string& field, NetworkPolicy::Rule* rule) {
  if (!value.is_object()) return InvalidField(field, "must be an object");
  for (const auto& [key, member] : value.items()) {
    if (key == "action") {
      ASSIGN_OR_RETURN(const NetworkPolicy::Action action, ParseAction(member, field + ".action"));
      rule->set_action(action);
    } else if (key == "target") {
      ASSIGN_OR_RETURN(*rule->mutable_target(), AsText(member, field + ".target"));
    } else {
      return InvalidField(fmt::format("{}.{:.64}", field, key), "is not known");
    }
  }
  if (rule->action() == NetworkPolicy::ACTION_UNSPECIFIED) {
    return InvalidField(field + ".action", "is missing");
  }
  if (rule->target().empty()) return InvalidField(field + ".target", "is missing");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NetworkPolicy> ParseNetworkPolicy(const Json& value, std::string_view field) {
  Json parsed;
  const Json* object = &value;
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    // config.toml's tables arrive in Python's notation, {'a': 'b'}.
    if (parsed.is_discarded()) {
      return InvalidField(field,
                          "must be JSON text, also in config.toml: '{\"defaultAction\": ...}'");
    }
    object = &parsed;
  }
  if (!object->is_object()) return InvalidField(field, "must be an object or JSON text of one");
  NetworkPolicy policy;
  for (const auto& [key, member] : object->items()) {
    const std::string path = fmt::format("{}.{:.64}", field, key);
    if (key == "defaultAction" || key == "default_action") {
      ASSIGN_OR_RETURN(const NetworkPolicy::Action action, ParseAction(member, path));
      policy.set_default_action(action);
    } else if (key == "egress") {
      if (!member.is_array()) return InvalidField(path, "must be a list of rules");
      for (const Json& rule : member) {
        RETURN_IF_ERROR(
            ParseRule(rule, fmt::format("{}[{}]", path, policy.rules_size()), policy.add_rules()));
      }
    } else {
      return InvalidField(path, "is not known");
    }
  }
  return policy;
}

}  // namespace bridge::epp
