# SPDX-License-Identifier: Apache-2.0
"""The data-plane suite, for a live sandbox: one check a clause of the contract.

@pytest.mark.parametrize("check", DATA_CONTRACT + PROCESSES_CONTRACT, ids=lambda c: c.name)
async def test_data_contract(check, live_handle):
    await run_contract_check(check, DataContractBox(...))
"""

from __future__ import annotations

from astrabox.testing._command_checks import COMMAND_CHECKS
from astrabox.testing._data_checks import Check, DataContractBox
from astrabox.testing._file_checks import FILE_CHECKS
from astrabox.testing._process_checks import PROCESS_CHECKS

DATA_CONTRACT: tuple[Check, ...] = (*FILE_CHECKS, *COMMAND_CHECKS)
PROCESSES_CONTRACT: tuple[Check, ...] = PROCESS_CHECKS


async def run_contract_check(check: Check, box: DataContractBox) -> None:
    """Runs one check in an empty scratch directory of its own; raises AssertionError."""
    place = DataContractBox(
        files=box.files,
        commands=box.commands,
        scratch=f"{box.scratch}/{check.name.replace(' ', '-')}",
        account=box.account,
        processes=box.processes,
    )
    await place.commands.run(f"rm -rf '{place.scratch}' && mkdir -p '{place.scratch}'")
    try:
        await check.run(place)
    finally:
        await place.commands.run(f"rm -rf '{place.scratch}'")


__all__ = ["DATA_CONTRACT", "PROCESSES_CONTRACT", "DataContractBox", "run_contract_check"]
