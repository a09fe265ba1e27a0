# SPDX-License-Identifier: Apache-2.0
"""Conformance suites for provider authors."""
