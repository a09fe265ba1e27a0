# SPDX-License-Identifier: Apache-2.0
"""What stands between a client and a bridge: a TCP relay that is cut, or that cuts what is quiet."""

from __future__ import annotations

import contextlib
import select
import socket
import threading


class Relay:
    """Passes on bytes to `target` ("host:port"), which may be changed or be None: nobody is there.

    With `idle_seconds` it cuts a connection on which for so long no byte went either way.
    """

    def __init__(self, target: str | None, idle_seconds: float | None = None) -> None:
        self.target = target
        self.idle_cuts: list[bytes] = []  # how what was cut had begun
        self.refused = 0
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._frozen: set[socket.socket] = set()
        self._gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.address = f"{host}:{port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends every connection that there is."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def freeze(self) -> None:
        """Nothing goes through the present connections any more, and nobody is told."""
        with self._lock:
            self._frozen |= self._open

    def close(self) -> None:
        self.target = None
        self._gone.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            if self.target is None:
                self.refused += 1
                return
            host, _, port = self.target.rpartition(":")
            try:
                server = socket.create_connection((host, int(port)))
            except OSError:
                return
            with server:
                ends = {client, server}
                with self._lock:
                    self._open |= ends
                with contextlib.suppress(OSError):
                    self._pump(client, server)
                with self._lock:
                    self._open -= ends

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        first = b""
        while True:
            ready, _, _ = select.select([client, server], [], [], self._idle_seconds)
            if not ready:
                self.idle_cuts.append(first)
                return
            if client in self._frozen:
                self._gone.wait()
                return
            for source in ready:
                data = source.recv(65536)
                if not data:
                    return
                first = first or data
                (server if source is client else client).sendall(data)
