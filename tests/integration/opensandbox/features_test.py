# SPDX-License-Identifier: Apache-2.0
"""What the bridge offers of a real server on Docker, at which level; each case is a row of
docs/compatibility.md."""

from __future__ import annotations

import os
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from astrabox_sandbox_bridge.client import BridgeClient, command, v1
from conftest import Loop, OpenSandbox, Results, Sandboxes, reason_of

Diagnostics = v1.GetDiagnosticsRequest


def shell(client: BridgeClient, loop: Loop, box: str, line: str) -> bytes:
    ran = loop(client.execs.run(box, command(line)))
    assert ran.outcome.exit_code == 0, ran
    return bytes(ran.stdout)


def test_create_with_everything_that_docker_has(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results
) -> None:
    box = sandboxes.make(
        env=[v1.EnvVar(name="GIVEN", value="é $x")], metadata={"team": "a"},
        resource_limits={"cpu": "500m", "memory": "256Mi"}, entrypoint=["sleep", "infinity"],
        platform="linux/amd64", ttl={"seconds": 600})
    seen = loop(client.sandboxes.get(box))
    assert (dict(seen.metadata), list(seen.entrypoint)) == ({"team": "a"}, ["sleep", "infinity"])
    assert seen.platform == "linux/amd64"
    left = seen.expires_at.ToDatetime(UTC) - datetime.now(UTC)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10, seconds=5)
    assert shell(client, loop, box, 'printf %s "$GIVEN"') == "é $x".encode()
    limit = shell(client, loop, box, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes "
                                     "/sys/fs/cgroup/memory.max 2>/dev/null || true")
    assert b"268435456" in limit
    results.works("create: env, labels, limits, entrypoint, platform, ttl")


def test_a_repeated_create_makes_one_sandbox(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results, image: str
) -> None:
    box = sandboxes.make(request_id="real-1")
    again = loop(client.sandboxes.create(v1.SandboxSpec(image=image), request_id="real-1"))
    assert (again.adopted, again.sandbox.sandbox_id) == (True, box)
    other = v1.SandboxSpec(image=image, env=[v1.EnvVar(name="A", value="b")])
    assert reason_of(loop, client.sandboxes.create(other, request_id="real-1")) == \
        "REQUEST_ID_REUSED"
    results.works("create: safe to repeat (request_id)")


def test_list_and_labels(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results
) -> None:
    one = sandboxes.make(metadata={"suite": "labels", "n": "1"})
    two = sandboxes.make(metadata={"suite": "labels", "n": "2"})

    async def found(**labels: str) -> list[str]:
        return [box.sandbox_id async for box in client.sandboxes.list(metadata=labels, page_size=1)]

    assert loop(found(suite="labels")) == [two, one], "newest first, page by page"
    loop(client.sandboxes.update_metadata(one, set_keys={"n": "3"}, delete_keys=["suite"]))
    assert loop(found(suite="labels")) == [two]
    assert loop(found(n="3")) == [one]
    assert reason_of(loop, client.sandboxes.update_metadata(one, set_keys={"a b": "c"})) == \
        "INVALID_ARGUMENT"
    results.works("list by labels, in pages; labels changed")


def test_expiry(client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results) -> None:
    box = sandboxes.make(ttl={"seconds": 100})
    answer = loop(client.sandboxes.set_expiration(box, ttl=3600))
    stored = loop(client.sandboxes.get(box)).expires_at
    assert answer.expires_at == stored
    kept = loop(client.sandboxes.set_expiration(box, ttl=60, never_shorten=True))
    assert (kept.unchanged, kept.expires_at) == (True, stored)
    forever = sandboxes.make(never=True)
    assert not loop(client.sandboxes.get(forever)).HasField("expires_at")
    assert reason_of(loop, client.sandboxes.set_expiration(forever, ttl=600)) == "NO_EXPIRY"
    results.works("expiry: renewed, never shortened, none")


def test_pause_and_resume(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results
) -> None:
    box = sandboxes.make()
    paused = loop(client.sandboxes.pause(box))
    assert (paused.settled, paused.sandbox.state) == (True, v1.SANDBOX_STATE_PAUSED)
    assert loop(client.sandboxes.pause(box)).already
    assert reason_of(loop, client.execs.run(box, command("true"))) == "SANDBOX_NOT_RUNNING"
    resumed = loop(client.sandboxes.resume(box))
    assert (resumed.settled, resumed.sandbox.state) == (True, v1.SANDBOX_STATE_RUNNING)
    assert loop(client.sandboxes.resume(box)).already
    assert shell(client, loop, box, "echo on") == b"on\n"
    results.works("pause and resume")


