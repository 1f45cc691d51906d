"""Writes log lines about failures of the watches of a cluster: one line for each cause, for any number of watches.

The beginning of an outage is logged for the first watch that fails, and the end for the last watch that recovers. At a
start, one line names all kinds that are not installed, and one line all kinds that claimgate may not read. A server's
lines also say what happens to reviews meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from webhook.apimachinery.attributes import NAMESPACE, GroupVersionKind
from webhook.cluster.connection import CredentialsRefused, ServerRefused
from webhook.cluster.discovery import KindNotServed
from webhook.cluster.freshness import (
    NOT_ANSWERED,
    NOT_EVALUATED,
    ServerUnreachable,
    StreamBroken,
    describe_old_answers,
)
from webhook.errors import LookupFailed
from webhook.logs.structured import Level, Log
from webhook.text.wording import some_of

PoliciesOfKind: TypeAlias = Callable[[GroupVersionKind], Sequence[str]]
"""Returns the names of the policies that look up a kind."""


class _Outage(NamedTuple):
    """A reason why no kind can be read: the messages for its beginning and its end (or ""), and what to do."""

    begin: str
    end: str
    level: Level = "warning"
    fix: str = ""


_UNREACHABLE: Final = _Outage(
    "API server does not answer",
    "API server answers again",
    fix="check that the API server runs; after a timeout, also that no firewall or NetworkPolicy blocks it",
)
_DISTRUSTED: Final = _Outage(
    "claimgate does not trust the API server's certificate",
    "claimgate trusts the API server's certificate again",
    fix="ca.crt of the ServiceAccount, or certificate-authority of the kubeconfig, must be the authority that "
    "signed it",
)
_UNAUTHORIZED: Final = _Outage("API server refuses the credentials", "API server accepts the credentials again")
_FAILING: Final = _Outage("API server answers with errors", "API server answers without errors again")
_BROKEN: Final = _Outage("API server ended watches", "", "debug")
"""No action is needed if the watch continues. Otherwise another outage is logged."""
_TOGETHER_S: Final = 3.0
"""Seconds to wait for refusals of other kinds before one line is written for all: a lost role binding affects all
kinds.
"""
_GOING_S: Final = 30.0
"""Seconds to wait after a 404 for a list: the next discovery usually finds that the kind is gone."""
_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})
_RIGHTS: Final = "`claimgate webhook-config --check --live` says which ClusterRole or binding is missing"
_MOST_POLICIES: Final = 5


def _outage_of_error(error: LookupFailed) -> _Outage | None:
    if isinstance(error, ServerUnreachable):
        return _DISTRUSTED if error.is_distrusted else _UNREACHABLE
    if isinstance(error, StreamBroken):
        return _BROKEN
    if isinstance(error, ServerRefused) and error.code == HTTPStatus.UNAUTHORIZED:
        return _UNAUTHORIZED
    if isinstance(error, ServerRefused) and error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _FAILING
    return None


class FailureLog:
    """Writes the lines for all watches of a process, from any thread. Any object may identify a watch."""

    def __init__(self, log: Log, policies_of_kind: PoliciesOfKind | None = None) -> None:
        """Begin without failures.

        Args:
            log: where the lines go.
            policies_of_kind: None for a command, which answers no reviews.
        """
        self._log = log
        self._policies_of_kind = policies_of_kind
        self._lock = threading.Lock()
        self._outages: dict[object, _Outage] = {}
        """The watches that cannot read, with the outage of each watch."""
        self._not_installed: set[GroupVersionKind] = set()
        self._gathered: dict[object, tuple[GroupVersionKind, LookupFailed]] | None = None
        self._refused: dict[float, dict[GroupVersionKind, LookupFailed]] = {}
        """The kinds with a recent refusal, by the seconds to wait before their line is written."""
        self._listed: set[GroupVersionKind] = set()
        self._heard_at = monotonic()
        """The time of the API server's last answer to a watch, on the monotonic clock."""

    @property
    def is_unreachable(self) -> bool:
        """Return whether the API server answers no watch, or is not trusted."""
        return not {_UNREACHABLE, _DISTRUSTED}.isdisjoint(self._outages.values())

    def note_failure(self, watch: object, gvk: GroupVersionKind, error: LookupFailed, *, is_new: bool) -> None:
        """Log a failure unless its cause was logged. `is_new`: the watch did not fail before, or failed for another
        reason.
        """
        outage = _outage_of_error(error)
        fix = error.fix if isinstance(error, CredentialsRefused) else outage.fix if outage else ""
        self._move_watch(watch, outage, {"error": str(error)}, fix)
        if outage is None and is_new:
            with self._lock:
                if self._gathered is not None:
                    self._gathered[watch] = gvk, error
                    return
            if isinstance(error, KindNotServed):
                self._forget_refusals(gvk, _TOGETHER_S, _GOING_S)  # 404 for the list: the kind is gone
            if isinstance(error, ServerRefused):
                self._log_refused_kinds_soon(gvk, error)
            else:
                self._log_failure(gvk, error)

    def note_list(self, gvk: GroupVersionKind) -> None:
        """Note that a kind was listed. Log that a missing kind is now installed."""
        self._heard_at = monotonic()
        self._listed.add(gvk)
        self._forget_refusals(gvk, _GOING_S)
        if gvk in self._not_installed:
            self._not_installed.discard(gvk)
            meanwhile = self._reviews("answered; these policies now read objects of the kind")
            self._write("info", "kind is installed now", {**_names_of_kind(gvk), **self._policies(gvk), **meanwhile})

    def note_success(self, watch: object, gvk: GroupVersionKind) -> None:
        """Note that a watch works. Log the end of an outage if no other watch is affected, and a kind that is now
        installed.
        """
        if self._outages and watch in self._outages:  # usually there are no failures
            self._move_watch(watch, None)
        if self._gathered is not None:
            with self._lock:
                self._gathered = {
                    each: failure for each, failure in (self._gathered or {}).items() if each is not watch
                }
        self.note_list(gvk)

    def forget(self, watch: object) -> None:
        """Forget a watch that was stopped."""
        with self._lock:
            self._outages.pop(watch, None)

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Collect failures of watches, and log them together at the end of the context."""
        self._gathered = {}
        try:
            yield
        finally:
            with self._lock:
                gathered, self._gathered = self._gathered, None
            self._log_gathered(tuple((gathered or {}).values()))

    def _move_watch(
        self, watch: object, outage: _Outage | None, fields: Mapping[str, str] = _NO_FIELDS, fix: str = ""
    ) -> None:
        with self._lock:
            before = self._outages.pop(watch, None)
            begins = outage is not None and outage not in self._outages.values() and before is not outage
            if outage is not None:
                self._outages[watch] = outage
            ends = before is not None and before not in self._outages.values()
        if before is not None and before.end and ends:
            self._write("info", before.end, {})
        if outage is not None and begins:
            about_reviews = self._reviews(self._reviews_in_outage()) if outage.level == "warning" else {}
            self._write(outage.level, outage.begin, {**fields, **about_reviews, **({"fix": fix} if fix else {})})

    def _reviews_in_outage(self) -> str:
        # a replica is ready after it has read namespaces once
        return describe_old_answers(monotonic() - self._heard_at) if NAMESPACE in self._listed else NOT_ANSWERED

    def _reviews(self, what_becomes: str) -> dict[str, str]:
        return {"reviews": what_becomes} if self._policies_of_kind is not None else {}

    def _policies(self, gvk: GroupVersionKind) -> dict[str, str]:
        names = self._policies_of_kind(gvk) if self._policies_of_kind is not None else ()
        return {"policies": some_of(names, _MOST_POLICIES)} if names else {}

    def _forget_refusals(self, gvk: GroupVersionKind, *waits_s: float) -> None:
        if self._refused:  # usually there are none
            with self._lock:
                for wait_s in waits_s:
                    self._refused.get(wait_s, {}).pop(gvk, None)

    def _log_refused_kinds_soon(self, gvk: GroupVersionKind, error: ServerRefused) -> None:
        wait_s = _GOING_S if error.code == HTTPStatus.NOT_FOUND else _TOGETHER_S
        with self._lock:
            is_first = wait_s not in self._refused
            self._refused.setdefault(wait_s, {})[gvk] = error
        if is_first:
            timer = threading.Timer(wait_s, self._log_refused_kinds, (wait_s,))
            timer.daemon = True
            timer.start()

    def _log_refused_kinds(self, wait_s: float) -> None:
        with self._lock:
            refused = self._refused.pop(wait_s, {})
        if refused:
            self._write_refused_kinds(refused)

    def _write_refused_kinds(self, refused: Mapping[GroupVersionKind, LookupFailed]) -> None:
        error = next(iter(refused.values()))
        is_forbidden = isinstance(error, ServerRefused) and error.code == HTTPStatus.FORBIDDEN
        fields = {
            "kinds": _names_of_kinds(refused),
            "error": str(error),
            **self._reviews(self._reviews_without_kinds(refused)),
            **({"fix": _RIGHTS} if is_forbidden else {}),
        }
        self._write("warning", "kinds cannot be read", fields)

    def _reviews_without_kinds(self, refused: Mapping[GroupVersionKind, LookupFailed]) -> str:
        if NAMESPACE in refused and NAMESPACE not in self._listed:
            return NOT_ANSWERED
        if self._listed.issuperset(refused):
            new = "is not ready" if NAMESPACE in refused else "knows no such objects"
            return f"still answered, from what was read of these kinds before; a replica that starts now {new}"
        return NOT_EVALUATED

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
        named = _names_of_kind(gvk)
        if not isinstance(error, KindNotServed):
            self._write("warning", "watch failed", {**named, "error": str(error)})
        elif gvk not in self._not_installed:  # a kind may have several watches
            self._not_installed.add(gvk)
            if gvk in self._listed:
                all_fields = {**named, **self._policies(gvk), **self._reviews(NOT_EVALUATED)}
                self._write("warning", "kind is no longer installed", all_fields)
            else:
                self._write("info", "kind is not installed", named)

    def _write(self, level: Level, message: str, fields: Mapping[str, Any]) -> None:
        with suppress(OSError, ValueError):  # a failure to write the log must not end the watch
            self._log.write(level, message, dict(fields))


def _names_of_kind(gvk: GroupVersionKind) -> dict[str, str]:
    return {"group": gvk.group, "kind": gvk.kind}


def _names_of_kinds(gvks: set[GroupVersionKind] | Mapping[GroupVersionKind, object]) -> list[str]:
    return sorted(f"{gvk.kind}.{gvk.group}" if gvk.group else gvk.kind for gvk in gvks)
