"""The shared parts of one serving process: its log, its counters, its readiness and its scheduler.

Readiness knows named checks, and not their contents; the text follows the API server's /readyz?verbose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from webhook.cluster.freshness import NOT_ANSWERED
from webhook.logs.structured import Log
from webhook.rules.text import shorten_text
from webhook.server.counters import Counters
from webhook.server.scheduler import Scheduler
from webhook.text.wording import counted

Check: TypeAlias = Callable[[], str]
"""Returns what is wrong, a line for each cause, or "" when all is well. Must be quick: probes call it."""
_LONGEST_LINE: Final = 600
_SHUTDOWN: Final = "shutdown"


@dataclass(slots=True)
class Readiness:
    """The readiness checks of one process.

    Attributes:
        checks: what must hold for reviews to be answered.
        phases: states in which reviews are not answered, such as the start; they are not faults.
        remarks: faults for the verbose text, such as a failed reload, although reviews are answered.
        notes: information for the verbose text, without a fault.
        draining: set once, before the process stops, so that no new connections come.
    """

    checks: Mapping[str, Check] = field(default_factory=dict)
    phases: Mapping[str, Check] = field(default_factory=dict)
    remarks: Mapping[str, Check] = field(default_factory=dict)
    notes: Mapping[str, Check] = field(default_factory=dict)
    draining: bool = False

    def failing(self) -> dict[str, str]:
        """Return the failing checks by name, with their reasons."""
        reasons = {name: check() for name, check in (*self.checks.items(), *self.phases.items())}
        if self.draining:
            reasons[_SHUTDOWN] = "the process is stopping"
        return {name: reason for name, reason in reasons.items() if reason}

    def report(self) -> tuple[bool, str]:
        """Return whether all checks pass, and the text of /readyz?verbose, with the marks that an API server uses.

        Failing checks come first, then warnings, then whether reviews are answered. Each name has the mark of its
        worst line.
        """
        failing = {name: _short_lines(reason) for name, reason in self.failing().items()}
        remarks = {name: _short_lines(remark()) for name, remark in self.remarks.items()}
        warned = {name: told for name, told in remarks.items() if told and name not in failing}
        failed = {name: dict.fromkeys((*told, *remarks.get(name, ()))) for name, told in failing.items()}
        lines = [f"[-]{self._unmet(name)}: {line}" for name, told in failed.items() for line in told]
        lines += (warnings := [f"[!]{name}: {line}" for name, told in warned.items() for line in told])
        if lines:
            lines.append(f"[i]reviews: {NOT_ANSWERED if failing else 'they are answered here'}")
        names = (*self.checks, *self.phases, _SHUTDOWN)
        lines += [f"[+]{name} ok" for name in names if name not in failing and name not in warned]
        lines += [f"[i]{name}: {line}" for name, note in self.notes.items() for line in _short_lines(note())]
        return not failing, "\n".join((*lines, _outcome(is_ready=not failing, warnings=len(warnings)))) + "\n"

    def _unmet(self, name: str) -> str:
        """Return the name of a check with `failed`, as an API server writes it, or the name of a phase alone."""
        return name if name == _SHUTDOWN or name in self.phases else f"{name} failed"


def _outcome(*, is_ready: bool, warnings: int) -> str:
    """Return the last line, which begins as that of an API server."""
    counted_warnings = f", with {counted(warnings, 'warning')}" if warnings else ""
    return f"readyz check {'passed' if is_ready else 'failed'}{counted_warnings}"


def _short_lines(text: str) -> list[str]:
    """Return the causes that a check names, each on a line. A long line is cut between two words."""
    return [_shortened_line(line) for line in text.splitlines()]


def _shortened_line(line: str) -> str:
    short = shorten_text(line, _LONGEST_LINE)
    whole_words = short.removesuffix(" …").rpartition(" ")[0]
    return short if short == line or not whole_words else f"{whole_words} …"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """The shared parts.

    Attributes:
        log: where lines of reviews and faults go.
        counters: the counts that /metrics shows.
        readiness: its checks; the listener sets `draining`.
        scheduler: decides which review may use the event loop now.
    """

    log: Log = field(default_factory=Log)
    counters: Counters = field(default_factory=Counters)
    readiness: Readiness = field(default_factory=Readiness)
    scheduler: Scheduler = field(default_factory=Scheduler)
