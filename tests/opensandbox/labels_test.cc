// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

CreateSpec Spec() {
  CreateSpec spec;
  spec.image = "img";
  spec.entrypoint = {"tail"};
  spec.env = {{"B", "2"}, {"A", "1"}};
  spec.ttl = absl::Hours(1);
  return spec;
}

// The sandbox that a create with these labels makes.
SandboxRecord Made(const CreateSpec& spec, const Origin& origin) {
  SandboxRecord record;
  record.image = spec.image;
  record.snapshot_id = spec.snapshot_id;
  record.metadata = OwnLabels(spec, origin);
  return record;
}

TEST(LabelRules, AreThoseOfKubernetes) {
  for (const char* key : {"team", "a", "A1", "example.com/team", "a.b_c-1", "x-y.z/n", "a/b"}) {
    EXPECT_EQ(LabelKeyProblem(key), std::nullopt) << key;
  }
  for (const std::string& key :
       {std::string(""), std::string("a b"), std::string("-a"), std::string("a-"),
        std::string("/a"), std::string("a/"), std::string("A/b"), std::string("a//b"),
        std::string("a/b/c"), std::string("\xc3\xbc"), std::string("a\n"), std::string("-x/a"),
        std::string("x-/a"), std::string("x..y/a"), std::string("x-.y/a"),
        std::string("opensandbox.io/x"), std::string("sandbox-bridge/x"), std::string(64, 'a'),
        std::string(254, 'a') + "/b"}) {
    EXPECT_NE(LabelKeyProblem(key), std::nullopt) << key;
  }
  EXPECT_EQ(LabelKeyProblem(std::string(63, 'a')), std::nullopt);

  for (const char* value : {"", "a", "a.b_c-1", "1"}) {
    EXPECT_EQ(LabelValueProblem(value), std::nullopt) << value;
  }
  for (const std::string& value :
       {std::string("/Users/x"), std::string("a b"), std::string("-a"), std::string("a&b"),
        std::string("a=b"), std::string("\xc3\xbc"), std::string(64, 'a'), std::string("a."),
        std::string("a\0b", 3)}) {
    EXPECT_NE(LabelValueProblem(value), std::nullopt) << value;
  }
}

TEST(OwnLabels, AreLegalLabels) {
  for (const std::string& id :
       {std::string("r-1"), std::string(".odd-"), std::string(128, '-'), std::string(64, 'a')}) {
    CreateSpec spec = Spec();
    spec.snapshot_id = "snap/ü";
    for (const auto& [key, value] :
         OwnLabels(spec, {.request_id = id, .tenant = "a tenant, GmbH", .create_id = "0af1"})) {
      EXPECT_EQ(LabelValueProblem(value), std::nullopt) << key << "=" << value;
      ASSERT_TRUE(IsOwnLabel(key));
      EXPECT_EQ(LabelKeyProblem("x" + key), std::nullopt) << key;  // legal but for being reserved
    }
  }
}

TEST(RequestId, SurvivesWhateverItsLength) {
  for (const std::string& id :
       {std::string("r-1"), std::string("a"), std::string(63, 'a'), std::string(64, 'a'),
        std::string("-"), std::string(".x."), std::string(61, '-'), std::string(62, '-'),
        std::string(122, 'b') + "-", std::string(128, '_')}) {
    EXPECT_EQ(RequestIdOf(Made(Spec(), {.request_id = id})), id);
    // The filter finds exactly what was written.
    const Labels labels = OwnLabels(Spec(), {.request_id = id});
    for (const auto& [key, value] : RequestIdFilter(id)) EXPECT_EQ(labels.at(key), value) << id;
  }
  EXPECT_EQ(RequestIdOf(Made(Spec(), {})), "");
  EXPECT_THAT(RequestIdFilter("r-1"), ElementsAre(Pair("sandbox-bridge/request-id", "r-1")));
  EXPECT_TRUE(RequestIdFilter("").empty());
}

