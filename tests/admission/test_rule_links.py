"""Denials and warnings name the pages of rules where a site has published the documentation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.literals import pod, request
from webhook.admission.respond import with_rule_links
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.review_options import ReviewOptions
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.workloads import table

ADDRESS = "https://docs.example.com/claimgate/"
PAGE = "https://docs.example.com/claimgate/rules/pod-resources/#pod-resourceswhole-number"
HALF = {"limits": {"nvidia.com/gpu": "500m"}}


@pytest.fixture(scope="module")
def policies() -> PolicySet:
    return load_policy_set([shipped.policies_folder()], Options(table=table.load_table()))


def _answer(policies: PolicySet, **options: object) -> Verdict:
    obj = pod(containers=[{"name": "a", "image": "a", "resources": HALF}])
    told = ReviewOptions(**options)  # type: ignore[arg-type]
    return answer_request(request(obj), policies, FilesCluster(()), phase=Phase.VALIDATE, options=told)


def test_a_denial_links_in_its_message_and_in_each_cause(policies: PolicySet) -> None:
    status = _answer(policies, docs_address=ADDRESS).status
    assert status is not None
    assert status.details is not None
    assert status.message.endswith(f"(pod-resources/whole-number, {PAGE})")
    assert status.details.causes[0].message.endswith(f"(claimgate: pod-resources/whole-number, {PAGE})")
    assert status.details.causes[0].reason == "pod-resources/whole-number"


def test_a_warning_links(policies: PolicySet) -> None:
    (warning,) = _answer(policies, docs_address=ADDRESS, enforcement_action="warn").warnings
    assert warning.endswith(f"(pod-resources/whole-number, {PAGE})")


def test_without_an_address_nothing_links(policies: PolicySet) -> None:
    status = _answer(policies).status
    assert status is not None
    assert "http" not in status.message


def test_what_no_shipped_check_finds_has_no_page(policies: PolicySet) -> None:
    told = Verdict(allowed=True, warnings=("spec: wrong (policy mine)", "spec: wrong (mine/rule)", "spec: (a", ""))
    assert with_rule_links(told, policies, ADDRESS) == told


def test_warnings_that_the_api_server_would_cut_stay_as_they_are(policies: PolicySet) -> None:
    many = tuple(f"{number} {'x' * 60} (pod-resources/whole-number)" for number in range(40))
    told = Verdict(allowed=True, warnings=many)
    assert with_rule_links(told, policies, ADDRESS) == told
    few = with_rule_links(replace(told, warnings=many[:3]), policies, ADDRESS)
    assert all(each.endswith(f", {PAGE})") for each in few.warnings)
