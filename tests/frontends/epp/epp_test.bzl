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

def epp_host_test(name, deps = [], **kwargs):
    """A test that speaks EPP/1 with the plugin, in front of a bridge that does what the test says."""
    epp_test(
        name,
        deps = [
            ":fake_bridge",
            ":plugin_host",
            "//bridge/base:error",
            "//frontends/epp:errors",
            "//frontends/epp:manifest_h",
        ] + deps,
        **kwargs
    )
