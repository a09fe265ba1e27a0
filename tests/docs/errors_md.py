# SPDX-License-Identifier: Apache-2.0
"""docs/errors.md from the three tables that decide it, and the rules that hold between them.

  errors_md.py ROWS FAILURES            prints the page
  errors_md.py ROWS FAILURES --check F  fails when F is another page, or when a rule is broken

ROWS is the program error_rows (the bridge's catalogue with the EPP column), FAILURES the AstraBox
provider's failures.py, whose table is read without importing it.
"""

import ast
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HEAD = """\
# Failures

One word a failure, the same everywhere. Every failed call carries a `google.rpc.ErrorInfo` in
`grpc-status-details-bin` with the reason, the domain `sandbox.bridge.v1` and metadata; reasons that
are worth a retry come with a `google.rpc.RetryInfo` where a delay is known, wrong fields with a
`google.rpc.BadRequest`. What the metadata of a reason holds: `proto/sandbox/bridge/v1/errors.proto`.

*Fault* says who can mend it. *Retry* means that the same call may succeed later, unchanged.
*EPP* is the JSON-RPC code and `sdk_code` that the EPP/1 plugin answers. *AstraBox* is what the
provider raises from a control call, and from files, commands and processes where that differs.

This page is generated: `bazel run //tests/docs:errors_md > docs/errors.md`.

| Reason | gRPC | Fault | Retry | What to do | EPP | AstraBox |
|---|---|---|---|---|---|---|
"""

TAIL = """
Beyond these: an EPP create whose upstream says that the image does not exist is `-32002 E2001`, and the
AstraBox provider's `connect` turns an unknown or stopped sandbox into `SANDBOX_GONE` 404. A 501 of
AstraBox has the code of what was asked for (`SANDBOX_PAUSE_UNSUPPORTED` and so on).

Two failures are gRPC's own, without details, because its server ends such a call before the bridge
sees it: a message above 64 MiB is `RESOURCE_EXHAUSTED` (from 16 MiB on the bridge says
`INVALID_ARGUMENT` itself), and a call that crosses the goodbye of a bridge is a bare `CANCELLED`.
The clients here read them as `INVALID_ARGUMENT` and as an unreachable bridge.
"""

# What the gRPC code promises to a program, the other two must promise too.
EPP_OF_CODE = {
    "NOT_FOUND": {-32002},
    "RESOURCE_EXHAUSTED": {-32004},
    "DEADLINE_EXCEEDED": {-32005},
    "UNIMPLEMENTED": {-32003},
    "UNAUTHENTICATED": {-32001},
    "INVALID_ARGUMENT": {-32006},
    "CANCELLED": {-32000},
    "UNAVAILABLE": {-32000},
    "INTERNAL": {-32000},
    "DATA_LOSS": {-32000},
    "ABORTED": {-32000},
    "ALREADY_EXISTS": {-32000},
    "FAILED_PRECONDITION": {-32000},
    "OUT_OF_RANGE": {-32000},
    # Of the caller's credentials, or of a file inside the sandbox.
    "PERMISSION_DENIED": {-32001, -32000},
}
# The host's -32006 is for configuration; an upstream's refusal is not the user's.
EPP_EXCEPTIONS = {"UPSTREAM_REJECTED": -32000}


class Row(NamedTuple):
    reason: str
    code: str
    fault: str
    retryable: bool
    advice: str
    epp: int
    sdk: str


class Python(NamedTuple):
    code: str | None
    status: int
    plane: str
    retryable: bool


def rows_of(program: str) -> list[Row]:
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows = []
    for line in text.splitlines():
        reason, code, fault, retryable, advice, epp, sdk = line.split("\t")
        rows.append(Row(reason, code, fault, retryable == "yes", advice, int(epp), sdk))
    return rows


def failures_of(path: str) -> dict[str, Python]:
    """The constants of failures.py that TABLE is made of, evaluated as literals."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    planes: dict[str, str] = {}
    table: ast.Dict | None = None
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Plane":
            planes = {
                item.targets[0].id: item.value.value
                for item in node.body
                if isinstance(item, ast.Assign)
            }
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names[node.targets[0].id] = node.value.value
        elif isinstance(node, ast.AnnAssign) and node.target.id == "TABLE":
            table = node.value.args[0]
    assert table is not None, "failures.py has no TABLE"

    def value(node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Attribute):
            return planes[node.attr]
        return names[node.id]

    found = {}
    for key, call in zip(table.keys, table.values, strict=False):
        if not isinstance(key, ast.Constant):
            continue  # BRIDGE_UNREACHABLE: the client's own word
        fields = dict(zip(("code", "status", "plane", "retryable"), map(value, call.args), strict=False))
        fields.update({keyword.arg: value(keyword.value) for keyword in call.keywords})
        found[key.value] = Python(**{"retryable": False, **fields})
    return found


def problems_of(rows: list[Row], failures: dict[str, Python]) -> list[str]:
    problems = []

    def expect(holds: bool, row: Row, what: str) -> None:
        if not holds:
            problems.append(f"{row.reason}: {what}")

    for row in rows:
        if row.reason not in failures:
            problems.append(f"{row.reason}: AstraBox has no row")
            continue
        python = failures[row.reason]
        epp = EPP_EXCEPTIONS.get(row.reason)
        allowed = EPP_OF_CODE[row.code] if epp is None else {epp}
        expect(row.epp in allowed, row, f"EPP {row.epp} for {row.code}")
        expect((python.status == 501) == (row.code == "UNIMPLEMENTED"), row, "501 is for UNIMPLEMENTED")
        expect(not python.retryable or row.retryable, row, "AstraBox retries what the bridge does not")
        expect(python.status != 400 or row.code == "INVALID_ARGUMENT", row, "400 for no wrong argument")
        gone = python.code in ("SANDBOX_GONE", "SANDBOX_NOT_FOUND")
        expect(
            not gone or row.reason in ("SANDBOX_NOT_FOUND", "STALE_INCARNATION"),
            row,
            "must not look like a sandbox that is gone: the platform would make another one",
        )
        expect(row.epp != -32001 or row.sdk == "E1001", row, "without E1001 the host gives its own hint")
    for reason in failures.keys() - {row.reason for row in rows} - {"UNSPECIFIED"}:
        problems.append(f"{reason}: AstraBox knows a reason that the bridge does not")
    return problems


def page_of(rows: list[Row], failures: dict[str, Python]) -> str:
    lines = []
    for row in rows:
        python = failures[row.reason]
        control = f"`{python.code or 'what was asked for'}` {python.status}"
        plane = "" if python.plane == "APIError" else f", `{python.plane}`"
        epp = f"{row.epp} {row.sdk}".strip()
        lines.append(
            f"| `{row.reason}` | {row.code} | {row.fault} | {'yes' if row.retryable else ''} | "
            f"{row.advice} | {epp} | {control}{plane} |\n"
        )
    return HEAD + "".join(lines) + TAIL


def main(arguments: list[str]) -> int:
    rows, failures = rows_of(arguments[0]), failures_of(arguments[1])
    problems = problems_of(rows, failures)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    page = page_of(rows, failures)
    if len(arguments) == 2:
        print(page, end="")
        return 0
    if Path(arguments[3]).read_text(encoding="utf-8") == page:
        return 0
    print(
        f"{arguments[3]} is not current: bazel run //tests/docs:errors_md > docs/errors.md",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
