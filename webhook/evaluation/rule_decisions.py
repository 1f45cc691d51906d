"""Makes the decisions of a validating policy on one object, and their messages.

A message is the value of the messageExpression, shortened if it is too long. Otherwise the message is `message`, or
else a text with the expression. validating.py evaluates the rules. Source: k8s.io/apiserver v0.36
pkg/admission/plugin/policy/validating/validator.go (Validate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Literal, TypedDict

from msgspec.structs import replace

from webhook.apimachinery import paths
from webhook.errors import NoDecision
from webhook.evaluation.activation import problems_of_checks, problems_with_actions
from webhook.evaluation.invocations import Invocation
from webhook.evaluation.not_evaluated import missing_objects_of_fields, unchecked_problems
from webhook.facts.check import problems_of_group
from webhook.policy.compiled import Policy, Validation
from webhook.rules import text as wording
from webhook.rules.actions import REPORTED, Action, actions_within_binding, actions_without_denial
from webhook.rules.decisions import INVALID, Decision, severity_rank
from webhook.rules.declarations import Listed, problems_of_cel_value
from webhook.rules.problem import MissingObject, Problem

MAX_BYTES = 5 * 1024
"""MaxEvaluatedMessageExpressionSizeBytes (pkg/apis/cel/config.go)."""

_MORE = len("; and 1000000 more")

_SPACE = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
"""The characters that Go's strings.TrimSpace trims (unicode.IsSpace); Python's strip also removes four control
characters.
"""


def trim_space(text: str) -> str:
    """Return the text without white space at its ends, as Go's strings.TrimSpace."""
    return text.strip(_SPACE)


def message_or_empty(evaluated: object) -> str:
    """Return the trimmed value of a messageExpression; "" if it is blank, has several lines, or is too long and
    cannot be shortened.
    """
    if not isinstance(evaluated, str):
        return ""
    text = trim_space(evaluated)
    if "\n" in text:
        return ""
    return text if len(text.encode("utf-8", "surrogatepass")) <= MAX_BYTES else _shortened_list(text)


def _shortened_list(text: str) -> str:
    """Return a text with as many sentences of a list as fit, and the number of further sentences; "" for a text that
    is not a list.

    For every text that is too long, kube-apiserver uses `message` instead. But a list of sentences that begin with
    field paths, such as `spec.a: no; spec.b: no`, is clearer than `message`.
    """
    root, *_ = paths.split_off_leading_path(text[:MAX_BYTES])[0] or ("",)
    beginning = f"; {root}"
    head = text.encode("utf-8", "surrogatepass")[: MAX_BYTES - _MORE].decode("utf-8", "ignore")
    end = head.rfind(beginning) if root else -1
    return f"{text[:end]}; and {text.count(beginning, end)} more" if end > 0 else ""


def problems_of_failed_rule(rule: Validation, evaluated: object, invocation: Invocation) -> tuple[Listed, ...]:
    """Return the problems in the value of a failed rule's messageExpression; () if the value is a text or could not
    be computed.
    """
    if not rule.lists_problems or not isinstance(evaluated, list):
        return ()
    return problems_of_cel_value(evaluated, problems_of_checks(invocation))


def message_of_failed_rule(rule: Validation, evaluated: object) -> str:
    """Return the message of a failed rule. `evaluated` is the value of the messageExpression, None if it failed or is
    not set.
    """
    return message_or_empty(evaluated) or rule.message or f"failed expression: {trim_space(rule.expression.source)}"


class DecisionFields(TypedDict):
    """The fields of a decision that follow from its problems."""

    rule: str
    path: str
    message: str
    severity: str
    problems: tuple[Problem, ...]
    missing: tuple[MissingObject, ...]


def decision_fields_about(problems: Sequence[Problem], policy: Policy) -> DecisionFields:
    """Return the fields of a decision about these problems. Paths of problems begin at the root of the object."""
    codes = dict.fromkeys([each.code for each in problems])
    return {
        "rule": problems[0].code,
        "path": problems[0].path,
        "message": wording.message_of_problems(problems, MAX_BYTES),
        "severity": min(map(policy.severity_of_rule, codes), key=severity_rank),
        "problems": tuple(problems),
        "missing": tuple(dict.fromkeys([each for problem in problems for each in problem.missing])),
    }


MOST_PROBLEMS = 1000
"""A decision has at most this many problems, a few hundred kilobytes. Reports have a finding for each problem."""
_Evaluation = Literal["admit", "deny", "error", "unknown"]


