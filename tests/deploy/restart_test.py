# SPDX-License-Identifier: Apache-2.0
"""A bridge that goes takes nothing along: it has no state of its own (DEP-11)."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import bridge_client as client
import grpc
import pytest
from program import PATIENCE_SECONDS, eventually
from programs import Bridge, OpenSandbox, sbx


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    with OpenSandbox() as opensandbox:
        yield opensandbox.place


def listed(address: str, label: str) -> list[str]:
    """Ids of the sandboxes with a label."""
    shown = sbx(address, "ls", "--json", "-l", label)
    assert shown.returncode == 0, shown.stderr.decode()
    rows = [json.loads(line) for line in shown.stdout.decode().splitlines()]
    flat = [each for row in rows for each in (row if isinstance(row, list)
                                              else row.get("sandboxes", [row]))]
    return [each["sandbox_id"] for each in flat]


@pytest.mark.parametrize("milliseconds", [0, 2, 5, 10, 20, 50, 100, 200])
def test_a_create_is_interrupted_and_repeated(upstream: str, milliseconds: int) -> None:
    """Never a second sandbox of one request id, whenever the first bridge died."""
    label, request = f"at=ms{milliseconds}", f"request-{milliseconds}"
    create = ("create", "--ttl=10m", "--label", label, "--request-id", request)
    first = Bridge(upstream)
    with subprocess.Popen([os.environ["SBX_BINARY"], *create], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"SANDBOX_BRIDGE_ADDRESS": first.place}) as caller:
        time.sleep(milliseconds / 1000)
        first.kill()
        made, _ = caller.communicate(timeout=PATIENCE_SECONDS)

    second = Bridge(upstream)
    try:
        again = sbx(second.place, *create)
        assert again.returncode == 0, again.stderr.decode()
        sandbox = again.stdout.decode().strip()
        if made:
            assert made.decode().strip() == sandbox
        assert listed(second.place, label) == [sandbox]
        assert sbx(second.place, "rm", sandbox).returncode == 0
        assert listed(second.place, label) == []
        assert second.stop() == 0
    finally:
        second.kill()


def test_the_next_bridge_knows_every_sandbox_at_once(upstream: str) -> None:
    """Also one in which the first was running a command when it died."""
    first = Bridge(upstream)
    made = sbx(first.place, "create", "--ttl=10m", "--label", "who=next")
    sandbox = made.stdout.decode().strip()
    with subprocess.Popen([os.environ["SBX_BINARY"], "exec", sandbox, "-c",
                           "echo up; sleep 58001"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"SANDBOX_BRIDGE_ADDRESS": first.place}) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"up\n"
        first.kill()
        caller.communicate(timeout=PATIENCE_SECONDS)
        assert caller.returncode != 0

    second = Bridge(upstream)
    try:
        assert listed(second.place, "who=next") == [sandbox]
        ran = sbx(second.place, "exec", sandbox, "--", "echo", "still here")
        assert (ran.returncode, ran.stdout) == (0, b"still here\n")
        assert sbx(second.place, "rm", sandbox).returncode == 0
        left = ["pgrep", "-f", "[s]leep 58001"]
        eventually(lambda: subprocess.run(left, capture_output=True, check=False).returncode != 0,
                   "its processes are gone with the sandbox")
        assert second.stop() == 0
    finally:
        second.kill()


# How a bridge goes: killed, or told to and cut off at the end of its grace.
ENDS: dict[str, Callable[[Bridge], object]] = {"kill -9": Bridge.kill, "SIGTERM": Bridge.stop}
SHORT_GRACE = ("--drain_delay=100ms", "--grace=300ms")
FOLDER = "/tmp/upload"
CHUNK = b"n" * (256 << 10)


@pytest.fixture(params=list(ENDS))
def end(request: pytest.FixtureRequest) -> Callable[[Bridge], object]:
    return ENDS[request.param]


@pytest.fixture
def pair(upstream: str) -> Iterator[tuple[Bridge, Bridge]]:
    """One that is to go, and the next one."""
    bridges = [Bridge(upstream, *SHORT_GRACE) for _ in range(2)]
    yield bridges[0], bridges[1]
    for bridge in bridges:
        bridge.kill()


def run(channel: grpc.Channel, sandbox: str, shell: str) -> bytes:
    ran = client.execs_grpc.ExecServiceStub(channel).Run(client.execs.RunRequest(
        sandbox_id=sandbox, spec=client.execs.ExecSpec(shell=shell)), timeout=PATIENCE_SECONDS)
    assert ran.outcome.exit_code == 0, ran
    return bytes(ran.stdout)


def upload(sandbox: str, chunks: int, over: threading.Event | None = None) -> Iterator[object]:
    """Messages of a write of so many chunks; before the last one it waits until all is over."""
    options = client.files.WriteOptions(path=f"{FOLDER}/f", create_parents=True)
    yield client.files.WriteFileChunk(header=client.files.WriteFileChunk.Header(
        sandbox_id=sandbox, options=options, size_bytes=chunks * len(CHUNK)))
    for number in range(chunks):
        if over is not None and number == chunks - 1:
            over.wait(PATIENCE_SECONDS)
        yield client.files.WriteFileChunk(data=CHUNK)


def test_an_upload_is_cut_and_repeated(pair: tuple[Bridge, Bridge],
                                       end: Callable[[Bridge], object]) -> None:
    """What was there stays, nothing else is left, and the repeat is whole."""
    over = threading.Event()
    with client.Access().channel(pair[0].place) as one, \
            client.Access().channel(pair[1].place) as other:
        sandbox = client.create_sandbox(one)
        run(one, sandbox, f"mkdir {FOLDER}; echo old > {FOLDER}/f")
        call = client.files_grpc.FileServiceStub(one).WriteFile.future(upload(sandbox, 8, over))
        eventually(lambda: run(other, sandbox, f"ls -A {FOLDER}").count(b"\n") == 2,
                   "the daemon has some of it")
        end(pair[0])
        assert call.code() is grpc.StatusCode.UNAVAILABLE, call.details()
        over.set()
        eventually(lambda: run(other, sandbox, f"ls -A {FOLDER}") == b"f\n",
                   "nothing is left of it")
        assert run(other, sandbox, f"cat {FOLDER}/f") == b"old\n"
        again = client.files_grpc.FileServiceStub(other).WriteFile(upload(sandbox, 8),
                                                                   timeout=PATIENCE_SECONDS)
        assert again.size_bytes == 8 * len(CHUNK)
        sums = run(other, sandbox, f"sha256sum < {FOLDER}/f; ls -A {FOLDER}").split()
        assert sums == [again.sha256.encode(), b"-", b"f"]
        assert sbx(pair[1].place, "rm", sandbox).returncode == 0


class Attached:
    """A process held over a channel; what it writes comes without a hole."""

    def __init__(self, channel: grpc.Channel, sandbox: str, process: str, offset: int) -> None:
        self.output = b""
        self.exit_code: int | None = None
        self._offset = offset
        self._input: queue.Queue[object] = queue.Queue()
        self._sent = 0
        self._input.put(client.processes.AttachProcessRequest(
            attach=client.processes.AttachProcessRequest.Attach(
                sandbox_id=sandbox, process_id=process, offset=offset, takeover=True)))
        self._events = client.processes_grpc.ProcessServiceStub(channel).AttachProcess(
            iter(self._input.get, None), timeout=PATIENCE_SECONDS)

    def write(self, data: bytes) -> None:
        stdin = client.processes.AttachProcessRequest.Stdin(offset=self._sent, data=data)
        self._input.put(client.processes.AttachProcessRequest(stdin=stdin))
        self._sent += len(data)

    def end_input(self) -> None:
        self._input.put(client.processes.AttachProcessRequest(
            stdin_eof=client.processes.AttachProcessRequest.StdinEof()))

    def read(self, wanted: bytes = b"") -> None:
        """Until it has written this, or to its end. Raises as the stream does."""
        for event in self._events:
            if event.HasField("output"):
                assert event.output.offset == self._offset + len(self.output)
                self.output += event.output.data
            elif event.HasField("exited"):
                self.exit_code = event.exited.outcome.exit_code
            if wanted and self.output == wanted:
                return

    def close(self) -> None:
        self._events.cancel()
        self._input.put(None)


def test_an_attached_process_goes_on_over_the_next_bridge(
        pair: tuple[Bridge, Bridge], end: Callable[[Bridge], object]) -> None:
    with client.Access().channel(pair[0].place) as one, \
            client.Access().channel(pair[1].place) as other:
        sandbox = client.create_sandbox(one)
        spec = client.processes.ProcessSpec(shell="echo ready; cat; exit 3")
        started = client.processes_grpc.ProcessServiceStub(one).StartProcess(
            client.processes.StartProcessRequest(sandbox_id=sandbox, spec=spec), timeout=PATIENCE_SECONDS)
        held = Attached(one, sandbox, started.process_id, 0)
        held.write(b"one\n")
        held.read(b"ready\none\n")
        end(pair[0])
        with pytest.raises(grpc.RpcError) as cut:
            held.read()
        assert cut.value.code() is grpc.StatusCode.UNAVAILABLE, cut.value.details()
        held.close()

        again = Attached(other, sandbox, started.process_id, len(held.output))
        again.write(b"two\n")
        again.read(b"two\n")
        again.end_input()
        again.read()
        assert (again.output, again.exit_code) == (b"two\n", 3)
        again.close()
        assert sbx(pair[1].place, "rm", sandbox).returncode == 0
