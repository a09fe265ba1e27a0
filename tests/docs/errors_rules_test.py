# SPDX-License-Identifier: Apache-2.0
"""The rules between the three tables find what they are for."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path.cwd() / "tests/docs"))
from errors_md import Python, Row, failures_of, page_of, problems_of

RUNTIME = Python("AGENT_RUNTIME_ERROR", 502, "SandboxUnreachable", False)


def row(reason: str, code: str, epp: int, sdk: str = "", retryable: bool = False) -> Row:
    return Row(reason, code, "BRIDGE", retryable, "Do something.", epp, sdk)


class Rules(unittest.TestCase):
    def problems(self, one: Row, python: Python = RUNTIME) -> list[str]:
        return problems_of([one], {one.reason: python})

    def test_a_consistent_row_is_fine(self) -> None:
        self.assertEqual(self.problems(row("X", "UNAVAILABLE", -32000, "E5001")), [])

    def test_another_epp_class_is_found(self) -> None:
        self.assertEqual(len(self.problems(row("X", "DEADLINE_EXCEEDED", -32000))), 1)

    def test_a_retry_that_nobody_promised_is_found(self) -> None:
        python = RUNTIME._replace(retryable=True)
        self.assertEqual(len(self.problems(row("X", "UNAVAILABLE", -32000), python)), 1)
        self.assertEqual(self.problems(row("X", "UNAVAILABLE", -32000, retryable=True), python), [])

    def test_what_looks_like_a_sandbox_that_is_gone_is_found(self) -> None:
        python = RUNTIME._replace(code="SANDBOX_GONE")
        self.assertEqual(len(self.problems(row("X", "UNAVAILABLE", -32000), python)), 1)

    def test_missing_and_surplus_rows_are_found(self) -> None:
        self.assertEqual(len(problems_of([row("X", "INTERNAL", -32000)], {})), 1)
        self.assertEqual(len(problems_of([], {"Y": RUNTIME, "UNSPECIFIED": RUNTIME})), 1)

    def test_the_providers_table_is_read(self) -> None:
        failures = failures_of("frontends/astrabox/src/astrabox_sandbox_bridge/failures.py")
        self.assertGreater(len(failures), 40)
        self.assertEqual(
            failures["REQUEST_ID_REUSED"],
            Python("SANDBOX_ASSIGNMENT_CONFLICT", 409, "APIError", False),
        )
        self.assertTrue(failures["DRAINING"].retryable)

    def test_a_page_has_a_line_for_each_row(self) -> None:
        page = page_of([row("X", "UNAVAILABLE", -32000, "E5001")], {"X": RUNTIME})
        self.assertIn("| `X` | UNAVAILABLE | BRIDGE |  | Do something. | -32000 E5001 |", page)


if __name__ == "__main__":
    unittest.main()
