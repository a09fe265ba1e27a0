# SPDX-License-Identifier: Apache-2.0
"""The distribution: built from a copy of the source, installed into a clean environment, used."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "astrabox_sandbox_bridge"
PROTOS = ("bridge", "common", "errors", "exec", "files", "isolation", "processes", "sandboxes")


def run(*command: str | Path, cwd: Path | None = None, **environ: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(  # noqa: S603
        [str(part) for part in command],
        cwd=cwd,
        env=clean | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, sdist): the sdist from the source, the wheel from the sdist, as pip would."""
    top = tmp_path_factory.mktemp("source")
    skip = shutil.ignore_patterns("_generated", "__pycache__", ".*_cache", "dist", "BUILD.bazel")
    for part in ("frontends/astrabox", "proto"):
        shutil.copytree(ROOT / part, top / part, ignore=skip)
    shutil.copy(ROOT / "LICENSE", top)
    run(sys.executable, "-m", "build", "--no-isolation", cwd=top / "frontends/astrabox")
    (wheel,) = (top / "frontends/astrabox/dist").glob("*.whl")
    (sdist,) = (top / "frontends/astrabox/dist").glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def clean_python(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the wheel in it. Its dependencies are those of the
    tests' own environment, linked, so that no network is needed."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    run(sys.executable, "-m", "venv", place)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", built[0])
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_has_what_is_used(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        entry_points = configparser.ConfigParser()
        entry_points.read_string(wheel.read(f"{info}/entry_points.txt").decode())
        metadata = wheel.read(f"{info}/METADATA").decode()
        generated = wheel.read(f"{PACKAGE}/_generated/exec_pb2_grpc.py").decode()
    assert f"{PACKAGE}/py.typed" in names
    for proto in PROTOS:
        for suffix in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi"):
            assert f"{PACKAGE}/_generated/{proto}{suffix}" in names
    assert {name.split("/")[0] for name in names} == {PACKAGE, info}
    assert dict(entry_points["astrabox.providers.sandbox"]) == {
        "sandbox_bridge": "astrabox_sandbox_bridge.provider:SandboxBridgeProvider"
    }
    assert "Requires-Python: >=3.11" in metadata
    # What the generated code demands is what is demanded from pip.
    demanded = re.search(r"GRPC_GENERATED_VERSION = '([\d.]+)'", generated)
    assert demanded is not None
    assert f"Requires-Dist: grpcio>={demanded[1]}\n" in metadata
    assert "Requires-Dist: astrabox" not in metadata


def test_the_sdist_has_the_protos_and_no_generated_code(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
    for proto in PROTOS:
        assert f"proto/sandbox/bridge/v1/{proto}.proto" in names
    assert {"LICENSE", "README.md", "pyproject.toml", "hatch_build.py"} <= set(names)
    assert not [name for name in names if "_generated" in name or "cache" in name]


def test_the_client_needs_no_astrabox(clean_python: Path, tmp_path: Path) -> None:
    program = (
        "import sys, astrabox_sandbox_bridge.client as c; from astrabox_sandbox_bridge.client "
        "import v1; assert v1.SandboxSpec(image='x').image == 'x'; "
        "assert not any(m.split('.')[0] == 'astrabox' for m in sys.modules); print(c.__file__)"
    )
    place = run(clean_python, "-c", program, cwd=tmp_path).strip()
    assert str(clean_python.parent.parent) in place


def test_importing_brings_no_top_level_package_of_the_protos(
    clean_python: Path, tmp_path: Path
) -> None:
    program = (
        "import sys, astrabox_sandbox_bridge.client; "
        "assert 'sandbox' not in sys.modules; import importlib.util; "
        "assert importlib.util.find_spec('sandbox') is None"
    )
    run(clean_python, "-c", program, cwd=tmp_path)


def test_the_provider_without_astrabox_says_what_is_missing(
    clean_python: Path, tmp_path: Path
) -> None:
    program = (
        "import importlib.util\n"
        "if importlib.util.find_spec('astrabox') is None:\n"
        "    try:\n"
        "        import astrabox_sandbox_bridge.provider\n"
        "    except ModuleNotFoundError as error:\n"
        "        assert error.name == 'astrabox', error\n"
        "    else:\n"
        "        raise SystemExit('imported without astrabox')\n"
    )
    run(clean_python, "-c", program, cwd=tmp_path)


def test_astrabox_loads_the_installed_provider(clean_python: Path, tmp_path: Path) -> None:
    program = (
        "from astrabox.providers import load_entry_point_providers as load; "
        "from astrabox.seams.sandbox import sandbox_for_name; load(); "
        "print(type(sandbox_for_name('sandbox_bridge')).__module__)"
    )
    shown = run(
        clean_python, "-c", program, cwd=tmp_path, PYTHONPATH=str(ROOT / "tests/astrabox/stand_in")
    )
    assert shown.strip() == "astrabox_sandbox_bridge.provider"


def test_the_structural_suite_passes_on_what_is_installed(
    clean_python: Path, tmp_path: Path
) -> None:
    shown = run(
        clean_python,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"),
        *("-o", "asyncio_default_fixture_loop_scope=function", "--rootdir", ROOT),
        *("--basetemp", tmp_path / "pytest", ROOT / "tests/astrabox/structural_test.py"),
        cwd=tmp_path,
        # Of ours this alone: the package is the installed one.
        PYTHONPATH=str(ROOT / "tests/runner"),
    )
    assert " passed" in shown


def test_the_installed_package_is_typed(clean_python: Path, tmp_path: Path) -> None:
    user = tmp_path / "user.py"
    user.write_text(
        "from astrabox_sandbox_bridge.client import BridgeClient, Options, v1\n"
        "async def use() -> v1.Sandbox:\n"
        "    async with BridgeClient(Options('a:1')) as bridge:\n"
        "        made = await bridge.sandboxes.create(v1.SandboxSpec(image='x'))\n"
        "        reveal_type(made)\n"
        "        return made.sandbox\n"
    )
    shown = run(
        sys.executable,
        *("-m", "mypy", "--strict", "--cache-dir", tmp_path / "mypy"),
        *("--python-executable", clean_python, user),
        cwd=tmp_path,
    )
    assert 'Revealed type is "astrabox_sandbox_bridge._generated.sandboxes_pb2.' in shown
