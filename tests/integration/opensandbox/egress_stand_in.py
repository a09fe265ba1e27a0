# SPDX-License-Identifier: Apache-2.0
"""What opensandbox-server wants of its egress sidecar (image `egress.image`), without the enforcement: it
keeps the policy of its sandbox, tells and changes it, in the words of the official one, whose image cannot be
had offline: a change is answered without the policy that came of it, and a refusal with text.

Run by the image that setup_test.py makes; alone in its file, since it is copied there.
"""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

policy = json.loads(os.environ["OPENSANDBOX_EGRESS_RULES"])


class Sidecar(BaseHTTPRequestHandler):
    def reply(self, status: int, body: object) -> None:
        text = isinstance(body, str)
        data = f"{body}\n".encode() if text else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if text else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def change(self, targets: set[str], first: list[dict[str, str]]) -> None:
        kept = [rule for rule in policy["egress"] if rule["target"] not in targets]
        none = not first and len(kept) == len(policy["egress"])
        policy["egress"] = first + kept
        self.tell(**({"reason": "no matching targets found"} if none else {}))

    def tell(self, **more: object) -> None:
        mode = "enforcing" if policy["egress"] else f"{policy['defaultAction']}_all"
        enforcement = os.environ["OPENSANDBOX_EGRESS_MODE"]
        self.reply(200, {"status": "ok", "mode": mode, "enforcementMode": enforcement, **more})

    def handle_one(self) -> None:
        if self.headers.get("OPENSANDBOX-EGRESS-AUTH") != os.environ["OPENSANDBOX_EGRESS_TOKEN"]:
            return self.reply(401, "unauthorized")
        if self.path == "/healthz":
            return self.reply(200, "ok")
        if self.path != "/policy":
            return self.reply(404, "not found")
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if self.command != "GET" and not given:
            return self.reply(400, "empty body")
        if self.command == "PATCH":
            return self.change({rule["target"] for rule in given}, given)
        if self.command == "DELETE":
            return self.change(set(given), [])
        return self.tell(policy=policy)

    do_GET = do_PATCH = do_DELETE = handle_one


if __name__ == "__main__":
    ThreadingHTTPServer(("", 18080), Sidecar).serve_forever()
