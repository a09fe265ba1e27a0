// SPDX-License-Identifier: Apache-2.0
//
// tests/server/temp_folder.h — a folder for one test, and files that are replaced in one step.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace bridge::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string name = "/tmp/bridge.XXXXXX";  // short: the path of a socket file has 107 bytes
    path_ = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& root() const { return path_; }
  std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Puts `content` there as a careful administrator does: by renaming.
  std::string Write(std::string_view name, std::string_view content) const {
    const std::string target = path(name);
    const std::string fresh = target + ".new";
    std::ofstream(fresh, std::ios::binary) << content;
    std::rename(fresh.c_str(), target.c_str());
    return target;
  }

 private:
  std::string path_;
};

}  // namespace bridge::testing
