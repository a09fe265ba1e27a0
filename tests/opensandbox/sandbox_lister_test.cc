// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_lister.h"

#include <set>
#include <string>

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SandboxListerTest : public LifecycleFixture {
 protected:
  // "a00" is the oldest.
  void Make(int from, int to) {
    for (int i = from; i < to; ++i) {
      FakeSandbox& sandbox = fake_.Add("a" + std::to_string(100 + i));
      sandbox.created_at += absl::Seconds(i);
    }
  }
  absl::StatusOr<SandboxList> List(SandboxListRequest request = {}) {
    return ListAs(Context(), std::move(request));
  }
  absl::StatusOr<SandboxList> ListAs(CallContext context, SandboxListRequest request) {
    return Run([=, this] { return ListSandboxes(client_, context, request); });
  }
  // All pages, with `between` called after each.
  std::vector<std::string> ListAll(
      SandboxListRequest request, std::function<void(int)> between = [](int) {}) {
    std::vector<std::string> ids;
    for (int page = 1; page <= 50; ++page) {
      const auto list = List(request);
      EXPECT_THAT(list, IsOk());
      if (!list.ok()) break;
      for (const SandboxRecord& record : list->sandboxes) ids.push_back(record.id);
      if (list->next_page_token.empty()) return ids;
      request.page_token = list->next_page_token;
      request.skip = 0;
      OnLoop([&] { between(page); });
    }
    ADD_FAILURE() << "no end";
    return ids;
  }
  std::vector<std::string> Queries() {
    std::vector<std::string> result;
    for (const SeenRequest& seen : fake_.requests()) result.push_back(seen.query);
    return result;
  }
  static std::set<std::string> Set(const std::vector<std::string>& ids) {
    return {ids.begin(), ids.end()};
  }
};

TEST_F(SandboxListerTest, EachPageOnceAndEachSandboxOnce) {
  Make(0, 41);
  const auto ids = ListAll({.page_size = 20});
  EXPECT_THAT(ids, SizeIs(41));
  EXPECT_EQ(Set(ids).size(), 41u);
  EXPECT_EQ(ids.front(), "a140");  // newest first
  EXPECT_EQ(ids.back(), "a100");
  EXPECT_THAT(Queries(),
              ElementsAre("page=1&pageSize=20", "page=2&pageSize=20", "page=3&pageSize=20"));
}

TEST_F(SandboxListerTest, TheTotalIsTheServers) {
  Make(0, 41);
  EXPECT_EQ(List({.page_size = 20})->total, 41);
  EXPECT_EQ(List({.filter = {.states = {SandboxState::kPaused}}})->total, 0);
}

TEST_F(SandboxListerTest, CreatesInBetweenRepeatNothing) {
  Make(0, 41);
  const auto ids = ListAll({.page_size = 20}, [this](int page) {
    if (page == 1) Make(41, 56);
  });
  EXPECT_EQ(Set(ids).size(), ids.size());
  for (int i = 0; i < 41; ++i) EXPECT_TRUE(Set(ids).contains("a" + std::to_string(100 + i))) << i;
}

TEST_F(SandboxListerTest, MoreCreatesThanAPageHolds) {
  Make(0, 41);
  const auto ids = ListAll({.page_size = 5}, [this](int page) {
    if (page == 1) Make(41, 99);
  });
  EXPECT_EQ(Set(ids).size(), ids.size());
  for (int i = 0; i < 41; ++i) EXPECT_TRUE(Set(ids).contains("a" + std::to_string(100 + i))) << i;
}

TEST_F(SandboxListerTest, DeletesInBetweenHideNothing) {
  Make(0, 41);
  const auto ids = ListAll({.page_size = 10}, [this](int page) {
    if (page == 1) {
      for (int i = 35; i < 41; ++i) fake_.sandboxes().erase("a" + std::to_string(100 + i));
    }
    if (page == 2) {
      for (int i = 25; i < 35; ++i) fake_.sandboxes().erase("a" + std::to_string(100 + i));
    }
  });
  EXPECT_EQ(Set(ids).size(), ids.size());
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(Set(ids).contains("a" + std::to_string(100 + i))) << i;
}

TEST_F(SandboxListerTest, SandboxesOfTheSameInstant) {
  for (int i = 0; i < 25; ++i) fake_.Add("t" + std::to_string(100 + i));  // all made now
  const auto ids = ListAll({.page_size = 4}, [this](int page) {
    if (page == 2) fake_.Add("t000").created_at += absl::Seconds(1);  // pushes all by one
  });
  EXPECT_EQ(Set(ids).size(), ids.size());
  EXPECT_GE(ids.size(), 25u);
}

