// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/read_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace bridge {
namespace {

TEST(ReadFile, AllOfIt) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("read_file_test." + std::to_string(getpid()));
  for (const size_t size : {0u, 1u, 16u * 1024, 100'000u}) {
    std::string content;
    for (size_t i = 0; i < size; ++i) content += static_cast<char>(i * 7);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    EXPECT_TRUE(ReadFile(path) == content) << size;
  }
  std::filesystem::remove(path);
  const auto stat = ReadFile("/proc/self/stat");  // its size is said to be 0
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->rfind(std::to_string(getpid()) + " ", 0), 0u);
}

TEST(ReadFile, WhatCannotBeReadIsNoContent) {
  EXPECT_EQ(ReadFile("/no/such/file"), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
  // Opened, and then the read fails, as it does for a process that has gone.
  EXPECT_EQ(ReadFile("/"), std::nullopt);
  EXPECT_EQ(errno, EISDIR);
  EXPECT_EQ(ReadFile("/proc/self/mem"), std::nullopt);
  EXPECT_EQ(errno, EIO);
}

}  // namespace
}  // namespace bridge
