"""The fixture `server` is an API server without objects. Tests that need objects override this fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cluster.server import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    from tests.cluster.server import ApiServer

    server = ApiServer()
    yield server
    server.shutdown()
    server.server_close()
