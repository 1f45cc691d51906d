"""An id is written once, in the record of its rule. One function or table beside it uses the record."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from tests.literals import shipped_policies
from tests.rows import all_rows
from webhook.facts.subject import SHIPPED, rules_of_package
from webhook.rules.rule import Rule
from webhook.suites.rule_homes import RuleLocation, RuleLocator, find_rule_locations

FACTS = Path(__file__).parents[2] / "webhook" / "facts"
RULES = {rule.id: rule for package in SHIPPED.packages for rule in rules_of_package(package)}
HOMES = RuleLocator()
SOURCE = """
A: Final = GROUP.rule("group/a", title="A")
B = GROUP.rule("group/b", title="B")
C: Final = GROUP.rule("group/c", title="C")
TABLE: Final = {"b": B}


class Job:
    def check(self):
        yield A.problem("x")
        yield A.problem("y")

    def is_a(self, code):
        return code == A.id


def second():
    return C, TABLE


def third():
    def inner():
        yield C
"""


def test_the_home_of_a_rule_is_the_function_or_the_table_that_uses_its_record() -> None:
    assert find_rule_locations(SOURCE, "x.py") == {
        "group/a": (RuleLocation(file="x.py", line=9, part="Job.check"),),
        "group/b": (RuleLocation(file="x.py", line=5, part="TABLE"),),
        "group/c": (
            RuleLocation(file="x.py", line=17, part="second"),
            RuleLocation(file="x.py", line=22, part="third.inner"),
        ),
    }


@all_rows("rule", RULES)
def test_each_rule_is_found_by_one_function(rule: str) -> None:
    homes = HOMES.find_in_checks(RULES[rule])
    assert len(homes) == 1, (
        f"{rule} is found by {', '.join(map(str, homes)) or 'no function'}: one function beside its record in "
        "webhook/facts yields its problems (ARCHITECTURE.md, The module of a rule)"
    )


@cache
def trees() -> dict[str, ast.Module]:
    return {
        ".".join(("webhook.facts", *path.relative_to(FACTS).with_suffix("").parts)): ast.parse(path.read_text())
        for path in FACTS.rglob("*.py")
    }


def test_an_id_is_written_once() -> None:
    texts = (node.value for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.Constant))
    written = Counter(text for text in texts if isinstance(text, str) and text in RULES)
    more = sorted(rule for rule, times in written.items() if times > 1)
    assert more == [], "write the id in the record of the rule alone, and import the record for comparisons"
    assert set(written) == set(RULES)


def test_every_record_is_a_rule_of_the_registry() -> None:
    """If the row of a package lacks a module, its rules are unknown."""
    unlisted = {
        path.relative_to(FACTS)
        for path in FACTS.rglob("*.py")
        if not find_rule_locations(path.read_text(), path.name).keys() <= RULES.keys()
    }
    lines = [
        f'webhook/facts/packages.py: add "{path.stem}" to `rules` of the row of webhook.facts.{path.parent.name}, then '
        f"run make docs: webhook/facts/{path} has records that no row lists"
        for path in sorted(unlisted)
    ]
    assert not lines, "\n".join(lines)


def test_each_function_that_finds_a_rule_is_called() -> None:
    """A function that no Check calls reports nothing. `claimgate test` then says that no rule is broken."""
    used = {name for tree in trees().values() for name in names_in_use(tree)}
    lines = [
        f"{home.file}:{home.line}: {home.part} finds {rule} and is called nowhere: call it in a Check of CHECKS of "
        f"the package (grep -n CHECKS {Path(home.file).parent}/*.py), then run make docs"
        for rule, record in RULES.items()
        for home in HOMES.find_in_checks(record)
        if home.part.rpartition(".")[2] not in used
    ]
    assert not lines, "\n".join(lines)


def names_in_use(tree: ast.Module) -> set[str]:
    """Return the names that a module uses, including attributes. Definitions and imports do not count as uses."""
    nodes = [*ast.walk(tree)]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return read | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_a_rule_record_is_used_in_its_module() -> None:
    records = {(each.module, name) for each in modules() for name in each.records}
    imported = [
        (module, name.name)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if (node.module, name.name) in records and name.name not in compared(tree)
    ]
    assert imported == []


def compared(tree: ast.Module) -> set[str]:
    inside = Counter(
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    )
    return {name for name, times in inside.items() if times == uses(tree)[name]}


def uses(tree: ast.Module) -> Counter[str]:
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


class Records:
    def __init__(self, module: str, tree: ast.Module) -> None:
        self.module = module
        self.records = [
            ast.unparse(node.target)
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func).endswith(".rule")
        ]


def modules() -> list[Records]:
    return [Records(module, tree) for module, tree in trees().items()]


def test_the_rules_of_a_policy_in_cel_are_found_by_its_validations() -> None:
    stated: list[tuple[Rule, tuple[RuleLocation, ...]]] = [
        (rule, HOMES.find_in_policy(rule, policy)) for policy in shipped_policies().policies for rule in policy.named
    ]
    assert stated
    for rule, homes in stated:
        assert homes, rule.id
        for home in homes:
            assert home.file.endswith(".yaml")
            assert home.line > 1
