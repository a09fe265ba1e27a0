#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
exec /usr/bin/python3 tests/docs/errors_rules_test.py
