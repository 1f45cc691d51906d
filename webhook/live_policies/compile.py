"""Compiles each stored object separately, so that a mistake in one object does not affect other objects.

A generation with an error is never evaluated: a typo must not block the Pods of a cluster. The last generation that
compiled stays in use. The status of the object has a copy of this generation, so all replicas evaluate the same
generation, also after a restart (docs/decisions/0013).

The time for one object, and for all objects together, is bounded, so that no author of policies can prevent the start
of a replica. Only processor time of the compiling thread counts, so the load of the machine does not matter. Compiling
an expression cannot be interrupted, so its time is first estimated from its tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import thread_time
from typing import Final

from msgspec import structs

from webhook.apimachinery.paths import path_as_text
from webhook.cel import Engine, Environment, Program
from webhook.cel.program import seconds_to_check
from webhook.cel.types import Type
from webhook.deadline import Deadline
from webhook.errors import CelError
from webhook.live_policies.objects import MOST_BYTES, StoredPolicy
from webhook.manifests.claimgate_kinds import parse_claimgate_kind, path_in_claimgate_object
from webhook.manifests.field_errors import FieldError
from webhook.manifests.models import MutatingPolicyManifest, ShapeError, ValidatingPolicyManifest
from webhook.policy.compile import compile_binding, compile_policy
from webhook.policy.compiled import Binding, Policy
from webhook.policy.load import Options, chosen_engine
from webhook.policy.type_check import sentences_about_types

MOST_S: Final = 1.0
"""The maximum number of seconds for one object. The slowest shipped policy needs a fiftieth of this time."""
MOST_S_TOGETHER: Final = 5.0
"""The maximum number of seconds for all objects of one run, such as a start."""
MOST_OBJECTS: Final = 400
"""The maximum number of policies and bindings in use: about ten times the shipped policies."""
MOST_BYTES_TOGETHER: Final = 512 << 10
"""The maximum number of bytes of all objects as JSON."""
COMPILED_FACTOR: Final = 70
"""Bytes of memory for each byte of JSON; policies of many short expressions took 65."""
_MOST_KINDS: Final = 100
"""The maximum number of combinations of group, version and resource for type-checking one policy."""
_MOST_S_TO_TYPE: Final = 1.0
"""The maximum number of estimated seconds for type-checking one policy for all kinds."""
_FIX: Final = "make this object smaller, or delete older objects"
_TOO_SLOW: Final = f"compiling it takes longer than {MOST_S:g} s: write fewer or shorter expressions"
_TOO_SLOW_TOGETHER: Final = (
    f"compiling all policies up to this one takes longer than {MOST_S_TOGETHER:g} s: shorten or delete slow policies"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledObject:
    """The result for one object: a policy, a binding, or the reason why the object has no effect.

    Attributes:
        errors: the mistakes, as lines of `claimgate policies check`.
        reason: the reason of the condition Compiled.
        wrong_types: sentences about values of wrong types; None if the check would take too long.
        generation: the older generation that is evaluated while the newest generation has errors; 0 without an older
            generation.
    """

    stored: StoredPolicy
    policy: Policy | None = None
    binding: Binding | None = None
    bound_kind: str = ""
    errors: tuple[str, ...] = ()
    reason: str = "Compiled"
    wrong_types: tuple[str, ...] | None = ()
    generation: int = 0


class Compiler:
    """Compiles stored objects, and keeps the results of unchanged objects."""

    def __init__(self, options: Options, *, may_ask: bool, clock: Callable[[], float] = thread_time) -> None:
        """Create a compiler without results.

        Args:
            options: how policies are compiled.
            may_ask: whether policies may use `authorizer`.
            clock: returns processor seconds of the compiling thread.
        """
        self._options = options
        self._budget = TimeLimitedEngine(chosen_engine(options.engine), clock)
        self._may_ask = may_ask
        self._kept: dict[bytes, CompiledObject] = {}

    def compile(self, stored: Iterable[StoredPolicy]) -> tuple[CompiledObject, ...]:
        """Compile each object within the bounds, in order of precedence. The results have the same order."""
        results: dict[bytes, CompiledObject] = {}
        compiled_objects: list[CompiledObject] = []
        size = count = 0
        self._budget.start_timer_of_all_objects()
        for each in stored:
            length = each.omitted_bytes or len(each.canonical_text())
            if exceeded := _explain_exceeded_bound(count + 1, length, size + length):
                compiled_objects.append(CompiledObject(stored=each, errors=(exceeded,), reason="TooMuch"))
                continue
            size, count = size + length, count + 1
            compiled = self._compile_or_reuse(each, results)
            last = each.last_compiled if compiled.errors else None
            if last is not None and len(last.canonical_text()) <= MOST_BYTES:
                before = self._compile_or_reuse(last, results)
                if not before.errors:
                    compiled = replace(before, stored=each, errors=compiled.errors, reason=compiled.reason)
                    compiled = replace(compiled, generation=last.generation)
            compiled_objects.append(compiled)
        self._kept = results
        return tuple(compiled_objects)

    def errors_of_object(self, stored: StoredPolicy) -> tuple[str, ...]:
        """Return the mistakes of one object alone. Any thread or child process may call this."""
        alone = Compiler(self._options, may_ask=self._may_ask)
        return alone.compile([StoredPolicy({**stored.value, "status": None})])[0].errors

    def _compile_or_reuse(self, stored: StoredPolicy, results: dict[bytes, CompiledObject]) -> CompiledObject:
        digest = stored.digest()
        earlier = results.get(digest) or self._kept.get(digest)
        if earlier is not None:
            results[digest] = replace(earlier, stored=stored)
            return results[digest]
        too_slow_together = CompiledObject(stored=stored, errors=(_TOO_SLOW_TOGETHER,), reason="TooSlow")
        if self._budget.is_spent:
            return too_slow_together
        compiled = self._compile_object_catching_errors(stored)
        if compiled.reason == "TooSlow" and self._budget.is_spent:
            return too_slow_together  # not added to the results, because there may be time later
        results[digest] = compiled
        return compiled

    def _compile_object_catching_errors(self, stored: StoredPolicy) -> CompiledObject:
        self._budget.start_timer_of_object()
        try:
            return self._compile_object(stored)
        except CompileTimeExceededError:
            return CompiledObject(stored=stored, errors=(_TOO_SLOW,), reason="TooSlow")
        except Exception as error:  # noqa: BLE001 - a bug of claimgate with one object must not affect others
            message = f"claimgate failed on this object ({type(error).__name__}): report this with the object"
            return CompiledObject(stored=stored, errors=(message,), reason="InternalError")

    def _compile_object(self, stored: StoredPolicy) -> CompiledObject:
        try:
            manifest = parse_claimgate_kind(stored.value)
        except ShapeError as error:
            texts = tuple(f"{path_as_text(path)}: {text}" for path, text in error.problems)
            return CompiledObject(stored=stored, errors=texts, reason="WrongShape")
        if isinstance(manifest, ValidatingPolicyManifest | MutatingPolicyManifest):
            return self._compile_policy(stored, manifest)
        binding, errors = compile_binding(manifest, _kind_and_name(stored))
        kind = manifest.kind.removesuffix("Binding")
        if errors:
            return CompiledObject(
                stored=stored, bound_kind=kind, errors=_distinct_error_texts(errors), reason="Invalid"
            )
        return CompiledObject(stored=stored, binding=binding, bound_kind=kind)

    def _compile_policy(
        self, stored: StoredPolicy, manifest: ValidatingPolicyManifest | MutatingPolicyManifest
    ) -> CompiledObject:
        options = self._options
        try:
            policy, errors = compile_policy(
                manifest, self._budget, options.version, _kind_and_name(stored), registry=options.registry
            )
        except CelError as error:  # an expression cannot be parsed, for example because it is too deep
            return CompiledObject(stored=stored, errors=(f"spec: {error}",), reason="Invalid")
        texts = _distinct_error_texts(errors)
        if policy.uses_authorizer and not self._may_ask:
            texts += ("reads `authorizer`, which the server does not have: start the server with --authorizer",)
        if texts:
            return CompiledObject(stored=stored, errors=texts, reason="Invalid")
        return CompiledObject(stored=stored, policy=policy, wrong_types=_wrong_types(policy, options))


def _wrong_types(policy: Policy, options: Options) -> tuple[str, ...] | None:
    # None if the check would take too long
    kinds = sum(
        max(1, len(rule.groups or ())) * max(1, len(rule.versions or ())) * len(rule.resources)
        for rule in policy.criteria.rules
    )
    seconds = kinds * sum(seconds_to_check(each.source) for each in policy.expressions())
    if kinds > _MOST_KINDS or seconds > _MOST_S_TO_TYPE:
        return None
    return tuple(sentences_about_types(policy, options.registry, options.version))


def _explain_exceeded_bound(count: int, size: int, together: int) -> str:
    if count > MOST_OBJECTS:
        return f"only the oldest {MOST_OBJECTS} policies and bindings have an effect: delete some"
    if size > MOST_BYTES:
        return f"the object has {size} bytes, and at most {MOST_BYTES} are allowed: make the object smaller"
    if together > MOST_BYTES_TOGETHER:
        return f"this object and the older objects have more than {MOST_BYTES_TOGETHER} bytes: {_FIX}"
    return ""


def _kind_and_name(stored: StoredPolicy) -> str:
    return f"{stored.kind}/{stored.name}"


def _distinct_error_texts(errors: Sequence[FieldError]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            "\n".join(
                [
                    str(structs.replace(each, path=path_in_claimgate_object(each.path))),
                    *(f"hint: {line}" for line in _hints_of_error(each)),
                ]
            )
            for each in errors
        )
    )


def _hints_of_error(error: FieldError) -> list[str]:
    return error.note.splitlines()


class CompileTimeExceededError(Exception):
    """The time for one object, or for all objects, is used up."""


class TimeLimitedEngine:
    """Compiles with another engine until the time for one object, or for all objects, is used up."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = thread_time) -> None:
        """`clock` returns processor seconds of the compiling thread."""
        self._engine = engine
        self._clock = clock
        self._began = self._object_began = clock()

    @property
    def name(self) -> str:
        return self._engine.name

    def start_timer_of_all_objects(self) -> None:
        self._began = self._clock()

    def start_timer_of_object(self) -> None:
        self._object_began = self._clock()

    @property
    def is_spent(self) -> bool:
        """Return whether the time for all objects is used up."""
        return self._clock() - self._began > MOST_S_TOGETHER

    def compile(
        self,
        expression: str,
        environment: Environment,
        *,
        expects: tuple[Type, ...] = (),
        deadline: Deadline | None = None,
    ) -> Program:
        """Compile an expression with the other engine.

        Raises:
            CompileTimeExceededError: the time is used up, or this expression would use it up.
        """
        spent = self._clock() - self._object_began
        if self.is_spent or spent + seconds_to_check(expression) > MOST_S:
            raise CompileTimeExceededError
        return self._engine.compile(expression, environment, expects=expects, deadline=deadline)
