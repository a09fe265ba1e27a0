# SPDX-License-Identifier: Apache-2.0
"""The environment variables that this provider reads, in one table, and their values.

Reading never fails at import or start: a provider may be installed and not enabled. The first use
of a bad value raises SettingError, whose text names the variable and never shows a secret.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .client import Options, token_file

PREFIX = "ASTRABOX_SANDBOX_BRIDGE_"

# Always out of reach of a sandbox: link-local addresses, where clouds keep their credentials.
ALWAYS_DENIED = "169.254.0.0/16"


class SettingError(ValueError):
    """A variable is missing or unreadable."""


@dataclass(frozen=True)
class Setting:
    """One variable: its name without the prefix, what is read when it is unset, and for people."""

    name: str
    meaning: str
    default: str = ""
    # Read in this order when the variable itself is unset; they belong to others too.
    fallbacks: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        return PREFIX + self.name


_TABLE = (
    Setting(
        "ADDRESS",
        "Where the bridge is: host:port, dns:///name:port, unix:/path, or several ip:port with "
        "commas between.",
        fallbacks=("SANDBOX_BRIDGE_ADDRESS",),
    ),
    Setting("TLS", "true or false. Unset: true when CA_FILE is set."),
    Setting(
        "CA_FILE",
        "PEM file with the roots that may have signed the bridge's certificate. Unset: the "
        "system's.",
        fallbacks=("SANDBOX_BRIDGE_CA_FILE",),
    ),
    Setting("CERT_FILE", "PEM file with the client certificate, for mutual TLS."),
    Setting("KEY_FILE", "PEM file with the client certificate's key."),
    Setting("SERVER_NAME", "The name in the bridge's certificate, when it is not the address's."),
    Setting(
        "TOKEN_FILE",
        "File with the bearer token; read again when it changes.",
        fallbacks=("SANDBOX_BRIDGE_TOKEN_FILE",),
    ),
    Setting(
        "TOKEN_SECRET_NAME",
        "Name of a secret with the bearer token: upper-cased, - as _, read from the environment.",
    ),
    Setting(
        "ALLOW_PLAINTEXT", "Lets the token travel without TLS to another machine.", default="false"
    ),
    Setting("CONNECT_TIMEOUT_SECONDS", "How long a call waits for a connection.", default="10"),
    Setting("REQUEST_TIMEOUT_SECONDS", "Deadline of a call that only asks.", default="30"),
    Setting(
        "READY_TIMEOUT_SECONDS",
        "How long a new sandbox may take to be usable.",
        default="120",
        fallbacks=("ASTRABOX_SANDBOX_READY_TIMEOUT_SECONDS",),
    ),
    Setting(
        "PORT_TIMEOUT_SECONDS",
        "How long a service inside a new sandbox may take to listen.",
        default="90",
    ),
    Setting(
        "SETTLE_TIMEOUT_SECONDS", "How long a pause or resume may take to settle.", default="300"
    ),
    Setting(
        "LEASE_SECONDS",
        "How long a new sandbox lives unless it is renewed.",
        default="14400",
        fallbacks=("ASTRABOX_SANDBOX_LEASE_SECONDS",),
    ),
    Setting(
        "IMAGE",
        "Image of a sandbox that names none. Unset: AstraBox's own agent image.",
        fallbacks=("ASTRABOX_AGENT_IMAGE",),
    ),
    Setting(
        "ENTRYPOINT",
        "Main process of a sandbox that names none, split like a shell line.",
        default="/opt/astrabox/boot.sh",
    ),
    Setting("AGENT_COMMAND", "Command of the agent in the image.", default="claude"),
    Setting(
        "ENDPOINT_ROUTE",
        "How ports are reached: default (the bridge decides), direct or server_proxy.",
        default="default",
    ),
    Setting(
        "SECURE_ACCESS",
        "Demands the gateway's token on every request to a sandbox, where there is a gateway.",
        default="false",
    ),
    Setting(
        "EGRESS_DENY_CIDRS",
        "Addresses that no sandbox with a network policy reaches, with commas between. Set and "
        f"empty: none. Unset: {ALWAYS_DENIED} and ASTRABOX_SANDBOX_EGRESS_DENY_CIDRS.",
    ),
    Setting(
        "WORKSPACE_MOUNTS",
        "Whether persistent workspaces are offered: auto (when the upstream mounts volumes), true "
        "or false.",
        default="auto",
    ),
    Setting(
        "ISOLATED_SESSIONS",
        "Whether sandboxes can be shared by isolated sessions: auto (as the bridge says; an "
        "upstream that only a sandbox can tell counts as one that cannot), true or false.",
        default="auto",
    ),
    Setting(
        "MAX_OUTPUT_BYTES",
        "Output of one command beyond this is an error.",
        default=str(64 << 20),
    ),
    Setting(
        "START_TIMEOUT_SECONDS",
        "How long the start of AstraBox waits for the bridge to say what it can. 0: not at all.",
        default="2",
    ),
)

SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _TABLE}

# Only this provider reads these.
OWNED: tuple[str, ...] = tuple(setting.variable for setting in _TABLE)


class Settings:
    """Typed values, read from an environment when they are asked for."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def text(self, name: str) -> str:
        """A value, stripped; "" when it is neither set nor has a default. A variable that is set
        and empty counts as unset, but for EGRESS_DENY_CIDRS."""
        setting = SETTINGS[name]
        for variable in (setting.variable, *setting.fallbacks):
            value = self._environ.get(variable, "").strip()
            if value:
                return value
        return setting.default

    def flag(self, name: str) -> bool:
        value = self.text(name).lower()
        if value in {"true", "1", "yes", "on"}:
            return True
        if value in {"false", "0", "no", "off", ""}:
            return False
        raise SettingError(f"{SETTINGS[name].variable} is neither true nor false: {value!r}")

    def seconds(self, name: str, *, zero: bool = False) -> float:
        return self._number(name, "seconds", zero=zero)

    def count(self, name: str) -> int:
        return int(self._number(name, "bytes", zero=False))

    def _number(self, name: str, unit: str, *, zero: bool) -> float:
        value = self.text(name)
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not (0 < number <= 1e10 or (zero and number == 0)):
            raise SettingError(
                f"{SETTINGS[name].variable} is not a number of {unit} above 0: {value!r}"
            )
        return number

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        value = self.text(name).lower()
        if value not in choices:
            wanted = ", ".join(choices)
            raise SettingError(f"{SETTINGS[name].variable} is none of {wanted}: {value!r}")
        return value

    @property
    def configured(self) -> bool:
        """Whether anybody said where the bridge is."""
        return bool(self.text("ADDRESS"))

    def connection(self) -> Options:
        """How to reach the bridge. Raises SettingError."""
        if not self.configured:
            raise SettingError(
                f"{SETTINGS['ADDRESS'].variable} is not set: it says where the sandbox bridge is, "
                'for example "127.0.0.1:50051"'
            )
        return Options(
            address=self.text("ADDRESS"),
            tls=self.flag("TLS") or (not self.text("TLS") and bool(self.text("CA_FILE"))),
            ca_pem=self._file("CA_FILE"),
            certificate_pem=self._file("CERT_FILE"),
            key_pem=self._file("KEY_FILE"),
            server_name=self.text("SERVER_NAME") or None,
            token=self._token(),
            allow_plaintext=self.flag("ALLOW_PLAINTEXT"),
            connect_timeout=self.seconds("CONNECT_TIMEOUT_SECONDS"),
            call_timeout=self.seconds("REQUEST_TIMEOUT_SECONDS"),
        )

    def _file(self, name: str) -> bytes | None:
        path = self.text(name)
        if not path:
            return None
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise SettingError(
                f"{SETTINGS[name].variable}: {path} cannot be read: {error.strerror}"
            ) from error

    def _token(self) -> Callable[[], str | None] | None:
        path = self.text("TOKEN_FILE")
        secret = self.text("TOKEN_SECRET_NAME").upper().replace("-", "_")
        if path and secret:
            raise SettingError(
                f"both {SETTINGS['TOKEN_FILE'].variable} and "
                f"{SETTINGS['TOKEN_SECRET_NAME'].variable} are set; leave one"
            )
        if path:
            return token_file(path)
        if not secret:
            return None
        if not self._environ.get(secret):
            raise SettingError(
                f"{SETTINGS['TOKEN_SECRET_NAME'].variable} names {secret}, which is not set"
            )
        return lambda: self._environ.get(secret, "").strip()

    @property
    def image(self) -> str:
        """The image of a sandbox that names none; "" when nobody can say."""
        named = self.text("IMAGE")
        if named:
            return named
        tag = self._environ.get("ASTRABOX_IMAGE_TAG", "").strip()
        if not tag:
            try:
                tag = importlib.metadata.version("astrabox")
            except importlib.metadata.PackageNotFoundError:
                return ""
        prefix = self._environ.get("ASTRABOX_IMAGE_PREFIX", "").strip()
        return f"{prefix or 'ghcr.io/colton-z/astrabox-'}sandbox-claude-code:{tag}"

    @property
    def entrypoint(self) -> tuple[str, ...]:
        try:
            parts = tuple(shlex.split(self.text("ENTRYPOINT")))
        except ValueError as error:
            raise SettingError(f"{SETTINGS['ENTRYPOINT'].variable}: {error}") from error
        if not parts or not all(part.strip() for part in parts):
            raise SettingError(f"{SETTINGS['ENTRYPOINT'].variable} names no program")
        return parts

    @property
    def denied_addresses(self) -> tuple[str, ...]:
        own = self._environ.get(SETTINGS["EGRESS_DENY_CIDRS"].variable)
        if own is None:
            own = f"{ALWAYS_DENIED},{self._environ.get('ASTRABOX_SANDBOX_EGRESS_DENY_CIDRS', '')}"
        return tuple(dict.fromkeys(part.strip() for part in own.split(",") if part.strip()))

    @property
    def callback_base(self) -> str:
        """The deployment's address as sandboxes see it; it is baked into what runs in them."""
        return self._environ.get("ASTRABOX_MCP_PROXY_BASE_URL", "").strip()

    @property
    def enabled(self) -> bool:
        """Whether this deployment uses the backend, as far as the environment says."""
        named = {
            part.strip().lower()
            for variable in ("ASTRABOX_SANDBOX_BACKENDS", "ASTRABOX_SANDBOX_BACKEND")
            for part in self._environ.get(variable, "").split(",")
            if part.strip()
        }
        return "sandbox_bridge" in named if named else self.configured

    def secrets(self) -> tuple[str, ...]:
        """Values that must never appear in an error."""
        secret = self.text("TOKEN_SECRET_NAME").upper().replace("-", "_")
        found = [self._environ.get(secret, "").strip()] if secret else []
        path = self.text("TOKEN_FILE")
        if path:
            # What cannot be read cannot have been sent either.
            with contextlib.suppress(OSError):
                found.append(Path(path).read_text().strip())
        return tuple(value for value in found if value)
