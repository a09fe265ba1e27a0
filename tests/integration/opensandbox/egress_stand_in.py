# SPDX-License-Identifier: Apache-2.0
"""What opensandbox-server wants of its egress sidecar (image `egress.image`), without the enforcement: it
keeps the policy of its sandbox, tells and changes it. The official image cannot be had offline.

Run by the image that setup_test.py makes; alone in its file, since it is copied there.
"""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

policy = json.loads(os.environ["OPENSANDBOX_EGRESS_RULES"])


class Sidecar(BaseHTTPRequestHandler):
    def reply(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def change(self, targets: set[str], first: list[dict[str, str]]) -> None:
        policy["egress"] = first + [rule for rule in policy["egress"] if rule["target"] not in targets]
        self.tell()

    def tell(self) -> None:
        mode = "deny_all" if policy["defaultAction"] == "deny" else "allow_all"
        enforcement = os.environ["OPENSANDBOX_EGRESS_MODE"]
        self.reply(200, {"status": "ok", "mode": mode, "enforcementMode": enforcement, "policy": policy})

    def handle_one(self) -> None:
        if self.headers.get("OPENSANDBOX-EGRESS-AUTH") != os.environ["OPENSANDBOX_EGRESS_TOKEN"]:
            return self.reply(401, "unauthorized")
        if self.path == "/healthz":
            return self.reply(200, {})
        if self.path != "/policy":
            return self.reply(404, "not found")
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if self.command == "PATCH":
            return self.change({rule["target"] for rule in given}, given)
        if self.command == "DELETE":
            return self.change(set(given), [])
        return self.tell()

    do_GET = do_PATCH = do_DELETE = handle_one


if __name__ == "__main__":
    ThreadingHTTPServer(("", 18080), Sidecar).serve_forever()
