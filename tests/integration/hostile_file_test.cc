// SPDX-License-Identifier: Apache-2.0
//
// Hostile requests to every method of FileService.
#include <functional>
#include <string>
#include <vector>

#include "tests/integration/hostile_fixture.h"

namespace bridge {
namespace {

TEST_F(HostileRequests, FilesThatAreLookedAt) {
  TABLE(files_, Files, Stat, At<v1::StatRequest>())
      .RefusesTargets()
      .RefusesPaths("path", SetPath<v1::StatRequest>);
  TABLE(files_, Files, ListDirectory, At<v1::ListDirectoryRequest>())
      .RefusesTargets()
      .RefusesPaths("path", SetPath<v1::ListDirectoryRequest>)
      .Refuses("depth", [](auto& r) { r.set_depth(-2); })
      .Refuses("depth", [](auto& r) { r.set_depth(INT32_MIN); });
  v1::SearchRequest search = At<v1::SearchRequest>();
  search.set_pattern("*");
  TABLE(files_, Files, Search, search)
      .RefusesTargets()
      .RefusesPaths("path", SetPath<v1::SearchRequest>)
      .Refuses("pattern", [](auto& r) { r.clear_pattern(); })
      .Refuses("pattern", [](auto& r) { r.set_pattern("/absolute"); })
      .Refuses("pattern", [](auto& r) { r.set_pattern("../*"); })
      .Refuses("pattern", [](auto& r) { r.set_pattern("[a"); })
      .Refuses("pattern", [](auto& r) { r.set_pattern(kNul); })
      .Refuses("max_results", [](auto& r) { r.set_max_results(-1); })
      .Refuses("types[0]", [](auto& r) { r.add_types(static_cast<v1::FileType>(9)); })
      .Refuses("types[1]", [](auto& r) {
        r.add_types(v1::FILE_TYPE_FILE);
        r.add_types(v1::FILE_TYPE_UNSPECIFIED);
      });
  const auto reads = [](auto table) {
    table.RefusesTargets()
        .RefusesPaths("path", [](auto& r, const auto& path) { r.set_path(path); })
        .Refuses("offset", [](auto& r) { r.set_offset(-1); })
        .Refuses("length", [](auto& r) { r.set_length(-1); })
        .Refuses("length", [](auto& r) { r.set_length(INT64_MIN); });
  };
  reads(TABLE(files_, Files, ReadFile, At<v1::ReadFileRequest>()));
  auto small = TABLE(files_, Files, ReadSmallFile, At<v1::ReadSmallFileRequest>());
  reads(small);
  small.Refuses("length", [](auto& r) { r.set_length(INT64_MAX); });
  TABLE(files_, Files, WatchDirectory, At<v1::WatchDirectoryRequest>())
      .RefusesTargets()
      .RefusesPaths("path", SetPath<v1::WatchDirectoryRequest>)
      .Refuses("keepalive_interval",
               [](auto& r) { r.mutable_keepalive_interval()->set_seconds(-1); });
  NothingWasSent();
}

// "/" is a path, and not one that can be changed.
template <class T, class Set>
void RefusesRoots(T table, const std::string& field, Set set) {
  for (const char* root : {"/", "//", "/.", "/a/.."}) {
    table.Refuses(field, [&](auto& r) { set(r, root); });
  }
}

template <class T>
void RefusesOwners(T table) {
  for (const std::string& name : {std::string("a:b"), std::string("a b"), std::string("a/b"),
                                  std::string("a\n"), std::string(257, 'a'), kNul}) {
    table.Refuses("owner", [&](auto& r) { r.set_owner(name); });
    table.Refuses("group", [&](auto& r) { r.set_group(name); });
  }
  for (const uint32_t mode : {010000u, 0xffffffffu}) {
    table.Refuses("mode", [&](auto& r) { r.set_mode(mode); });
  }
}

TEST_F(HostileRequests, FilesThatAreChanged) {
  auto makes = TABLE(files_, Files, MakeDirectory, At<v1::MakeDirectoryRequest>());
  makes.RefusesTargets().RefusesPaths("path", SetPath<v1::MakeDirectoryRequest>);
  RefusesOwners(makes);
  auto removes = TABLE(files_, Files, Remove, At<v1::RemoveRequest>());
  removes.RefusesTargets().RefusesPaths("path", SetPath<v1::RemoveRequest>);
  RefusesRoots(removes, "path", SetPath<v1::RemoveRequest>);
  v1::MoveRequest move = To<v1::MoveRequest>();
  move.set_source("/a");
  move.set_destination("/b");
  auto moves = TABLE(files_, Files, Move, move);
  const auto source = [](auto& r, const std::string& path) { r.set_source(path); };
  const auto destination = [](auto& r, const std::string& path) { r.set_destination(path); };
  moves.RefusesTargets().RefusesPaths("source", source).RefusesPaths("destination", destination);
  RefusesRoots(moves, "source", source);
  RefusesRoots(moves, "destination", destination);
  for (const char* inside : {"/a", "/a/", "/a/x", "/x/../a/y"}) {
    moves.Refuses("destination", [&](auto& r) { r.set_destination(inside); });
  }
  auto sets = TABLE(files_, Files, SetAttributes, At<v1::SetAttributesRequest>());
  sets.RefusesTargets()
      .RefusesPaths("path", SetPath<v1::SetAttributesRequest>)
      .Refuses("modified_at", [](auto& r) { r.mutable_modified_at()->set_nanos(-1); })
      .Refuses("modified_at", [](auto& r) { r.mutable_modified_at()->set_seconds(INT64_MAX); });
  RefusesRoots(sets, "path", SetPath<v1::SetAttributesRequest>);
  RefusesOwners(sets);
  v1::ReplaceTextRequest replace = At<v1::ReplaceTextRequest>();
  replace.set_old_text("a");
  auto replaces = TABLE(files_, Files, ReplaceText, replace);
  replaces.RefusesTargets()
      .RefusesPaths("path", SetPath<v1::ReplaceTextRequest>)
      .Refuses("old_text", [](auto& r) { r.clear_old_text(); })
      .Refuses("expected_count", [](auto& r) { r.set_expected_count(-1); });
  RefusesRoots(replaces, "path", SetPath<v1::ReplaceTextRequest>);
  NothingWasSent();
}

// What WriteOptions may not say; they are in `prefix` of the request.
template <class T, class Options>
void RefusesWrites(T table, const std::string& prefix, Options options) {
  const auto refuses = [&](const std::string& field,
                           const std::function<void(v1::WriteOptions&)>& change) {
    table.Refuses(prefix + field, [&](auto& r) { change(options(r)); });
  };
  for (const std::string& path : {std::string(), std::string("f"), std::string("/"), "/" + kNul}) {
    refuses("path", [&](auto& o) { o.set_path(path); });
  }
  refuses("mode", [](auto& o) { o.set_mode(010000); });
  refuses("owner", [](auto& o) { o.set_owner("a:b"); });
  refuses("group", [](auto& o) { o.set_group(kNul); });
  for (const std::string& digest : {std::string("abc"), std::string(64, 'g'), kNul}) {
    refuses("expected_sha256", [&](auto& o) { o.set_expected_sha256(digest); });
    refuses("precondition.sha256", [&](auto& o) { o.mutable_precondition()->set_sha256(digest); });
  }
  refuses("precondition", [](auto& o) { o.mutable_precondition(); });
  refuses("precondition.absent", [](auto& o) { o.mutable_precondition()->set_absent(false); });
  refuses("precondition.modified_at", [](auto& o) {
    o.mutable_precondition()->mutable_modified_at()->set_nanos(2'000'000'000);
  });
}

TEST_F(HostileRequests, FilesThatAreWritten) {
  v1::WriteSmallFileRequest small = To<v1::WriteSmallFileRequest>();
  small.mutable_options()->set_path("/f");
  auto smalls = TABLE(files_, Files, WriteSmallFile, small);
  smalls.RefusesTargets();
  RefusesWrites(smalls, "options.", [](auto& r) -> auto& { return *r.mutable_options(); });

  using Header = v1::WriteFileChunk::Header;
  Header good = To<Header>();
  good.mutable_options()->set_path("/f");
  const auto write = [this](const std::vector<v1::WriteFileChunk>& chunks) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    v1::WriteFileResponse response;
    auto stream = files_->WriteFile(&context, &response);
    for (const auto& chunk : chunks) {
      if (!stream->Write(chunk)) break;
    }
    stream->WritesDone();
    return FromGrpcStatus(stream->Finish());
  };
  Table<Header> headers(
      [&](const Header& header) {
        v1::WriteFileChunk chunk;
        *chunk.mutable_header() = header;
        return write({chunk});
      },
      good);
  headers.RefusesTargets("header.").Refuses("header.size_bytes",
                                            [](auto& h) { h.set_size_bytes(-1); });
  RefusesWrites(headers, "header.options.", [](auto& h) -> auto& { return *h.mutable_options(); });
  v1::WriteFileChunk data;
  data.set_data("x");
  EXPECT_THAT(write({}), RejectsField("header"));
  EXPECT_THAT(write({data}), RejectsField("header"));
  EXPECT_THAT(write({v1::WriteFileChunk()}), RejectsField("header"));
  NothingWasSent();
}

}  // namespace
}  // namespace bridge