TEST_F(SandboxListerTest, AListWithoutOrderIsStillPaged) {
  const auto page = [](int number, const char* ids, bool next) {
    return std::string(R"({"items":[)") + ids + R"(],"pagination":{"page":)" +
           std::to_string(number) + R"(,"pageSize":2,"totalItems":4,"hasNextPage":)" +
           (next ? "true}}" : "false}}");
  };
  fake_.Script("GET *", {.status = 200, .body = page(1, R"({"id":"b"},{"id":"a"})", true)});
  fake_.Script("GET *", {.status = 200, .body = page(2, R"({"id":"d"},{"id":"c"})", false)});
  EXPECT_THAT(ListAll({.page_size = 2}), ElementsAre("b", "a", "d", "c"));
}

TEST_F(SandboxListerTest, AnEmptyPageIsTheLast) {
  fake_.Script("GET *", {.status = 200,
                         .body = R"({"items":[],"pagination":{"page":1,"pageSize":20,
                                     "totalItems":99,"hasNextPage":true}})",
                         .times = -1});
  EXPECT_THAT(ListAll({}), IsEmpty());
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

TEST_F(SandboxListerTest, AServerThatRepeatsItselfIsLeft) {
  fake_.Script("GET *", {.status = 200,
                         .body = R"({"items":[{"id":"a","createdAt":"2026-01-01T00:00:00Z"}],
                                     "pagination":{"page":1,"pageSize":1,"totalItems":9,
                                     "hasNextPage":true}})",
                         .times = -1});
  EXPECT_THAT(ListAll({.page_size = 1}), ElementsAre("a"));
  EXPECT_LE(fake_.requests().size(), 5u);
}

TEST_F(SandboxListerTest, ATotalThatShrinksEachTimeEnds) {
  Make(0, 12);
  const auto ids = ListAll({.page_size = 3}, [this](int) {
    if (!fake_.sandboxes().empty()) fake_.sandboxes().erase(std::prev(fake_.sandboxes().end()));
  });
  EXPECT_EQ(Set(ids).size(), ids.size());
}

TEST_F(SandboxListerTest, FiltersAreSentAndCheckedAgain) {
  fake_.Add("a").metadata = {{"team", "core"}};
  fake_.Add("b").metadata = {{"team", "infra"}};
  EXPECT_THAT(ListAll({.filter = {.metadata = {{"team", "core"}}}}), ElementsAre("a"));
  EXPECT_THAT(Queries()[0], HasSubstr("metadata=team%3Dcore"));
  // An upstream that ignores the filter.
  fake_.Script("GET *", {.status = 200,
                         .body = R"({"items":[{"id":"x","metadata":{"team":"Core"}},{"id":"y"},
                                     {"id":"z","metadata":{"team":"core"}}]})"});
  const auto list = List({.filter = {.metadata = {{"team", "core"}}}});
  ASSERT_THAT(list->sandboxes, SizeIs(1));
  EXPECT_EQ(list->sandboxes[0].id, "z");
  EXPECT_EQ(list->total, std::nullopt);
}

TEST_F(SandboxListerTest, States) {
  fake_.Add("a");
  fake_.Add("b").state = "Paused";
  fake_.Add("c").state = "Allocated";
  EXPECT_THAT(ListAll({.filter = {.states = {SandboxState::kPaused}}}), ElementsAre("b"));
  EXPECT_THAT(Queries()[0], HasSubstr("state=Paused"));
  fake_.ForgetRequests();
  EXPECT_THAT(ListAll({.filter = {.states = {SandboxState::kUnknown}}}), ElementsAre("c"));
  EXPECT_THAT(Queries()[0], Not(HasSubstr("state=")));
  EXPECT_EQ(Set(ListAll({.filter = {.states = {SandboxState::kRunning, SandboxState::kUnknown}}})),
            (std::set<std::string>{"a", "c"}));
}

TEST_F(SandboxListerTest, PagesWithoutAMatchAreReadOn) {
  Make(0, 40);
  fake_.sandboxes().begin()->second.state = "Allocated";  // the oldest
  EXPECT_THAT(ListAll({.filter = {.states = {SandboxState::kUnknown}}, .page_size = 2}),
              ElementsAre("a100"));
}

