// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/config.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "bridge/base/ascii.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/base_url.h"
#include "fmt/format.h"
#include "frontends/epp/manifest.h"
#include "frontends/epp/network_policy.h"
#include "frontends/epp/values.h"
#include "frontends/epp/words.h"

namespace bridge::epp {
namespace {

constexpr std::string_view kDefaultBaseUrl = "http://127.0.0.1:8080";
constexpr double kMaxReadySeconds = 3600;
constexpr std::string_view kBlank = " \t\r\n";

// A setting's value, or null when it was not given. Options may hold anything.
const Json* Given(const Json& settings, const char* name) {
  const auto it = settings.find(name);
  if (it == settings.end() || it->is_null()) return nullptr;
  if (it->is_string() &&
      it->get_ref<const std::string&>().find_first_not_of(kBlank) == std::string::npos) {
    return nullptr;
  }
  return &*it;
}

absl::Status ReadText(const Json& settings, const char* name, std::string* target) {
  const Json* value = Given(settings, name);
  if (value == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(*target, AsTextOrNumber(*value, name));
  return absl::OkStatus();
}

absl::Status ReadBool(const Json& settings, const char* name, bool* target) {
  const Json* value = Given(settings, name);
  if (value == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(*target, AsBool(*value, name));
  return absl::OkStatus();
}

absl::Status ReadReadyTimeout(const Json& settings, absl::Duration* target) {
  constexpr char kName[] = "ready_timeout";
  const Json* value = Given(settings, kName);
  if (value == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double seconds, AsNumber(*value, kName));
  if (!std::isfinite(seconds)) return absl::OkStatus();
  if (seconds <= 0 || seconds > kMaxReadySeconds) {
    return InvalidField(kName, fmt::format("must be seconds, more than 0 and at most {}",
                                           static_cast<int>(kMaxReadySeconds)));
  }
  *target = absl::Seconds(seconds);
  return absl::OkStatus();
}

// "name=image,other=image" or an object.
absl::Status ReadAliases(const Json& settings, std::map<std::string, std::string>* target) {
  constexpr char kName[] = "image_aliases";
  const Json* value = Given(settings, kName);
  if (value == nullptr) return absl::OkStatus();
  std::map<std::string, std::string> aliases;
  if (value->is_object()) {
    ASSIGN_OR_RETURN(aliases, AsTextMap(*value, kName));
  } else {
    ASSIGN_OR_RETURN(const std::string text, AsText(*value, kName));
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      std::string pair = text.substr(begin, end - begin);
      begin = end + 1;
      std::erase_if(pair, [](char c) { return kBlank.find(c) != kBlank.npos; });
      if (pair.empty()) continue;
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) return InvalidField(kName, "must be name=image,name=image");
      aliases[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
  }
  for (const auto& [name, image] : aliases) {
    if (name.empty() || image.empty()) {
      return InvalidField(kName, "must be name=image,name=image; a name or an image is empty");
    }
  }
  *target = std::move(aliases);
  return absl::OkStatus();
}

// Words of a shell, or a list.
absl::Status ReadEntrypoint(const Json& settings, std::optional<std::vector<std::string>>* target) {
  constexpr char kName[] = "entrypoint";
  const Json* value = Given(settings, kName);
  if (value == nullptr) return absl::OkStatus();
  std::vector<std::string> words;
  if (value->is_array()) {
    ASSIGN_OR_RETURN(words, AsTextList(*value, kName));
  } else {
    ASSIGN_OR_RETURN(const std::string text, AsText(*value, kName));
    auto split = SplitWords(text);
    if (!split.ok()) return InvalidField(kName, std::string(split.status().message()));
    words = *std::move(split);
  }
  if (words.empty() || words[0].empty()) return InvalidField(kName, "names no program");
  *target = std::move(words);
  return absl::OkStatus();
}

absl::Status ReadNetworkPolicy(const Json& settings,
                               std::optional<sandbox::bridge::v1::NetworkPolicy>* target) {
  constexpr char kName[] = "network_policy";
  const Json* value = Given(settings, kName);
  if (value == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(*target, ParseNetworkPolicy(*value, kName));
  return absl::OkStatus();
}

absl::Status ReadCreateSettings(const Json& settings, CreateSettings* create) {
  RETURN_IF_ERROR(ReadText(settings, "default_image", &create->default_image));
  RETURN_IF_ERROR(ReadAliases(settings, &create->image_aliases));
  RETURN_IF_ERROR(ReadEntrypoint(settings, &create->entrypoint));
  RETURN_IF_ERROR(ReadReadyTimeout(settings, &create->ready_timeout));
  RETURN_IF_ERROR(ReadText(settings, "registry_username", &create->registry_username));
  RETURN_IF_ERROR(ReadText(settings, "registry_password", &create->registry_password));
  RETURN_IF_ERROR(ReadNetworkPolicy(settings, &create->network_policy));
  RETURN_IF_ERROR(ReadText(settings, "platform", &create->platform));
  RETURN_IF_ERROR(ReadBool(settings, "secure_access", &create->secure_access));
  if (create->registry_username.empty() != create->registry_password.empty()) {
    return create->registry_username.empty()
               ? InvalidField("registry_username", "is missing: registry_password is set")
               : InvalidField("registry_password", "is missing: registry_username is set");
  }
  return absl::OkStatus();
}

bool EatPrefix(std::string_view* text, std::string_view prefix) {
  const bool same = StartsWithIgnoreCase(*text, prefix);
  if (same) text->remove_prefix(prefix.size());
  return same;
}

// The authority: a name or an address, and a port.
absl::Status CheckHost(std::string_view host, std::string_view field) {
  if (host.empty() || host[0] == ':') return InvalidField(field, "names no host");
  for (const char c : host) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '@' || c == '?' || c == '#' || c == '\\') {
      return InvalidField(field, c == '@' ? "must not hold a user name or a password"
                                          : "holds a character that no host has");
    }
  }
  return absl::OkStatus();
}

// base_url wins over domain and protocol: it is the plugin's own setting, and domain usually comes
// from a variable that is meant for another program.
absl::Status ReadUpstream(const Json& settings, Config* config) {
  std::string base_url;
  std::string domain;
  std::string protocol = "http";
  RETURN_IF_ERROR(ReadText(settings, "base_url", &base_url));
  RETURN_IF_ERROR(ReadText(settings, "domain", &domain));
  RETURN_IF_ERROR(ReadText(settings, "protocol", &protocol));
  RETURN_IF_ERROR(ReadText(settings, "api_key", &config->api_key));
  RETURN_IF_ERROR(ReadBool(settings, "use_server_proxy", &config->use_server_proxy));
  if (std::any_of(config->api_key.begin(), config->api_key.end(),
                  [](unsigned char c) { return c < ' ' || c == 0x7F; })) {
    return InvalidField("api_key", "holds a control character");
  }
  if (!base_url.empty()) {
    ASSIGN_OR_RETURN(const BaseUrl url, ParseBaseUrl(base_url, "base_url"));
    config->base_url = url.root;
    return absl::OkStatus();
  }
  std::transform(protocol.begin(), protocol.end(), protocol.begin(), AsciiLower);
  if (protocol != "http" && protocol != "https") {
    return InvalidField("protocol", "must be http or https");
  }
  if (domain.empty()) {
    config->base_url = kDefaultBaseUrl;
    return absl::OkStatus();
  }
  // Some write a whole URL into domain; its scheme then counts.
  const bool has_scheme = domain.find("://") != std::string::npos;
  ASSIGN_OR_RETURN(const BaseUrl url,
                   ParseBaseUrl(has_scheme ? domain : protocol + "://" + domain, "domain"));
  config->base_url = url.root;
  return absl::OkStatus();
}

bool IsLoopback(std::string_view host_port) {
  return host_port.starts_with("127.") || host_port.starts_with("localhost:") ||
         host_port.starts_with("[::1]:");
}

absl::Status ReadBridge(const Json& settings, Config* config) {
  std::string text;
  RETURN_IF_ERROR(ReadText(settings, "bridge_address", &text));
  RETURN_IF_ERROR(ReadText(settings, "bridge_token", &config->bridge_token));
  RETURN_IF_ERROR(ReadText(settings, "bridge_token_file", &config->bridge_token_file));
  RETURN_IF_ERROR(ReadText(settings, "bridge_ca_file", &config->bridge_ca_file));
  if (text.empty()) return absl::OkStatus();
  std::string_view address = text;
  const bool plain = EatPrefix(&address, "http://");
  const bool secure = !plain && EatPrefix(&address, "https://");
  if (address.ends_with('/')) address.remove_suffix(1);
  RETURN_IF_ERROR(CheckHost(address, "bridge_address"));
  const size_t colon = address.rfind(':');
  if (address.find('/') != address.npos || colon == address.npos || colon + 1 == address.size()) {
    return InvalidField("bridge_address", "must be host:port, with https:// before it for TLS");
  }
  config->bridge_address = address;
  config->bridge_tls = secure || (!plain && !config->bridge_ca_file.empty());
  const bool has_token = !config->bridge_token.empty() || !config->bridge_token_file.empty();
  if (has_token && !config->bridge_tls && !IsLoopback(address)) {
    return InvalidField("bridge_address",
                        "needs https:// or bridge_ca_file: a token is not sent in the clear");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Config> ParseConfig(const Json& settings) {
  Config config;
  RETURN_IF_ERROR(ReadBridge(settings, &config));
  RETURN_IF_ERROR(ReadUpstream(settings, &config));
  RETURN_IF_ERROR(ReadCreateSettings(settings, &config.create));
  return config;
}

absl::StatusOr<CreateSettings> WithOptions(CreateSettings settings, const Json& options) {
  for (const auto& [key, value] : options.items()) {
    if (!std::count(std::begin(manifest::kConfigFields), std::end(manifest::kConfigFields), key)) {
      return InvalidField(fmt::format("provider_options.{:.64}", key),
                          "is no setting of this provider");
    }
  }
  RETURN_IF_ERROR(ReadCreateSettings(options, &settings));
  return settings;
}

}  // namespace bridge::epp
