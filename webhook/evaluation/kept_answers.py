"""What a policy in CEL said of a Pod, kept for the next one of which the policy reads the same.

Most policies ask whether something is there that most Pods lack. What their matchConditions read decides whether they
speak; of policies without conditions, what their validations read. Where the answer was to say nothing, or that every
rule holds, and the same short values stand there again (policy/memo.py), the answer is the same. Request and parameter
need no look: what is kept is kept for one kind of request, and until the view of the parameters changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from webhook.attributes import JSON, Attributes
from webhook.cel.check.reads import Path
from webhook.decisions import Decision
from webhook.errors import EvaluationError, LookupFailed, PatchError
from webhook.evaluation import expansion
from webhook.evaluation.match_conditions import conditions, is_asked
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.target import Target
from webhook.facts.subject import Subject
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Policy
from webhook.policy.memo import MOST_KEPT, MOST_PATHS, Key, Memo, paths_read

_SAME_FOR_ALL: Final = frozenset(("operation", "kind", "resource", "requestResource", "subResource"))
"""Fields of `request` by which the policy set finds its candidates: policy_set.py."""
_OBJECTS: Final = frozenset(("object", "oldObject"))
_ABSENT: Final = object()
"""What begins the key of a Pod that has nothing that the facts are about."""


class _Shown(dict[str, Any]):
    """What policies with one parameter see alike: the objects, and facts, each computed when it is first read.

    Knows the subject and not the context that keeps it: a circle would wait for the garbage collector.
    """

    def __init__(self, own: Target, subject: Subject) -> None:
        super().__init__(object=own.object, oldObject=own.old_object)
        self._subject = subject

    def __missing__(self, name: str) -> Any:
        try:
            value = self[name] = self._subject.fact(name)
        except PatchError as error:
            raise EvaluationError(str(error)) from error  # whoever asks in full says it
        return value


class KeptAnswers:
    """The answers of one candidate with one parameter about Pods that are shown to policies as they were sent."""

    __slots__ = ("_absent", "_has_conditions", "_kept", "_memo", "_memo_of_objects", "_param", "_reads", "candidate")

    def __init__(
        self,
        candidate: Candidate,
        param: JSON,
        read: frozenset[Path],
        context: RequestContext,
        *,
        has_conditions: bool,
    ) -> None:
        self.candidate = candidate
        self._param = param
        self._has_conditions = has_conditions
        names = {path[0] for path in read}
        self._reads = "nothing" if not names else "objects" if names <= _OBJECTS else "facts"
        self._absent = _absence_tests([context.registry.fact(name).is_absent for name in names - _OBJECTS])
        self._memo = Memo(read)
        self._memo_of_objects = Memo(path for path in read if path[0] in _OBJECTS)
        self._kept: dict[Key, Sequence[Decision]] = {}

    def key(self, own: Target, context: RequestContext) -> Key | None:
        """What the policy reads of a Pod; None where that is too much to be a key, or cannot be computed."""
        if self._reads == "nothing":
            return ()
        if self._reads == "objects":
            return self._memo.key({"object": own.object, "oldObject": own.old_object})
        try:
            return self._key_of_facts(own, context)
        except (EvaluationError, LookupFailed):  # of what the parameter says of the cluster, or the time is up
            return None  # whoever asks in full says it

    def _key_of_facts(self, own: Target, context: RequestContext) -> Key | None:
        if self._is_absent(own, context):
            key = self._memo_of_objects.key({"object": own.object, "oldObject": own.old_object})
            return None if key is None else (_ABSENT, *key)
        seen = context.shown.get(id(self._param))
        if seen is None:
            seen = _Shown(own, context.subject(own.object, own.attributes, self._param))
            context.shown[id(self._param)] = seen
        return self._memo.key(seen)

    def _is_absent(self, own: Target, context: RequestContext) -> bool:
        """Whether the Pod plainly has nothing that the facts are about: told without what the parameter says."""
        if not self._absent:
            return False
        subject = context.subject(own.object, own.attributes)
        return not [each for each in self._absent if not subject.once(each)]  # faster than all()

    def answer(self, key: Key | None) -> Sequence[Decision] | None:
        """What was said of a Pod with a key, if it is kept."""
        return None if key is None else self._kept.get(key)

    def keep(self, key: Key | None, said: Sequence[Decision], context: RequestContext) -> None:
        """Keep what was said, if it is not worth reading and the time was enough to say it.

        Of a policy with conditions the key holds what these read: it tells that they do not hold, never that rules do,
        nor that there is nothing to record.
        """
        if key is None or context.deadline.is_over or any(map(_is_spoken, said)):
            return
        if self._has_conditions and (said or self._is_asked(context)):
            return
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[key] = tuple(said)

    def _is_asked(self, context: RequestContext) -> bool:
        """Whether the conditions hold; said here, for a policy without rules is silent also where they do."""
        try:
            return is_asked(self.candidate.policy, expansion.own(context)[0], self._param, context)
        except (EvaluationError, LookupFailed):  # the time was over now
            return True


def _absence_tests(listed: Sequence[Callable[[Subject], bool] | None]) -> Sequence[Callable[[Subject], bool]]:
    """How some facts tell that they are about nothing of a Pod; none, where one cannot tell."""
    told = [each for each in listed if each is not None]
    return told if len(told) == len(listed) else ()


def _is_spoken(decision: Decision) -> bool:
    return decision.evaluation != "admit" or bool(decision.audit_annotations)


def certain_facts(policies: Iterable[Policy], attributes: Attributes) -> frozenset[str]:
    """The facts that one of the policies reads whatever a Pod is, so that a key may have them computed."""
    made: set[str] = set()
    for policy in policies:
        asked = conditions(policy, attributes).conditions
        program = asked[0].expression.program if asked else None
        if program is not None:
            made |= program.reads().always & frozenset(policy.facts)
    return frozenset(made)


def read_of_pods(policy: Policy, attributes: Attributes, facts: Collection[str]) -> frozenset[Path] | None:
    """What of a Pod decides about the answer of a policy; None where that is too much, or nobody can say.

    Args:
        policy: a policy in CEL.
        attributes: a request for a Pod.
        facts: those that may be computed for a key.

    """
    asked, body = conditions(policy, attributes).conditions, policy.body()
    if asked:
        read = paths_read((each.expression.program for each in asked), {})
    elif body.audits or not body.rules or policy.computed:
        return None
    else:
        variables = {name: each.program for name, each in body.variables.items()}
        read = paths_read((rule.expression.program for rule in body.rules), variables)
    if read is None:
        return None
    varying = frozenset(path for path in read if not _is_same_for_all(path))
    can_be_read = all((path[0] in _OBJECTS and len(path) > 1) or path[0] in facts for path in varying)
    return varying if can_be_read and len(varying) <= MOST_PATHS else None


def _is_same_for_all(path: Path) -> bool:
    return path[0] == "params" or (path[0] == "request" and len(path) > 1 and path[1] in _SAME_FOR_ALL)