TEST_F(SandboxListerTest, RequestIdsWithoutClones) {
  CreateSpec spec;
  spec.image = "img";
  const Labels labels = OwnLabels(spec, {.request_id = "r-1"});
  fake_.Add("a").metadata = labels;
  FakeSandbox& clone = fake_.Add("clone");
  clone.metadata = labels;
  clone.snapshot_id = "snap-1";
  fake_.Add("b").metadata = OwnLabels(spec, {.request_id = "r-2"});
  EXPECT_THAT(ListAll({.filter = {.request_id = "r-1"}}), ElementsAre("a"));
  EXPECT_THAT(ListAll({.filter = {.request_id = "r-3"}}), IsEmpty());
}

TEST_F(SandboxListerTest, ATenantSeesItsOwn) {
  fake_.Add("a").metadata = OwnLabels({}, {.tenant = "blue"});
  fake_.Add("b").metadata = OwnLabels({}, {.tenant = "red"});
  fake_.Add("c");
  CallContext blue = Context();
  blue.tenant = "blue";
  const auto list = ListAs(blue, {});
  ASSERT_THAT(list->sandboxes, SizeIs(1));
  EXPECT_EQ(list->sandboxes[0].id, "a");
  EXPECT_EQ(list->total, 1);
  EXPECT_THAT(ListAll({}), SizeIs(3));
}

TEST_F(SandboxListerTest, ATokenIsForItsFilterTenantAndSize) {
  Make(0, 41);
  const std::string token = List({.page_size = 20})->next_page_token;
  EXPECT_THAT(List({.page_size = 20, .page_token = token}), IsOk());
  EXPECT_THAT(List({.page_size = 10, .page_token = token}), RejectsField("page_token"));
  EXPECT_THAT(List({.filter = {.metadata = {{"a", "b"}}}, .page_size = 20, .page_token = token}),
              RejectsField("page_token"));
  CallContext blue = Context();
  blue.tenant = "blue";
  EXPECT_THAT(ListAs(blue, {.page_size = 20, .page_token = token}), RejectsField("page_token"));
  EXPECT_THAT(List({.page_token = "nonsense"}), RejectsField("page_token"));
}

TEST_F(SandboxListerTest, SkipLeavesOutWholePagesAndParts) {
  Make(0, 41);
  const auto first = [this](int skip) {
    const auto list = List({.page_size = 10, .skip = skip});
    return list->sandboxes.empty() ? std::string("-") : list->sandboxes.front().id;
  };
  EXPECT_EQ(first(0), "a140");
  EXPECT_EQ(first(10), "a130");
  EXPECT_EQ(first(15), "a125");
  EXPECT_EQ(first(40), "a100");
  EXPECT_EQ(first(41), "-");
  EXPECT_EQ(first(2'000'000'000), "-");
  fake_.ForgetRequests();
  EXPECT_THAT(ListAll({.page_size = 10, .skip = 15}), SizeIs(26));
  EXPECT_EQ(Queries()[0], "page=2&pageSize=10");
}

TEST_F(SandboxListerTest, ALargePageIsCutAndGoesOn) {
  Make(0, 3);
  for (auto& [id, sandbox] : fake_.sandboxes()) sandbox.message = std::string(400 << 10, 'm');
  const auto first = List({.page_size = 200});
  ASSERT_THAT(first->sandboxes, SizeIs(2));
  const auto rest = List({.page_size = 200, .page_token = first->next_page_token});
  ASSERT_THAT(rest->sandboxes, SizeIs(1));
  EXPECT_EQ(rest->sandboxes[0].id, "a100");
  EXPECT_TRUE(rest->next_page_token.empty());
}

TEST_F(SandboxListerTest, AServerThatSendsMoreThanAsked) {
  std::string items;
  for (int i = 0; i < 30; ++i) {
    items += (i ? "," : "") + std::string(R"({"id":"s)") + std::to_string(i) +
             R"(","createdAt":"2026-01-01T00:00:)" + std::to_string(59 - i) + R"(Z"})";
  }
  fake_.Script("GET *", {.status = 200, .body = R"({"items":[)" + items + "]}", .times = -1});
  const auto list = List({.page_size = 20});
  EXPECT_THAT(list->sandboxes, SizeIs(20));
  EXPECT_THAT(ListAll({.page_size = 20}), SizeIs(30));
}

TEST_F(SandboxListerTest, FailuresArePassedOn) {
  fake_.Script("GET *", {.status = 401});
  EXPECT_THAT(List(), HasReason("UPSTREAM_UNAUTHENTICATED"));
}

}  // namespace
}  // namespace bridge
