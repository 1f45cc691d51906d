"""The catalogue of rules: what each problem code means, who refuses it, and what a site is told of it.

A group of checks declares its rules once, in the `problems.yaml` of its package; policies that are CEL alone declare
those of their validations in `rules.yaml` (policy_rules.py). A rule's id, `group/rule`, is stable: users see it in
messages and reports, and name it in params. Rules stand in the order of their importance. A rule that only warns is of
medium severity unless it says otherwise, one that denies as severe as its policy.

`fails` says when an object that breaks the rule goes wrong otherwise, `issues` where people reported it; docs/rules
and docs/late-failures.md are made of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from webhook import yamlfile
from webhook.decisions import SEVERITIES
from webhook.errors import InputError, Problem
from webhook.paths import FieldPath
from webhook.problems.moments import MOMENTS, Moment

Level: TypeAlias = Literal["deny", "warn"]
LEVELS: Final = ("deny", "warn")
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ID: Final = re.compile(rf"{_NAME.pattern}/{_NAME.pattern}")
_TEXTS: Final = ("title", "why", "refused_by", "source", "function")
_REQUIRED: Final = ("title", "why", "source")
_CHOICES: Final = {"level": LEVELS, "severity": SEVERITIES, "fails": tuple(MOMENTS)}
_REPORT: Final = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/([0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    Args:
        group: the group of checks, or of policies.
        name: the rule in it.
        title: the rule in one sentence, for lists.
        why: what happens to an object that breaks it, in one or two sentences.
        refused_by: what would refuse such an object, or fail on it, without this webhook; "" for a rule of ours.
        source: where the rule comes from: repository, version and file, or a page.
        function: the function in that file; "" where the source says enough.
        level: what is done about it unless a site says otherwise; a policy's bindings decide for rules of its own.
        severity: how severe it is to break it; "" where the policy says so for all its rules.
        fails: when an object that breaks it goes wrong without this webhook.
        yields_to: ids of rules that say the same better where they speak of the same field and do as much about it.
        issues: issues and pull requests on GitHub of people who met the problem, as links.
    """

    group: str
    name: str
    title: str
    why: str
    refused_by: str = ""
    source: str
    function: str = ""
    level: Level = "deny"
    severity: str = ""
    fails: Moment = ""
    issues: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """`group/rule`, as users see it."""
        return f"{self.group}/{self.name}"

    @property
    def reports(self) -> Mapping[str, str]:
        """Links to issues and pull requests by their short names, `owner/repository#number`; the source may be one."""
        return reports((self.source, *self.issues))


def reports(links: Iterable[str]) -> Mapping[str, str]:
    """Those of some links that are issues and pull requests on GitHub, by their short names."""
    matches = map(_REPORT.fullmatch, links)
    return {f"{match[1]}#{match[2]}": match[0] for match in matches if match}


Catalogue: TypeAlias = Mapping[str, Rule]
"""Rules by their ids, the most important first."""


def load(files: Iterable[Path]) -> Catalogue:
    """The rules of some files. Each document has rules of one group, and what they have in common.

    Raises:
        InputError: every mistake of every file, with line and column.
    """
    reading = Reading()
    for file in files:
        for document in yamlfile.read(file):
            for rule in _group(document, reading):
                reading.keep(document, rule, ("rules", rule.name))
    if reading.problems:
        raise InputError(*reading.problems)
    return reading.rules


class Reading:
    """Rules that are being read, and what is wrong with them."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.problems: list[Problem] = []

    def keep(self, document: yamlfile.Document, rule: Rule, path: FieldPath) -> None:
        """Take a rule, unless another one has its id."""
        if rule.id in self.rules:
            self.refuse(document, path, f"rule `{rule.id}` is declared twice: remove one")
        self.rules.setdefault(rule.id, rule)

    def refuse(self, document: yamlfile.Document, path: FieldPath, message: str) -> None:
        """Note a mistake at its place."""
        self.problems.append(document.problem(path, message))

    def fields(
        self, document: yamlfile.Document, path: FieldPath, value: Any, known: Iterable[str]
    ) -> Mapping[str, Any]:
        """A map that has known fields alone; what is wrong with others is noted."""
        if not isinstance(value, dict):
            self.refuse(document, path, f"must be a map with the fields {', '.join(known)}")
            return {}
        for name in value:
            if name not in known:
                self.refuse(document, (*path, name), f"unknown field: expected one of {', '.join(known)}")
        return value

    def is_name(self, document: yamlfile.Document, path: FieldPath, value: Any) -> bool:
        """Say whether a text is a name of a group or a rule."""
        if isinstance(value, str) and _NAME.fullmatch(value):
            return True
        self.refuse(document, path, "must be a name of lower case letters, digits and dashes")
        return False

    def rule(self, document: yamlfile.Document, path: FieldPath, given: Mapping[str, Any]) -> Rule | None:
        """The rule of these fields, or None where they make none; level and severity have defaults."""
        wrong = list(_wrong(given))
        for name, message in wrong:
            self.refuse(document, (*path, name), message)
        if wrong:
            return None
        level = given.get("level", "deny")
        return Rule(
            group=given["group"],
            name=given["name"],
            level=level,
            severity=given.get("severity") or ("medium" if level == "warn" else ""),
            fails=given.get("fails", ""),
            issues=tuple(given.get("issues", ())),
            yields_to=tuple(given.get("yields_to", ())),
            **{name: " ".join((given.get(name) or "").split()) for name in _TEXTS},
        )


def _wrong(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields of a rule, and what is wrong with them."""
    texts = {name: given.get(name) or "" for name in _TEXTS}
    yield from ((name, "must be a text") for name, text in texts.items() if not isinstance(text, str))
    yield from ((name, "is required") for name in _REQUIRED if texts[name] == "")
    for name, known in _CHOICES.items():
        if name in given and given[name] not in known:
            yield name, f"must be one of {', '.join(known)}"
    yield from _wrong_issues(given.get("issues", []))
    others = given.get("yields_to", [])
    if not isinstance(others, list) or not all(isinstance(each, str) and _ID.fullmatch(each) for each in others):
        yield "yields_to", "must be a list of ids of rules such as device-claims/unused"


def _wrong_issues(issues: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the links of a rule."""
    known = issues if isinstance(issues, list) else [issues]
    if issues is not known or not all(isinstance(each, str) and _REPORT.fullmatch(each) for each in known):
        yield "issues", "must be a list of links such as https://github.com/kubeflow/trainer/issues/1"
    elif len(set(known)) < len(known):
        yield "issues", "must not have a link twice"


SHARED: Final = ("refused_by", "source", "level", "fails")
"""What a group says for those of its rules that do not say it."""
_GROUP: Final = ("group", *SHARED, "rules")
OWN: Final = (*_TEXTS, "fails", "issues")
"""What every rule may say."""
_RULE: Final = (*OWN, "level", "severity", "yields_to")


def _group(document: yamlfile.Document, reading: Reading) -> Iterator[Rule]:
    """The rules of one document."""
    value = reading.fields(document, (), document.value, _GROUP)
    if not value or not reading.is_name(document, ("group",), value.get("group")):
        return
    shared = {name: value[name] for name in ("group", *SHARED) if name in value}
    rules = value.get("rules")
    if not isinstance(rules, dict) or not rules:
        reading.refuse(document, ("rules",), "must be a map of rules by their names")
        return
    for name, own in rules.items():
        path: FieldPath = ("rules", name)
        if reading.is_name(document, path, name):
            rule = reading.rule(document, path, {**shared, **reading.fields(document, path, own, _RULE), "name": name})
            if rule is not None:
                yield rule
