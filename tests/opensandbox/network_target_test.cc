// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/network_target.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

using enum NetworkTarget;

// As the real sidecar was seen to apply them, or not.
TEST(KindOfTarget, WhatAppliesAndWhatDoesNot) {
  const struct {
    NetworkTarget kind;
    std::string target;
  } kTargets[] = {
      {kName, "pypi.org"},
      {kName, "*.pypi.org"},
      {kName, "PyPI.org"},
      {kName, "localhost"},
      {kName, "_dmarc.a-b.xn--bse-sna.example"},
      {kName, "10.example"},
      {kName, "0xa.example"},
      {kName, std::string(63, 'a') + ".example"},
      {kAddress, "10.0.0.1"},
      {kAddress, "10.0.0.0/8"},
      {kAddress, "10.0.0.1/8"},
      {kAddress, "10.0.0.1/32"},
      {kAddress, "0.0.0.0/0"},
      {kAddress, "::1"},
      {kAddress, "fd00::/8"},
      {kAddress, "::/0"},
      {kAddress, "fd00::1/128"},
      {kMapped, "::ffff:10.0.0.1"},
      {kMapped, "::ffff:a00:1"},
      {kMapped, "::ffff:10.0.0.0/104"},
      {kNothing, ""},
      {kNothing, "10.0.0.0/33"},
      {kNothing, "10.0.0.0/+8"},
      {kNothing, "10.0.0.0/08"},
      {kNothing, "10.0.0.0/"},
      {kNothing, "10.0.0.0/8/8"},
      {kNothing, "10.0.0.0/99999999999999999999"},
      {kNothing, "fd00::/129"},
      {kNothing, "10.0.0.256"},
      {kNothing, "010.0.0.1"},
      {kNothing, "10.0.1"},
      {kNothing, "0x0a000001"},
      {kNothing, "0x"},
      {kNothing, "10.0.0.0-10.0.0.9"},
      {kNothing, "10.0.0.1:443"},
      {kNothing, "10.0.0.1."},
      {kNothing, "[::1]"},
      {kNothing, "fe80::1%eth0"},
      {kNothing, "a.example."},
      {kNothing, "a..example"},
      {kNothing, ".example"},
      {kNothing, "a.example:443"},
      {kNothing, "a.example/path"},
      {kNothing, "https://a.example"},
      {kNothing, "*"},
      {kNothing, "*."},
      {kNothing, "*.*.example"},
      {kNothing, "*a.example"},
      {kNothing, "a.*.example"},
      {kNothing, "b\xc3\xb6se.example"},
      {kNothing, std::string(64, 'a') + ".example"},
      {kNothing, std::string(60, 'a') + "." + std::string(60, 'a') + "." + std::string(60, 'a') +
                     "." + std::string(60, 'a') + ".example.net"},
  };
  for (const auto& target : kTargets) {
    EXPECT_EQ(KindOfTarget(target.target), target.kind) << target.target;
  }
}

}  // namespace
}  // namespace bridge
