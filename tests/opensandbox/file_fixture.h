// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/file_fixture.h — files through real daemon processes: the same promises on a
// stock daemon of either version and on our own.
#pragma once

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bridge/opensandbox/file_client.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {

inline std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline unsigned ModeOf(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0xffff;
}

// Files of one daemon, which is started with these flags.
class FilesOn {
 protected:
  explicit FilesOn(std::vector<std::string> flags) : execd(std::move(flags)), bench(execd.url()) {
    dir = execd.tmpdir() + "/d";
    std::filesystem::create_directory(dir);
  }
  std::string P(const std::string& name) const { return dir + "/" + name; }
  void Put(const std::string& name, const std::string& content) {
    std::ofstream(P(name), std::ios::binary) << content;
  }
  // Names in the directory, ours included.
  std::vector<std::string> Names() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir))
      names.insert(entry.path().filename());
    return {names.begin(), names.end()};
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow = false) {
    return RunTask(bench.loop, [&] { return files.Stat({}, {"box", ""}, path, follow); });
  }
  absl::StatusOr<FileWritten> Write(FileWrite write, const std::string& content) {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<FileWritten>> {
      auto writer = co_await files.Write(bench.context, bench.box, std::move(write));
      if (!writer.ok()) co_return writer.status();
      for (size_t i = 0; i < content.size(); i += 100'000) {
        const absl::Status sent = co_await (*writer)->Send(content.substr(i, 100'000));
        if (!sent.ok()) co_return sent;
      }
      co_return co_await (*writer)->Finish();
    });
  }
  absl::StatusOr<std::string> Read(const std::string& path, int64_t offset = 0,
                                   std::optional<int64_t> length = std::nullopt) {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<std::string>> {
      auto reader = co_await files.Read(bench.context, bench.box, path, offset, length);
      if (!reader.ok()) co_return reader.status();
      std::string all, chunk;
      while (true) {
        absl::StatusOr<bool> more = co_await (*reader)->Next(&chunk);
        if (!more.ok()) co_return more.status();
        if (!*more) co_return all;
        EXPECT_LE(chunk.size(), FileReader::kChunkBytes);
        all += chunk;
      }
    });
  }
  absl::StatusOr<std::vector<FileInfo>> List(const std::string& path, int depth) {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<std::vector<FileInfo>>> {
      auto lister = co_await files.List(bench.context, bench.box, path, depth);
      if (!lister.ok()) co_return lister.status();
      std::vector<FileInfo> all;
      while (true) {
        auto batch = co_await (*lister)->Next(1000);
        if (!batch.ok()) co_return batch.status();
        if (batch->empty()) co_return all;
        for (FileInfo& info : *batch) all.push_back(std::move(info));
      }
    });
  }
  absl::Status Remove(const std::string& path, bool recursive = false) {
    return RunTask(bench.loop, [&] { return files.Remove({}, {"box", ""}, path, recursive); });
  }
  absl::StatusOr<bool> Move(const std::string& from, const std::string& to, bool overwrite = false,
                            bool parents = false) {
    const FileMove move{from, to, overwrite, parents};
    return RunTask(bench.loop, [&] { return files.Move({}, {"box", ""}, move); });
  }
  absl::StatusOr<FileInfo> SetAttributes(const std::string& path, AttributeChange change) {
    return RunTask(bench.loop, [&] { return files.SetAttributes({}, {"box", ""}, path, change); });
  }
  absl::StatusOr<bool> MakeDirectory(const std::string& path, DirectoryMake make = {}) {
    return RunTask(bench.loop, [&] { return files.MakeDirectory({}, {"box", ""}, path, make); });
  }

  ExecdProcess execd;
  ExecBench bench;
  FileClient files{bench.daemon, bench.background};
  std::string dir;
};

class Files : public FilesOn, public ::testing::TestWithParam<Way> {
 protected:
  Files() : FilesOn(GetParam().flags) {}
};

}  // namespace bridge
