// SPDX-License-Identifier: Apache-2.0
//
// tests/local/execd/folder_fixture.h — tests of files: a folder of the test's own. Not below
// TEST_TMPDIR, which may be closed to other users.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/server/temp_folder.h"

namespace bridge::local::execd {

class FolderTest : public ::testing::Test {
 protected:
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(At(name), std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(At(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  const ::bridge::testing::TempFolder folder_;

 protected:
  const std::string& root_ = folder_.root();
};

}  // namespace bridge::local::execd
