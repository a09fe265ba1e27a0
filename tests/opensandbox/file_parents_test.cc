// SPDX-License-Identifier: Apache-2.0
//
// Parent directories that calls make on their way, when the calls fail.
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "tests/opensandbox/file_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
namespace fs = std::filesystem;

// One that fails for its content.
FileWrite SizedWrite(std::string path) {
  return {.path = std::move(path), .create_parents = true, .size = 2};
}

// A write below a directory that is there, with all the directories that are missing.
class Parents : public Files {
 protected:
  Parents() { fs::create_directory(P("there")); }
  absl::Status WriteBelow(FileWrite options) {
    options.path = P("there/a/b/" + options.path);
    options.create_parents = true;
    return Write(std::move(options), "x").status();
  }
};
INSTANTIATE_TEST_SUITE_P(Daemons, Parents, EveryDaemon(), WayName);

TEST_P(Parents, OfWhatFailsAreNotThere) {
  const std::string too_long(256, 'n');
  const absl::Status failures[] = {
      MakeDirectory(P("there/a/b/c"), {.owner = "no-such-user", .parents = true}).status(),
      MakeDirectory(P("there/a/b/" + too_long), {.parents = true}).status(),
      MakeDirectory(P("there/a/b/" + too_long + "/d"), {.parents = true}).status(),
      Move(P("none"), P("there/a/b/c"), /*overwrite=*/false, /*parents=*/true).status(),
      Move(P("there"), P("there/a/b/c"), /*overwrite=*/false, /*parents=*/true).status(),
      WriteBelow({.path = "f", .owner = "no-such-user"}),
      WriteBelow({.path = "f", .mode = 0600, .owner = "no-such-user"}),
      WriteBelow({.path = "$f", .owner = "no-such-user"}),
      WriteBelow({.path = "$d/f", .mode = 0600, .owner = "no-such-user"}),
      WriteBelow({.path = too_long}),
      WriteBelow({.path = too_long, .atomic = false}),
      WriteBelow({.path = too_long + "/f", .mode = 0600}),
  };
  bench.Settle();
  for (size_t i = 0; i < std::size(failures); ++i) EXPECT_FALSE(failures[i].ok()) << i;
  EXPECT_THAT(Names(), ElementsAre("there"));
  EXPECT_TRUE(fs::is_empty(P("there")));
}

// Noticed before the file has arrived: the failure does not wait for the parents to go.
TEST_P(Parents, OfContentThatIsNotAsAnnouncedAreNotThere) {
  EXPECT_FALSE(Write(SizedWrite(P("there/a/b/f")), "x").ok());
  const std::string wrong(64, '0');
  EXPECT_FALSE(
      Write({.path = P("there/c/f"), .create_parents = true, .expected_sha256 = wrong}, "x").ok());
  bench.Settle();
  EXPECT_TRUE(fs::is_empty(P("there")));
}

TEST_P(Parents, ThatWereThereStayEmptyOrNot) {
  fs::create_directory(P("there/a"));
  EXPECT_FALSE(WriteBelow({.path = "f", .owner = "no-such-user"}).ok());
  EXPECT_FALSE(
      MakeDirectory(P("there/a/b/c"), {.owner = "no-such-user", .parents = true}).status().ok());
  bench.Settle();
  EXPECT_TRUE(fs::is_empty(P("there/a")));
}

TEST_P(Parents, ThatOthersUseStay) {
  EXPECT_TRUE(WriteBelow({.path = "f"}).ok());
  EXPECT_FALSE(WriteBelow({.path = "c/g", .owner = "no-such-user"}).ok());
  const absl::Status failed = RunTask(bench.loop, [&]() -> Task<absl::Status> {
    auto writer = co_await files.Write(bench.context, bench.box, SizedWrite(P("there/d/f")));
    EXPECT_TRUE(writer.ok()) << writer.status();
    // Before the write fails somebody puts something there.
    fs::create_directories(P("there/d/theirs"));
    EXPECT_TRUE((co_await (*writer)->Send("x")).ok());
    co_return (co_await (*writer)->Finish()).status();
  });
  EXPECT_FALSE(failed.ok());
  bench.Settle();
  EXPECT_EQ(ReadAll(P("there/a/b/f")), "x");
  EXPECT_FALSE(fs::exists(P("there/a/b/c")));
  EXPECT_TRUE(fs::is_directory(P("there/d/theirs")));
}

TEST_P(Parents, ManyLevelsAreMade) {
  std::string path = P("there");
  for (int i = 0; i < 150; ++i) path += "/d";
  EXPECT_EQ(*MakeDirectory(path, {.parents = true}), true);
  EXPECT_TRUE(fs::is_directory(path));
  EXPECT_TRUE(Write({.path = path + "/e/f", .create_parents = true}, "x").ok());
}

}  // namespace
}  // namespace bridge
