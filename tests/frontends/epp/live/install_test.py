# SPDX-License-Identifier: Apache-2.0
"""The package and the real host's command line: install, info, doctor, a start, tampering, end."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from conftest import API_KEY, program
from sdk_host import Sdk, plugin_directory


@pytest.fixture
def sdk(tmp_path: Path) -> Sdk:
    return Sdk(tmp_path / "home")


@pytest.fixture
def installed(sdk: Sdk) -> Sdk:
    assert sdk.providers("install", str(plugin_directory()), "--yes").code == 0
    return sdk


def store(sdk: Sdk) -> Path:
    return sdk.home / ".abx" / "providers" / "opensandbox"


def test_it_installs_starts_and_goes(sdk: Sdk) -> None:
    result = sdk.providers("install", str(plugin_directory()), "--yes")
    assert result.code == 0, result
    assert "opensandbox 0.1.0" in result.stdout
    receipt = json.loads((store(sdk) / ".abx-install.json").read_text())
    assert receipt["trust"] == "local" and receipt["tree_sha256"]

    doctor = sdk.providers("doctor", "opensandbox")
    assert doctor.code == 0, doctor
    lines = [line.split() for line in doctor.stdout.splitlines()]
    assert {line[1].rstrip(":") for line in lines} == {
        "installed",
        "integrity",
        "config",
        "handshake",
    }
    assert {line[0] for line in lines} == {"ok"}

    assert sdk.providers("uninstall", "opensandbox", "--purge").code == 0
    assert not store(sdk).exists()
    assert sdk.providers("info", "opensandbox").code == 4


def test_info_is_the_manifest(installed: Sdk) -> None:
    info = json.loads(installed.providers("info", "opensandbox").stdout)
    assert (info["id"], info["kind"], info["version"]) == ("opensandbox", "exec", "0.1.0")
    assert info["workflow_inputs"] == ["image"]
    for field in info["config_fields"]:
        assert field["description"] and field["description_zh"], field["key"]
        assert not (field["secret"] and field["default"]), field["key"]
    assert {f["key"] for f in info["config_fields"] if f["secret"]} == {
        "api_key",
        "registry_password",
        "bridge_token",
    }


def test_the_archive_installs(sdk: Sdk, tmp_path: Path) -> None:
    with tarfile.open(program("PLUGIN_ARCHIVE")) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert sdk.providers("install", str(tmp_path / "unpacked" / "opensandbox"), "--yes").code == 0


def test_a_second_install_wants_force(installed: Sdk) -> None:
    again = installed.providers("install", str(plugin_directory()), "--yes")
    assert again.code != 0 and "E8003" in again.stdout + again.stderr
    assert installed.providers("install", str(plugin_directory()), "--yes", "--force").code == 0


CHANGES = {
    "changed": lambda tree: (tree / "README.md").write_text("other"),
    "executable": lambda tree: append(tree / "bin" / "opensandbox-provider"),
    "library": lambda tree: append(tree / "lib" / "libcrypto.so.3"),
    "added": lambda tree: (tree / "lib" / "libc.so.6").write_bytes(b""),
    "removed": lambda tree: (tree / "LICENSE").unlink(),
    "mode": lambda tree: (tree / "bin" / "opensandbox-provider").chmod(0o600),
}


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0")


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_tree_is_not_started(installed: Sdk, change: str) -> None:
    CHANGES[change](store(installed))
    doctor = installed.providers("doctor", "opensandbox")
    assert doctor.code == 2
    (line,) = [text for text in doctor.stdout.splitlines() if "integrity" in text]
    assert not line.startswith("ok"), doctor.stdout
    result = installed.python(
        "import asyncio\n"
        "from agent_sandbox import ProviderSandbox\n"
        "async def main():\n"
        "    await ProviderSandbox.list(provider='opensandbox')\n"
        "try:\n"
        "    asyncio.run(main())\n"
        "except Exception as e:\n"
        "    print(getattr(e, 'code', None), type(e).__name__, e)\n"
    )
    assert "E8011" in result.stdout, result


def test_what_it_leaves_is_nothing(installed: Sdk, opensandbox: str) -> None:
    """Nothing but the host's own `data` folder, which stays empty."""
    env = {"ABX_OPENSANDBOX_BASE_URL": opensandbox, "OPEN_SANDBOX_API_KEY": API_KEY}
    result = installed.python(
        "import asyncio\n"
        "from agent_sandbox import ProviderSandbox\n"
        "async def main():\n"
        "    sandbox = await ProviderSandbox.create(provider='opensandbox', template='base')\n"
        "    print((await sandbox.commands.run('echo hi')).stdout, end='')\n"
        "    await sandbox.kill()\n"
        "asyncio.run(main())\n",
        env,
    )
    assert result.stdout == "hi\n", result
    assert list((store(installed) / "data").iterdir()) == []
    assert installed.providers("doctor", "opensandbox").code == 0


def test_a_full_copy_is_all_that_is_needed(sdk: Sdk, tmp_path: Path) -> None:
    """From a folder that is gone afterwards, as a clone in /tmp would be."""
    copy = tmp_path / "copy"
    shutil.copytree(plugin_directory(), copy)
    assert sdk.providers("install", str(copy), "--yes").code == 0
    shutil.rmtree(copy)
    assert sdk.providers("doctor", "opensandbox").code == 0
