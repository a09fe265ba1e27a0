// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/record.h"

namespace bridge::local::lifecycle {
namespace {

constexpr int kVersion = 1;

using StringMap = std::map<std::string, std::string>;

Json TimeToJson(absl::Time time) { return absl::ToUnixNanos(time); }

// Reads members of the expected type; anything else makes the whole record unusable.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json), ok_(json.is_object()) {}

  bool ok() const { return ok_; }

  template <class T>
  void Get(const char* name, T* out) {
    if (!ok_ || !json_.contains(name)) {
      ok_ = false;
      return;
    }
    const Json& value = json_[name];
    if constexpr (std::is_same_v<T, std::string>) {
      ok_ = value.is_string();
    } else if constexpr (std::is_same_v<T, bool>) {
      ok_ = value.is_boolean();
    } else if constexpr (std::is_integral_v<T>) {
      ok_ = value.is_number_integer();
    } else if constexpr (std::is_same_v<T, StringMap>) {
      ok_ = value.is_object() && AllStrings(value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      ok_ = value.is_array() && AllStrings(value);
    } else {
      static_assert(std::is_same_v<T, std::vector<int>>);
      ok_ = value.is_array();
      for (const Json& item : value) ok_ = ok_ && item.is_number_integer();
    }
    if (ok_) *out = value.get<T>();
  }

  void GetTime(const char* name, absl::Time* out) {
    int64_t nanos = 0;
    Get(name, &nanos);
    *out = absl::FromUnixNanos(nanos);
  }

  const Json* Member(const char* name) const {
    return ok_ && json_.contains(name) ? &json_[name] : nullptr;
  }

 private:
  static bool AllStrings(const Json& container) {
    for (const Json& item : container) {
      if (!item.is_string()) return false;
    }
    return true;
  }

  const Json& json_;
  bool ok_;
};

Json ProcessToJson(const runtime::ProcessRecord& process) {
  return {{"isolation", runtime::IsolationName(process.isolation)},
          {"keeper", process.keeper},
          {"keeper_start", process.keeper_start},
          {"init", process.init},
          {"init_start", process.init_start},
          {"cgroups", process.cgroups},
          {"stopped", process.stopped}};
}

bool ProcessFromJson(const Json& json, runtime::ProcessRecord* process) {
  Reader reader(json);
  std::string isolation;
  reader.Get("isolation", &isolation);
  reader.Get("keeper", &process->keeper);
  reader.Get("keeper_start", &process->keeper_start);
  reader.Get("init", &process->init);
  reader.Get("init_start", &process->init_start);
  reader.Get("cgroups", &process->cgroups);
  reader.Get("stopped", &process->stopped);
  const std::optional<runtime::Isolation> parsed = runtime::ParseIsolation(isolation);
  if (!reader.ok() || !parsed) return false;
  process->isolation = *parsed;
  return true;
}

}  // namespace

Json ToJson(const SandboxRecord& record) {
  Json json = {{"version", kVersion},
               {"id", record.id},
               {"image", record.image},
               {"root", record.root},
               {"entrypoint", record.entrypoint},
               {"env", record.env},
               {"metadata", record.metadata},
               {"extensions", record.extensions},
               {"resource_limits", record.resource_limits},
               {"volumes_to_delete", record.volumes_to_delete},
               {"created_at", TimeToJson(record.created_at)},
               {"container_at", TimeToJson(record.container_at)},
               {"started_at", TimeToJson(record.started_at)},
               {"hostname", record.hostname},
               {"execd_port", record.execd_port},
               {"process", ProcessToJson(record.process)},
               {"paused", record.paused}};
  if (record.platform) {
    json["platform"] = Json::array({record.platform->first, record.platform->second});
  }
  if (record.expires_at) json["expires_at"] = TimeToJson(*record.expires_at);
  if (record.ended) {
    json["ended"] = {{"code", record.ended->code}, {"at", record.ended->unix_nanos}};
  }
  return json;
}

std::optional<SandboxRecord> FromJson(const Json& json) {
  SandboxRecord record;
  Reader reader(json);
  int version = 0;
  reader.Get("version", &version);
  reader.Get("id", &record.id);
  reader.Get("image", &record.image);
  reader.Get("root", &record.root);
  reader.Get("entrypoint", &record.entrypoint);
  reader.Get("env", &record.env);
  reader.Get("metadata", &record.metadata);
  reader.Get("extensions", &record.extensions);
  reader.Get("resource_limits", &record.resource_limits);
  reader.Get("volumes_to_delete", &record.volumes_to_delete);
  reader.GetTime("created_at", &record.created_at);
  reader.GetTime("container_at", &record.container_at);
  reader.GetTime("started_at", &record.started_at);
  reader.Get("hostname", &record.hostname);
  reader.Get("execd_port", &record.execd_port);
  reader.Get("paused", &record.paused);
  const Json* process = reader.Member("process");
  if (version != kVersion || process == nullptr || !ProcessFromJson(*process, &record.process)) {
    return std::nullopt;
  }
  if (const Json* platform = reader.Member("platform")) {
    if (!platform->is_array() || platform->size() != 2) return std::nullopt;
    record.platform = {(*platform)[0].get<std::string>(), (*platform)[1].get<std::string>()};
  }
  if (reader.Member("expires_at") != nullptr) {
    record.expires_at.emplace();
    reader.GetTime("expires_at", &*record.expires_at);
  }
  if (const Json* ended = reader.Member("ended")) {
    record.ended.emplace();
    Reader fields(*ended);
    fields.Get("code", &record.ended->code);
    fields.Get("at", &record.ended->unix_nanos);
    if (!fields.ok()) return std::nullopt;
  }
  if (!reader.ok()) return std::nullopt;
  return record;
}

}  // namespace bridge::local::lifecycle