def test_snapshots_and_their_clones(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results
) -> None:
    """A clone shows the labels of its source, which were stored in the image. It is neither found
    by the source's request nor taken for it."""
    source = sandboxes.make(request_id="source-1", metadata={"who": "source"})
    shell(client, loop, source, "echo kept > /root/f")
    snapshot = loop(client.sandboxes.create_snapshot(source, "first"))
    assert snapshot.state == v1.Snapshot.STATE_READY
    listed = loop(client.sandboxes.snapshots(source))
    assert [one.snapshot_id for one in listed.snapshots] == [snapshot.snapshot_id]
    clone = sandboxes.make(snapshot_id=snapshot.snapshot_id, metadata={"who": "clone"})
    assert shell(client, loop, clone, "cat /root/f") == b"kept\n"
    seen = loop(client.sandboxes.get(clone))
    assert (seen.snapshot_id, seen.request_id) == (snapshot.snapshot_id, "")
    assert seen.metadata["who"] == "clone"

    async def found(**filter_: Any) -> list[str]:
        return [box.sandbox_id async for box in client.sandboxes.list(**filter_)]

    assert loop(found(request_id="source-1")) == [source]
    assert loop(found(metadata={"who": "source"})) == [source]
    again = loop(client.sandboxes.create(
        v1.SandboxSpec(image=sandboxes.image, metadata={"who": "source"}), request_id="source-1"))
    assert (again.adopted, again.sandbox.sandbox_id) == (True, source)
    loop(client.sandboxes.delete(clone))
    loop(client.sandboxes.delete_snapshot(snapshot.snapshot_id))
    assert not loop(client.sandboxes.snapshots(source)).snapshots
    assert reason_of(loop, client.sandboxes.delete_snapshot(snapshot.snapshot_id)) == \
        "SNAPSHOT_NOT_FOUND"
    results.works("snapshots: made, listed, started from, deleted")


def test_volumes(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results,
    opensandbox: OpenSandbox, image: str
) -> None:
    host = opensandbox.directory / "volumes"
    (host / "in").write_text("from the host", encoding="utf-8")
    box = sandboxes.make(volumes=[
        v1.Volume(name="shared", mount_path="/shared", host_path=str(host)),
        v1.Volume(name="fixed", mount_path="/fixed", host_path=str(host), read_only=True),
        v1.Volume(name="named", mount_path="/named", named=v1.Volume.NamedVolume(claim="vol-1"))])
    assert shell(client, loop, box, "cat /fixed/in; echo out > /shared/out; echo n > /named/f; "
                                    "touch /fixed/x 2>/dev/null || echo ' read-only'") == \
        b"from the host read-only\n"
    assert (host / "out").read_text(encoding="utf-8") == "out\n"
    other = sandboxes.make(volumes=[
        v1.Volume(name="named", mount_path="/n", named=v1.Volume.NamedVolume(claim="vol-1"))])
    assert shell(client, loop, other, "cat /n/f") == b"n\n"
    forbidden = v1.SandboxSpec(image=image, volumes=[
        v1.Volume(name="v", mount_path="/v", host_path="/etc")])
    assert reason_of(loop, client.sandboxes.create(forbidden)) in (
        "UPSTREAM_REJECTED", "INVALID_ARGUMENT")
    results.works("volumes: host paths, named ones, read-only")


@pytest.mark.parametrize("kind", ["SUMMARY", "INSPECT", "EVENTS", "LOGS"])
def test_diagnostics(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results, kind: str
) -> None:
    box = sandboxes.make(entrypoint=["sh", "-c", "echo CANARY-line; exec sleep infinity"],
                         env=[v1.EnvVar(name="API_TOKEN", value="CANARY-token")])
    got = loop(client.sandboxes.diagnostics(box, Diagnostics.Kind.Value(f"KIND_{kind}")))
    assert got.text
    assert b"CANARY-token" not in got.text
    if kind == "LOGS":
        assert b"CANARY-line" in got.text
    results.works("diagnostics: summary, inspect, events, logs", "FULL",
                  "values that look like secrets are replaced")


