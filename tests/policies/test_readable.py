"""Shipped policies can be read: short lines, short expressions, few variables, no guards, nothing twice."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.rows import all_rows
from webhook.input import shipped
from webhook.policy.compiled import Policy
from webhook.policy.load import Options, load_policy_set
from webhook.policy.worst_case import reasons_for_poor_readability
from webhook.workloads.table import load_table

ROOT = Path(shipped.policies_folder())
FOLDERS = tuple(sorted(path.name for path in ROOT.iterdir() if path.is_dir()))
LONGEST_LINE = 120
MOST_CEL = 60_000
"""Characters of CEL in all policies"""
LINES = {"claims-exactly-one": 59, "gpu-portable": 166, "trainjob-num-proc-per-node": 39}
"""The policies that are examples for authors, with the most lines of their files"""

DYN: dict[str, str] = {}
"""Policies that need `dyn(`, with the reason"""


def policies(folder: str) -> tuple[Policy, ...]:
    return load_policy_set([ROOT / folder], Options(table=load_table())).policies


def files(folder: str) -> Iterator[Path]:
    yield from (path for path in sorted((ROOT / folder).glob("*.yaml")) if path.name != "suite.yaml")


def broken(folder: str) -> Iterator[str]:
    for path in files(folder):
        lines = path.read_text().splitlines()
        yield from (
            f"{path.name}:{n}: {len(line)} characters" for n, line in enumerate(lines, 1) if len(line) > LONGEST_LINE
        )
        if path.name == "policy.yaml" and len(lines) > LINES.get(folder, len(lines)):
            yield f"{path.name}: {len(lines)} lines"
    for policy in policies(folder):
        yield from (f"{policy.name}: {text}" for text in reasons_for_poor_readability(policy))
        written = " ".join(each.source for each in policy.expressions())
        if "type(" in written:
            yield f"{policy.name}: guards a type, which typed input makes needless"
        if "dyn(" in written and policy.name not in DYN:
            yield f"{policy.name}: `dyn(` without a reason"


@all_rows("folder", FOLDERS)
def test_a_missing_config_map_denies_nothing(folder: str) -> None:
    """Rules have defaults, so a deleted ConfigMap does not block users."""
    bindings = [binding for policy in policies(folder) if policy.checks for binding in policy.bindings]
    assert [binding.name for binding in bindings if binding.param_source and binding.param_source.denies_absence] == []


@all_rows("folder", FOLDERS)
def test_policies_keep_the_limits(folder: str) -> None:
    assert list(broken(folder)) == []


def test_no_variable_is_written_twice() -> None:
    found = [policy for folder in FOLDERS for policy in policies(folder)]
    texts = Counter(each.source for policy in found for each in policy.variables.values())
    assert not [text for text, count in texts.items() if count > 1]


def test_few_policies_use_cel() -> None:
    found = [policy for folder in FOLDERS for policy in policies(folder)]
    assert sum(len(each.source) for policy in found for each in policy.expressions()) < MOST_CEL


def test_reasons_belong_to_existing_policies() -> None:
    names = {policy.name for folder in FOLDERS for policy in policies(folder)}
    assert DYN.keys() <= names