TEST(Clones, AreRecognised) {
  const SandboxRecord original = Made(Spec(), {.request_id = "r-1", .create_id = "c1"});
  EXPECT_FALSE(InheritedItsLabels(original));

  // Restored from a snapshot of it by somebody else: the labels came along.
  SandboxRecord clone = original;
  clone.image = "";
  clone.snapshot_id = "snap-1";
  EXPECT_TRUE(InheritedItsLabels(clone));
  EXPECT_EQ(RequestIdOf(clone), "");

  // Restored through the bridge: it has labels of its own, and none of the source's shine through.
  CreateSpec restore = Spec();
  restore.image = "";
  restore.snapshot_id = "snap-1";
  SandboxRecord ours;
  ours.snapshot_id = "snap-1";
  ours.metadata = original.metadata;
  for (const auto& [key, value] : OwnLabels(restore, {.create_id = "c2"})) {
    ours.metadata[key] = value;
  }
  EXPECT_FALSE(InheritedItsLabels(ours));
  EXPECT_EQ(RequestIdOf(ours), "");

  // A clone of that clone, by somebody else.
  ours.snapshot_id = "snap-2";
  EXPECT_TRUE(InheritedItsLabels(ours));

  // Sandboxes that the bridge did not make inherit nothing.
  EXPECT_FALSE(InheritedItsLabels(SandboxRecord{.snapshot_id = "snap-1"}));
}

TEST(OwnLabels, OfAnImageCountForNothing) {
  // A container's labels are its image's, with the request's own over them.
  SandboxRecord made;
  made.metadata = OwnLabels(Spec(), {.request_id = "theirs", .tenant = "red", .create_id = "c1"});
  for (const auto& [key, value] : OwnLabels(Spec(), {.request_id = std::string(128, '-')})) {
    made.metadata.emplace(key, "image's");
  }
  for (const auto& [key, value] : OwnLabels(Spec(), {.create_id = "c2"}))
    made.metadata[key] = value;
  EXPECT_EQ(RequestIdOf(made), "");
  EXPECT_FALSE(BelongsTo(made, "red"));
  EXPECT_TRUE(BelongsTo(made, ""));
}

TEST(Tenants, AreComparedByLabel) {
  const SandboxRecord record = Made(Spec(), {.tenant = "blue"});
  EXPECT_TRUE(BelongsTo(record, "blue"));
  EXPECT_FALSE(BelongsTo(record, "red"));
  EXPECT_FALSE(BelongsTo(record, "Blue"));
  EXPECT_TRUE(BelongsTo(record, ""));
  EXPECT_FALSE(BelongsTo(Made(Spec(), {}), "blue"));
  const std::string odd = "Grün & Söhne, a name that is far too long for a label of Kubernetes";
  EXPECT_TRUE(BelongsTo(Made(Spec(), {.tenant = odd}), odd));
  // Nobody can take the label of another by naming himself like it.
  EXPECT_NE(TenantLabel(TenantLabel(odd)), TenantLabel(odd));
  EXPECT_TRUE(TenantFilter("").empty());
}

TEST(SpecDigest, ChangesWithTheContentOnly) {
  const std::string digest = SpecDigest(Spec());
  EXPECT_EQ(digest.size(), 43u);
  EXPECT_EQ(SpecDigest(Spec()), digest);
  CreateSpec same = Spec();
  std::swap(same.env[0], same.env[1]);
  same.image_user = "u";
  same.image_password = "p";
  EXPECT_EQ(SpecDigest(same), digest);

  const auto differs = [&digest](auto change) {
    CreateSpec spec = Spec();
    change(spec);
    EXPECT_NE(SpecDigest(spec), digest);
  };
  differs([](CreateSpec& s) { s.image = "img2"; });
  differs([](CreateSpec& s) { s.env[0].second = "3"; });
  differs([](CreateSpec& s) { s.ttl = absl::Hours(2); });
  differs([](CreateSpec& s) { s.ttl = std::nullopt; });
  differs([](CreateSpec& s) { s.metadata["a"] = "b"; });
  differs([](CreateSpec& s) { s.entrypoint.push_back("x"); });
  differs([](CreateSpec& s) { s.network_policy.emplace(); });
  differs([](CreateSpec& s) { s.snapshot_id = "s"; });
  differs([](CreateSpec& s) { s.resource_limits["cpu"] = "2"; });
  differs([](CreateSpec& s) { s.platform = "linux/arm64"; });
  differs([](CreateSpec& s) { s.secure_access = true; });
  differs([](CreateSpec& s) { s.extensions["a"] = "b"; });
  differs([](CreateSpec& s) { s.volumes.push_back({.name = "v", .mount_path = "/v"}); });
}

TEST(SameSpec, ComparesWithinAVersion) {
  EXPECT_TRUE(SameSpec("v1-aa", "v1-aa"));
  EXPECT_FALSE(SameSpec("v1-aa", "v1-ab"));
  EXPECT_TRUE(SameSpec("v1-aa", "v2-ab"));
  EXPECT_TRUE(SameSpec("", "v1-aa"));
}

}  // namespace
}  // namespace bridge
