"""A spool returns the values that it got, in their order, from memory or from a file."""

import tracemalloc
from pathlib import Path

import pytest

from tests.report.test_golden import ENDINGS, VERBS, written
from webhook.report import spool
from webhook.report.formats import format_names
from webhook.report.spool import Spool


@pytest.fixture(params=[0, 1 << 20], ids=["on disk", "in memory"])
def in_memory(request, monkeypatch):
    monkeypatch.setattr(spool, "_IN_MEMORY", request.param)
    return request.param


@pytest.mark.parametrize("count", [0, 1, 199, 200, 201, 1000])
def test_values_come_back_in_order_and_more_than_once(in_memory, count):
    kept = Spool[str]()
    for number in range(count):
        kept.append(f"value {number}")
    expected = [f"value {number}" for number in range(count)]
    assert list(kept) == list(kept) == expected


def test_two_readers_and_a_writer_do_not_disturb_each_other(in_memory):
    kept = Spool[int]()
    for number in range(1000):
        kept.append(number)
    first, second = iter(kept), iter(kept)
    assert [(next(first), next(second)) for _ in range(500)] == [(number, number) for number in range(500)]
    for number in range(1000, 1500):
        kept.append(number)
    assert list(first) == list(range(500, 1500))
    assert list(kept) == list(range(1500))


def test_memory_does_not_grow_with_cached_entries(monkeypatch):
    monkeypatch.setattr(spool, "_IN_MEMORY", 1 << 16)

    def peak(count):
        tracemalloc.start()
        kept = Spool[str]()
        for number in range(count):
            kept.append(f"{number:>500}")
        assert sum(1 for _ in kept) == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(20_000) < 2 * peak(2_000)


@pytest.mark.parametrize("name", format_names())
def test_a_format_writes_the_same_from_a_file(name, in_memory, monkeypatch, capsys):
    monkeypatch.setattr(spool, "_BATCH", 3)
    golden = Path(__file__).parents[1] / "data" / "reports" / "golden" / f"audit-{name}.{ENDINGS.get(name, name)}"
    text = written([*VERBS["audit"], "-o", name], monkeypatch, capsys)
    assert golden.is_file(), "run pytest tests/report/test_golden.py --update-golden, and read the new file"
    assert text == golden.read_text()
