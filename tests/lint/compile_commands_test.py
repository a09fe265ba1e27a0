# SPDX-License-Identifier: Apache-2.0
"""compile_commands.json from Bazel's actions. The action is one of Bazel 4.2.3's, shortened."""

from __future__ import annotations

from pathlib import Path

import compile_commands

ARGUMENTS = ["/usr/bin/clang-19", "-Wall", "-fcolor-diagnostics", "-MD",
             "-MF", "bazel-out/k8/bin/b/_objs/x/x.pic.d",
             "-frandom-seed=bazel-out/k8/bin/b/_objs/x/x.pic.o", "-fPIC", "-iquote", ".",
             "-std=c++20", '-D__DATE__="redacted"', "-c", "b/x.cc", "-o",
             "bazel-out/k8/bin/b/_objs/x/x.pic.o"]


def test_keeps_what_says_how_a_source_is_read() -> None:
    assert compile_commands.tool_arguments(ARGUMENTS) == [
        "/usr/bin/clang-19", "-Wall", "-fPIC", "-iquote", ".", "-std=c++20",
        '-D__DATE__="redacted"', "-c", "b/x.cc"]


def test_one_sorted_entry_a_source_of_the_workspace() -> None:
    generated = [*ARGUMENTS[:-3], "bazel-out/k8/bin/proto/x.pb.cc", *ARGUMENTS[-2:]]
    external = [*ARGUMENTS[:-3], "external/z/y.cc", *ARGUMENTS[-2:]]
    other = [*ARGUMENTS[:-3], "a/w.cc", *ARGUMENTS[-2:]]
    actions = {"actions": [{"arguments": ARGUMENTS}, {"arguments": ARGUMENTS},
                           {"arguments": generated}, {"arguments": external},
                           {"arguments": other}, {"arguments": ["ar", "x"]}, {}]}
    entries = compile_commands.entries(actions, Path("/src"), Path("/exec"))
    assert [entry["file"] for entry in entries] == ["/src/a/w.cc", "/src/b/x.cc"]
    assert entries[1]["directory"] == "/src"
    assert entries[1]["arguments"][-1] == "b/x.cc"


def test_what_bazel_makes_is_found_from_the_workspace() -> None:
    root = Path("/base/execroot/name")
    assert compile_commands.absolute("bazel-out/k8", root) == "/base/execroot/name/bazel-out/k8"
    assert compile_commands.absolute("external/system", root) == "/base/external/system"
    assert compile_commands.absolute(".", root) == "."
    assert compile_commands.absolute("b/x.cc", root) == "b/x.cc"


def test_nothing_compiled_is_an_empty_database() -> None:
    assert compile_commands.entries({}, Path("/src"), Path("/exec")) == []
