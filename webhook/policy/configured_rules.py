"""Applies a configuration file to a policy set, and checks that every rule that the file names exists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import CORE_GROUP
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.known_kinds import KNOWN_KINDS
from webhook.errors import ConfigurationError, InputError, InputProblem
from webhook.manifests.configuration import ConfigurationFile
from webhook.manifests.policy_exceptions import EVERY_RULE, PolicyException
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.rules.actions import EFFECTS, Action
from webhook.rules.catalogue import RULES_OF_FILES
from webhook.text.similar_names import nearest_name

_SAME_UNDER_OTHER_GROUPS: Final = frozenset(("extensions", "events.k8s.io"))
"""API servers also serve, or once served, the kinds of these groups in another group. So these groups make no kind
ambiguous."""


_RULE_OR_GROUP: Final = "rule, group or policy"


def rule_ids(policies: PolicySet) -> frozenset[str]:
    """Return the ids of all rules of checks and of named validations, and the names of policies."""
    named = {rule for policy in policies.policies for rule in (*policy.catalogue, *(each.id for each in policy.named))}
    checks = policies.registry.rule_catalogue_of_groups(policies.registry.check_groups)
    return frozenset(named.union(checks, (policy.name for policy in policies.policies)))


def describe_unknown_id(rule: str, known_ids: Collection[str], word: str = "rule") -> str:
    """Return a sentence about an unknown id; "" for a known id."""
    if rule in known_ids:
        return ""
    close = get_close_matches(rule, sorted(known_ids), n=1)
    return _sentence_about_unknown_id(rule, close[0] if close else "", word)


def _sentence_about_unknown_id(rule: str, close: str, word: str) -> str:
    hint = f"did you mean `{close}`?" if close else "`claimgate policies rules` lists all rules"
    return f"unknown {word} `{rule}`: {hint}"


def refuse_unknown_rules(flag: str, names: Iterable[str], policies: PolicySet) -> None:
    """Refuse names of a flag that no rule, group or policy has.

    Raises:
        ConfigurationError: a name is unknown; the error is about the first unknown name.
    """
    given = tuple(names)
    ids = rule_ids(policies).union(RULES_OF_FILES) if given else frozenset()
    ids_and_groups = ids.union(rule.partition("/")[0] for rule in ids)
    for name in given:
        if sentence := describe_unknown_id(name, ids_and_groups, _RULE_OR_GROUP):
            raise ConfigurationError(f"{flag}: {sentence}")


def apply_configuration_to_policies(policies: PolicySet, file: ConfigurationFile) -> PolicySet:
    """Return the policy set with a configuration.

    Raises:
        InputError: the file has unknown rules or groups, kinds that several groups have, or mistakes in params. The
            error lists all mistakes.
    """
    if file.document is None:
        return policies
    ids = rule_ids(policies)
    if problems := (
        *_problems_of_unknown_names(file, ids),
        *_problems_of_ambiguous_kinds(file, policies),
        *_problems_of_params(file, policies),
    ):
        raise InputError(*problems)
    levels = file.value.levels
    groups = {group: EFFECTS[level].action for group, level in levels.groups.items()}
    chosen: dict[str, Action] = {
        rule: groups[rule.partition("/")[0]] for rule in ids if rule.partition("/")[0] in groups
    }
    chosen |= {rule: EFFECTS[level].action for rule, level in levels.rules.items()}
    return replace(policies, configuration=file.value, configured=chosen)


def _problems_of_unknown_names(file: ConfigurationFile, ids: Collection[str]) -> Iterator[InputProblem]:
    groups = {rule.partition("/")[0] for rule in ids}
    for number, allowed in enumerate(file.value.policy_exceptions):
        for at, name in enumerate(allowed.rules):
            if name != EVERY_RULE and (sentence := describe_unknown_id(name, groups.union(ids), _RULE_OR_GROUP)):
                yield file.problem(("policyExceptions", number, "rules", at), sentence)
    for path, name in _rules_and_groups_in_file(file):
        is_group = path[:2] == ("levels", "groups")
        if name in RULES_OF_FILES:
            if path[:2] != ("report", "skip"):
                yield file.problem(path, f"no policy has the rule `{name}`: write it into report.skip")
        elif is_group and name in {rule.group for rule in RULES_OF_FILES.values()}:
            yield file.problem(path, f"no policy has the rules of `{name}`: write their ids into report.skip")
        elif sentence := describe_unknown_id(name, groups if is_group else ids, "group" if is_group else "rule"):
            yield file.problem(path, sentence)


def _problems_of_params(file: ConfigurationFile, policies: PolicySet) -> Iterator[InputProblem]:
    """Yield problems of unknown keys and rules in `params`.

    An unknown name of a ConfigMap is no problem here, because the ConfigMap may belong to a policy of another run, or
    of the cluster.
    """
    if not file.value.params:
        return
    rules = param_rules_of_policies(policies)
    for name in sorted(file.value.params.keys() & rules.names):
        keys = file.value.params[name]
        for key, sentence in rules.mistakes_of_keys(name, keys):
            yield file.problem(("params", name, *([key] if key in keys else ())), sentence)


def param_rules_of_policies(policies: PolicySet) -> ParamRuleChecker:
    """Return the checker of the params that a policy set reads."""
    return ParamRuleChecker(policies.policies, policies.registry, policies.params, own_namespace=policies.own_namespace)


def unused_params(file: ConfigurationFile, policies: PolicySet) -> Iterator[InputProblem]:
    """Yield problems of names in `params` that have no effect, because no loaded policy has a parameter with the
    name.
    """
    if file.document is None or not file.value.params:
        return
    known_names = param_rules_of_policies(policies).names
    for name in file.value.params:
        if name not in known_names:
            close = get_close_matches(name, sorted(known_names), n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(sorted(known_names))}"
            yield file.problem(("params", name), f"no policy has a parameter `{name}`: {hint}")


def _problems_of_ambiguous_kinds(file: ConfigurationFile, policies: PolicySet) -> Iterator[InputProblem]:
    """Yield a problem for each kind without a group in an exception, if several groups have the kind."""
    named = [
        (("exceptions", number, "kinds", at), kind)
        for number, exception in enumerate(file.value.exceptions)
        for at, kind in enumerate(exception.kinds)
    ]
    known_kinds = _known_kinds(policies) if named else frozenset()
    for path, kind in named:
        if sentence := _describe_ambiguous_kind(kind, known_kinds):
            yield file.problem(path, sentence)


def _describe_ambiguous_kind(kind: str, known_kinds: Collection[tuple[str, str]]) -> str:
    """Return a sentence about a kind that several groups have; "" if at most one group has the kind."""
    groups = sorted(group or CORE_GROUP for group, name in known_kinds if name == kind)
    if len(groups) < 2:
        return ""
    written = [f"`{kind}.{group}`" for group in groups]
    alternatives = f"{', '.join(written[:-1])} or {written[-1]}"
    return f"`{kind}` is a kind of {len(groups)} groups: write {alternatives}, or several of them"


class KnownNames(Struct, frozen=True):
    """The names that PolicyExceptions may use: `rules` has rules, groups and policies, `kinds` has group and kind."""

    rules: frozenset[str]
    kinds: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, policies: PolicySet, others: Collection[str] = ()) -> KnownNames:
        """Return the names for some policies, in a millisecond. `others` has the ids of additional rules."""
        ids = rule_ids(policies).union(others)
        return cls(ids.union(rule.partition("/")[0] for rule in ids), _known_kinds(policies))


_MOST_SUGGESTED: Final = 3
"""The most names of a PolicyException for which a similar name is searched. Each search takes 3 ms, and a
PolicyException may have fifty names.
"""


def mistakes_of_policy_exception(
    exception: PolicyException, known_names: KnownNames
) -> Iterator[tuple[FieldPath, str]]:
    """Yield path and text for each unknown rule and kind of a PolicyException, and for each kind that several groups
    have. The other rules still have an effect, because an unknown rule may be of another release, or of a policy that
    is stored later.
    """
    unknown = [(at, rule) for at, rule in enumerate(exception.spec.rules) if rule not in known_names.rules]
    for number, (at, rule) in enumerate(unknown):
        close = nearest_name(rule, sorted(known_names.rules)) if number < _MOST_SUGGESTED else ""
        yield ("spec", "rules", at), _sentence_about_unknown_id(rule, close, _RULE_OR_GROUP)
    for at, kind in enumerate(exception.spec.kinds):
        if sentence := _describe_ambiguous_kind(kind, known_names.kinds):
            yield ("spec", "kinds", at), sentence


def _known_kinds(policies: PolicySet) -> frozenset[tuple[str, str]]:
    """Return group and name of the kinds of Kubernetes, the workload table, and checks."""
    registry = policies.registry
    scopes = (scope for group in registry.check_groups for scope in registry.scopes_of_checks(group))
    checked = (kind for scope in scopes for kind in scope.kinds)
    of_rows = ((row.group, row.kind) for row in policies.table.rows)
    return frozenset(each for each in (*KNOWN_KINDS, *of_rows, *checked) if each[0] not in _SAME_UNDER_OTHER_GROUPS)


def _rules_and_groups_in_file(file: ConfigurationFile) -> Iterator[tuple[FieldPath, str]]:
    value = file.value
    yield from ((("levels", "groups", group), group) for group in value.levels.groups)
    yield from ((("levels", "rules", rule), rule) for rule in value.levels.rules)
    for number, exception in enumerate(value.exceptions):
        yield from ((("exceptions", number, "rules", at), rule) for at, rule in enumerate(exception.rules))
    yield from ((("report", "skip", at), rule) for at, rule in enumerate(value.report.skip))
