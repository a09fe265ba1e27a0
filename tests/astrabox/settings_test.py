# SPDX-License-Identifier: Apache-2.0
"""The settings: names, defaults, fallbacks, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from astrabox_sandbox_bridge.client import ConfigurationError, Options
from astrabox_sandbox_bridge.settings import OWNED, SETTINGS, SettingError, Settings

P = "ASTRABOX_SANDBOX_BRIDGE_"
HERE = {f"{P}ADDRESS": "127.0.0.1:50051"}


def connection(**environ: str) -> Options:
    return Settings(HERE | environ).connection()


def test_defaults() -> None:
    options = connection()
    assert options.address == "127.0.0.1:50051"
    assert not options.tls
    assert options.token is None
    assert (options.connect_timeout, options.call_timeout) == (10.0, 30.0)
    settings = Settings(HERE)
    assert settings.seconds("LEASE_SECONDS") == 14400
    assert settings.seconds("READY_TIMEOUT_SECONDS") == 120
    assert settings.entrypoint == ("/opt/astrabox/boot.sh",)
    assert settings.denied_addresses == ("169.254.0.0/16",)


def test_every_default_can_be_read() -> None:
    settings = Settings(HERE)
    for setting in SETTINGS.values():
        settings.text(setting.name)
        assert setting.meaning
        assert setting.variable == P + setting.name
    assert len(set(OWNED)) == len(SETTINGS)


def test_address_is_demanded_by_name() -> None:
    for environ in ({}, {f"{P}ADDRESS": "  "}):
        with pytest.raises(SettingError, match=f"{P}ADDRESS"):
            Settings(environ).connection()


def test_own_variable_wins_over_the_shared_one() -> None:
    shared = {"SANDBOX_BRIDGE_ADDRESS": "shared:1", "ASTRABOX_SANDBOX_LEASE_SECONDS": "60"}
    assert Settings(shared).connection().address == "shared:1"
    assert Settings(shared | HERE).connection().address == "127.0.0.1:50051"
    assert Settings(shared).seconds("LEASE_SECONDS") == 60
    assert Settings(shared | {f"{P}LEASE_SECONDS": "90"}).seconds("LEASE_SECONDS") == 90


@pytest.mark.parametrize("value", ["abc", "-1", "0", "nan", "inf", "1e99", "60s"])
def test_bad_numbers_name_their_variable(value: str) -> None:
    with pytest.raises(SettingError, match=f"{P}LEASE_SECONDS"):
        Settings({f"{P}LEASE_SECONDS": value}).seconds("LEASE_SECONDS")


def test_bad_flags_and_choices_name_their_variable() -> None:
    with pytest.raises(SettingError, match=f"{P}TLS"):
        connection(**{f"{P}TLS": "maybe"})
    with pytest.raises(SettingError, match=f"{P}ENDPOINT_ROUTE.*direct"):
        Settings({f"{P}ENDPOINT_ROUTE": "magic"}).choice("ENDPOINT_ROUTE", ("default", "direct"))
    with pytest.raises(SettingError, match=f"{P}ENTRYPOINT"):
        _ = Settings({f"{P}ENTRYPOINT": "a 'b"}).entrypoint


def test_entrypoint_is_split_like_a_shell_line() -> None:
    settings = Settings({f"{P}ENTRYPOINT": "/bin/sh -c 'sleep 1; run'"})
    assert settings.entrypoint == ("/bin/sh", "-c", "sleep 1; run")


def test_tls_follows_the_ca_file(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("PEM")
    assert connection(**{f"{P}CA_FILE": str(ca)}).tls
    assert connection(**{f"{P}CA_FILE": str(ca)}).ca_pem == b"PEM"
    assert connection(**{f"{P}TLS": "true"}).tls
    options = connection(**{f"{P}CA_FILE": str(ca), f"{P}TLS": "false"})
    with pytest.raises(ConfigurationError, match="TLS is off"):
        options.validate()


def test_missing_file_names_variable_and_path() -> None:
    with pytest.raises(SettingError, match=f"{P}CERT_FILE: /no/such"):
        connection(**{f"{P}CERT_FILE": "/no/such"})


def test_certificate_needs_its_key() -> None:
    with pytest.raises(ConfigurationError, match="needs its key"):
        Options("a:1", tls=True, certificate_pem=b"x").validate()


def test_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-token\n")
    token = connection(**{f"{P}TOKEN_FILE": str(file)}).token
    assert token is not None
    assert token() == "first-token"
    file.write_text("second-token\n")
    assert token() == "second-token"


def test_token_secret_by_name() -> None:
    token = connection(
        **{f"{P}TOKEN_SECRET_NAME": "bridge-token", "BRIDGE_TOKEN": "abc-secret"}
    ).token
    assert token is not None
    assert token() == "abc-secret"
    with pytest.raises(SettingError, match="BRIDGE_TOKEN, which is not set"):
        connection(**{f"{P}TOKEN_SECRET_NAME": "bridge-token"})
    with pytest.raises(SettingError, match="leave one"):
        connection(**{f"{P}TOKEN_SECRET_NAME": "b", f"{P}TOKEN_FILE": "/t", "B": "x"})


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("unix:/run/b.sock", True),
        ("127.0.0.1:1,127.0.0.2:2", True),
        ("ipv4:127.0.0.1:1", True),
        ("10.0.0.1:1", False),
        ("bridge.example:1", False),
        ("dns:///bridge.example:1", False),
        ("127.0.0.1:1,10.0.0.1:1", False),
        ("localhost.example:1", False),
    ],
)
def test_a_token_does_not_leave_the_machine_unencrypted(address: str, allowed: bool) -> None:
    options = Options(address, token=lambda: "secret")
    if allowed:
        options.validate()
    else:
        with pytest.raises(ConfigurationError, match="unencrypted"):
            options.validate()
        Options(address, token=lambda: "secret", allow_plaintext=True).validate()
        Options(address, token=lambda: "secret", tls=True).validate()


def test_image_of_the_deployment() -> None:
    assert Settings({f"{P}IMAGE": "a:1", "ASTRABOX_AGENT_IMAGE": "b:1"}).image == "a:1"
    assert Settings({"ASTRABOX_AGENT_IMAGE": "b:1"}).image == "b:1"
    derived = Settings({"ASTRABOX_IMAGE_TAG": "0.9"}).image
    assert derived == "ghcr.io/colton-z/astrabox-sandbox-claude-code:0.9"
    own = {"ASTRABOX_IMAGE_TAG": "0.9", "ASTRABOX_IMAGE_PREFIX": "mirror.example/abx-"}
    assert Settings(own).image == "mirror.example/abx-sandbox-claude-code:0.9"


def test_denied_addresses() -> None:
    more = {"ASTRABOX_SANDBOX_EGRESS_DENY_CIDRS": "10.0.0.0/8, 169.254.0.0/16"}
    assert Settings(more).denied_addresses == ("169.254.0.0/16", "10.0.0.0/8")
    assert Settings(more | {f"{P}EGRESS_DENY_CIDRS": ""}).denied_addresses == ()
    own = {f"{P}EGRESS_DENY_CIDRS": "192.168.0.0/16"}
    assert Settings(more | own).denied_addresses == ("192.168.0.0/16",)


@pytest.mark.parametrize(
    ("environ", "enabled"),
    [
        ({}, False),
        (HERE, True),
        ({"ASTRABOX_SANDBOX_BACKENDS": "open_sandbox, sandbox_bridge"}, True),
        ({"ASTRABOX_SANDBOX_BACKENDS": "open_sandbox"} | HERE, False),
        ({"ASTRABOX_SANDBOX_BACKEND": "Sandbox_Bridge"}, True),
    ],
)
def test_enabled(environ: dict[str, str], enabled: bool) -> None:
    assert Settings(environ).enabled is enabled


def test_secrets_are_known_for_scrubbing(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("of-the-file\n")
    assert Settings({f"{P}TOKEN_FILE": str(file)}).secrets() == ("of-the-file",)
    named = {f"{P}TOKEN_SECRET_NAME": "my-token", "MY_TOKEN": "of-the-env"}
    assert Settings(named).secrets() == ("of-the-env",)
    assert Settings({}).secrets() == ()
