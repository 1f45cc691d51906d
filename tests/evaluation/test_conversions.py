"""Objects are converted between versions as an API server converts them. tests/e2e/test_conversions.py compares with a
real API server.
"""

import json
from pathlib import Path

import pytest

from tests.dra_variants import claim, template
from tests.literals import policies, request, validating
from tests.rows import all_rows
from webhook import policy
from webhook.apimachinery.attributes import GroupVersionKind, GroupVersionResource, Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.evaluation.conversions import convert_to_version
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.policy.matching import Match

GROUP = "resource.k8s.io"
BASIC = {"attributes": {"model": {"string": "a100"}}, "capacity": {"memory": {"value": "40Gi"}}}


def match(kind, version, conversion="fields"):
    plural = f"{kind.lower()}s"
    return Match(GroupVersionResource(GROUP, version, plural), GroupVersionKind(GROUP, version, kind), conversion)


def converted(obj, version, conversion="fields"):
    return convert_to_version(obj, match(obj["kind"], version, conversion), Deadline())


def device_slice(version, *listed):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "ResourceSlice", "spec": {"driver": "d", "devices": [*listed]}}


NEW = {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}}
OLD = {"name": "a", "deviceClassName": "gpu", "count": 2}
EITHER = {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu"}]}
OLD_EITHER = {**EITHER, "deviceClassName": ""}
BOTH = {
    "a claim": (
        claim({"devices": {"requests": [NEW, EITHER]}}),
        claim({"devices": {"requests": [OLD, OLD_EITHER]}}, "v1beta1"),
    ),
    "a template": (
        template({"spec": {"devices": {"requests": [NEW]}}}),
        template({"spec": {"devices": {"requests": [OLD]}}}, "v1beta1"),
    ),
    "a slice": (
        device_slice("v1", {"name": "gpu-0", **BASIC}),
        device_slice("v1beta1", {"name": "gpu-0", "basic": BASIC}),
    ),
    "an empty object": (claim({}), claim({}, "v1beta1")),
    "values of other types": (
        claim({"devices": {"requests": [1, {"name": "a", "exactly": {"deviceClassName": "", "count": 1}}]}}),
        claim({"devices": {"requests": [1, {"name": "a", "deviceClassName": "", "count": 1}]}}, "v1beta1"),
    ),
    "a value that is not a list": (
        claim({"devices": {"requests": "x"}}),
        claim({"devices": {"requests": "x"}}, "v1beta1"),
    ),
    "an empty list": (claim({"devices": {"requests": []}}), claim({"devices": {"requests": []}}, "v1beta1")),
}


@all_rows(("new", "old"), BOTH.values(), ids=BOTH)
def test_v1_and_v1beta1_are_converted_both_ways(new, old):
    before = json.dumps([new, old])
    assert converted(new, "v1beta1") == old
    assert converted(old, "v1") == new
    assert json.dumps([new, old]) == before


def test_zeros_beside_a_name_become_no_exact_request():
    old = claim({"devices": {"requests": [{"name": "a", "deviceClassName": "", "count": 0, **EITHER}]}}, "v1beta1")
    assert converted(old, "v1")["spec"]["devices"]["requests"] == [EITHER | {"name": "b"}]


def test_only_the_version_changes_if_the_fields_are_the_same():
    assert converted(BOTH["a claim"][0], "v1beta2", "version") == {
        **BOTH["a claim"][0],
        "apiVersion": f"{GROUP}/v1beta2",
    }
    assert converted(BOTH["a claim"][0], "v1beta1", "impossible") == BOTH["a claim"][0]
    assert convert_to_version(None, match("ResourceClaim", "v1"), Deadline()) is None


def test_a_long_list_is_charged_to_the_deadline():
    long = claim({"devices": {"requests": [NEW] * 1_000}})
    with pytest.raises(BudgetExceeded):
        convert_to_version(long, match("ResourceClaim", "v1beta1"), Deadline(0.0, BudgetExceeded))


def test_each_resource_that_is_converted_field_by_field_has_its_conversion():
    rows = json.loads((Path(policy.__file__).parent / "equivalent_resources.json").read_text(encoding="utf-8"))
    for row in rows:
        if row["conversion"] == "fields":
            assert convert_to_version({}, match(row["kind"], "v1"), Deadline()) == {"apiVersion": f"{GROUP}/v1"}


def test_a_policy_for_v1beta1_sees_a_v1_claim_as_v1beta1():
    rule = {"apiGroups": [GROUP], "apiVersions": ["v1beta1"], "operations": ["*"], "resources": ["resourceclaims"]}
    text = "object.apiVersion + ' ' + object.spec.devices.requests.map(r, r.deviceClassName).join(' ')"
    found = policies(validating({"expression": "false", "messageExpression": text}, rule=rule))
    sent = request(claim({"devices": {"requests": [NEW, EITHER]}}))
    (decision,) = validating_decisions(request_context(found, sent, FilesCluster([])), Phase.VALIDATE)
    assert decision.message == "resource.k8s.io/v1beta1 gpu"
