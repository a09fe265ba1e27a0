# SPDX-License-Identifier: Apache-2.0
"""One sandbox as the data planes see it: which client, which id, which incarnation, what may not
be said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from . import names
from .client import BridgeClient, BridgeError, ConfigurationError
from .failures import Plane, api_error, row_of, scrub
from .settings import SettingError

if TYPE_CHECKING:
    from .settings import Settings


class Where(TypedDict):
    """The arguments that every call about one sandbox has."""

    sandbox_id: str
    incarnation: str


@dataclass(frozen=True)
class Box:
    sandbox_id: str
    # Fences every call: the id must still mean this sandbox.
    incarnation: str
    # The running loop's client of the bridge.
    client: Callable[[], BridgeClient]
    settings: Settings

    @property
    def where(self) -> Where:
        return {"sandbox_id": self.sandbox_id, "incarnation": self.incarnation}

    @contextmanager
    def plane(self, operation: str, path: str | None = None) -> Iterator[None]:
        """Turns the client's exceptions into those of the data planes."""
        try:
            yield
        except BridgeError as error:
            raise self.failure(error, operation, path) from None
        except (SettingError, ConfigurationError) as error:
            raise names.error(Plane.UNREACHABLE, str(error)) from None
        except UnicodeEncodeError:
            what = "the request" if path is None else "the path"
            message = f"{what} is not text: it holds half a surrogate pair, which is no UTF-8"
            raise names.error(Plane.REJECTED, message, path=path) from None

    def failure(self, error: BridgeError, operation: str, path: str | None = None) -> Exception:
        secrets = self.settings.secrets()
        plane = row_of(error.reason).plane
        if plane is Plane.API_ERROR:
            return api_error(error, operation, secrets=secrets, gone=True)
        first = error.metadata.get("first_available", "")
        return names.error(
            plane,
            scrub(f"{error.reason}: {error.message}", secrets),
            path=path,
            first_available=int(first) if first.isdigit() else None,
        )
