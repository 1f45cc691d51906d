"""The policy set that is in force, and how it is replaced: compiled beside the serving one, then swapped whole.

A change that cannot be loaded keeps the last good set and is remembered until a good one comes. Reading the current
set is one attribute read, so no review ever waits for a reload. Knows no files and no clock: who calls `reload`, and
how often, is the server's business.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from webhook.errors import PolicyError, Problem
from webhook.policy.policyset import PolicySet


class Holder:
    """Holds the current policy set. `reload` may be called from any thread; reviews read `current`.

    Attributes:
        current: the set in force.
        problems: what was wrong with the last reload, () when it was good.
        reloads: how many sets have been put in force since the start.
        failures: how many reloads kept the old set.

    """

    def __init__(self, load: Callable[[], PolicySet]) -> None:
        """Load the first set.

        Raises:
            PolicyError: it cannot be loaded; there is nothing to fall back on.

        """
        self._load = load
        self._lock = Lock()
        self.current = load()
        self.problems: tuple[Problem, ...] = ()
        self.reloads = 0
        self.failures = 0

    def reload(self) -> bool:
        """Load the policies anew; False keeps the last good set, and `problems` says why."""
        with self._lock:
            try:
                fresh = self._load()
            except PolicyError as error:
                self.problems = error.problems
                self.failures += 1
                return False
            self.current = fresh
            self.problems = ()
            self.reloads += 1
            return True
