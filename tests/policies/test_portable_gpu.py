"""The executed OpenSandbox tables against gpu-portable: the same answers, but where a GPU would be lost or guessed unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webhook import shipped
from webhook.admission import fixtures
from webhook.cluster.files import FilesCluster
from webhook.commands.phases import Local, run
from webhook.policy.load import Options, load
from webhook.workloads.table import load as load_table

CASES = json.loads((Path(__file__).parents[1] / "data" / "cases" / "opensandbox_gpu.json").read_text())
HOW = Options(table=load_table())
POLICIES = load([Path(shipped.policies()) / "gpu-portable"], HOW)
VENDOR = "nvidia.com/gpu"

DIFFERS = {
    # Python's int() also reads digits of other scripts and underscores; nobody who writes a manifest means them
    "'1_000'": None,
    "'٣'": None,
    "'１'": None,
    # a JSON number is as good as a text; Python's text methods refused it
    "2": 2,
    "0": None,
    "1.5": None,
    "True": None,
}


def review(limits: dict) -> tuple[str, dict]:
    """`allowed`, `warned` or the code of the denial, and the limits that come out."""
    template = {"spec": {"containers": [{"name": "sandbox", "image": "x", "resources": {"limits": limits}}]}}
    obj = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "b"},
        "spec": {"replicas": 1, "template": template},
    }
    attributes = fixtures.attributes_of_object(obj, HOW.table.row)
    outcome = run(attributes, "auto", Local(policies=POLICIES, cluster=FilesCluster()))
    if not outcome.verdict.allowed:
        return str(outcome.verdict.status.code), limits
    after = outcome.patched_object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return "warned" if outcome.verdict.warnings else "allowed", after


@pytest.mark.parametrize(("value", "parsed"), CASES["parse"], ids=repr)
def test_parse_table(value: object, parsed: object) -> None:
    answer, limits = review({"cpu": "1", "gpu": value})
    expected = DIFFERS.get(repr(value), parsed)
    if expected == -1:
        assert answer == "400"
    elif expected is None:
        assert (answer, limits) == ("allowed" if value is None else "warned", {"cpu": "1"})
    else:
        assert (answer, limits) == ("allowed", {"cpu": "1", VENDOR: str(expected)})


TRANSLATE_DIFFERS = {
    # one of two contradicting counts would win unseen: refused instead
    '{"gpu": "2", "nvidia.com/gpu": "4"}': "400",
    # a JSON number is as good as a text
    '{"gpu": 2, "cpu": "1"}': {"cpu": "1", VENDOR: "2"},
}


@pytest.mark.parametrize(("limits", "expected"), CASES["translate"], ids=json.dumps)
def test_translate_table(limits: dict, expected: object) -> None:
    expected = TRANSLATE_DIFFERS.get(
        json.dumps(limits), "400" if expected == "HTTP 400 INVALID_PARAMETER" else expected
    )
    answer, after = review(limits)
    assert (answer if isinstance(expected, str) else after) == expected
