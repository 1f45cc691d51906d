"""Defines a rule: one record with its texts and its source, in the module with its check.

    VOLCANO_JOB = RuleGroup("volcano-job", refused_by="Volcano's webhook", source="volcano-sh/volcano …", …)
    TASK_REQUIRED = VOLCANO_JOB.rule("volcano-job/task-required", title="The Job has no task", why="…")

    def validate_tasks(job: Job) -> Iterator[Problem]:
        if not job.tasks:
            yield TASK_REQUIRED.problem(("spec", "tasks"), "must have a task", "add a task")

The id is written in full, so a search finds the record and its function. Users name ids in params, so an id never
changes. catalogue.py collects the records. A rule also says at which moment an object that breaks it fails without
claimgate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from webhook import errors
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.rules.actions import LEVELS, Level
from webhook.rules.decisions import SEVERITIES
from webhook.rules.problem import MOMENTS, MissingObject, Moment, Problem

NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""The name of a group, and the name of a rule within its group."""
TEXTS: Final = ("title", "why", "refused_by", "source", "function")
_REQUIRED: Final = ("title", "why", "source")
_CHOICES: Final = {"level": LEVELS, "severity": SEVERITIES, "fails": tuple(MOMENTS)}
_ID: Final = re.compile(rf"{NAME.pattern}/{NAME.pattern}")
_REPORT: Final = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/([0-9]+)", re.ASCII)


BY_POD_VALIDATION: Final = "the API server, at once in built-in kinds, and in other kinds when their pods are created"
"""Who refuses an invalid pod, and when. The API server also validates the pod templates of built-in kinds."""


class Rule(Struct, frozen=True, kw_only=True):
    """One rule.

    Args:
        id: `group/rule`.
        title: the mistake as the title of a finding, without a full stop.
        why: the effect on an object that breaks the rule, in one or two sentences.
        refused_by: the component that refuses such an object, or fails on it, without claimgate; "" if only claimgate
            has the rule.
        source: the source of the rule: repository, version and file, or a page.
        function: the function in that file; "" if the source is enough.
        level: the level unless a site sets another level (actions.py). For a rule of a CEL policy, the bindings
            decide.
        level_in_tests: the level for objects in folders of tests; None for `level`. Tests run only for minutes.
        severity: the severity of a violation; "" for the severity of the policy.
        fails: the moment at which an object that breaks the rule fails without claimgate. A problem may have another
            moment.
        refused_on_updates: the upstream file and function that refuse an update if the rule stays broken; "" if such an
            update is accepted. For custom kinds, an API server accepts an unchanged value (CRDValidationRatcheting),
            unless a rule compares the value with oldSelf.
        updates_of: the kinds for which `refused_on_updates` applies; () means all kinds of the rule.
        yields_to: ids of rules that have a better text about the same field, and at least the same level.
        issues: links to issues and pull requests on GitHub about the problem.
    """

    id: str
    title: str
    why: str
    refused_by: str = ""
    source: str
    function: str = ""
    level: Level = "deny"
    level_in_tests: Level | None = None
    severity: str = ""
    fails: Moment = ""
    refused_on_updates: str = ""
    updates_of: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()

    def level_of_object(self, *, is_of_tests: bool) -> Level:
        """Return the level for an object. In a folder of tests, use the milder of `level` and `level_in_tests`."""
        milder = self.level_in_tests if is_of_tests else None
        return self.level if milder is None else max(self.level, milder, key=LEVELS.index)

    def refuses_updates_of(self, kind: str) -> bool:
        """Return whether another component refuses an update of a kind if the rule stays broken."""
        return bool(self.refused_on_updates) and kind in (self.updates_of or (kind,))

    @property
    def group(self) -> str:
        """Return the group of checks, or of policies."""
        return self.id.partition("/")[0]

    @property
    def moment(self) -> str:
        """Return when an object that breaks the rule fails without claimgate, as text for users; "" if the rule does
        not say when.
        """
        if self.refused_by == BY_POD_VALIDATION and self.fails == "controller":
            return "Built-in kinds are refused at once; other kinds are accepted, but their pods are refused"
        return MOMENTS.get(self.fails, "")

    @property
    def issue_links_by_name(self) -> Mapping[str, str]:
        """Return links to issues and pull requests by `owner/repository#number`, also from the source."""
        return github_issue_links((self.source, *self.issues))

    def problem(
        self,
        path: FieldPath | str,
        message: str = "",
        fix: str = "",
        found: JSON = None,
        *,
        shown: str = "",
        missing: tuple[MissingObject, ...] = (),
        excess: int = 0,
        for_administrators: bool = False,
        words: tuple[str, ...] = (),
        needs: str = "",
        is_conditional: bool = False,
        fails: Moment | None = None,
    ) -> Problem:
        """Return the problem of a field that breaks the rule.

        `shown` replaces the value `found` in the message. `for_administrators` says that only administrators can apply
        the fix. `words` are the wrong words in the field. `needs` names the field that lacks a value for this field.
        `is_conditional` says that the mistake exists only under a condition that nothing shows. `fails` is the moment
        of this problem, if it is not the moment of the rule.
        """
        where = path if isinstance(path, str) else path_as_text(path)
        value = shown or ("" if found is None else '`""`' if found == "" else f"`{found}`")
        return Problem(
            code=self.id,
            path=where,
            message=message,
            fix=fix,
            found=value,
            missing=missing,
            excess=excess,
            is_for_administrators=for_administrators,
            words=words,
            needs=needs,
            is_conditional=is_conditional,
            fails=fails,
        )


