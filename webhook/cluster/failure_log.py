"""Log lines about what the watches of a cluster cannot read: one a cause, however many watches meet it.

An outage of the API server is logged when the first watch meets it, and its end when the last one is past it. Collects
what watches cannot read at a start: one line for all kinds that are not installed, and one line for all kinds that the
server may not read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.connection import ServerRefused
from webhook.cluster.discovery import KindNotServed
from webhook.cluster.freshness import ServerUnreachable, StreamBroken
from webhook.errors import LookupFailed
from webhook.logs.structured import Level, Log


class _Outage(NamedTuple):
    """Why no kind can be read, as the messages of its beginning and of its end, "" for none."""

    begin: str
    end: str
    level: Level = "warning"


_UNREACHABLE: Final = _Outage("API server unreachable", "API server reachable again")
_UNAUTHORIZED: Final = _Outage("API server refuses the credentials", "API server accepts the credentials again")
_FAILING: Final = _Outage("API server answers with errors", "API server answers without errors again")
_BROKEN: Final = _Outage("API server ended watches", "", "debug")
"""A watch that goes on is no reason to look, and one that does not is logged as another outage."""
_TOGETHER_S: Final = 3.0
"""How long refusals are gathered: as long as it takes to find that a kind is no longer installed."""
_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})


def _outage_of_error(error: LookupFailed) -> _Outage | None:
    if isinstance(error, ServerUnreachable):
        return _UNREACHABLE
    if isinstance(error, StreamBroken):
        return _BROKEN
    if isinstance(error, ServerRefused) and error.code == HTTPStatus.UNAUTHORIZED:
        return _UNAUTHORIZED
    if isinstance(error, ServerRefused) and error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _FAILING
    return None


class FailureLog:
    """Writes the lines. All watches of a process share one; any thread may call it.

    Any object can be the key of a watch.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._outages: dict[object, _Outage] = {}
        """The watches that are cut off, each with its outage."""
        self._not_installed: set[GroupVersionKind] = set()
        self._gathered: dict[object, tuple[GroupVersionKind, LookupFailed]] | None = None
        self._refused: dict[GroupVersionKind, LookupFailed] = {}
        """The kinds that were refused in the last seconds: one lost binding of a role takes all away."""
        self._listed: set[GroupVersionKind] = set()

    @property
    def is_unreachable(self) -> bool:
        """Return whether a watch waits for an API server that sends no answer."""
        return _UNREACHABLE in self._outages.values()

    def note_failure(self, watch: object, gvk: GroupVersionKind, error: LookupFailed, *, is_new: bool) -> None:
        """Log a failure unless its cause was logged before; `is_new`: the watch did not fail in these words before."""
        outage = _outage_of_error(error)
        self._move_watch(watch, outage, {"error": str(error)})
        if outage is None and is_new:
            with self._lock:
                if self._gathered is not None:
                    self._gathered[watch] = gvk, error
                    return
            if isinstance(error, KindNotServed):
                with self._lock:
                    self._refused.pop(gvk, None)  # its list was not found, because it went
            if isinstance(error, ServerRefused):
                self._log_refused_kinds_soon(gvk, error)
            else:
                self._log_failure(gvk, error)

    def note_list(self, gvk: GroupVersionKind) -> None:
        """Log a kind that appears."""
        self._listed.add(gvk)
        if gvk in self._not_installed:
            self._not_installed.discard(gvk)
            self._write("info", "kind appeared", {"group": gvk.group, "kind": gvk.kind})

    def note_success(self, watch: object, gvk: GroupVersionKind) -> None:
        """Log the end of an outage that this watch is the last to leave, and a kind that appears."""
        if self._outages and watch in self._outages:  # mostly there are no failures
            self._move_watch(watch, None)
        if self._gathered is not None:
            with self._lock:
                self._gathered = {each: what for each, what in (self._gathered or {}).items() if each is not watch}
        self.note_list(gvk)

    def forget(self, watch: object) -> None:
        """Forget a watch that was stopped."""
        with self._lock:
            self._outages.pop(watch, None)

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Gather what watches cannot read for as long as the context lasts, then log it together."""
        self._gathered = {}
        try:
            yield
        finally:
            with self._lock:
                gathered, self._gathered = self._gathered, None
            self._log_gathered(tuple((gathered or {}).values()))

    def _move_watch(self, watch: object, outage: _Outage | None, fields: Mapping[str, str] = _NO_FIELDS) -> None:
        with self._lock:
            before = self._outages.pop(watch, None)
            begins = outage is not None and outage not in self._outages.values() and before is not outage
            if outage is not None:
                self._outages[watch] = outage
            ends = before is not None and before not in self._outages.values()
        if before is not None and before.end and ends:
            self._write("info", before.end, {})
        if outage is not None and begins:
            self._write(outage.level, outage.begin, fields)

    def _log_refused_kinds_soon(self, gvk: GroupVersionKind, error: LookupFailed) -> None:
        with self._lock:
            is_first = not self._refused
            self._refused[gvk] = error
        if is_first:
            timer = threading.Timer(_TOGETHER_S, self._log_refused_kinds)
            timer.daemon = True
            timer.start()

    def _log_refused_kinds(self) -> None:
        with self._lock:
            refused, self._refused = self._refused, {}
        if refused:
            self._write_refused_kinds(refused)

    def _write_refused_kinds(self, refused: Mapping[GroupVersionKind, LookupFailed]) -> None:
        fields = {"kinds": _names_of_kinds(refused), "error": str(next(iter(refused.values())))}
        self._write("warning", "kinds cannot be read", fields)

    def _log_gathered(self, failures: tuple[tuple[GroupVersionKind, LookupFailed], ...]) -> None:
        missing = {gvk for gvk, error in failures if isinstance(error, KindNotServed)}
        refused = {gvk: error for gvk, error in failures if isinstance(error, ServerRefused)}
        self._not_installed |= missing
        if missing:
            self._write("info", "kinds are not installed", {"kinds": _names_of_kinds(missing)})
        if refused:
            self._write_refused_kinds(refused)
        for gvk, error in failures:
            if not isinstance(error, KindNotServed | ServerRefused):
                self._log_failure(gvk, error)

    def _log_failure(self, gvk: GroupVersionKind, error: LookupFailed) -> None:
        named = {"group": gvk.group, "kind": gvk.kind}
        if not isinstance(error, KindNotServed):
            self._write("warning", "watch failed", {**named, "error": str(error)})
        elif gvk not in self._not_installed:  # a kind may have several watches
            self._not_installed.add(gvk)
            was_installed = gvk in self._listed
            self._write("info", "kind is no longer installed" if was_installed else "kind is not installed", named)

    def _write(self, level: Level, message: str, fields: Mapping[str, Any]) -> None:
        with suppress(OSError, ValueError):  # a failure to write the log must not end the watch
            self._log.write(level, message, dict(fields))


def _names_of_kinds(gvks: set[GroupVersionKind] | Mapping[GroupVersionKind, object]) -> list[str]:
    return sorted(f"{gvk.kind}.{gvk.group}" if gvk.group else gvk.kind for gvk in gvks)
