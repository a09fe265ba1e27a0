// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/volume_validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/fakes/status_matchers.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

v1::Volume GoodVolume() {
  v1::Volume volume;
  volume.set_name("data");
  volume.set_mount_path("/data");
  volume.mutable_named()->set_claim("golden-vol");
  return volume;
}

absl::Status Check(const std::function<void(v1::Volume&)>& change) {
  google::protobuf::RepeatedPtrField<v1::Volume> volumes;
  *volumes.Add() = GoodVolume();
  change(volumes[0]);
  return CheckVolumes("spec.volumes", volumes);
}

TEST(CheckVolumes, GoodOnes) {
  EXPECT_THAT(Check([](auto&) {}), IsOk());
  EXPECT_THAT(Check([](auto& v) { v.set_host_path("/srv/x"); }), IsOk());
  EXPECT_THAT(Check([](auto& v) { v.set_sub_path("a/b..c/.d"); }), IsOk());
  EXPECT_THAT(Check([](auto& v) {
                v.mutable_named()->set_size("10Gi");
                v.mutable_named()->add_access_modes("ReadWriteOnce");
                v.mutable_named()->set_storage_class("fast");
              }),
              IsOk());
}

TEST(CheckVolumes, BadOnes) {
  const struct {
    const char* field;
    std::function<void(v1::Volume&)> change;
  } kBad[] = {
      {"name", [](auto& v) { v.set_name(""); }},
      {"name", [](auto& v) { v.set_name("V_1"); }},
      {"name", [](auto& v) { v.set_name("-a"); }},
      {"name", [](auto& v) { v.set_name("a-"); }},
      {"name", [](auto& v) { v.set_name(std::string(64, 'a')); }},
      {"mount_path", [](auto& v) { v.set_mount_path(""); }},
      {"mount_path", [](auto& v) { v.set_mount_path("v"); }},
      {"mount_path", [](auto& v) { v.set_mount_path(std::string("/a\0", 3)); }},
      {"sub_path", [](auto& v) { v.set_sub_path("../x"); }},
      {"sub_path", [](auto& v) { v.set_sub_path("a/../b"); }},
      {"sub_path", [](auto& v) { v.set_sub_path("/abs"); }},
      {"backend", [](auto& v) { v.clear_backend(); }},
      {"host_path", [](auto& v) { v.set_host_path("relative"); }},
      {"host_path", [](auto& v) { v.set_host_path(""); }},
      {"named.claim", [](auto& v) { v.mutable_named()->set_claim(""); }},
      {"named.claim", [](auto& v) { v.mutable_named()->set_claim("a/b"); }},
      {"named.size", [](auto& v) { v.mutable_named()->set_size("1.5Gi"); }},
      {"named.storage_class", [](auto& v) { v.mutable_named()->set_storage_class("a b"); }},
      {"named.access_modes[0]", [](auto& v) { v.mutable_named()->add_access_modes("RW"); }},
  };
  for (const auto& bad : kBad) {
    EXPECT_THAT(Check(bad.change), RejectsField(std::string("spec.volumes[0].") + bad.field));
  }
}

TEST(CheckVolumes, NamesAndPathsAreUnique) {
  google::protobuf::RepeatedPtrField<v1::Volume> volumes;
  *volumes.Add() = GoodVolume();
  *volumes.Add() = GoodVolume();
  EXPECT_THAT(CheckVolumes("v", volumes), RejectsField("v[1].name"));
  volumes[1].set_name("other");
  EXPECT_THAT(CheckVolumes("v", volumes), RejectsField("v[1].mount_path"));
  volumes[1].set_mount_path("/other");
  EXPECT_THAT(CheckVolumes("v", volumes), IsOk());
  while (volumes.size() <= 32) *volumes.Add() = GoodVolume();
  EXPECT_THAT(CheckVolumes("v", volumes), RejectsField("v"));
}

TEST(IsByteQuantity, WholeAndPositive) {
  for (const char* text : {"1", "512Mi", "2Gi", "256M", "1k", "1K", "268435456", "01Ti"}) {
    EXPECT_TRUE(IsByteQuantity(text)) << text;
  }
  for (const char* text : {"", "0", "00Gi", "Gi", "1.5Gi", "-1", "+1", "1 Gi", "1gi", "1GiB", "1e3",
                           "9999999999999999999"}) {
    EXPECT_FALSE(IsByteQuantity(text)) << text;
  }
}

}  // namespace
}  // namespace bridge
