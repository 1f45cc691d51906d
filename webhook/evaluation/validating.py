"""Evaluates ValidatingAdmissionPolicies on one request: every rule of every policy, binding and parameter.

For a policy that only reports problems of checks, the checks run. Every other policy is evaluated in CEL: its rules,
their messages, and its audit annotations. All policies and rules are evaluated, even after a denial.
admission/enforce.py turns the decisions into a verdict. Order, errors and texts: k8s.io/apiserver v0.36
pkg/admission/plugin/policy/validating/ dispatcher.go and validator.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import Operation, Phase
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.errors import AmbiguousObject, BindingError, BudgetExceeded, EvaluationError, LookupFailed
from webhook.evaluation.activation import build_activation
from webhook.evaluation.cost_budget import CostBudget, LazyVariables, OutOfBudget
from webhook.evaluation.decision_list import DecisionList, without_repeats
from webhook.evaluation.invocations import (
    Invocation,
    UnusablePolicy,
    invocations_of_policy,
    is_template_of_no_concern,
    policies_that_may_concern,
)
from webhook.evaluation.match_conditions import do_conditions_hold, may_conditions_hold
from webhook.evaluation.not_evaluated import (
    contain_fault,
    decision_of_unconverted_object,
    decision_of_unknown_pods,
    decisions_of_undecoded_objects,
    decisions_of_unusable_policy,
    error_of_policy,
    is_contained,
    undecided_decision,
)
from webhook.evaluation.request_context import RequestContext
from webhook.evaluation.rule_decisions import RuleDecisions, trim_space
from webhook.evaluation.stored_problems import with_stored_as_warnings
from webhook.facts.check import NOTHING, problems_of_group
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import AuditAnnotation, Binding, Validation
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.declarations import PROBLEMS

_DENY: Final = (ValidationAction.DENY,)
MAX_ANNOTATION_BYTES: Final = 10 * 1024
"""maxAuditAnnotationValueLength; longer values are cut."""


def validating_decisions(context: RequestContext, phase: Phase) -> tuple[Decision, ...]:
    """Return the decisions of the validating policies of a phase, in the order of the policies' names; () if no
    policy matches.

    Failures of policies become decisions and raise no error.
    """
    attributes, policies, trace = context.attributes, context.policies, context.options.trace
    candidates = policies.validating_for(attributes, phase)
    if trace is not None:
        of_phase = (policy for policy in policies.validating if policy.phase in (phase, "both"))
        trace.record_skipped_policies(of_phase, candidates, attributes)
    if not candidates:
        return ()
    decisions: Sequence[Decision] = _decisions_of_candidates(candidates, context)
    if attributes.operation == Operation.UPDATE:
        decisions = with_stored_as_warnings(decisions, candidates, context, partial(_decisions_of_phase, phase))
    return without_repeats(decisions, (each.policy for each in candidates), context.deadline)


def _decisions_of_phase(phase: Phase, context: RequestContext, names: Collection[str]) -> Sequence[Decision]:
    candidates = context.policies.validating_for(context.attributes, phase)
    return _decisions_of_candidates([each for each in candidates if each.policy.name in names], context)


def _decisions_of_candidates(candidates: Iterable[Candidate], context: RequestContext) -> Sequence[Decision]:
    decisions = DecisionList()
    for candidate in policies_that_may_concern(candidates, context):
        try:
            _add_decisions_of_policy(candidate, context, decisions)
        except Exception as fault:
            if not is_contained(fault):
                raise
            text = contain_fault(context.faults, candidate.policy.name, fault)
            decisions.add(error_of_policy(candidate.policy, each.binding, text) for each in candidate.bindings)
    if context.undecoded:
        decisions.add(decisions_of_undecoded_objects(context.undecoded))
    return decisions.decisions


def _add_decisions_of_policy(candidate: Candidate, context: RequestContext, decisions: DecisionList) -> None:
    """Add the decisions of a policy on a request. After a timeout of a binding, its remaining objects are not
    evaluated.
    """
    trace = context.options.trace
    stopped: Binding | None = None
    for each in invocations_of_policy(candidate, context):
        if stopped is not None and each.binding is stopped:
            continue
        if isinstance(each, UnusablePolicy):
            decisions.add(decisions_of_unusable_policy(each))
            if trace is not None and not isinstance(each.error, BudgetExceeded):
                trace.record_unusable_policy(each.policy, each.binding, str(each.error))
            continue
        if trace is None:
            new_decisions = _evaluate_invocation(each, candidate)
        else:
            evaluate = partial(_evaluate_invocation, each, candidate)
            new_decisions = trace.evaluate_and_record(
                each.policy, each.binding, each.param, each.target.place, evaluate
            )
        if new_decisions is each.param.admits:  # the usual case: the prepared decisions for an object without problems
            decisions.decisions += new_decisions
        elif new_decisions:  # the conditions of the policy hold
            decisions.add(new_decisions)
            if new_decisions[-1].evaluation == "error" and context.deadline.is_over:
                stopped = each.binding


def _evaluate_invocation(invocation: Invocation, candidate: Candidate) -> Sequence[Decision]:
    """Return the decisions of a policy on an object, by its checks or its expressions. Return () if the conditions of
    the policy do not hold.
    """
    policy, binding, param, target = invocation.policy, invocation.binding, invocation.param, invocation.target
    started = perf_counter()
    if target.match.conversion == "impossible":
        return [decision_of_unconverted_object(policy, binding, target)]
    try:
        if target.missing:
            if not may_conditions_hold(invocation):
                return ()
            return [decision_of_unknown_pods(policy, binding, param.name, target.missing)]
        if invocation.match_conditions is not None:
            if candidate.concerns and is_template_of_no_concern(candidate, target, invocation.context):
                if invocation.context.options.trace is not None:
                    invocation.context.options.trace.record_unconcerned_template(candidate)
                return ()
            if not do_conditions_hold(invocation):
                return ()
        if not policy.reports_problems:
            return Validator(invocation, started=started).decisions()
        subject = target.subjects.get(id(param.assumed)) or invocation.subject()
        parts = subject.pod_parts  # checks about fields that the Pod does not have are not run
        if parts is None or not candidate.pod_parts or not candidate.pod_parts.isdisjoint(parts):
            for group in policy.checks:
                if subject.checks.get(group) == ():  # a group without a check for this kind
                    continue
                if problems_of_group(group, subject) is not NOTHING:
                    return RuleDecisions(invocation, started=started).decisions_of_checks()
        return param.admits_at(target.place) if target.place else param.admits
    except AmbiguousObject as error:
        return [undecided_decision(policy, binding, error, param.name)]
    except (EvaluationError, BindingError, LookupFailed) as error:
        return [RuleDecisions(invocation, started=started).error_decision(None, str(error), error)]


class Validator:
    """Evaluates one policy in CEL with one binding and parameter, on one object for which the matchConditions
    hold.
    """

    __slots__ = ("_budget", "_context", "_decisions", "_invocation", "_policy")

    def __init__(self, invocation: Invocation, *, started: float) -> None:
        self._invocation = invocation
        self._policy = invocation.policy
        self._context = invocation.context
        self._decisions = RuleDecisions(invocation, started=started)
        self._budget = invocation.context.cost_budget(RUNTIME_BUDGET)

    def decisions(self) -> Sequence[Decision]:
        """Return the decisions of each rule, then the decisions about audit annotations.

        Raises:
            EvaluationError: the cost budget is spent, or a fact cannot be computed.
            BindingError: the namespace that an expression asks about does not exist.
            LookupFailed: a value that an expression reads is not known.
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
        return [*decisions, *self._audit_decisions()] if body.audits else decisions

    def _decisions_when_all_hold(self) -> Sequence[Decision]:
        """Return the decisions after every rule has passed. A rule that needs a missing object is reported as not
        evaluated.
        """
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
        self, results: Sequence[bool | EvaluationError], rule_names: Mapping[str, Any], variables_cost: int
    ) -> Sequence[object]:
        """Return the values of the messageExpressions of rules that do not hold.

        `rule_names` has the names that the rules read. `variables_cost` is the greatest cost of their variables in
        a second evaluation. API servers evaluate the messages of all rules, and all rules fail if the messages exhaust
        the budget. So messages of rules that hold are also evaluated, until the budget certainly covers the remaining
        messages.
        """
        body, budget = self._policy.body(), self._budget
        rules, left = body.rules, body.messages
        if not left or (False not in results and budget.covers(left, variables_cost)):
            return ()
        names = build_activation(self._invocation, budget)
        if (problems := rule_names.get(PROBLEMS)) is not None:
            names[PROBLEMS] = problems
        texts: list[object] = [None] * len(rules)
        try:
            for index in sorted(range(len(rules)), key=lambda index: results[index] is not False):
                if rules[index].message_expression is None:
                    continue
                if results[index] is not False and budget.covers(left, variables_cost):
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
            return None  # kube-apiserver logs the error and uses `message`

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

    def _audit_decisions(self) -> Iterator[Decision]:
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
    """Return the values to publish, and the errors of failed expressions (none with failurePolicy Ignore).

    Raises:
        OutOfBudget: all expressions together cost too much.
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
    """Return the first 10 KiB of a value, without a partial character at the end."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= MAX_ANNOTATION_BYTES else raw[:MAX_ANNOTATION_BYTES].decode("utf-8", "ignore")
