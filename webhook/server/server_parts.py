"""The shared parts of one serving process, and its readiness.

The text of readiness follows the API server's /readyz?verbose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from webhook.cluster import Cluster
from webhook.cluster.freshness import NOT_ANSWERED
from webhook.logs.structured import Log
from webhook.rules.text import shorten_text
from webhook.server.access_reviews import AccessReviews
from webhook.server.counters import Counters
from webhook.server.scheduler import Scheduler
from webhook.server.warning_events import WarningEvents
from webhook.settings.serving import DEFAULTS, ServerSettings
from webhook.text.wording import counted

Check: TypeAlias = Callable[[], str]
"""Returns what is wrong, a line for each cause, or "". Probes call it, so it must be quick."""
Gauges = Mapping[str, tuple[str, Callable[[], float]]]
"""The help and the reader of each gauge, by name. A name that ends in `_total` becomes a counter."""
_LONGEST_LINE: Final = 600
_SHUTDOWN: Final = "shutdown"


@dataclass(slots=True)
class Readiness:
    """The readiness checks of one process.

    Attributes:
        checks: all must pass before reviews are answered.
        phases: states without answers that are not faults, such as the start.
        remarks: faults for the verbose text that do not stop reviews, such as a failed reload.
        notes: information for the verbose text.
        draining: set once, before the process stops, so that no new connections come.
    """

    checks: Mapping[str, Check] = field(default_factory=dict)
    phases: Mapping[str, Check] = field(default_factory=dict)
    remarks: Mapping[str, Check] = field(default_factory=dict)
    notes: Mapping[str, Check] = field(default_factory=dict)
    draining: bool = False

    def failing(self) -> dict[str, str]:
        """Return the reasons of the failing checks by name."""
        reasons = {name: check() for name, check in (*self.checks.items(), *self.phases.items())}
        if self.draining:
            reasons[_SHUTDOWN] = "the process is stopping"
        return {name: reason for name, reason in reasons.items() if reason}

    def report(self) -> tuple[bool, str]:
        """Return whether all checks pass, and the text of /readyz?verbose in the API server's form.

        Failing checks come first, then warnings, then the outcome. Each name has the mark of its worst line.
        """
        failing = {name: _short_lines(reason) for name, reason in self.failing().items()}
        remarks = {name: _short_lines(remark()) for name, remark in self.remarks.items()}
        warned = {
            name: lines_of_check for name, lines_of_check in remarks.items() if lines_of_check and name not in failing
        }
        failed = {
            name: dict.fromkeys((*lines_of_check, *remarks.get(name, ()))) for name, lines_of_check in failing.items()
        }
        lines = [
            f"[-]{self._unmet(name)}: {line}" for name, lines_of_check in failed.items() for line in lines_of_check
        ]
        lines += (
            warnings := [f"[!]{name}: {line}" for name, lines_of_check in warned.items() for line in lines_of_check]
        )
        if lines:
            lines.append(f"[i]reviews: {NOT_ANSWERED if failing else 'they are answered here'}")
        names = (*self.checks, *self.phases, _SHUTDOWN)
        lines += [f"[+]{name} ok" for name in names if name not in failing and name not in warned]
        lines += [f"[i]{name}: {line}" for name, note in self.notes.items() for line in _short_lines(note())]
        return not failing, "\n".join((*lines, _outcome(is_ready=not failing, warnings=len(warnings)))) + "\n"

    def _unmet(self, name: str) -> str:
        # a phase has no `failed`
        return name if name == _SHUTDOWN or name in self.phases else f"{name} failed"


def _outcome(*, is_ready: bool, warnings: int) -> str:
    # the beginning of this line is the last line of an API server's text
    counted_warnings = f", with {counted(warnings, 'warning')}" if warnings else ""
    return f"readyz check {'passed' if is_ready else 'failed'}{counted_warnings}"


def _short_lines(text: str) -> list[str]:
    # a line for each cause
    return [_shortened_line(line) for line in text.splitlines()]


def _shortened_line(line: str) -> str:
    short = shorten_text(line, _LONGEST_LINE)
    whole_words = short.removesuffix(" …").rpartition(" ")[0]
    return short if short == line or not whole_words else f"{whole_words} …"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """The shared parts.

    Attributes:
        settings: the limits of a call, of connections and of workers.
        log: for lines of reviews and faults.
        counters: for /metrics.
        readiness: its checks; the listener sets `draining`.
        scheduler: gives turns on the event loop.
        authority: answers what policies ask `authorizer`; None if policies may not use `authorizer`.
        observer: gets the log line of each review.
        events: writes Events about warnings; None if no Events are written.
        view: returns the view of the cluster in which reviews wait for their namespace; None if reviews do not wait.
        why_not_started: returns why reviews cannot be judged yet, or "".
    """

    settings: ServerSettings = DEFAULTS
    log: Log = field(default_factory=Log)
    counters: Counters = field(default_factory=Counters)
    readiness: Readiness = field(default_factory=Readiness)
    scheduler: Scheduler = field(default_factory=Scheduler)
    authority: AccessReviews | None = None
    observer: Callable[[dict[str, object]], None] | None = None
    events: WarningEvents | None = None
    view: Callable[[], Cluster] | None = None
    why_not_started: Callable[[], str] = str
