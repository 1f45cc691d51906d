"""The table of verdicts on DRA objects has the answers of this API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import apiserver
from tests.e2e.dra_verdicts import FILE, FLAGS, asked


@pytest.mark.slow
def test_the_table_is_up_to_date(tmp_path: Path) -> None:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path, *FLAGS) as server:
        rows = ["\t".join(map(str, row)) for row in asked(server)]
    assert rows == FILE.read_text().splitlines()
