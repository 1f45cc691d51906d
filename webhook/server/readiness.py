"""Decides whether this process is ready for reviews, and reports why not.

Knows named checks and nothing of what they look at; the API server's own /readyz?verbose is the model of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Check: TypeAlias = Callable[[], str]
"""Returns what is wrong, or "" when all is well. Must be quick: probes call it."""


@dataclass(slots=True)
class Readiness:
    """The readiness checks of one process.

    Attributes:
        checks: what must hold for reviews to be answered.
        remarks: what people should see in the verbose text, such as a reload that failed, though reviews are answered.
        draining: set once, when the process is about to stop: no new connections, please.
    """

    checks: Mapping[str, Check] = field(default_factory=dict)
    remarks: Mapping[str, Check] = field(default_factory=dict)
    draining: bool = False

    def failing(self) -> dict[str, str]:
        """Return the failing checks by name, with their reasons."""
        reasons = {name: check() for name, check in self.checks.items()}
        if self.draining:
            reasons["shutdown"] = "the process is stopping"
        return {name: reason for name, reason in reasons.items() if reason}

    def report(self) -> tuple[bool, str]:
        """Return whether all checks pass, and a line for each check as in /readyz?verbose of an API server."""
        failing = self.failing()
        lines = [_line(name, failing.get(name, "")) for name in (*self.checks, "shutdown")]
        notes = {name: remark() for name, remark in self.remarks.items()}
        lines += [f"[!]{name}: {text}" for name, text in notes.items() if text]
        lines.append(f"readyz check {'failed' if failing else 'passed'}")
        return not failing, "\n".join(lines) + "\n"


def _line(name: str, reason: str) -> str:
    return f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok"
