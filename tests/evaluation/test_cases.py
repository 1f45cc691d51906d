"""Every recorded policy case gets the recorded answer."""

import json
from pathlib import Path

import pytest

from webhook.policy.load import Options, refusal_of_manifest
from webhook.suites.recorded import RecordedCase, mismatches
from webhook.workloads import table

DATA = Path(__file__).parent.parent / "data" / "policies"
SUITES = {
    "apiserver-oracle": 137,
    "dra-admission": 9,
    "kubescape-cel-admission-library": 628,
    "kyverno-cli-map": 17,
    "kyverno-cli-vap": 30,
    "recorded": 171,
}


@pytest.fixture(scope="module")
def options():
    return Options(table=table.load_table())


def cases(suite):
    lines = (DATA / f"{suite}.cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [RecordedCase(json.loads(line)) for line in lines]


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_has_its_recorded_answer(suite, options):
    found = cases(suite)
    assert len(found) == SUITES[suite]
    assert {case.id: wrong for case in found if (wrong := mismatches(case, options))} == {}


WRONG = {
    "allowed": True,
    "code": 409,
    "reason": "Conflict",
    "message": "other",
    "warnings": ["other"],
    "auditAnnotations": {"v/other": "x"},
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_expectation_is_found(key, options):
    """One field of the expected answer is wrong. The comparison reports only this field."""
    case = next(case for case in cases("apiserver-oracle") if case.id == "oracle/reason-Forbidden")
    changed = RecordedCase({**case.value, "expect": {**case.value["expect"], key: WRONG[key]}})
    assert [text.partition(":")[0] for text in mismatches(changed, options)] == [key]


def test_a_wrong_patched_object_and_a_wrong_refusal_are_found(options):
    by_id = {case.id: case for case in cases("apiserver-oracle")}
    patched = json.loads(json.dumps(by_id["oracle/jp-append"].value))
    patched["expect"]["patchedObject"]["spec"]["containers"][1]["image"] = "other"
    assert mismatches(RecordedCase(patched), options)[0].startswith("patchedObject")
    refused = json.loads(json.dumps(by_id["oracle/bind-macro"].value))
    refused["expect"]["policyRefused"] += "."
    assert mismatches(RecordedCase(refused), options)[0].startswith("policyRefused")


def refusals():
    lines = (DATA / "refusals.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_manifests_are_refused_as_the_api_server_refuses_them(options):
    """The expected message is the one of kube-apiserver 1.36.1 for a POST with dryRun=All; "" if the manifest is
    accepted.
    """
    wrong = {}
    for each in refusals():
        found = refusal_of_manifest(each["manifest"], options)
        if found != each["refusal"]:
            wrong[json.dumps(each["manifest"]["spec"])] = (each["refusal"], found)
    assert wrong == {}
