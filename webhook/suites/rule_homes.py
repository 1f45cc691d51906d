"""Finds the code of a rule: the function that finds objects which break it, or the validation of a policy in CEL.

The source is searched on each call, so the result is never out of date. An id is written once, in the record of its
rule. One function, or one table at the top of the module, uses the record (tests/facts/test_rule_homes.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from webhook.apimachinery.paths import get
from webhook.facts.subject import SHIPPED, FactRegistry
from webhook.input import shipped
from webhook.policy.compiled import Policy
from webhook.rules.rule import Rule
from webhook.yamltext import input_files, yamlfile


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleLocation:
    """A place in the source. `part` is a function, a method, a table or a validation; "" for the whole file.

    The text has no line number. Otherwise, each change of the file would change the pages of rules.
    """

    file: str
    line: int
    part: str = ""

    def __str__(self) -> str:
        return f"`{self.part}` in {self.file}"


@dataclass(frozen=True, slots=True)
class RuleLocator:
    """Finds the places of rules in some packages and policies. A file is read when one of its rules is looked up."""

    registry: FactRegistry = SHIPPED
    _modules: dict[str, Mapping[str, tuple[RuleLocation, ...]]] = field(default_factory=dict)

    def find_in_checks(self, rule: Rule) -> tuple[RuleLocation, ...]:
        """Return every function or table that uses the record of a check's rule. There should be exactly one."""
        packages = (package for package in self.registry.packages if rule.group in package.groups)
        modules = (self._locations_in_module(name, rule) for package in packages for name in package.rule_modules)
        return tuple(home for homes in modules for home in homes.get(rule.id, ()))

    def _locations_in_module(self, module: str, rule: Rule) -> Mapping[str, tuple[RuleLocation, ...]]:
        if module not in self._modules:
            path = source_file(module)
            if f'"{rule.id}"' not in (text := path.read_text(encoding="utf-8")):
                return {}
            self._modules[module] = find_rule_locations(text, _path_in_repository(path, module))
        return self._modules[module]

    def find_in_policy(self, rule: Rule, policy: Policy) -> tuple[RuleLocation, ...]:
        """Return every validation of a policy that states a rule."""
        documents = (
            [each for each in yamlfile.read(policy.file) if _is_document_of_policy(policy, each)] if policy.file else []
        )
        return tuple(
            RuleLocation(
                file=_policy_path_as_shown(Path(policy.file)),
                line=document.position(("spec", "validations", index))[0],
                part=f"validations[{index}]",
            )
            for document in documents
            for index, named in enumerate(policy.named)
            if named.id == rule.id
        )


def _policy_path_as_shown(path: Path) -> str:
    """For a shipped policy, the name is its path in the repository."""
    folder = shipped.policies_folder()
    return f"policies/{path.relative_to(folder)}" if path.is_relative_to(folder) else input_files.path_as_shown(path)


def _is_document_of_policy(policy: Policy, document: yamlfile.Document) -> bool:
    kind, name = get(document.value, ("kind",)), get(document.value, ("metadata", "name"))
    return bool((kind, name) == ("ValidatingAdmissionPolicy", policy.name))


def source_file(module: str) -> Path:
    """Return the file of a module without importing the module. The packages around the module are imported."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    return Path(spec.origin)


def _path_in_repository(path: Path, module: str) -> str:
    """The result does not depend on where the package is installed."""
    return "/".join(path.parts[-len(module.split(".")) :])


def find_rule_locations(source: str, file: str) -> Mapping[str, tuple[RuleLocation, ...]]:
    """Return the functions and tables that use the record of each rule, by the rule's id."""
    tree = ast.parse(source)
    records = dict(_names_and_ids_of_rules(tree))
    homes: dict[str, dict[RuleLocation, None]] = {rule: {} for rule in records.values()}
    for name, part, line in _names_that_are_read(tree, "", 0):
        if name in records and part not in records:
            homes[records[name]][RuleLocation(file=file, line=line, part=part)] = None
    return {rule: tuple(places) for rule, places in homes.items()}


def _names_and_ids_of_rules(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names of records, and their ids: `NAME: Final = GROUP.rule("group/rule", …)`."""
    for statement in tree.body:
        call = getattr(statement, "value", None)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "rule":
            first = call.args[0] if call.args else None
            if isinstance(first, ast.Constant):
                yield _assigned(statement), str(first.value)


def _assigned(statement: ast.AST) -> str:
    """Return the name that an assignment at the top of a module defines, or ""."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _names_that_are_read(node: ast.AST, part: str, line: int) -> Iterator[tuple[str, str, int]]:
    """Yield every name that is read outside comparisons, with the function or table around it and its line.

    `NAME.id` does not count: a function that only names a rule does not find objects that break it.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _names_that_are_read(child, f"{part}.{child.name}".lstrip("."), child.lineno)
        elif isinstance(node, ast.Module) and isinstance(child, ast.stmt) and (name := _assigned(child)):
            yield from _names_that_are_read(child, name, child.lineno)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child.id, part, line
        elif not isinstance(child, ast.Compare) and not (isinstance(child, ast.Attribute) and child.attr == "id"):
            yield from _names_that_are_read(child, part, line)
