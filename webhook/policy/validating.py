"""ValidatingAdmissionPolicies on one request: every rule of every policy, binding and parameter, as decisions.

Decides nothing beyond what policies say: what a decision is worth is admission/enforce.py's. Order, errors and texts:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/{dispatcher,validator}.go. Everything is evaluated, also
after a denial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from webhook.attributes import JSON, Attributes, Phase
from webhook.cluster import Cluster
from webhook.decisions import Decision, ValidationAction
from webhook.errors import BindingError, EvaluationError, LookupFailed
from webhook.policy import auditannotations, params
from webhook.policy.activation import activation, for_conditions, missing
from webhook.policy.compiled import Binding, Policy, Rule
from webhook.policy.conditions import hold
from webhook.policy.evaluation import BUDGET, OutOfBudget, Purse
from webhook.policy.expansion import Target, targets
from webhook.policy.matching import is_exempt, matches
from webhook.policy.messages import message
from webhook.policy.policyset import PolicySet
from webhook.policy.variables import Surroundings

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

_DENY = (ValidationAction.DENY,)
_Evaluation = Literal["admit", "deny", "error", "unknown"]


def validate(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    phase: Phase,
    deadline: float | None = None,
    *,
    authorizer: Authorizer | None = None,
) -> tuple[Decision, ...]:
    """What the validating policies of a phase say about a request, in the order of their names; () when none matches.

    Never raises for a policy's fault. `deadline` is a moment of time.monotonic().
    """
    candidates = policies.validating_for(attributes, phase)
    if not candidates or is_exempt(attributes):
        return ()
    around = policies.surroundings(attributes, cluster, deadline, authorizer)
    return tuple(decision for policy in candidates for decision in _policy(policy, around))


def _policy(policy: Policy, around: Surroundings) -> Iterator[Decision]:
    try:
        found = tuple(targets(policy, around))
    except (BindingError, LookupFailed) as error:
        yield _unusable(policy, None, f"failed to configure policy: {error}")
        return
    if not found:
        return
    for binding in policy.bindings:
        yield from _binding(policy, binding, found, around)


def _binding(policy: Policy, binding: Binding, found: Sequence[Target], around: Surroundings) -> Iterator[Decision]:
    try:
        bound = [target for target in found if _matches(binding, target, around)]
        if not bound:
            return
        chosen = params.collect(policy.param_kind, binding, around)
    except (BindingError, LookupFailed) as error:
        yield _unusable(policy, binding, f"failed to configure binding: {error}")
        return
    for param in chosen:
        for target in bound:
            if target.match.conversion == "impossible":
                yield _unconverted(policy, binding, target)
                continue
            yield from _Invocation(policy, binding, param, target, around).decisions()


def _matches(binding: Binding, target: Target, around: Surroundings) -> bool:
    if binding.criteria is None:
        return True
    return bool(matches(binding.criteria, target.attributes, around.namespace_labels, around.equivalents))


def _unusable(policy: Policy, binding: Binding | None, text: str) -> Decision:
    """A configuration error: denied under Fail whatever the binding's actions are."""
    return Decision(
        policy=policy.name,
        binding=binding.name if binding else "",
        action="deny" if policy.is_fail else "admit",
        evaluation="error",
        actions=_DENY,
        message=text,
        reason="Invalid",
        code=422,
        severity=policy.severity,
        category=policy.category,
    )


def _unconverted(policy: Policy, binding: Binding, target: Target) -> Decision:
    """The policy is written for another version of the object, which only an API server can convert to."""
    found, wanted = target.attributes.kind.api_version, target.match.kind.api_version
    return Decision(
        policy=policy.name,
        binding=binding.name,
        action="admit",
        evaluation="unknown",
        actions=binding.actions,
        message=f"not evaluated: the policy needs the object as {wanted}, not {found}",
        severity=policy.severity,
        category=policy.category,
    )


