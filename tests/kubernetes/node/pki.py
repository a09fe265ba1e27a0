# SPDX-License-Identifier: Apache-2.0
"""Certificates that are thrown away with the node, made by openssl."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from node.programs import run


class Authority:
    """A certificate authority in a folder: ca.crt, ca.key and what it issued."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self.key = folder / "ca.key"
        self._make_key(self.key)
        run("openssl", "req", "-x509", "-new", "-key", self.key, "-subj", f"/CN={name}",
            "-days", "2", "-out", self.certificate)

    @staticmethod
    def _make_key(path: Path) -> None:
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)

    def issue(self, name: str, subject: str, *alternatives: str) -> tuple[Path, Path]:
        """Certificate and key, for servers under the alternative names and for clients."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        certificate, extensions = self.folder / f"{name}.crt", self.folder / f"{name}.ext"
        self._make_key(key)
        run("openssl", "req", "-new", "-key", key, "-subj", subject, "-out", request)
        lines = ["extendedKeyUsage=serverAuth,clientAuth"]
        if alternatives:
            lines.append("subjectAltName=" + ",".join(alternatives))
        extensions.write_text("\n".join(lines) + "\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
            "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", certificate)
        return certificate, key


def service_account_keys(folder: Path) -> tuple[Path, Path]:
    """The private and the public key of the tokens of service accounts."""
    private, public = folder / "sa.key", folder / "sa.pub"
    run("openssl", "genrsa", "-out", private, "2048")
    run("openssl", "rsa", "-in", private, "-pubout", "-out", public)
    return private, public


def kubeconfig(path: Path, server: str, authority: Path, certificate: Path, key: Path) -> Path:
    def data(file: Path) -> str:
        return b64encode(file.read_bytes()).decode()

    user = {"client-certificate-data": data(certificate), "client-key-data": data(key)}
    cluster = {"server": server, "certificate-authority-data": data(authority)}
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "node",
        "clusters": [{"name": "node", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "node", "context": {"cluster": "node", "user": "admin"}}]}))
    return path