class RuleGroup(Struct, frozen=True):
    """A group of rules, with defaults for its rules. It has the fields of Rule."""

    name: str
    refused_by: str = ""
    source: str = ""
    level: Level = "deny"
    level_in_tests: Level | None = None
    fails: Moment = ""
    refused_on_updates: str = ""
    updates_of: tuple[str, ...] = ()

    def rule(
        self,
        rule_id: str,
        *,
        title: str,
        why: str,
        refused_by: str | None = None,
        source: str = "",
        function: str = "",
        level: Level | None = None,
        level_in_tests: Level | None = None,
        severity: str = "",
        fails: Moment | None = None,
        refused_on_updates: str | None = None,
        issues: tuple[str, ...] = (),
        yields_to: tuple[str, ...] = (),
    ) -> Rule:
        """Return a rule of the group. A rule that never denies has medium severity by default.

        A rule with the group's `refused_by` also has the group's `refused_on_updates` by default.

        Raises:
            InputError: the rule has mistakes. The error lists all of them.
        """
        moment = self.fails if fails is None else fails
        if refused_on_updates is None:
            refused_on_updates = self.refused_on_updates if refused_by is None else ""
        rule = Rule(
            id=rule_id,
            title=title,
            why=why,
            refused_by=self.refused_by if refused_by is None else refused_by,
            source=source or self.source,
            function=function,
            level=level or self.level,
            level_in_tests=level_in_tests or self.level_in_tests,
            severity=severity or default_severity_of_level(level or self.level),
            fails=moment,
            refused_on_updates=refused_on_updates,
            updates_of=self.updates_of,
            issues=issues,
            yields_to=yields_to,
        )
        mistakes = [
            f"{name} {message}"
            for name, message in rule_errors({name: getattr(rule, name) for name in Rule.__struct_fields__})
        ]
        if not _ID.fullmatch(rule_id):
            mistakes.append("id must be a group and a name of lower case letters, digits and dashes, as in group/rule")
        elif rule.group != self.name:
            mistakes.append(f"is not a rule of the group `{self.name}`")
        if mistakes:
            raise errors.InputError(*(errors.InputProblem(message=f"rule `{rule_id}`: {each}") for each in mistakes))
        return rule


def github_issue_links(links: Iterable[str]) -> Mapping[str, str]:
    """Return the links that are issues or pull requests on GitHub, by their short names."""
    matches = map(_REPORT.fullmatch, links)
    return {f"{match[1]}#{match[2]}": match[0] for match in matches if match}


def default_severity_of_level(level: str) -> str:
    """Return the default severity of a level. "" means the severity of the policy."""
    return "" if level == "deny" else "medium"


def rule_errors(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each wrong field of a rule with the mistake."""
    texts = {name: fields.get(name) or "" for name in TEXTS}
    yield from ((name, "must be a text") for name, text in texts.items() if not isinstance(text, str))
    yield from ((name, "is required") for name in _REQUIRED if texts[name] == "")
    for name, allowed in _CHOICES.items():
        if fields.get(name, "") not in ("", *allowed):
            yield name, f"must be one of {', '.join(filter(None, allowed))}"
    yield from _errors_of_issue_links(fields.get("issues", ()))
    others = fields.get("yields_to", ())
    if not _is_list_or_tuple(others) or not all(isinstance(other, str) and _ID.fullmatch(other) for other in others):
        yield "yields_to", "must be a list of ids of rules such as device-claims/unused"


def _errors_of_issue_links(issues: Any) -> Iterator[tuple[str, str]]:
    if not _is_list_or_tuple(issues) or not all(isinstance(link, str) and _REPORT.fullmatch(link) for link in issues):
        yield "issues", "must be a list of links such as https://github.com/kubeflow/trainer/issues/1"
    elif len(set(issues)) < len(issues):
        yield "issues", "must not have a link twice"


def _is_list_or_tuple(value: Any) -> bool:
    return isinstance(value, list | tuple)


def denials_address(docs_address: str) -> str:
    """Return the address of the page for users with a denied object."""
    return f"{docs_address.rstrip('/')}/denials/"


def page_address(docs_address: str, rule: str) -> str:
    """Return the address of a rule's page in the published documentation."""
    return f"{docs_address.rstrip('/')}/rules/{rule.partition('/')[0]}/#{rule.replace('/', '')}"
