"""ValidatingAdmissionPolicies on one request: every rule of every policy, binding and parameter, as decisions.

Decides nothing beyond what policies say: what a decision is worth is admission/enforce.py's. Order, errors and texts:
k8s.io/apiserver v0.36 pkg/admission/plugin/policy/validating/{dispatcher,validator}.go. Everything is evaluated, also
after a denial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from webhook.attributes import JSON, Attributes, Phase
from webhook.cel.cost import RUNTIME_BUDGET
from webhook.cluster import Cluster
from webhook.deadline import Deadline
from webhook.decisions import Decision, ValidationAction
from webhook.errors import BindingError, BudgetExceeded, EvaluationError, LookupFailed
from webhook.evaluation import audit_annotations as auditannotations
from webhook.evaluation import expansion, params
from webhook.evaluation.activation import activation
from webhook.evaluation.cost_budget import CostBudget, OutOfBudget
from webhook.evaluation.decision_list import DecisionList
from webhook.evaluation.expansion import asked, bound
from webhook.evaluation.kept_answers import KeptAnswers
from webhook.evaluation.match_conditions import is_asked
from webhook.evaluation.messages import listed_problems, message
from webhook.evaluation.not_evaluated import missing, unchecked
from webhook.evaluation.own_fault import contained, is_contained
from webhook.evaluation.prepared import steps
from webhook.evaluation.problem_values import has_none
from webhook.evaluation.quiet import quiet_checks
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.said_once import About, about, said_once
from webhook.evaluation.target import Target
from webhook.evaluation.undecoded import undecoded
from webhook.evaluation.whole_policy import interrupted, unconverted, unusable
from webhook.policy.candidates import Candidate
from webhook.policy.compiled import Binding, Policy, Validation
from webhook.policy.matching import is_exempt
from webhook.policy.policy_set import PolicySet
from webhook.problem import Problem
from webhook.problems import text as wording
from webhook.problems.declarations import PROBLEMS, Listed

if TYPE_CHECKING:
    from webhook.cel.library.authorizer import Authorizer

_DENY = (ValidationAction.DENY,)
MOST_PROBLEMS = 1000
"""Problems that one decision keeps, some hundred kilobytes; reports show a finding for each."""
_Evaluation = Literal["admit", "deny", "error", "unknown"]


def validate(
    attributes: Attributes,
    policies: PolicySet,
    cluster: Cluster,
    phase: Phase,
    deadline: Deadline | None = None,
    *,
    authorizer: Authorizer | None = None,
    context: RequestContext | None = None,
) -> tuple[Decision, ...]:
    """What the validating policies of a phase say about a request, in the order of their names; () when none matches.

    Never raises for a policy's fault. `context` is that of the request, where somebody has made it already.
    """
    candidates = policies.validating_for(attributes, phase)
    if not candidates or is_exempt(attributes):
        return ()
    context = context or request_context(policies, attributes, cluster, deadline, authorizer)
    made = DecisionList()
    own = expansion.own(context) if context.faults is None else ()
    for step in steps(candidates, own[0], context) if own else candidates:
        if isinstance(step, Candidate):
            _candidate(step, context, made)
        elif isinstance(step, KeptAnswers):
            _kept(step, own[0], context, made)
        else:
            made.admit(step)
    made.add(undecoded(context))
    return said_once(made.made, lambda: {each.policy.name: each.policy for each in candidates}, context.deadline)


def _kept(step: KeptAnswers, own: Target, context: RequestContext, made: DecisionList) -> None:
    """Add what a policy says of a Pod, as of the last one of which it read the same."""
    key = step.key(own, context)
    said = step.answer(key)
    if said is not None:
        made.admit(said)
        return
    before = len(made.made)
    _candidate(step.candidate, context, made)
    step.keep(key, made.made[before:], context)


def _candidate(candidate: Candidate, context: RequestContext, made: DecisionList) -> None:
    """Add what a policy says of a request; a fault of our own is what it says, too."""
    try:
        _asked(candidate, context, made)
    except Exception as fault:
        if not is_contained(fault, context):
            raise
        text = contained(candidate.policy.name, fault, context)
        made.add(interrupted(candidate.policy, binding, text) for binding, _ in candidate.bindings)


def _asked(candidate: Candidate, context: RequestContext, made: DecisionList) -> None:
    policy = candidate.policy
    try:
        matched = asked(candidate, context)
    except (BindingError, LookupFailed) as error:
        made.add([unusable(policy, None, f"failed to configure policy: {error}")])
    except BudgetExceeded as error:
        made.add(interrupted(policy, binding, str(error)) for binding in policy.bindings)
    else:
        for binding in candidate.bindings if matched else ():
            _binding(policy, binding, matched, context, made)


def _binding(
    policy: Policy,
    candidate: tuple[Binding, bool],
    matched: tuple[Target, ...],
    context: RequestContext,
    made: DecisionList,
) -> None:
    """Add what a policy says under one binding; once the time is up, that it could not say more."""
    deadline, binding = context.deadline, candidate[0]
    try:
        targeted = bound(candidate, matched, context)
        if not targeted:
            return
        for param in params.collect(policy, binding, context):
            quiet = quiet_checks(policy, param, context)
            for target in targeted:
                deadline.spend(1)
                if quiet is not None and quiet.say_nothing(target):
                    made.admit(_admits(binding, param, target))
                    continue
                said = _invoke(policy, binding, param, target, context)
                if said:
                    made.add(said)
                    if said[-1].evaluation == "error" and deadline.is_over:
                        return
    except (BindingError, LookupFailed) as error:
        made.add([unusable(policy, binding, f"failed to configure binding: {error}")])
    except BudgetExceeded as error:
        made.add([interrupted(policy, binding, str(error))])


def _invoke(
    policy: Policy, binding: Binding, param: JSON, target: Target, context: RequestContext
) -> Sequence[Decision]:
    """What a policy says of one object: nothing where its conditions do not hold, which is the most frequent case."""
    if target.match.conversion == "impossible":
        return [unconverted(policy, binding, target)]
    started = perf_counter()
    try:
        if not is_asked(policy, target, param, context):
            return ()
        if policy.checks and policy.body().admits_without_problems() and has_none(policy, target, param, context):
            return _admits(binding, param, target)
        return _Invocation(policy, binding, param, target, context, started=started).decisions()
    except (EvaluationError, BindingError, LookupFailed) as error:
        return [_Invocation(policy, binding, param, target, context, started=started).failure(str(error))]


def _admits(binding: Binding, param: JSON, target: Target) -> Sequence[Decision]:
    """The decisions of rules that hold."""
    return params.admitted(binding, param, target.place)


class _Invocation:
    """One policy under one binding with one parameter, asked about one object for which its conditions hold.

    `elapsed_s` of a decision is the time from the start to it; rules that hold carry none, as the API server measures
    only denials and errors.
    """

    __slots__ = ("binding", "budget", "context", "param", "policy", "started", "target")

    def __init__(
        self, policy: Policy, binding: Binding, param: JSON, target: Target, context: RequestContext, *, started: float
    ) -> None:
        self.policy = policy
        self.binding = binding
        self.param = param
        self.target = target
        self.context = context
        self.started = started
        self.budget = CostBudget(RUNTIME_BUDGET, context.deadline)

    def failure(self, text: str) -> Decision:
        """The decision of the policy as a whole that could not be evaluated."""
        return self._decision(None, "error", text)

    def decisions(self) -> Sequence[Decision]:
        """One decision per rule, one for what is to be recorded.

        Raises:
            EvaluationError: the budget is spent, or a fact cannot be computed.
            BindingError: the namespace that an expression asks about does not exist.
            LookupFailed: nobody can say something that an expression asks about.

        """
        body = self.policy.body()
        seen = activation(self.policy, self.target, self.param, self.context, self.budget)
        key = body.memo.key(seen) if body.memo is not None else None
        if body.memo is not None and key is not None and body.memo.answer(key):
            return self._holding()
        results = self._results(body.rules, seen)
        seen.pop("variables", None)  # breaks the circle that would wait for the garbage collector
        texts = self._messages(results, seen)
        decisions: Sequence[Decision]
        if results.count(True) == len(results) and not (texts and isinstance(texts[0], OutOfBudget)):
            decisions = self._holding()
            if body.memo is not None and key is not None and not texts:
                body.memo.keep(key, answer=True)
        else:
            admits = self._admits()
            decisions = [
                each for index, result in enumerate(results) for each in self._judge(index, result, texts, admits)
            ]
        return [*decisions, *self._audit()] if body.audits else decisions

    def _holding(self) -> Sequence[Decision]:
        """The decisions when every rule holds: those made beforehand, but for rules whose facts were not known."""
        admits = self._admits()
        if not (self.policy.facts or self.policy.checks):
            return admits
        unknown = [self._unknown(index, rule) for index, rule in enumerate(self.policy.rules)]
        if not any(unknown):
            return admits
        return [each for index, decisions in enumerate(unknown) for each in decisions or (admits[index],)]

    def _admits(self) -> Sequence[Decision]:
        """The decisions of rules that hold."""
        return _admits(self.binding, self.param, self.target)

    def _unknown(self, index: int, rule: Validation) -> Sequence[Decision]:
        """What is said of a rule that holds without what its facts or checks needed; () where nothing was missing."""
        if not rule.facts:
            return ()
        lacking = missing(rule, self.target, self.param, self.context)
        if lacking:
            text = wording.not_evaluated(map(str, lacking))
            return (replace(self._decision(index, "unknown", text, rule), missing=tuple(lacking)),)
        return self._unchecked(index, rule)

    def _unchecked(self, index: int, rule: Validation) -> Sequence[Decision]:
        """What is said of the problems that a validation speaks of and that checks could not make out."""
        problems = unchecked(rule, self.policy, self.target, self.param, self.context)
        return self._listed(index, "unknown", rule, problems)

    def _listed(
        self, index: int, evaluation: _Evaluation, rule: Validation, listed: Sequence[Listed]
    ) -> Sequence[Decision]:
        """A decision about the problems that deny and one about those that only warn."""
        made = []
        for action in ("Deny", "Warn"):
            some = [problem for problem, own in listed if own == action]
            if some:
                decision = self._about(some, index, evaluation, rule)
                made.append(decision if action == "Deny" else replace(decision, actions=_warning(decision.actions)))
        return made

    def _about(self, problems: Sequence[Problem], index: int, evaluation: _Evaluation, rule: Validation) -> Decision:
        """A decision about problems, with their paths in the whole object."""
        kept = problems[:MOST_PROBLEMS]
        located = [self.target.locate(problem) for problem in self.context.deadline.each(kept)]
        return self._decision(index, evaluation, rule=rule, said=about(located, self.policy))

    def _results(self, rules: Sequence[Validation], seen: dict[str, Any]) -> Sequence[bool | EvaluationError]:
        values: list[bool | EvaluationError] = []
        for rule in rules:
            try:
                values.append(self.budget.evaluate(rule.expression, seen) is True)
            except OutOfBudget:
                raise
            except EvaluationError as error:
                if self.context.deadline.is_over:
                    raise
                values.append(error)
        return values

    def _messages(self, results: Sequence[bool | EvaluationError], known: Mapping[str, Any]) -> Sequence[object]:
        """The values of the messageExpressions of rules that do not hold; `known` is what the rules saw.

        The API server evaluates them all, and no rule stands when they run out of budget. Those of other rules are
        evaluated until what is left covers the rest; their order does not matter for that.
        """
        body, budget = self.policy.body(), self.budget
        rules, left = body.rules, body.messages
        variables = budget.again(len(body.variables)) if left else 0
        if not left or (False not in results and budget.covers(left, variables)):
            return ()
        seen = activation(self.policy, self.target, self.param, self.context, budget)
        if (problems := known.get(PROBLEMS)) is not None:
            seen[PROBLEMS] = problems
        texts: list[object] = [None] * len(rules)
        try:
            for index in sorted(range(len(rules)), key=lambda index: results[index] is not False):
                if rules[index].message_expression is None:
                    continue
                if results[index] is not False and budget.covers(left, variables):
                    break
                texts[index] = self._message(rules[index], seen)
                left -= 1
        except OutOfBudget as error:
            return [error] * len(rules)
        return texts

    def _message(self, rule: Validation, seen: dict[str, Any]) -> object:
        if rule.message_expression is None:
            return None
        try:
            return self.budget.evaluate(rule.message_expression, seen)
        except OutOfBudget:
            raise
        except EvaluationError:
            return None  # upstream logs it and falls back to `message`

    def _judge(
        self, index: int, result: bool | EvaluationError, texts: Sequence[object], admits: Sequence[Decision]
    ) -> Sequence[Decision]:
        rule = self.policy.rules[index]
        text = texts[index] if texts else None
        if isinstance(result, EvaluationError):
            return (self._decision(index, "error", str(result)),)
        if isinstance(text, OutOfBudget):
            return (self._decision(index, "error", f"failed messageExpression: {text}"),)
        if result:
            return self._unknown(index, rule) or (admits[index],)
        listed = self._listed(index, "deny", rule, listed_problems(rule, text))
        if listed:
            return (*listed, *self._unchecked(index, rule))
        return (self._decision(index, "deny", message(rule, text), rule),)

    def _audit(self) -> Iterator[Decision]:
        budget = CostBudget(RUNTIME_BUDGET, self.context.deadline)
        seen = activation(self.policy, self.target, self.param, self.context, budget)
        published, errors = auditannotations.values(self.policy.audits, seen, budget, is_fail=self.policy.is_fail)
        for text in errors:
            yield replace(self._decision(None, "error", text), actions=_DENY)
        if published:
            yield replace(self._decision(None, "admit"), audit_annotations=published)

    def _decision(
        self,
        index: int | None,
        evaluation: _Evaluation,
        text: str = "",
        rule: Validation | None = None,
        said: About | None = None,
    ) -> Decision:
        """A decision of a rule, or of the policy as a whole; `said` where it is about problems."""
        policy, actions = self.policy, self.binding.actions
        is_denial = evaluation == "deny" or (evaluation == "error" and policy.is_fail)
        is_denial = is_denial or (evaluation == "unknown" and policy.missing != "admit")
        return Decision(
            policy=policy.name,
            binding=self.binding.name,
            param=params.name_of(self.param),
            index=index,
            action="deny" if is_denial else "admit",
            evaluation=evaluation,
            actions=_warning(actions) if evaluation == "unknown" and policy.missing == "warn" else actions,
            reason=(rule.reason if rule else "Invalid") if is_denial else "",
            code=(rule.code if rule else 422) if is_denial else 0,
            elapsed_s=perf_counter() - self.started,
            category=policy.category,
            **(said or self._text(index, text)),
        )

    def _text(self, index: int | None, text: str) -> About:
        """What a decision says that is about no problems."""
        path, text = self.target.reroot(text)
        rule, severity = self.policy.rule_id(index), self.policy.severity
        return {"rule": rule, "path": path, "message": text, "severity": severity, "problems": (), "missing": ()}


def _warning(actions: tuple[ValidationAction, ...]) -> tuple[ValidationAction, ...]:
    """The actions of a binding, without a denial: a warning in its place."""
    return tuple(dict.fromkeys(ValidationAction.WARN if each is ValidationAction.DENY else each for each in actions))
