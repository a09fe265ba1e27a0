# SPDX-License-Identifier: Apache-2.0
"""One channel to the bridge: address, TLS, token, patience, and which calls are repeated.

A connection belongs to the event loop that was running when it was made. Calls are repeated only
when the caller says that they may be (`repeatable`), only because of the connection (never because
of what the bridge answered, but for DRAINING), and at most twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

import grpc
import grpc.aio

from .errors import BRIDGE_UNREACHABLE, BridgeError, from_rpc_error
from .times import length

Request = TypeVar("Request")
Response = TypeVar("Response")
Metadata = tuple[tuple[str, str], ...]

# What read() answers at a stream's end; the type stubs of grpc do not know it.
END: Final[object] = getattr(grpc.aio, "EOF")  # noqa: B009

# Seconds between attempts, before jitter.
_PAUSES = (0.05, 0.3)


class ConfigurationError(ValueError):
    """The options contradict each other or name what cannot be read."""


@dataclass(frozen=True)
class Options:
    """How to reach a bridge.

    `address` is what gRPC calls a target: "127.0.0.1:50051", "dns:///bridge.example:50051",
    "unix:/run/bridge.sock", or several "ip:port" separated by commas. Calls go round all addresses
    that a name has, so that any replica serves any call.
    """

    address: str
    # TLS: on when `tls`, with the system's roots unless `ca_pem` is given; a client certificate
    # when `certificate_pem` and `key_pem` are.
    tls: bool = False
    ca_pem: bytes | None = None
    certificate_pem: bytes | None = None
    key_pem: bytes | None = None
    # The name that the server's certificate must have, when it is not the address's.
    server_name: str | None = None
    # Asked before every call; None or "" sends no token. Must not block.
    token: Callable[[], str | None] | None = None
    # Lets a token or a call travel unencrypted to another machine.
    allow_plaintext: bool = False
    # Seconds. How long a call waits for a connection before it fails with BRIDGE_UNREACHABLE.
    connect_timeout: float = 10.0
    # Seconds. The deadline of a unary call that names none of its own.
    call_timeout: float = 30.0
    # Seconds. A stream that promises keepalives and is silent for so long is given up.
    silence_timeout: float = 60.0

    def validate(self) -> None:
        if not self.address.strip():
            raise ConfigurationError("the bridge's address is empty")
        if (self.certificate_pem is None) != (self.key_pem is None):
            raise ConfigurationError(
                "a client certificate needs its key, and a key its certificate"
            )
        if not self.tls:
            if self.ca_pem or self.certificate_pem:
                raise ConfigurationError("certificates are given and TLS is off")
            if self.token is not None and not self.allow_plaintext and not is_local(self.address):
                raise ConfigurationError(
                    f"a token would travel unencrypted to {self.address}: turn TLS on, or allow "
                    "plaintext explicitly"
                )


def token_file(path: str | Path) -> Callable[[], str | None]:
    """A token source that reads a file again whenever the file has changed."""
    state: tuple[tuple[int, int, int], str] | None = None
    place = Path(path)

    def read() -> str | None:
        nonlocal state
        try:
            seen = place.stat()
            stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
            if state is None or state[0] != stamp:
                state = (stamp, place.read_text().strip())
        except OSError as error:
            raise BridgeError(
                "CALLER_UNAUTHENTICATED", f"the token file cannot be read: {error.strerror}"
            ) from error
        return state[1]

    return read


def is_local(address: str) -> bool:
    """Whether every part of a target stays on this machine."""
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    bare = address
    for scheme in ("dns:///", "dns:", "ipv4:", "ipv6:"):
        if bare.startswith(scheme):
            bare = bare.removeprefix(scheme)
            break
    return all(_is_loopback(part.strip().rpartition(":")[0]) for part in bare.split(","))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def target_of(address: str) -> str:
    """gRPC's spelling of an address: a bare list of IPv4 or IPv6 addresses gets its scheme."""
    parts = [part.strip() for part in address.split(",")]
    if len(parts) > 1 and ":" in parts[0] and "/" not in address:
        try:
            versions = {
                ipaddress.ip_address(part.rpartition(":")[0].strip("[]")).version for part in parts
            }
        except ValueError:
            return address.strip()
        if len(versions) == 1:
            return f"ipv{versions.pop()}:" + ",".join(parts)
    return address.strip()


