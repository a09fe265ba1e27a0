# SPDX-License-Identifier: Apache-2.0
"""Stub of rules_cc: hands out Bazel's built-in rules, since Debian's package does not load here."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
