# SPDX-License-Identifier: Apache-2.0
"""The messages of `sandbox.bridge.v1`, under one short name: `v1.SandboxSpec(image=...)`.

What each field means, its unit and what its absence means is said in the .proto files, and in the
generated .pyi files beside these modules.
"""

# ruff: noqa: F403
from .._generated.bridge_pb2 import *
from .._generated.common_pb2 import *
from .._generated.errors_pb2 import *
from .._generated.exec_pb2 import *
from .._generated.files_pb2 import *
from .._generated.isolation_pb2 import *
from .._generated.processes_pb2 import *
from .._generated.sandboxes_pb2 import *
