"""How long stored policies may take to compile: one object, and all objects that a replica compiles at once.

A user who may write policies must not be able to prevent the start of a replica. The processor time of the compiling
thread counts, so that a busy machine refuses nothing. One expression is not interrupted: its tokens give an upper bound
before it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Final

from webhook.cel import Engine, Environment, Program
from webhook.cel.program import seconds_to_check
from webhook.cel.types import Type
from webhook.deadline import Deadline

MOST_S: Final = 1.0
"""For one object: the slowest shipped policy needs a fiftieth of it."""
MOST_S_TOGETHER: Final = 5.0
"""For all objects that are compiled together, as at a start; an API server waits about as long for a replica."""


class CompileTimeExceededError(Exception):
    """The time to compile an object, or all of them, is spent."""


class TimeLimitedEngine:
    """An engine that compiles like another engine until the time for one object, or for all, is used up."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = thread_time) -> None:
        """Begin with nothing spent; `clock` gives processor seconds of the thread that compiles."""
        self._engine = engine
        self._clock = clock
        self._began = self._object_began = clock()

    @property
    def name(self) -> str:
        """Return the name of the engine that compiles."""
        return self._engine.name

    def start_timer_of_all_objects(self) -> None:
        """Start the time limit for all objects of one run."""
        self._began = self._clock()

    def start_timer_of_object(self) -> None:
        """Start the time limit for one object."""
        self._object_began = self._clock()

    @property
    def is_spent(self) -> bool:
        """Return whether the time for all objects is spent."""
        return self._clock() - self._began > MOST_S_TOGETHER

    def compile(
        self,
        expression: str,
        environment: Environment,
        *,
        expects: tuple[Type, ...] = (),
        deadline: Deadline | None = None,
    ) -> Program:
        """Compile an expression as the engine does.

        Raises:
            CompileTimeExceededError: the time is spent, or would be by this expression.
        """
        spent = self._clock() - self._object_began
        if self.is_spent or spent + seconds_to_check(expression) > MOST_S:
            raise CompileTimeExceededError
        return self._engine.compile(expression, environment, expects=expects, deadline=deadline)
