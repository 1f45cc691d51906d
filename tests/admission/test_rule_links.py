"""Denials and warnings link to the documentation that a site has published: pages of rules, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.literals import pod, request
from webhook.admission.respond import with_docs_links
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.review_options import ReviewOptions
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import DenialStatus, Verdict
from webhook.workloads import table

ADDRESS = "https://docs.example.com/claimgate/"
PAGE = "https://docs.example.com/claimgate/rules/pod-resources/#pod-resourceswhole-number"
DENIALS = "https://docs.example.com/claimgate/denials/"
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
    assert status.message.endswith(f"(pod-resources/whole-number, {PAGE}); what to do: {DENIALS}")
    assert status.details.causes[0].message.endswith(
        f"(claimgate: pod-resources/whole-number, {PAGE}); what to do: {DENIALS}"
    ), "kubectl shows the causes alone if the reason is Invalid"
    assert status.details.causes[0].reason == "pod-resources/whole-number"


@pytest.mark.parametrize(
    ("message", "linked"),
    [
        ("spec: wrong (policy mine)", f"spec: wrong (policy mine); what to do: {DENIALS}"),
        ("2 problems:\n* a\n* b", f"2 problems:\n* a\n* b\nwhat to do: {DENIALS}"),
    ],
    ids=["a denial of a policy of the site", "a denial with several lines"],
)
def test_every_denial_ends_with_what_to_do(policies: PolicySet, message: str, linked: str) -> None:
    told = Verdict(allowed=False, status=DenialStatus(code=422, reason="Invalid", message=message))
    status = with_docs_links(told, policies, ADDRESS).status
    assert status is not None
    assert status.message == linked


def test_the_page_of_what_to_do_is_a_page_of_the_documentation() -> None:
    assert (Path(__file__).parents[2] / "docs" / f"{Path(DENIALS).name}.md").is_file()


def test_a_warning_links(policies: PolicySet) -> None:
    (warning,) = _answer(policies, docs_address=ADDRESS, enforcement_action="warn").warnings
    assert warning.endswith(f"(pod-resources/whole-number, {PAGE})")


def test_without_an_address_no_message_has_a_link(policies: PolicySet) -> None:
    status = _answer(policies).status
    assert status is not None
    assert "http" not in status.message


def test_findings_of_other_policies_get_no_link(policies: PolicySet) -> None:
    told = Verdict(allowed=True, warnings=("spec: wrong (policy mine)", "spec: wrong (mine/rule)", "spec: (a", ""))
    assert with_docs_links(told, policies, ADDRESS) == told


def test_warnings_that_the_api_server_would_cut_stay_as_they_are(policies: PolicySet) -> None:
    many = tuple(f"{number} {'x' * 60} (pod-resources/whole-number)" for number in range(40))
    told = Verdict(allowed=True, warnings=many)
    assert with_docs_links(told, policies, ADDRESS) == told
    few = with_docs_links(replace(told, warnings=many[:3]), policies, ADDRESS)
    assert all(each.endswith(f", {PAGE})") for each in few.warnings)
