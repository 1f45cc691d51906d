"""Each fact is in one place, because two copies of a table or a pattern soon differ."""

import ast
import pathlib
import re
from collections import Counter

import pytest

from webhook.facts.subject import SHIPPED, rules_of_package
from webhook.input import shipped
from webhook.yamltext import yamlfile

PACKAGE = pathlib.Path(__file__).parent.parent / "webhook"
HOMES = {
    "names that Kubernetes accepts": (r"\[-a-z0-9\]\*", {"apimachinery/names.py"}),
    "what a list of the API is": (r"[(]\"List\"[)]", {"apimachinery/object_lists.py"}),
    "releases of Trainer": (
        r"Final\[Release\] = \(2, \d\)",  # Ray's releases, such as 2.52, have two digits
        {"facts/assumptions.py", "facts/train_job_pods/releases.py"},
    ),
    "the label of every namespace": (r"kubernetes\.io/metadata\.name", {"apimachinery/attributes.py"}),
    "kinds without a namespace": (r"VolumeAttributesClass", {"cluster/known_kinds.py"}),
}


@pytest.mark.parametrize(("pattern", "homes"), HOMES.values(), ids=HOMES)
def test_each_fact_is_written_in_one_module(pattern, homes):
    modules = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert {name for name, text in modules.items() if re.search(pattern, text)} == homes


def repeated(names):
    return [name for name, count in Counter(names).items() if count > 1]


def documents(pattern):
    return [each.value for path in sorted(PACKAGE.glob(pattern)) for each in yamlfile.read(path)]


def test_a_rule_is_declared_once():
    checks = [rule.id for package in SHIPPED.packages for rule in rules_of_package(package)]
    own = [
        f"{each.value['group']}/{rule['rule']}"
        for path in sorted(pathlib.Path(shipped.policies_folder()).glob("*/rules.yaml"))
        for each in yamlfile.read(path)
        for rules in each.value["policies"].values()
        for rule in rules
        if "title" in rule  # without a title, the key refers to another rule
    ]
    assert checks
    assert own
    assert repeated([*checks, *own]) == []


def test_facts_and_groups_of_checks_are_listed_in_one_place():
    assert repeated(SHIPPED.fact_names) == []
    assert repeated(SHIPPED.check_groups) == []


def test_a_kind_is_declared_once():
    rows = [(each["group"], each["kind"]) for document in documents("workloads/kinds.yaml") for each in document]
    typed = [
        (each.get("group", file["group"]), each["kind"], version)
        for file in documents("schema/data/*.yaml")
        for each in file["kinds"]
        for version in each["versions"]
    ]
    assert rows
    assert typed
    assert repeated(rows) == []
    assert repeated(typed) == []


def limits():
    """Yield public numbers by name and value, with the module that defines each."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            named = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            value = getattr(node, "value", None)
            for name in named:
                is_public = isinstance(name, ast.Name) and re.fullmatch("[A-Z][A-Z_]+", name.id)
                if is_public and isinstance(value, ast.Constant) and type(value.value) in (int, float):
                    yield name.id, value.value


def test_each_limit_is_written_in_one_place():
    assert repeated(limits()) == []
