"""Applies the exceptions of a configuration: ignored objects, exempt users, and rules that an object may break. Also
removes the decisions that `--rule` and `--skip` leave out.

A decision about an excepted rule stays and lets the object pass, so reports show the exception. webhook/manifests reads
the exceptions. PolicyExceptions are looked up only for an object that breaks a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from webhook.apimachinery.attributes import NAMESPACE, Attributes
from webhook.cluster import Cluster
from webhook.cluster.layered import AssumedNamespace
from webhook.cluster.lookup import NOT_SERVED
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, LookupFailed
from webhook.evaluation.review_options import ReviewOptions
from webhook.manifests.claimgate_kinds import GROUP
from webhook.manifests.configuration import EMPTY, FileConfiguration, IgnoredObjects
from webhook.manifests.label_selectors import Labels, labels_of
from webhook.manifests.leave_alone import ANNOTATION, ObjectExceptions, current_day, is_exempt, is_ignored
from webhook.manifests.policy_exceptions import (
    MOST_IN_NAMESPACE,
    POLICY_EXCEPTIONS,
    READ_S,
    PolicyException,
    iterate_readable,
    oldest_of_namespace,
)
from webhook.rules import text
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.problem import Problem

_NOTHING = IgnoredObjects()
POLICY = "exceptions"
"""The policy of decisions about exceptions themselves."""


def is_ignored_by_configuration(attributes: Attributes, configuration: FileConfiguration, cluster: Cluster) -> bool:
    """Return whether the configuration ignores a request, so that no policy is evaluated."""
    if configuration.exemptions and is_exempt(configuration.exemptions, attributes.user_info, current_day()):
        return True
    if configuration.ignore == _NOTHING:
        return False
    obj = attributes.object if attributes.object is not None else attributes.old_object
    return is_ignored(
        configuration.ignore, attributes.namespace, obj, lambda: _labels_of_namespace(attributes.namespace, cluster)
    )


def _labels_of_namespace(namespace: str, cluster: Cluster) -> Labels | None:
    try:
        obj = cluster.get(NAMESPACE, "", namespace)
    except LookupFailed:
        return None
    return None if obj is None or isinstance(obj, AssumedNamespace) else labels_of(obj)


def with_exceptions_applied(
    decisions: Sequence[Decision],
    attributes: Attributes,
    configuration: FileConfiguration,
    cluster: Cluster,
    deadline: Deadline,
) -> tuple[Decision, ...]:
    """Return the decisions. Decisions about excepted rules let the object pass."""
    if configuration is EMPTY:
        return tuple(decisions)
    obj = attributes.object if attributes.object is not None else attributes.old_object
    stored, mistake = _policy_exceptions(decisions, attributes, configuration, cluster, deadline)
    exceptions = ObjectExceptions(
        configuration,
        (attributes.kind.group, attributes.kind.kind),
        attributes.namespace,
        _name_of_object(attributes),
        obj,
        stored=stored,
        deadline=deadline,
    )
    if not (exceptions or mistake):
        return tuple(decisions)
    excepted = [each for decision in decisions for each in _apply_exceptions(decision, exceptions)]
    broken = [rule for each in excepted if each.action == "deny" and not each.is_advice for rule in each.broken_rules]
    sentences = [*([mistake] if mistake and broken else []), *exceptions.sentences_about_no_effect(broken)]
    return (*excepted, *_warn_of_annotation_mistake(exceptions.mistake), *map(_warning, sentences[:_MOST_SENTENCES]))


_SORT_S = 0.000_02
"""Seconds to sort one PolicyException by age."""
_MOST_SENTENCES = 5
"""The limit of sentences in one answer about PolicyExceptions without an effect."""


def _policy_exceptions(
    decisions: Sequence[Decision],
    attributes: Attributes,
    configuration: FileConfiguration,
    cluster: Cluster,
    deadline: Deadline,
) -> tuple[Sequence[PolicyException], str]:
    # returns the PolicyExceptions of the namespace, and a reason if the PolicyExceptions are unknown. A Namespace and
    # objects of claimgate.dev have no PolicyExceptions: the owner of a namespace may not make exceptions for them
    if not configuration.policy_exceptions or not attributes.namespace:
        return (), ""
    if attributes.kind.group == GROUP or (attributes.kind.group, attributes.kind.kind) == ("", NAMESPACE.kind):
        return (), ""
    if all(each.evaluation == "admit" for each in decisions):
        return (), ""
    try:
        listed = cluster.list(POLICY_EXCEPTIONS, attributes.namespace)
        if not listed:
            return (), ""
        deadline.require_time_for_call(len(listed) * _SORT_S + min(len(listed), MOST_IN_NAMESPACE) * READ_S)
        return tuple(iterate_readable(oldest_of_namespace(listed))), ""
    except BudgetExceeded:
        return (), f"PolicyExceptions of namespace {attributes.namespace} have no effect: no time was left to read them"
    except LookupFailed as error:
        if NOT_SERVED in str(error):
            return (), ""
        return (), f"PolicyExceptions of namespace {attributes.namespace} have no effect: {error}"


def _apply_exceptions(decision: Decision, exceptions: ObjectExceptions) -> Iterator[Decision]:
    if decision.evaluation == "admit":
        yield decision
        return
    if not decision.problems:
        exception = exceptions.exception_for_rule(decision.rule or decision.policy)
        yield decision if exception is None else _excepted_decision(decision, exception.description)
        return
    kept: list[Problem] = []
    passed: dict[str, list[Problem]] = {}
    for problem in decision.problems:
        exception = exceptions.exception_for_rule(problem.code)
        (kept if exception is None else passed.setdefault(exception.description, [])).append(problem)
    if kept:
        yield decision if not passed else decision_about_problems(decision, kept)
    yield from (
        _excepted_decision(decision_about_problems(decision, problems), why) for why, problems in passed.items()
    )


def decision_about_problems(decision: Decision, problems: Sequence[Problem]) -> Decision:
    """Return the decision with only some of its problems."""
    listed = problems[: text.MOST_LISTED]
    return replace(
        decision,
        problems=tuple(problems),
        rule=problems[0].code,
        path=problems[0].path,
        message=text.join_fitting_texts(
            [text.problem_as_sentence(each) for each in listed], _LONGEST, len(problems) - len(listed)
        ),
        missing=tuple(dict.fromkeys(each for problem in problems for each in problem.missing)),
    )


_LONGEST = 5 * 1024


def _excepted_decision(decision: Decision, why: str) -> Decision:
    return replace(decision, lets_pass=True, warns_user=False, exception=why)


def _warn_of_annotation_mistake(mistake: str) -> Iterable[Decision]:
    if mistake:
        place = f'metadata.annotations["{ANNOTATION}"]'
        yield _warning(f"{place}: {mistake}", place)


def _warning(message: str, path: str = "") -> Decision:
    return Decision(
        policy=POLICY,
        binding="",
        evaluation="deny",
        actions=(ValidationAction.WARN,),
        path=path,
        message=message,
    )


def _name_of_object(attributes: Attributes) -> str:
    metadata = attributes.object.get("metadata") if isinstance(attributes.object, dict) else None
    named = metadata if isinstance(metadata, dict) else {}
    return attributes.name or str(named.get("name") or named.get("generateName") or "")


def decisions_about_chosen_rules(decisions: Sequence[Decision], options: ReviewOptions) -> Sequence[Decision]:
    """Return the decisions about rules that the options include, and all decisions that admit."""
    if not options.rules and not options.skip:
        return decisions
    return tuple(kept for each in decisions for kept in _about_chosen_rules(each, options))


def _about_chosen_rules(decision: Decision, options: ReviewOptions) -> Iterator[Decision]:
    if decision.evaluation == "admit":
        yield decision
    elif not decision.problems:
        if _is_chosen(decision.rule or decision.policy, decision.policy, options):
            yield decision
    else:
        kept = [each for each in decision.problems if _is_chosen(each.code, decision.policy, options)]
        if len(kept) == len(decision.problems):
            yield decision
        elif kept:
            yield decision_about_problems(decision, kept)


def _is_chosen(rule: str, policy: str, options: ReviewOptions) -> bool:
    names = {rule, rule.partition("/")[0], policy}
    return (not options.rules or not names.isdisjoint(options.rules)) and names.isdisjoint(options.skip)
