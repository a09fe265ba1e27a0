# SPDX-License-Identifier: Apache-2.0
"""Contracts between the platform and what plugs into it."""

SEAMS_API_VERSION = 5
