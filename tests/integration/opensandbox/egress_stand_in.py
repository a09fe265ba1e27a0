# SPDX-License-Identifier: Apache-2.0
"""What opensandbox-server wants of its egress sidecar (image `egress.image`), without the enforcement: it
keeps the policy of its sandbox, tells and changes it, as the official one does, whose image cannot be had
offline: it takes every target, a change is answered without the policy that came of it, and a refusal is
text.

Run by the image that setup_test.py makes; alone in its file, since it is copied there.
"""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_RULES = 4096


class Refused(Exception):
    """Status and text."""


def rule_of(given: dict[str, str]) -> dict[str, str]:
    action, target = given.get("action", "").strip().lower() or "deny", given.get("target", "").strip()
    if action not in ("allow", "deny"):
        raise Refused(400, f'invalid merged policy: unsupported action "{action}"')
    if not target:
        raise Refused(400, "invalid merged policy: egress target cannot be empty")
    return {"action": action, "target": target}


policy = json.loads(os.environ["OPENSANDBOX_EGRESS_RULES"])
policy["egress"] = [rule_of(rule) for rule in policy["egress"]]


class Sidecar(BaseHTTPRequestHandler):
    def reply(self, status: int, body: object) -> None:
        text = isinstance(body, str)
        data = str(body).encode() if text else f"{json.dumps(body)}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if text else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def given(self, what: str, kind: type) -> list[Any]:
        """The list that the request brings."""
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).strip()
        if not text:
            raise Refused(400, "empty body")
        try:
            items = json.loads(text)
        except ValueError as wrong:
            raise Refused(400, f"invalid {what}: {wrong}") from None
        if items is None or items == []:
            raise Refused(400, f"invalid {what}: empty array")
        if not isinstance(items, list) or not all(isinstance(item, kind) for item in items):
            raise Refused(400, f"invalid {what}: json: cannot unmarshal it")
        return items

    def add(self) -> dict[str, str]:
        """New rules go first; of those for one target the first stays, whatever its case."""
        rules: dict[str, dict[str, str]] = {}
        for rule in [*map(rule_of, self.given("patch rules", dict)), *policy["egress"]]:
            rules.setdefault(rule["target"].lower(), rule)
        if len(rules) > MAX_RULES:
            raise Refused(413, f"egress rule total count {len(rules)} exceeds limit {MAX_RULES}")
        policy["egress"] = list(rules.values())
        return {}

    def remove(self) -> dict[str, str]:
        targets = {target.strip().lower() for target in self.given("delete targets", str)}
        kept = [rule for rule in policy["egress"] if rule["target"].lower() not in targets]
        if len(kept) == len(policy["egress"]):
            return {"reason": "no matching targets found"}
        policy["egress"] = kept
        return {}

    def handle_policy(self) -> dict[str, object]:
        if self.headers.get("OPENSANDBOX-EGRESS-AUTH") != os.environ["OPENSANDBOX_EGRESS_TOKEN"]:
            raise Refused(401, "unauthorized")
        more: dict[str, object] = {}
        if self.command == "GET":
            more["policy"] = policy
        else:
            more.update(self.add() if self.command == "PATCH" else self.remove())
        mode = "enforcing" if policy["egress"] else f"{policy['defaultAction']}_all"
        enforcement = os.environ["OPENSANDBOX_EGRESS_MODE"]
        return {"status": "ok", "mode": mode, "enforcementMode": enforcement, **more}

    def handle_one(self) -> None:
        if self.path == "/healthz":
            return self.reply(200, "ok")
        if self.path != "/policy":
            return self.reply(404, "404 page not found\n")
        try:
            return self.reply(200, self.handle_policy())
        except Refused as refused:
            status, text = refused.args
            return self.reply(status, f"{text}\n")

    do_GET = do_PATCH = do_DELETE = handle_one


if __name__ == "__main__":
    ThreadingHTTPServer(("", 18080), Sidecar).serve_forever()
