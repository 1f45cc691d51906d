"""An API server of the tests' own, without anything in it. Tests that need something there override it."""

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
