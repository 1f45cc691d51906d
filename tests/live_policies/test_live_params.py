"""A live ConfigMap with unknown rules is reported once in the log, in a counter, and in /readyz?verbose."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import quick_yaml
from tests.literals import TABLE
from webhook.cluster.files import FilesCluster
from webhook.input import shipped
from webhook.live_policies.live_policy_set import MOST_MISTAKES, LiveParamsChecker
from webhook.logs.structured import Log
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet

POLICIES = load_policy_set([shipped.policies_folder() / "storage"], Options(table=TABLE, lazy=True))
TOLD = (
    "ConfigMap claimgate-system/storage: data.deny: unknown rule `storage/claim-exist`: "
    "did you mean `storage/claim-exists`?"
)


def param(**data: str) -> Any:
    metadata = {"name": "storage", "namespace": "claimgate-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Process:
    """The parts of a server that read params, with a view of the cluster that the test replaces."""

    def __init__(self, policies: PolicySet = POLICIES) -> None:
        self.view = FilesCluster([])
        self.stream = io.StringIO()
        self.params = LiveParamsChecker(lambda: policies, lambda: self.view, Log("info", stream=self.stream))

    def look(self, *objects: Any) -> list[str]:
        self.view = FilesCluster(objects)
        before = len(self.stream.getvalue())
        self.new = asyncio.run(self.params.find_new_mistakes())
        return [json.loads(line)["mistakes"] for line in self.stream.getvalue()[before:].splitlines()]


def test_a_mistake_is_reported_once_for_each_change() -> None:
    process = Process()
    assert process.look() == []
    assert process.params.mistakes == ()
    assert process.look(param(deny="storage/claim-exist storage/claim-exists")) == [TOLD]
    assert process.look(param(deny="storage/claim-exist")) == []
    assert (process.params.mistakes, process.new) == ((TOLD,), 0)
    assert process.look(param()) == []
    assert process.params.mistakes == ()
    assert process.look(param(deny="storage/claim-exist")) == [TOLD]
    assert process.new == 1


def test_rules_of_policies_that_are_not_loaded_may_be_named() -> None:
    assert Process().look(param(off="kueue-never/exceeds-max-quota")) == []


def test_log_lines_about_params_are_bounded() -> None:
    process = Process()
    (line,) = process.look(param(warn=" ".join(f"storage/x{number}" for number in range(30))))
    assert line == "; ".join(process.params.mistakes)
    assert line.count("unknown rule") == MOST_MISTAKES
    assert process.new == MOST_MISTAKES


def test_unchanged_files_are_not_read_again() -> None:
    process = Process()
    assert process.params.has_changed()
    assert not process.params.has_changed()
    process.view = FilesCluster([param()])
    assert process.params.has_changed()


SELECTED: dict[str, tuple[dict[str, Any], bool]] = {
    "by label": ({"selector": {"matchLabels": {"team": "a"}}}, True),
    "by label in a namespace": ({"selector": {"matchLabels": {"team": "a"}}, "namespace": "team"}, True),
    "by another label": ({"selector": {"matchLabels": {"team": "b"}}}, False),
    "by name in the namespace of the request": ({"name": "own"}, True),
    "in another namespace": ({"name": "own", "namespace": "other"}, False),
}


@pytest.mark.parametrize("row", SELECTED)
def test_a_param_that_a_binding_selects_is_checked(row: str, tmp_path: Path) -> None:
    reference, is_told = SELECTED[row]
    for document in quick_yaml.load_all((shipped.policies_folder() / "storage" / "policy.yaml").read_text()):
        (tmp_path / f"{document['metadata']['name']}.yaml").write_text(yaml.safe_dump(document))
    for binding in quick_yaml.load_all((shipped.policies_folder() / "storage" / "binding.yaml").read_text()):
        binding["spec"]["paramRef"] = {**reference, "parameterNotFoundAction": "Allow"}
        (tmp_path / f"{binding['metadata']['name']}-b.yaml").write_text(yaml.safe_dump(binding))
    process = Process(load_policy_set([tmp_path], Options(table=TABLE, lazy=True)))
    held = {
        **param(deny="storage/claim-exist"),
        "metadata": {"name": "own", "namespace": "team", "labels": {"team": "a"}},
    }
    assert process.look(held) == ([TOLD.replace("claimgate-system/storage", "team/own")] if is_told else [])
