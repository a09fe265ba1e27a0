# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster of one real node, for tests. See node.py."""
