"""Waits until a file of some folders changes, by asking for sizes and times again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from webhook.errors import ConfigurationError
from webhook.yamltext import yamlfile

INTERVAL_S: Final = 0.5
MOST_FILES: Final = 5_000
"""Files that are checked in each interval: about 20 milliseconds."""


def wait_for_change(places: Sequence[Path], before: Mapping[str, object], sleep: Callable[[float], None]) -> None:
    """Return when a file has been added, changed or removed since `before`, and no other followed in an interval.

    Raises:
        ConfigurationError: there are too many files.
    """
    while (now := files_with_times(places)) == before:
        sleep(INTERVAL_S)
    while True:  # an editor may write several files
        sleep(INTERVAL_S)
        again = files_with_times(places)
        if again == now:
            return
        now = again


def files_with_times(places: Sequence[Path]) -> Mapping[str, tuple[int, int]]:
    """Return the size and the time of the last change of each file of YAML or JSON in these folders.

    Raises:
        ConfigurationError: there are too many files.
    """
    files: dict[str, tuple[int, int]] = {}
    for file in yamlfile.listing(places).files:
        if len(files) == MOST_FILES:
            raise ConfigurationError(f"--watch: there are more than {MOST_FILES:,} files: name a folder with fewer")
        try:
            status = file.path.stat()
        except OSError:  # it has just been removed
            continue
        files[str(file.path)] = status.st_size, status.st_mtime_ns
    return files