def test_endpoints(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results
) -> None:
    box = sandboxes.make(entrypoint=["python3", "-m", "http.server", "--directory", "/etc", "8080"])

    async def fetch(route: v1.EndpointRoute.ValueType) -> bytes:
        endpoint = await client.sandboxes.endpoint(box, 8080, route=route)
        request = urllib.request.Request(endpoint.url + "/passwd", headers=dict(endpoint.headers))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=20) as answer:
            return bytes(answer.read())

    shell(client, loop, box, "until grep -q ':1F90 ' /proc/net/tcp /proc/net/tcp6; do :; done")
    wanted = shell(client, loop, box, "cat /etc/passwd")
    assert loop(fetch(v1.ENDPOINT_ROUTE_DIRECT)) == wanted
    assert loop(fetch(v1.ENDPOINT_ROUTE_SERVER_PROXY)) == wanted
    later = datetime.now(UTC) + timedelta(hours=1)
    assert reason_of(loop, client.sandboxes.signed_endpoint(box, 8080, expires_at=later)) == \
        "SIGNED_ENDPOINT_UNSUPPORTED"
    results.works("endpoints: direct, through the server")
    results.works("signed endpoints", "NONE", "the server signs on Kubernetes only")


@pytest.mark.parametrize(("feature", "spec", "note"), [
    ("secure access", {"secure_access": True}, "a matter of the Kubernetes gateway"),
    ("templates", {"template_id": "t"}, "the server has them on Kubernetes only"),
    ("pools", {"extensions": {"poolRef": "p"}}, "the server has them on Kubernetes only"),
])
def test_what_docker_has_not_is_refused_in_a_word(
    client: BridgeClient, loop: Loop, results: Results, image: str, feature: str,
    spec: dict[str, Any], note: str
) -> None:
    fields = spec if "template_id" in spec else {"image": image, **spec}
    work = client.sandboxes.create(v1.SandboxSpec(**fields))
    assert reason_of(loop, work) == "UNSUPPORTED_FEATURE"
    results.works(feature, "NONE", note)


def test_limits_are_checked_before_the_server_refuses_them(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, image: str
) -> None:
    """It refuses fractions of Gi and lives below a minute, with a body that holds everything."""
    fraction = v1.SandboxSpec(image=image, resource_limits={"memory": "1.5Gi"})
    assert reason_of(loop, client.sandboxes.create(fraction)) == "INVALID_ARGUMENT"
    box = sandboxes.make(ttl={"seconds": 5})
    left = loop(client.sandboxes.get(box)).expires_at.ToDatetime(UTC) - datetime.now(UTC)
    assert timedelta(seconds=30) < left <= timedelta(seconds=65)


def test_resource_usage(
    client: BridgeClient, sandbox_id: str, loop: Loop, results: Results
) -> None:
    usage = loop(client.sandboxes.resource_usage(sandbox_id))
    assert usage.cpu_count == os.cpu_count()
    assert 0 < usage.memory_used_bytes < usage.memory_total_bytes
    results.works("resource usage", "FULL", "numbers of the machine, not of the sandbox's limits")


@pytest.mark.parametrize("stock", [False, True], ids=["own", "stock"])
def test_capabilities_are_found_by_trying(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, results: Results, stock: bool
) -> None:
    box = sandboxes.make_stock() if stock else sandboxes.make()
    answer = loop(client.bridge.capabilities(box))
    assert answer.daemon == ("stock execd" if stock else "bridge execd")
    rows = {row.feature: row for row in answer.capabilities}
    exact = v1.Capability.LEVEL_DEGRADED if stock else v1.Capability.LEVEL_FULL
    assert rows["exec.bytes"].level == exact
    results.capabilities[answer.daemon] = {
        row.feature: (v1.Capability.Level.Name(row.level).removeprefix("LEVEL_"), row.note)
        for row in answer.capabilities}


def test_the_server_names_its_version(
    client: BridgeClient, loop: Loop, results: Results
) -> None:
    info = loop(client.bridge.info())
    assert (info.upstream.kind, info.upstream.version) == ("opensandbox", "1.1.1")
    results.versions["opensandbox-server"] = info.upstream.version