class _Invocation:
    """One policy under one binding with one parameter, asked about one object.

    `elapsed_s` of a decision is the time from the start to it; rules that hold carry none, as the API server measures
    only denials and errors.
    """

    __slots__ = ("around", "binding", "param", "policy", "purse", "started", "target")

    def __init__(self, policy: Policy, binding: Binding, param: JSON, target: Target, around: Surroundings) -> None:
        self.policy = policy
        self.binding = binding
        self.param = param
        self.target = target
        self.around = around
        self.purse = Purse(BUDGET, around.deadline)
        self.started = perf_counter()

    def decisions(self) -> Sequence[Decision]:
        """One decision per rule, one for a failure of the whole, one for what is to be recorded."""
        try:
            return self._evaluate() if self._holds() else []
        except (EvaluationError, BindingError, LookupFailed) as error:
            return [self._decision(None, "error", str(error))]

    def _holds(self) -> bool:
        policy = self.policy
        if not policy.conditions:
            return True
        asked = for_conditions(policy, self.target, self.param, self.around)
        return hold(policy.conditions, asked, is_fail=policy.is_fail, deadline=self.around.deadline)

    def _evaluate(self) -> Sequence[Decision]:
        policy = self.policy
        seen = activation(policy, self.target, self.param, self.around, self.purse)
        results = [self._result(rule, seen) for rule in policy.rules]
        seen.pop("variables", None)  # breaks the circle that would wait for the garbage collector
        texts = self._messages(results)
        if not texts and self._is_plain and results.count(True) == len(results):
            found: Sequence[Decision] = self.binding.admits
        else:
            found = [self._judge(index, result, texts) for index, result in enumerate(results)]
        return [*found, *self._audit()] if policy.audits else found

    @property
    def _is_plain(self) -> bool:
        """Whether the decisions of rules that hold are those made beforehand."""
        return self.param is None and self.target.podset is None and not self.policy.facts

    def _result(self, rule: Rule, seen: dict[str, Any]) -> bool | EvaluationError:
        try:
            return self.purse.evaluate(rule.expression, seen) is True
        except OutOfBudget:
            raise
        except EvaluationError as error:
            return error

    def _messages(self, results: Sequence[bool | EvaluationError]) -> Sequence[object]:
        """The values of the messageExpressions, of those that are needed unless the budget might not cover them all."""
        rules, count = self.policy.rules, self.policy.messages
        covered = self.purse.covers(count + len(self.policy.variables))
        if not count or (covered and False not in results):
            return ()
        seen = activation(self.policy, self.target, self.param, self.around, self.purse)
        wanted = [not covered or result is False for result in results]
        try:
            return [self._message(rule, seen) if want else None for rule, want in zip(rules, wanted, strict=True)]
        except OutOfBudget as error:
            return [error] * len(rules)

    def _message(self, rule: Rule, seen: dict[str, Any]) -> object:
        if rule.message_expression is None:
            return None
        try:
            return self.purse.evaluate(rule.message_expression, seen)
        except OutOfBudget:
            raise
        except EvaluationError:
            return None  # upstream logs it and falls back to `message`

    def _judge(self, index: int, result: bool | EvaluationError, texts: Sequence[object]) -> Decision:
        rule = self.policy.rules[index]
        text = texts[index] if texts else None
        if isinstance(result, EvaluationError):
            return self._decision(index, "error", str(result))
        if isinstance(text, OutOfBudget):
            return self._decision(index, "error", f"failed messageExpression: {text}")
        if not result:
            return self._decision(index, "deny", message(rule, text), rule)
        if rule.facts and (lacking := missing(rule.facts, self.target, self.param, self.around)):
            return self._decision(index, "unknown", f"not evaluated: {', '.join(lacking)}")
        if self._is_plain:
            return self.binding.admits[index]
        return self._decision(index, "admit")

    def _audit(self) -> Iterator[Decision]:
        purse = Purse(BUDGET, self.around.deadline)
        seen = activation(self.policy, self.target, self.param, self.around, purse)
        published, errors = auditannotations.values(self.policy.audits, seen, purse, is_fail=self.policy.is_fail)
        for text in errors:
            yield replace(self._decision(None, "error", text), actions=_DENY)
        if published:
            yield replace(self._decision(None, "admit"), audit_annotations=published)

    def _decision(
        self, index: int | None, evaluation: _Evaluation, text: str = "", rule: Rule | None = None
    ) -> Decision:
        is_denial = evaluation == "deny" or (evaluation == "error" and self.policy.is_fail)
        path, text = self.target.reroot(text) if text else self.target.reroot("")
        return Decision(
            policy=self.policy.name,
            binding=self.binding.name,
            param=params.name_of(self.param),
            index=index,
            path=path,
            action="deny" if is_denial else "admit",
            evaluation=evaluation,
            actions=self.binding.actions,
            message=text,
            reason=rule.reason if rule else "Invalid" if is_denial else "",
            code=rule.code if rule else 422 if is_denial else 0,
            elapsed_s=perf_counter() - self.started,
            severity=self.policy.severity,
            category=self.policy.category,
        )
