# SPDX-License-Identifier: Apache-2.0
"""One test a source file of frontends/epp."""

def epp_test(name, deps = [], size = "small", **kwargs):
    native.cc_test(
        name = name + "_test",
        size = size,
        srcs = [name + "_test.cc"],
        deps = ["//frontends/epp:" + name, "@system//:gtest_main"] + deps,
        **kwargs
    )