class RuleDecisions:
    """Creates the decisions of one policy with one binding and parameter on one object.

    `elapsed_s` of a decision is the time since the start of the evaluation. Decisions of rules that hold have no
    time: API servers measure only denials and errors.
    """

    __slots__ = ("_context", "_invocation", "_policy", "_started", "_target")

    def __init__(self, invocation: Invocation, *, started: float) -> None:
        self._invocation = invocation
        self._context = invocation.context
        self._policy = invocation.policy
        self._target = invocation.target
        self._started = started

    def admitting_decisions(self) -> Sequence[Decision]:
        return self._invocation.param.admits_at(self._target.place)

    def error_decision(self, index: int | None, text: str, cause: Exception | None = None) -> Decision:
        """Return the decision of a rule that could not be evaluated, or of a policy that could not be evaluated."""
        if isinstance(cause, NoDecision):
            return self._decision_of_rule(index, "unknown", wording.not_evaluated_sentence([text]))
        return self._decision_of_rule(index, "error", text)

    def audit_decision(self, published: Mapping[str, str]) -> Decision:
        """Return the decision with the values that the policy records in the audit log."""
        return replace(self._decision_of_rule(None, "admit"), audit_annotations=published)

    def denying_decisions(self, index: int, rule: Validation, evaluated: object) -> Sequence[Decision]:
        """Return the decisions of a rule that does not hold. `evaluated` is the value of its messageExpression."""
        decisions = self._decisions_for_actions(
            index, "deny", rule, problems_of_failed_rule(rule, evaluated, self._invocation)
        )
        if decisions:
            return (*decisions, *self._unchecked_decisions(index, rule))
        decision = self._decision_of_rule(index, "deny", message_of_failed_rule(rule, evaluated), rule)
        decided = self._context.policies.configured.get(decision.rule)  # None means the actions of the binding
        if decided is None or decided == "Deny":
            return (decision,)
        if decided == "Off" or (decided == "Advice" and not self._context.options.advice):
            return ()
        return (replace(decision, actions=actions_within_binding(decided, decision.actions)),)

    def decisions_of_checks(self) -> Sequence[Decision]:
        """Return the decisions of a policy with checks: about problems that were found, and about problems that could
        not be checked.
        """
        (rule,) = self._policy.rules
        subject = self._invocation.subject()
        problems, unchecked = list[Problem](), list[Problem]()
        for group in self._policy.checks:
            results = problems_of_group(group, subject)
            problems += results.problems
            unchecked += results.unchecked
        decisions = [
            *self._decisions_about(problems, "deny", rule),
            *self._decisions_about(unchecked, "unknown", rule),
        ]
        return decisions or self.admitting_decisions()

    def _decisions_about(
        self, problems: Sequence[Problem], evaluation: _Evaluation, rule: Validation
    ) -> Sequence[Decision]:
        if not problems:
            return ()
        with_actions = problems_with_actions(problems, self._invocation, advice=self._context.options.advice)
        return self._decisions_for_actions(0, evaluation, rule, with_actions)

    def unknown_decisions(self, index: int, rule: Validation) -> Sequence[Decision]:
        """Return the decisions of a rule that found no problem, but needs missing objects or has problems that could
        not be checked; otherwise ().
        """
        if not rule.facts:
            return ()
        missing = missing_objects_of_fields(rule, self._invocation)
        if missing:
            text = wording.not_evaluated_sentence(map(str, missing))
            return (replace(self._decision_of_rule(index, "unknown", text, rule), missing=tuple(missing)),)
        return self._unchecked_decisions(index, rule)

    def _unchecked_decisions(self, index: int, rule: Validation) -> Sequence[Decision]:
        """Return the decisions about problems of a validation that could not be checked."""
        problems = unchecked_problems(rule, self._invocation)
        return self._decisions_for_actions(index, "unknown", rule, problems)

    def _decisions_for_actions(
        self, index: int, evaluation: _Evaluation, rule: Validation, with_actions: Sequence[Listed]
    ) -> Sequence[Decision]:
        """Return one decision for each action, such as a denial and a warning, with the problems that have this
        action.
        """
        decisions = []
        by_action: dict[Action, list[Problem]] = {}
        for problem, chosen in self._context.deadline.charge_for_items(with_actions):
            by_action.setdefault(chosen, []).append(problem)
        for action in REPORTED:
            problems = by_action.get(action)
            if problems:
                decision = self._decision_about_problems(problems, index, evaluation, rule)
                if action != "Deny":
                    decision = replace(decision, actions=actions_within_binding(action, decision.actions))
                decisions.append(decision)
        return decisions

    def _decision_about_problems(
        self, problems: Sequence[Problem], index: int, evaluation: _Evaluation, rule: Validation
    ) -> Decision:
        """Return a decision about problems, with their paths in the whole object."""
        first = problems[:MOST_PROBLEMS]
        located = [self._target.locate(problem) for problem in self._context.deadline.charge_for_items(first)]
        return self._decision_of_rule(
            index, evaluation, rule=rule, problem_fields=decision_fields_about(located, self._policy)
        )

    def _decision_of_rule(
        self,
        index: int | None,
        evaluation: _Evaluation,
        text: str = "",
        rule: Validation | None = None,
        problem_fields: DecisionFields | None = None,
    ) -> Decision:
        """Return a decision of a rule, or of the policy as a whole.

        `problem_fields` has the fields about problems, if there are problems.
        """
        policy, actions = self._policy, self._invocation.binding.actions
        lets_pass = (evaluation == "error" and not policy.is_fail) or (
            evaluation == "unknown" and policy.missing == "admit"
        )
        return Decision(
            policy=policy.name,
            binding=self._invocation.binding.name,
            param=self._invocation.param.name,
            index=index,
            evaluation=evaluation,
            lets_pass=lets_pass,
            denial=rule.denial if rule else INVALID,
            actions=actions_without_denial(actions)
            if evaluation == "unknown" and policy.missing == "warn"
            else actions,
            elapsed_s=perf_counter() - self._started,
            category=policy.category,
            **(problem_fields or self._fields_of_text(index, text)),
        )

    def _fields_of_text(self, index: int | None, text: str) -> DecisionFields:
        path, text = self._target.reroot(text)
        rule, severity = self._policy.rule_id(index), self._policy.severity
        return {"rule": rule, "path": path, "message": text, "severity": severity, "problems": (), "missing": ()}
