"""Patterns over a user's whole command read each place of the text a bounded number of times."""

from __future__ import annotations

import pytest

from webhook.facts.device_failures.types import RUNS_TEST


@pytest.mark.parametrize("piece", ["9", "a-", "9_", "tests_a", "test" + "_"])
def test_a_long_command_that_runs_no_test_is_searched_once(piece):
    assert RUNS_TEST.search(piece * (500_000 // len(piece))) is None


@pytest.mark.parametrize("text", ["my-test.py", "run_tests_2.sh", "9test_x.py", "x/test.py", "nccl-tests"])
def test_the_name_of_a_test_script_is_recognized(text):
    assert RUNS_TEST.search(text)
