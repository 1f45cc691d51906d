"""The catalogue of rules: what each problem code means, who refuses it, and what a site is told of it.

A group of checks declares its rules once, in the `problems.yaml` of its package; policies that are CEL alone declare
those of their validations in `rules.yaml` (policy_rules.py). A rule's id, `group/rule`, is stable: users see it in
messages and reports, and name it in params. Rules stand in the order of their importance. A rule that only warns is of
medium severity unless it says otherwise, one that denies as severe as its policy.
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
from webhook.paths import FieldPath, render

Level: TypeAlias = Literal["deny", "warn"]
LEVELS: Final = ("deny", "warn")
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TEXTS: Final = ("title", "why", "refused_by", "source", "function")
_REQUIRED: Final = ("title", "why", "source")


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

    @property
    def id(self) -> str:
        """`group/rule`, as users see it."""
        return f"{self.group}/{self.name}"


Catalogue: TypeAlias = Mapping[str, Rule]
"""Rules by their ids, the most important first."""


def load(files: Iterable[Path]) -> Catalogue:
    """The rules of some files, of which each has one document or more, one for each group.

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
        line, column = document.position(path)
        problem = Problem(message=message, file=document.file, line=line, column=column, path=render(path))
        self.problems.append(problem)

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
        """The rule of these fields, or None where they make none."""
        texts = {name: given.get(name) or "" for name in _TEXTS}
        wrong = [(name, "must be a text") for name, text in texts.items() if not isinstance(text, str)]
        wrong += [(name, "is required") for name in _REQUIRED if texts[name] == ""]
        if given.get("level", "deny") not in LEVELS:
            wrong.append(("level", f"must be one of {', '.join(LEVELS)}"))
        if given.get("severity", "info") not in SEVERITIES:
            wrong.append(("severity", f"must be one of {', '.join(SEVERITIES)}"))
        for name, message in wrong:
            self.refuse(document, (*path, name), message)
        if wrong:
            return None
        tidy = {name: " ".join(text.split()) for name, text in texts.items()}
        level = given.get("level", "deny")
        severity = given.get("severity") or ("medium" if level == "warn" else "")
        return Rule(group=given["group"], name=given["name"], level=level, severity=severity, **tidy)


_GROUP: Final = ("group", "refused_by", "source", "level", "rules")
_RULE: Final = (*_TEXTS, "level", "severity")


def _group(document: yamlfile.Document, reading: Reading) -> Iterator[Rule]:
    """The rules of one document; refused_by, source and level of the group are those of rules that have none."""
    value = reading.fields(document, (), document.value, _GROUP)
    if not value or not reading.is_name(document, ("group",), value.get("group")):
        return
    shared = {name: value[name] for name in ("group", "refused_by", "source", "level") if name in value}
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
