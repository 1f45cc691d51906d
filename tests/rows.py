"""Tests that are tables: one test runs every row, and names each row that fails.

pytest needs about ten milliseconds a test, so hundreds of quick rows are one test. Slow rows should use
`pytest.mark.parametrize`.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pytest

Row = TypeVar("Row")
TOLD = 3
"""The number of failures with a traceback. Others show only the last line."""
LONGEST = 80
"""The most characters of a row's name from its values"""


def some_quickly(rows: Iterable[Row], every: int) -> list[Row | Any]:
    """Return the rows for `pytest.mark.parametrize`: `make test` runs every n-th row, and `make slow` the others.

    Use this for rows that need a process or a second. `make test` still finds a change that breaks the whole table. A
    tuple gives several parameters.
    """
    return [row if at % every == 0 else _slow_row(row) for at, row in enumerate(rows)]


def _slow_row(row: Any) -> Any:
    if isinstance(row, type(pytest.param())):  # pytest.param is a tuple, too
        return pytest.param(*row.values, marks=[*row.marks, pytest.mark.slow], id=row.id)
    return pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)


def all_rows(
    names: str | Sequence[str],
    rows: Iterable[Any] | Callable[[], Iterable[Any]],
    ids: Iterable[str] | Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but as one test. Other parameters are fixtures, which all rows share.

    Args:
        names: the parameters that a row gives.
        rows: a tuple for each row, or a value for one parameter; or a function, which is called when the test runs.
        ids: the names of the rows, or a function from a value to a name.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    written = ids if ids is None or callable(ids) else list(ids)
    held = rows if callable(rows) else list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        def ask(**fixtures: Any) -> None:
            named = list(_named(held() if callable(held) else held, parameters, written))
            assert named, "the table has no rows"
            failed = []
            for name, values in named:
                try:
                    test(**dict(zip(parameters, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (the other rows run as well)
                    failed.append((name, error))
            if failed:
                pytest.fail(f"{len(failed)} of {len(named)} rows\n" + "\n".join(_told(failed)), pytrace=False)

        ask.__name__, ask.__doc__, ask.__module__ = test.__name__, test.__doc__, test.__module__
        shared = [each for name, each in signature.parameters.items() if name not in parameters]
        ask.__signature__ = signature.replace(parameters=shared)  # type: ignore[attr-defined]
        return ask

    return decorate


def _named(
    rows: Iterable[Any], parameters: Sequence[str], ids: Sequence[str] | Callable[[Any], Any] | None
) -> Iterator[tuple[str, Sequence[Any]]]:
    for number, row in enumerate(rows):
        if hasattr(row, "marks"):  # pytest.param
            values, name = row.values, row.id
        else:
            values, name = row if len(parameters) > 1 else (row,), None
        if name is None and ids is not None and not callable(ids):
            name = ids[number]
        yield name or "-".join(map(ids if callable(ids) else _shown, values)), values


def _shown(value: Any) -> str:
    return str(value)[:LONGEST]


def _told(failed: Sequence[tuple[str, BaseException]]) -> Iterator[str]:
    for number, (name, error) in enumerate(failed):
        lines = traceback.format_exception(error) if number < TOLD else traceback.format_exception_only(error)[:1]
        yield f"[{name}] " + "".join(lines)
