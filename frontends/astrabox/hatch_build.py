# SPDX-License-Identifier: Apache-2.0
"""Generates the Python stubs of `sandbox.bridge.v1` while a wheel is built.

The stubs are not committed. They live in `astrabox_sandbox_bridge._generated`, not at the top-level
name `sandbox` that protoc would use, so that they cannot collide with anybody else's package; the
imports among them are rewritten accordingly.

As a program (`python hatch_build.py [TARGET [PROTOS]]`) it generates them into the source tree, for
working on it, or elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program without hatchling
    BuildHookInterface = object  # type: ignore[assignment,misc]

ROOT = Path(__file__).resolve().parent
TARGET = ROOT / "src" / "astrabox_sandbox_bridge" / "_generated"
PACKAGE = "sandbox/bridge/v1"
HOME = "astrabox_sandbox_bridge._generated"
_QUALIFIED = re.compile(r"(?<![\w'\"/.])sandbox\.bridge\.v1\.(?=\w+_pb2\b)")


def proto_root() -> Path:
    """The tree of .proto files: beside this file in an sdist, else at the repository's root."""
    for candidate in (ROOT / "proto", ROOT.parent.parent / "proto"):
        if (candidate / PACKAGE / "sandboxes.proto").is_file():
            return candidate
    raise SystemExit("the .proto files of sandbox.bridge.v1 are neither here nor in ../../proto")


def generate(target: Path = TARGET, protos: Path | None = None) -> None:
    """Writes the stubs of every .proto file into `target`, replacing what was there."""
    import grpc_tools
    from grpc_tools import protoc

    protos = protos or proto_root()
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    # protoc looks for its plugins beside the interpreter that builds, which need not be on PATH.
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as scratch, mock.patch.dict(os.environ, PATH=path):
        code = protoc.main(
            [
                "protoc",
                f"--proto_path={protos}",
                f"--proto_path={well_known}",
                *(f"--{kind}_out={scratch}" for kind in ("python", "grpc_python")),
                *(f"--{kind}_out=quiet:{scratch}" for kind in ("mypy", "mypy_grpc")),
                *(str(path) for path in sorted((protos / PACKAGE).glob("*.proto"))),
            ]
        )
        if code != 0:
            raise SystemExit(f"protoc failed with code {code}")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (target / "__init__.py").write_text(
            '"""Generated from the .proto files of sandbox.bridge.v1; do not edit."""\n'
        )
        for path in sorted((Path(scratch) / PACKAGE).iterdir()):
            (target / path.name).write_text(relocate(path.read_text()))


def relocate(text: str) -> str:
    """Generated code with its imports of `sandbox.bridge.v1` moved to where it is installed."""
    return "\n".join(_relocate_line(line) for line in text.splitlines()) + "\n"


def _relocate_line(line: str) -> str:
    # Serialised descriptors and service names keep their true package.
    if line.startswith(("from sandbox.", "import sandbox.")):
        line = line.replace("import sandbox.bridge.v1.", "from sandbox.bridge.v1 import ")
        return line.replace("sandbox.bridge.v1", HOME)
    if "BuildTopDescriptorsAndMessages" in line:  # names the module of the classes
        return line.replace("sandbox.bridge.v1", HOME)
    return line if "AddSerializedFile" in line else _QUALIFIED.sub("", line)


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """hatchling's entry: a wheel gets the stubs, an sdist the .proto files instead."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel":
            generate()


if __name__ == "__main__":
    generate(*(Path(argument).absolute() for argument in sys.argv[1:]))
