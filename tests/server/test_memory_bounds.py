"""The sum of all memory bounds is below 300 MB by default, and a real server stays below this sum. A server with less
memory does not start.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.server.serving import Pki
from webhook.errors import ConfigurationError
from webhook.server.memory_bounds import MemoryBounds, limit
from webhook.server.operating_system import memory_limit
from webhook.settings.serving import DEFAULTS

LOADED = 55_200_000
"""The memory of a process with the shipped policies, in bytes, without program files"""


def test_the_default_settings_need_less_than_300_mb() -> None:
    bounds = MemoryBounds(DEFAULTS, LOADED)
    assert sum(part.bytes for part in bounds.parts()) == bounds.total < 300_000_000


RAISED: dict[str, dict[str, int]] = {
    "connections": {"max_connections": 2 * DEFAULTS.max_connections},
    "bodies": {"max_inflight_body_bytes": 2 * DEFAULTS.max_inflight_body_bytes},
    "workers": {"workers": 1 + DEFAULTS.workers},
    "stored policies": {"live_policies": True},
    "the view of a cluster": {"live": True},
    "memory of workers": {"worker_memory": 2 * DEFAULTS.worker_memory},
}


@pytest.mark.parametrize("raised", RAISED.values(), ids=RAISED.keys())
def test_a_raised_setting_raises_the_memory_bound(raised: dict[str, int]) -> None:
    assert MemoryBounds(replace(DEFAULTS, **raised), LOADED).total > MemoryBounds(DEFAULTS, LOADED).total + 20_000_000


def test_objects_in_the_view_are_counted_once() -> None:
    live = replace(DEFAULTS, live=True)
    assert MemoryBounds(live, LOADED + 5_000_000, 5_000_000).total == MemoryBounds(live, LOADED).total


def test_settings_that_need_too_much_memory_are_refused_with_a_list_of_parts() -> None:
    bounds = MemoryBounds(DEFAULTS, LOADED)
    bounds.check(None)
    bounds.check(bounds.total)
    with pytest.raises(ConfigurationError) as error:
        bounds.check(128 << 20)
    text = str(error.value)
    assert re.match(
        r"--memory: the server may need \d+Mi, and the limit is 128Mi: the process with its policies ", text
    )
    assert "large bodies 22Mi (--max-inflight-body-bytes)" in text
    assert text.endswith("lower one of these settings, or raise the memory limit of the container")


LIMITS = {
    "version 2": ({"memory.max": "536870912\n"}, 512 << 20),
    "version 2 without a limit": ({"memory.max": "max\n"}, None),
    "version 1": ({"memory/memory.limit_in_bytes": "536870912\n"}, 512 << 20),
    "version 1 without a limit": ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
    "no cgroup": ({}, None),
}


@pytest.mark.parametrize(("files", "expected"), LIMITS.values(), ids=LIMITS.keys())
def test_the_limit_of_the_container(files: dict[str, str], expected: int | None, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_limit(tmp_path) == expected


def test_a_flag_wins_over_the_limit_of_the_container() -> None:
    assert limit(replace(DEFAULTS, memory=400 << 20)) == 400 << 20


def test_a_server_with_too_large_bounds_does_not_start(tmp_path: Path) -> None:
    files = Pki(tmp_path).files
    pair = ["--tls-cert", str(files.certificate), "--tls-key", str(files.key)]
    command = [sys.executable, "-m", "webhook", "serve", "--port", "0", *pair, "--workers", "16", "--memory", "512Mi"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert re.search(r"the server may need \d+Mi, and the limit is 512Mi: ", done.stderr)
    assert "workers 558Mi (--workers, --worker-memory)" in done.stderr
