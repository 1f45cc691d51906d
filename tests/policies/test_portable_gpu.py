"""gpu-portable gives the recorded results of OpenSandbox's code, unless OpenSandbox would lose or guess a GPU."""

from __future__ import annotations

import json
from pathlib import Path

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.cluster.files import FilesCluster

CASES = json.loads((Path(__file__).parents[1] / "data" / "cases" / "opensandbox_gpu.json").read_text())
POLICIES = shipped_policies("gpu-portable", "opensandbox")
PLACES = ("template", "shardPatches")
VENDOR = "nvidia.com/gpu"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}

DIFFERS = {
    # Python's int() also reads digits of other scripts and underscores, which no manifest uses
    "'1_000'": None,
    "'٣'": None,
    "'１'": None,
    # a JSON number counts like a text; OpenSandbox's text methods refused it
    "2": 2,
    "0": None,
    "1.5": None,
    # not a count
    "True": -1,
}
"""Values with another count than upstream. -1 means `all`, or a value of another type."""


def is_nothing(value: object) -> bool:
    """Return whether a value requests nothing. OpenSandbox drops every other value that is not a count, and claimgate
    denies it.
    """
    return value is None or str(value).strip() in NONE_OF_A_SHARD


NONE_OF_A_SHARD = ("0", "-0")
"""In a patch of a template, these values remove its devices. In a template, they request nothing."""


def review(limits: dict, place: str) -> tuple[str, dict]:
    """Returns `allowed`, `warned` or the code of the denial, and the resulting limits."""
    plain = {"spec": {"containers": [{"name": "sandbox", "image": "x"}]}}
    asking = {"spec": {"containers": [{"name": "sandbox", "image": "x", "resources": {"limits": limits}}]}}
    obj = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": "b"},
        "spec": {
            "replicas": 1,
            **({"template": asking} if place == "template" else {"template": plain, place: [asking]}),
        },
    }
    attributes = fixtures.attributes_of_object(obj, TABLE.row)
    outcome = run_phases(attributes, "auto", LocalAnswerer(policies=POLICIES, cluster=FilesCluster([NAMESPACE])))
    if not outcome.verdict.allowed:
        return str(outcome.verdict.status.code), limits
    found = outcome.patched_object["spec"][place]
    template = found if place == "template" else found[0]
    return "warned" if outcome.verdict.warnings else "allowed", template["spec"]["containers"][0]["resources"]["limits"]


def without_nulls(limits: dict) -> dict:
    """Return the limits without nulls. In a patch, a null removes the value of the template, so it stays under the new
    key. In a template, a null requests nothing.
    """
    return {name: amount for name, amount in limits.items() if amount is not None}


@all_rows("place", PLACES)
@all_rows(("value", "parsed"), CASES["parse"], ids=repr)
def test_values_of_gpu_are_parsed_as_in_the_table(value: object, parsed: object, place: str) -> None:
    answer, limits = review({"cpu": "1", "gpu": value}, place)
    expected = DIFFERS.get(repr(value), parsed)
    if expected == -1:
        assert answer == "400"
    elif place != "template" and str(value).strip() in NONE_OF_A_SHARD:
        assert (answer, limits) == ("allowed", {"cpu": "1", VENDOR: "0"})
    elif expected is None and not is_nothing(value):
        assert answer == "400"
    elif expected is None:
        assert (answer, without_nulls(limits)) == ("allowed" if value is None else "warned", {"cpu": "1"})
    else:
        assert (answer, limits) == ("allowed", {"cpu": "1", VENDOR: str(expected)})


TRANSLATE_DIFFERS = {
    # refused, because one of two contradicting counts would win without a message
    '{"gpu": "2", "nvidia.com/gpu": "4"}': "400",
    # a JSON number counts like a text
    '{"gpu": 2, "cpu": "1"}': {"cpu": "1", VENDOR: "2"},
    # the pod would run without a GPU
    **dict.fromkeys(
        (
            '{"cpu": "1", "gpu": "-1"}',
            '{"cpu": "1", "gpu": "bad"}',
            '{"cpu": "1", "gpu": ""}',
            '{"cpu": "1", "gpu": "1.5"}',
            '{"gpu": "bad", "nvidia.com/gpu": "4"}',
        ),
        "400",
    ),
}
SHARD_DIFFERS = {'{"cpu": "1", "gpu": "0"}': {"cpu": "1", VENDOR: "0"}}


@all_rows("place", PLACES)
@all_rows(("limits", "expected"), CASES["translate"], ids=json.dumps)
def test_translate_table(limits: dict, expected: object, place: str) -> None:
    expected = TRANSLATE_DIFFERS.get(
        json.dumps(limits), "400" if expected == "HTTP 400 INVALID_PARAMETER" else expected
    )
    if place != "template":
        expected = SHARD_DIFFERS.get(json.dumps(limits), expected)
    answer, after = review(limits, place)
    assert (answer if isinstance(expected, str) else without_nulls(after)) == expected
