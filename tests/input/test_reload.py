"""A value is reloaded when its files stop changing. If the files are broken, the last valid value stays."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from webhook.errors import ConfigurationError
from webhook.input.reload import ReloadableValue, create_file_state_function, watch


def numbers(folder: Path) -> ReloadableValue[int]:

    def make() -> int:
        texts = [path.read_text() for path in sorted(folder.iterdir())]
        if any(text == "bug" for text in texts):
            raise ZeroDivisionError
        if not all(text.isdigit() for text in texts):
            raise ConfigurationError("not a number")
        return sum(map(int, texts))

    return ReloadableValue(make, create_file_state_function(lambda: sorted(folder.iterdir())))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("1")
    return tmp_path


def test_the_first_value_must_be_valid(folder: Path) -> None:
    (folder / "a").write_text("x")
    with pytest.raises(ConfigurationError):
        numbers(folder)


def test_a_change_is_loaded_after_two_equal_polls(folder: Path) -> None:
    found = numbers(folder)
    assert (found.poll(), found.current) == (False, 1)
    (folder / "b").write_text("20")
    assert (found.poll(), found.current) == (False, 1)
    (folder / "b").write_text("200")
    assert (found.poll(), found.current) == (False, 1)
    assert (found.poll(), found.current, found.reloads) == (True, 201, 1)
    assert (found.poll(), found.reloads) == (False, 1)
    (folder / "a").unlink()
    assert [found.poll(), found.poll(), found.current] == [False, True, 200]


@pytest.mark.parametrize(
    ("text", "error"), [("x", "not a number"), ("bug", r"claimgate failed on these files (ZeroDivisionError)")]
)
def test_a_broken_change_keeps_the_last_valid_value_and_is_tried_once(folder: Path, text: str, error: str) -> None:
    found = numbers(folder)
    (folder / "a").write_text(text)
    assert [found.poll(), found.poll(), found.poll()] == [False, True, False]
    assert (found.current, found.error) == (1, error)
    (folder / "a").write_text("7777")
    assert [found.poll(), found.poll()] == [False, True]
    assert (found.current, found.error, found.reloads) == (7777, "", 1)


def test_a_deleted_folder_is_an_error_until_it_is_restored(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    (below / "a").write_text("1")
    found = numbers(below)
    below.rename(folder / "away")
    assert found.poll()
    assert "claimgate failed" in found.error
    (folder / "away").rename(below)
    (below / "a").write_text("22")
    assert [found.poll(), found.poll()] == [False, True]
    assert (found.current, found.error) == (22, "")


def test_a_restored_folder_is_no_longer_an_error(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    (below / "a").write_text("1")
    found = numbers(below)
    below.rename(folder / "away")
    assert [found.poll(), found.poll()] == [True, False]  # the error is reported once
    (folder / "away").rename(below)
    assert (found.poll(), found.error, found.current, found.reloads) == (True, "", 1, 0)
    assert not found.poll()


def test_a_broken_file_replaced_by_the_served_file_is_no_longer_an_error(folder: Path) -> None:
    found = numbers(folder)
    (folder / "a").rename(folder.parent / "kept")
    (folder / "a").write_text("x")
    assert [found.poll(), found.poll(), found.error] == [False, True, "not a number"]
    (folder.parent / "kept").rename(folder / "a")
    assert (found.poll(), found.error, found.current) == (True, "", 1)


def test_a_mounted_config_map_changes_by_swapping_one_link(tmp_path: Path) -> None:
    for version, number in (("..1", "1"), ("..2", "2")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "a").write_text(number)
        os.utime(tmp_path / version / "a", (0, 0))
    (tmp_path / "..data").symlink_to("..1")
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "a").symlink_to(tmp_path / "..data" / "a")
    found = numbers(volume)
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert [found.poll(), found.poll(), found.current] == [False, True, 2]


def test_a_file_that_is_deleted_during_the_scan_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    names = create_file_state_function(lambda: [tmp_path / "a", tmp_path / "gone"])()
    assert [entry[0] for entry in names] == [str(tmp_path / "a")]  # type: ignore[attr-defined]


def test_the_watch_reports_every_attempt(folder: Path) -> None:
    told: list[tuple[int, str]] = []

    async def run() -> None:
        found, tried = numbers(folder), asyncio.Event()

        def tell(reloaded: ReloadableValue[int]) -> None:
            told.append((reloaded.current, reloaded.error))
            tried.set()

        task = asyncio.create_task(watch(found, 0.01, tell))
        for text in ("300", "x", "40"):
            (folder / "a").write_text(text)
            await asyncio.wait_for(tried.wait(), 5)
            tried.clear()
        task.cancel()

    asyncio.run(run())
    assert told == [(300, ""), (300, "not a number"), (40, "")]
