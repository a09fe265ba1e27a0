# SPDX-License-Identifier: Apache-2.0
"""Sandboxes through the built sbx, bridge and local OpenSandbox, over real sockets."""

from __future__ import annotations

import json
import signal
import subprocess

from conftest import Sbx, start_bridge
from program import eventually


def ids(sbx: Sbx, *filters: str) -> list[str]:
    return sbx.text("ls", "-q", *filters).split()


def test_from_birth_to_proven_death(sbx: Sbx) -> None:
    made = sbx.json("create", "--ttl=1h", "--label", "who=life", "--image", "python:3.12-slim")
    sandbox_id = made["sandbox_id"]
    assert made["state"] == "RUNNING"
    assert ids(sbx, "-l", "who=life") == [sandbox_id]
    assert ids(sbx, "-l", "who=other") == []
    info = sbx.json("info", sandbox_id)
    assert info["metadata"] == {"who": "life"}
    assert info["image"] == "python:3.12-slim"
    gone = sbx.json("rm", sandbox_id)
    assert gone["verdict"] == "CONFIRMED_GONE"
    assert gone["evidence"][0]["action"] == "DELETE"
    assert sbx.json("rm", sandbox_id)["verdict"] == "ALREADY_GONE"
    missing = sbx.run("info", sandbox_id)
    assert missing.returncode == 1
    assert missing.stderr.startswith(b"sbx: SANDBOX_NOT_FOUND: ")


def test_a_request_id_finds_the_same_sandbox(sbx: Sbx) -> None:
    first = sbx.json("create", "--request-id=rq-1", "--ttl=10m")
    again = sbx.json("create", "--request-id=rq-1", "--ttl=10m")
    assert again["sandbox_id"] == first["sandbox_id"]
    assert (first["adopted"], again["adopted"]) == (False, True)
    other = sbx.run("create", "--request-id=rq-1", "--ttl=20m")
    assert other.returncode == 1
    assert other.stderr.startswith(b"sbx: REQUEST_ID_REUSED: ")
    assert sbx.run("rm", first["sandbox_id"]).returncode == 0


def test_renew_answers_what_is_stored(sbx: Sbx, sandbox: str) -> None:
    stored = sbx.text("renew", sandbox, "2h").strip()
    assert sbx.json("info", sandbox)["expires_at"] == stored


def test_run_leaves_no_sandbox(sbx: Sbx) -> None:
    before = ids(sbx)
    ran = sbx.run("run", "--", "sh", "-c", "echo hello; exit 9")
    assert (ran.returncode, ran.stdout, ran.stderr) == (9, b"hello\n", b"")
    assert ids(sbx) == before


def test_run_after_ctrl_c_leaves_no_sandbox(sbx: Sbx) -> None:
    before = ids(sbx)
    process = sbx.start("run", "-c", "echo up; sleep 56001")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert ids(sbx) == before


def test_a_create_that_is_cut_off_is_reclaimed(sbx: Sbx) -> None:
    process = sbx.start("create", "--label", "who=cut", "--ttl=10m")
    process.kill()
    out, _ = process.communicate()
    # It may have been quick enough to make one; then it is the caller's, who was told.
    if not out:
        eventually(lambda: ids(sbx, "-l", "who=cut") == [], "the half-made sandbox is gone")
    for sandbox_id in ids(sbx, "-l", "who=cut"):
        sbx.run("rm", sandbox_id)


def test_doctor_is_content(sbx: Sbx) -> None:
    report = json.loads(sbx.run("doctor", "--json").stdout)
    assert report["ok"], report["checks"]
    assert report["server"]["upstream"]["kind"] == "local"


def test_the_bridge_ends_in_order_and_takes_everything_along() -> None:
    bridge = start_bridge()
    try:
        sbx = Sbx(bridge.place)
        sandbox_id = sbx.text("create").strip()
        sbx.text("exec", "-d", sandbox_id, "--", "sleep", "57001")
    finally:
        code = bridge.stop()
    assert code == 0, bridge.log
    session = ["pgrep", "-s", str(bridge.pid)]
    assert subprocess.run(session, capture_output=True, check=False).stdout == b""
    left = ["pgrep", "-f", "[s]leep 57001"]
    eventually(lambda: subprocess.run(left, capture_output=True, check=False).returncode != 0,
               "the sandbox's processes are gone")
