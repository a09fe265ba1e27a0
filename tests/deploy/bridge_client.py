# SPDX-License-Identifier: Apache-2.0
"""Callers of the bridge: load that counts what failed, and an exec that survives its replica.

The stubs are made from the .proto files when this module is imported.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc_tools
from grpc_tools import protoc

_PROTOS = sorted(Path("proto/sandbox/bridge/v1").glob("*.proto"))


def _make_stubs() -> None:
    folder = tempfile.mkdtemp(prefix="stubs")
    google = Path(grpc_tools.__file__).parent / "_proto"
    code = protoc.main(["protoc", "--proto_path=proto", f"--proto_path={google}",
                        f"--python_out={folder}", f"--grpc_python_out={folder}",
                        *map(str, _PROTOS)])
    if code != 0:
        raise RuntimeError(f"protoc ended with {code}")
    sys.path.insert(0, folder)


_make_stubs()
common: Any = importlib.import_module("sandbox.bridge.v1.common_pb2")
bridge: Any = importlib.import_module("sandbox.bridge.v1.bridge_pb2")
execs: Any = importlib.import_module("sandbox.bridge.v1.exec_pb2")
files: Any = importlib.import_module("sandbox.bridge.v1.files_pb2")
processes: Any = importlib.import_module("sandbox.bridge.v1.processes_pb2")
sandboxes: Any = importlib.import_module("sandbox.bridge.v1.sandboxes_pb2")
bridge_grpc: Any = importlib.import_module("sandbox.bridge.v1.bridge_pb2_grpc")
execs_grpc: Any = importlib.import_module("sandbox.bridge.v1.exec_pb2_grpc")
files_grpc: Any = importlib.import_module("sandbox.bridge.v1.files_pb2_grpc")
processes_grpc: Any = importlib.import_module("sandbox.bridge.v1.processes_pb2_grpc")
sandboxes_grpc: Any = importlib.import_module("sandbox.bridge.v1.sandboxes_pb2_grpc")


@dataclass(frozen=True)
class Access:
    """How the bridge is called: whom the caller trusts, who it is, the name on the certificate.

    Without an authority it is called in the clear, by nobody in particular.
    """

    authority: bytes = b""  # PEM
    token: str = ""
    name: str = ""

    def channel(self, target: str, **options: Any) -> grpc.Channel:
        """Never shares a connection with another channel. `target`: HOST:PORT, or ipv4:A:P,B:P."""
        def add_token(_context: Any, callback: Any) -> None:
            callback((("authorization", f"Bearer {self.token}"),), None)

        arguments = {"grpc.use_local_subchannel_pool": 1,
                     # The default waits up to two minutes between attempts.
                     "grpc.max_reconnect_backoff_ms": 1000, **options}
        if not self.authority:
            return grpc.insecure_channel(target, options=list(arguments.items()))
        arguments["grpc.ssl_target_name_override"] = self.name
        credentials = grpc.composite_channel_credentials(
            grpc.ssl_channel_credentials(self.authority),
            grpc.metadata_call_credentials(add_token))
        return grpc.secure_channel(target, credentials, options=list(arguments.items()))


def create_sandbox(channel: grpc.Channel) -> str:
    spec = sandboxes.SandboxSpec(image="base")
    spec.ttl.FromSeconds(1800)
    request = sandboxes.CreateSandboxRequest(spec=spec)
    answer = sandboxes_grpc.SandboxServiceStub(channel).CreateSandbox(request, timeout=60)
    return str(answer.sandbox.sandbox_id)


def server_version(channel: grpc.Channel, seconds: float = 10.0) -> str:
    stub = bridge_grpc.BridgeServiceStub(channel)
    return str(stub.GetServerInfo(bridge.GetServerInfoRequest(), timeout=seconds).version)


class Load:
    """Unary calls, one after another in each of some threads, until it is stopped."""

    def __init__(self, call: Callable[[], object], threads: int, pause: float = 0.02) -> None:
        self._call, self._pause = call, pause
        self._over = threading.Event()
        self.done = 0
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._call()
                self.done += 1
            except grpc.RpcError as error:
                self.failures.append(f"{error.code()}: {error.details()}")
            time.sleep(self._pause)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@dataclass
class Exec:
    """A command whose stream is taken up where it was cut, on whichever replica answers.

    `connect` gives a channel for each attempt. What arrives is checked to be the very next byte.
    """

    connect: Callable[[], grpc.Channel]
    sandbox: str
    command: str
    exec_id: str = ""
    output: bytes = b""
    exit_code: int | None = None
    drained: bool = False
    cuts: list[str] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _error: BaseException | None = None

    def start(self) -> Exec:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def wait(self, seconds: float = 120.0) -> None:
        """Until the command has ended and its output is complete."""
        assert self._thread is not None
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        assert not self._thread.is_alive(), f"no end of the stream; cuts: {self.cuts}"

    def _run(self) -> None:
        try:
            deadline = time.monotonic() + 120
            while not self.drained and time.monotonic() < deadline:
                channel = self.connect()
                try:
                    for event in self._open(execs_grpc.ExecServiceStub(channel)):
                        self._take(event)
                except grpc.RpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE,
                                            grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                    self.cuts.append(f"{error.code().name}: {error.details()}")
                    time.sleep(0.1)
                finally:
                    channel.close()
        except BaseException as error:  # shown by wait()
            self._error = error

    def _open(self, stub: Any) -> Any:
        detach = execs.ExecSpec.ON_DISCONNECT_DETACH
        if not self.exec_id:
            spec = execs.ExecSpec(shell=self.command, on_disconnect=detach)
            return stub.Execute(execs.ExecuteRequest(sandbox_id=self.sandbox, spec=spec))
        return stub.AttachExec(execs.AttachExecRequest(
            sandbox_id=self.sandbox, exec_id=self.exec_id, stdout_offset=len(self.output),
            on_disconnect=detach))

    def _take(self, event: Any) -> None:
        kind = event.WhichOneof("event")
        if kind == "started":
            self.exec_id = event.started.exec_id
            self.started.set()
        elif kind == "output_batch":
            for each in event.output_batch.outputs:
                assert each.stream == common.OUTPUT_STREAM_STDOUT
                assert each.offset == len(self.output), "a byte is missing or came twice"
                self.output += each.data
        elif kind == "exited":
            self.exit_code = event.exited.outcome.exit_code
        elif kind == "drained":
            assert not event.drained.lossy
            assert event.drained.stdout_bytes == len(self.output)
            self.drained = True
