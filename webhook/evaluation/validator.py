"""Evaluates the expressions of one validating policy on one object: rules, their messages, and audit annotations.

Everything is evaluated, also after a denial. Order, errors and texts: k8s.io/apiserver v0.36
pkg/admission/plugin/policy/validating/{validator,dispatcher}.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from webhook.cel.cost import RUNTIME_BUDGET
from webhook.errors import EvaluationError
from webhook.evaluation.activation import build_activation
from webhook.evaluation.cost_budget import CostBudget, LazyVariables, OutOfBudget
from webhook.evaluation.invocations import Invocation
from webhook.evaluation.rule_decisions import RuleDecisions, trim_space
from webhook.policy.compiled import AuditAnnotation, Validation
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.declarations import PROBLEMS

_DENY: Final = (ValidationAction.DENY,)
MAX_ANNOTATION_BYTES: Final = 10 * 1024
"""maxAuditAnnotationValueLength; longer values are cut."""


class Validator:
    """One policy with one binding and parameter, evaluated on one object for which its conditions hold."""

    __slots__ = ("_budget", "_context", "_decisions", "_invocation", "_policy")

    def __init__(self, invocation: Invocation, *, started: float) -> None:
        self._invocation = invocation
        self._policy = invocation.policy
        self._context = invocation.context
        self._decisions = RuleDecisions(invocation, started=started)
        self._budget = invocation.context.cost_budget(RUNTIME_BUDGET)

    def decisions(self) -> Sequence[Decision]:
        """Return one decision for each rule, and one for the audit annotations.

        Raises:
            EvaluationError: the budget is spent, or a fact cannot be computed.
            BindingError: the namespace that an expression asks about does not exist.
            LookupFailed: something that an expression reads is not known.
        """
        body = self._policy.body()
        names = build_activation(self._invocation, self._budget)
        results = self._results_of_rules(body.rules, names)
        variables: LazyVariables | None = names.pop("variables", None)
        texts = self._values_of_messages(
            results, names, variables.max_cost_of_reevaluation() if variables is not None else 0
        )
        decisions: Sequence[Decision]
        if results.count(True) == len(results) and not (texts and isinstance(texts[0], OutOfBudget)):
            decisions = self._decisions_when_all_hold()
        else:
            admits = self._decisions.admitting_decisions()
            decisions = [
                decision
                for index, result in enumerate(results)
                for decision in self._decisions_of_result(index, result, texts, admits)
            ]
        return [*decisions, *self._audit_decision()] if body.audits else decisions

    def _decisions_when_all_hold(self) -> Sequence[Decision]:
        """Return the decisions if every rule passes; a rule with a missing object is reported as not evaluated."""
        admits = self._decisions.admitting_decisions()
        if not (self._policy.facts or self._policy.checks):
            return admits
        unknown = [self._decisions.unknown_decisions(index, rule) for index, rule in enumerate(self._policy.rules)]
        if not any(unknown):
            return admits
        return [decision for index, decisions in enumerate(unknown) for decision in decisions or (admits[index],)]

    def _results_of_rules(self, rules: Sequence[Validation], names: dict[str, Any]) -> Sequence[bool | EvaluationError]:
        values: list[bool | EvaluationError] = []
        for rule in rules:
            try:
                values.append(self._budget.evaluate(rule.expression, names) is True)
            except OutOfBudget:
                raise
            except EvaluationError as error:
                if self._context.deadline.is_over:
                    raise
                values.append(error)
        return values

    def _values_of_messages(
        self, results: Sequence[bool | EvaluationError], rule_names: Mapping[str, Any], variables: int
    ) -> Sequence[object]:
        """Return the values of the messageExpressions of rules that do not hold.

        `rule_names` are the names that the rules read, `variables` is the greatest cost of their variables in a second
        evaluation. The API server evaluates all messages, and no rule counts if the messages exhaust the budget.
        Messages of other rules are evaluated while the budget covers the remaining messages; their order does not
        matter.
        """
        body, budget = self._policy.body(), self._budget
        rules, left = body.rules, body.messages
        if not left or (False not in results and budget.covers(left, variables)):
            return ()
        names = build_activation(self._invocation, budget)
        if (problems := rule_names.get(PROBLEMS)) is not None:
            names[PROBLEMS] = problems
        texts: list[object] = [None] * len(rules)
        try:
            for index in sorted(range(len(rules)), key=lambda index: results[index] is not False):
                if rules[index].message_expression is None:
                    continue
                if results[index] is not False and budget.covers(left, variables):
                    break
                texts[index] = self._value_of_message(rules[index], names)
                left -= 1
        except OutOfBudget as error:
            return [error] * len(rules)
        return texts

    def _value_of_message(self, rule: Validation, names: dict[str, Any]) -> object:
        if rule.message_expression is None:
            return None
        try:
            return self._budget.evaluate(rule.message_expression, names)
        except OutOfBudget:
            raise
        except EvaluationError:
            return None  # upstream logs it and falls back to `message`

    def _decisions_of_result(
        self, index: int, result: bool | EvaluationError, texts: Sequence[object], admits: Sequence[Decision]
    ) -> Sequence[Decision]:
        rule = self._policy.rules[index]
        text = texts[index] if texts else None
        if isinstance(result, EvaluationError):
            return (self._decisions.error_decision(index, str(result), result),)
        if isinstance(text, OutOfBudget):
            return (self._decisions.error_decision(index, f"failed messageExpression: {text}"),)
        if result:
            return self._decisions.unknown_decisions(index, rule) or (admits[index],)
        return self._decisions.denying_decisions(index, rule, text)

    def _audit_decision(self) -> Iterator[Decision]:
        budget = self._context.cost_budget(RUNTIME_BUDGET)
        names = build_activation(self._invocation, budget)
        published, errors = annotation_values(self._policy.audits, names, budget, is_fail=self._policy.is_fail)
        for text in errors:
            yield replace(self._decisions.error_decision(None, text), actions=_DENY)
        if published:
            yield self._decisions.audit_decision(published)


def annotation_values(
    rules: Sequence[AuditAnnotation], activation: Mapping[str, Any], budget: CostBudget, *, is_fail: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the values to publish, and the errors of expressions that failed (none under failurePolicy Ignore).

    Raises:
        OutOfBudget: the expressions together cost too much.
    """
    published: dict[str, str] = {}
    errors: list[str] = []
    for rule in rules:
        try:
            value = budget.evaluate(rule.expression, activation)
        except OutOfBudget:
            raise
        except EvaluationError as error:
            errors += [str(error)] if is_fail else []
            continue
        text = trim_space(value) if isinstance(value, str) else ""
        if text:
            published[rule.key] = truncate_value(text)
    return published, errors


def truncate_value(text: str) -> str:
    """Return the first 10 KiB of a value, whole characters only."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= MAX_ANNOTATION_BYTES else raw[:MAX_ANNOTATION_BYTES].decode("utf-8", "ignore")