class Connection:
    """A channel and the way calls are made on it. Make it and use it on one event loop."""

    def __init__(self, options: Options) -> None:
        options.validate()
        self.options = options
        self._closed = False
        settings: list[tuple[str, str | int]] = [
            ("grpc.lb_policy_name", "round_robin"),
            # Come back quickly after a restart of the bridge; gRPC's own default waits minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 1000),
            ("grpc.max_reconnect_backoff_ms", 2000),
            # A vanished peer is noticed within half a minute; the bridge allows a ping every 10 s.
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.http2.max_pings_without_data", 0),
            # Repeating is decided here, where it is known which calls may be repeated.
            ("grpc.enable_retries", 0),
            # A stdin of 8 MiB and the answer of Run (2 MiB) are the largest messages of the API.
            ("grpc.max_receive_message_length", 16 << 20),
            ("grpc.max_send_message_length", 16 << 20),
        ]
        if options.server_name:
            settings.append(("grpc.ssl_target_name_override", options.server_name))
        target = target_of(options.address)
        if options.tls:
            credentials = grpc.ssl_channel_credentials(
                root_certificates=options.ca_pem,
                private_key=options.key_pem,
                certificate_chain=options.certificate_pem,
            )
            self.channel = grpc.aio.secure_channel(target, credentials, options=settings)
        else:
            self.channel = grpc.aio.insecure_channel(target, options=settings)

    async def close(self) -> None:
        """Cuts what is still running and releases the channel. May be called twice."""
        if not self._closed:
            self._closed = True
            await self.channel.close()

    def metadata(self) -> Metadata:
        token = self.options.token() if self.options.token else None
        return (("authorization", f"Bearer {token}"),) if token else ()

    async def ready(self) -> None:
        """Waits for a connection, at most `connect_timeout`. Raises BRIDGE_UNREACHABLE."""
        if self._closed:
            raise BridgeError(BRIDGE_UNREACHABLE, "the client was closed")
        if self.channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY:
            return
        try:
            async with asyncio.timeout(self.options.connect_timeout):
                await self.channel.channel_ready()
        except TimeoutError:
            raise BridgeError(
                BRIDGE_UNREACHABLE,
                f"no bridge answers at {self.options.address} within "
                f"{self.options.connect_timeout:g} s; check that it runs and that the address, "
                "the port and TLS are as it has them",
                code=grpc.StatusCode.UNAVAILABLE,
            ) from None
        except grpc.aio.UsageError as error:  # closed while waiting
            raise BridgeError(BRIDGE_UNREACHABLE, "the client was closed") from error

    async def unary(
        self,
        call: Callable[..., grpc.aio.UnaryUnaryCall[Request, Response]],
        request: Request,
        *,
        timeout: float | None = None,
        repeatable: bool = False,
    ) -> Response:
        """One answer to one request. `timeout` in seconds bounds the call with its repeats."""
        async with self.deadline(self.options.call_timeout if timeout is None else timeout) as left:
            for pause in (*_PAUSES, None):
                await self.ready()
                try:
                    return await call(request, timeout=left(), metadata=self.metadata())
                except grpc.aio.AioRpcError as error:
                    failure = from_rpc_error(error)
                    if pause is None or not _may_repeat(failure, repeatable):
                        raise failure from error
                    await _pause(pause)
                except asyncio.CancelledError as error:
                    raise cut_here(error) from error
        raise AssertionError("not reached")

    @contextlib.asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[Callable[[], float]]:
        """A deadline for several steps; yields what answers the seconds that are left."""
        seconds = length(seconds, "timeout")
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        try:
            # The bridge's own deadline comes first and tells what it was waiting for.
            async with asyncio.timeout_at(end + 2.0):
                yield lambda: max(end - loop.time(), 0.001)
        except TimeoutError:
            raise BridgeError(
                "DEADLINE_EXCEEDED",
                f"no answer within {seconds:g} s",
                code=grpc.StatusCode.DEADLINE_EXCEEDED,
            ) from None

    async def stream(
        self,
        call: Callable[..., grpc.aio.UnaryStreamCall[Request, Response]],
        request: Request,
        *,
        timeout: float | None = None,
        silence: float | None = None,
    ) -> AsyncIterator[Response]:
        """The answers to one request. Leaving the iteration early cancels the call.

        `silence` in seconds gives a stream up that says nothing for so long.
        """
        for pause in (*_PAUSES, None):
            await self.ready()
            running = call(request, timeout=timeout, metadata=self.metadata())
            began = False
            try:
                while True:
                    async with asyncio.timeout(silence):
                        message = await running.read()
                    if message is END:
                        return
                    began = True
                    yield cast("Response", message)
            except grpc.aio.AioRpcError as error:
                failure = from_rpc_error(error)
                if began or pause is None or not failure.not_sent:
                    raise failure from error
                await _pause(pause)
            except TimeoutError:
                raise silent(silence) from None
            except asyncio.CancelledError as error:
                raise cut_here(error) from error
            finally:
                running.cancel()

    async def repeated(self, attempt: Callable[[], Awaitable[Response]]) -> Response:
        """Makes a call that writes; once more when there was no connection to make it on."""
        for pause in _PAUSES:
            try:
                return await attempt()
            except BridgeError as error:
                if not error.not_sent:
                    raise
            await _pause(pause)
        return await attempt()


def cut_here(error: asyncio.CancelledError) -> BaseException:
    """What a CancelledError out of gRPC means: the task's own cancellation, or a closed channel."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        return error
    return BridgeError(
        BRIDGE_UNREACHABLE, "the client was closed during the call", code=grpc.StatusCode.CANCELLED
    )


def silent(seconds: float | None) -> BridgeError:
    """The failure of a stream that promised keepalives and sent none."""
    return BridgeError(
        BRIDGE_UNREACHABLE,
        f"the stream was silent for {seconds or 0:g} s, keepalives included",
        code=grpc.StatusCode.UNAVAILABLE,
    )


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds * random.uniform(0.5, 1.5))  # noqa: S311


def _may_repeat(failure: BridgeError, repeatable: bool) -> bool:
    return failure.not_sent or (repeatable and failure.reason in {BRIDGE_UNREACHABLE, "DRAINING"})
