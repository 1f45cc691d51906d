"""A thousand objects as people write them, judged by the same policies in an API server and by `claimgate test`.

The policies print each field of an object, or check it like those of a site. Objects that the API server itself refuses
are counted separately.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import trust
from tests.e2e.conftest import claimgate
from tests.e2e.hand_written import hand_written_objects, url_of_kind
from tests.e2e.seen_fields import judging_expressions, merged_shapes, policy_of_kind, printing_expressions
from tests.e2e.test_api_defaults import PLUGINS, comparable, differences
from tests.fuzz.live import warning_of_header
from tests.literals import OPTIONS
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.evaluation.review_options import ReviewOptions
from webhook.policy.load import load_documents
from webhook.policy.policy_set import PolicySet
from webhook.schema.api_defaults import with_api_defaults
from webhook.suites.files import Suite
from webhook.suites.own import request_of_case
from webhook.suites.suite_model import CaseModel
from webhook.suites.valid_objects import valid_objects
from webhook.yamltext.yamlfile import Document

pytestmark = pytest.mark.e2e
COUNT: Final = 1000
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_WARNED: Final = 9
"""The most failed validations of a request. An API server cuts warnings at 4,096 characters."""
_OWN: Final = "Validation failed for ValidatingAdmissionPolicy"


@dataclass(frozen=True, slots=True)
class Said:
    """The code and the text of a refusal, and the warnings of policies."""

    code: int
    message: str = ""
    warnings: tuple[str, ...] = ()


def _shape(kind: GroupVersionKind) -> JSON:
    """Return an object with all fields of a kind, except fields that depend on the strategy of a Job or DaemonSet."""
    objects = valid_objects()[kind]
    shape = merged_shapes(
        *(each for obj in (objects.full, objects.smallest) for each in (obj, with_api_defaults(obj, kind)))
    )
    if kind.kind == "Job":
        del shape["metadata"]["labels"], shape["spec"]["template"]["metadata"]["labels"]
    if kind.kind == "DaemonSet":
        del shape["metadata"]["annotations"]
    return shape


def policies_of(kind: GroupVersionKind) -> Mapping[str, list[dict[str, Any]]]:
    """Return the policies about a kind. The keys are the names of the objects to which the policies apply."""
    judging = [{"expression": each} for each in judging_expressions(kind.kind)]
    made = {f"prints-{number}": ([{"expression": "false", "messageExpression": each}], "Deny")
            for number, each in enumerate(printing_expressions(_shape(kind)))}  # fmt: skip
    made |= {"judges-in-order": (judging, "Deny"), "judges-backwards": (judging[::-1], "Deny")}
    made |= {f"warns-{at}": (judging[at : at + _WARNED], "Warn") for at in range(0, len(judging), _WARNED)}
    named = {f"{kind.kind.lower()}-{name}": each for name, each in made.items()}
    return {name: policy_of_kind(kind, name, rules, action) for name, (rules, action) in named.items() if rules}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder: Path = tmp_path_factory.mktemp("hand-written")
    with apiserver.running(folder, f"--disable-admission-plugins={PLUGINS}") as server:
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(verify=trust(server), headers=headers, base_url=server.url, timeout=60) as made:
            for each in _all_policies():
                plural = each["kind"].lower().removesuffix("y") + ("ies" if each["kind"].endswith("y") else "s")
                answer = made.post(f"{_ADMISSION}/{plural}", json=each)
                assert answer.status_code == httpx.codes.CREATED, answer.text
            _wait_until_active(made)
            yield made


def _all_policies() -> Iterator[dict[str, Any]]:
    for kind in valid_objects():
        for made in policies_of(kind).values():
            yield from made
    config_map = GroupVersionKind("", "v1", "ConfigMap")
    yield from policy_of_kind(config_map, "last", [{"expression": "false"}], "Deny")


def _wait_until_active(client: httpx.Client) -> None:
    last = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"}}
    end = time.monotonic() + apiserver.PATIENCE_S
    while _asked(client, GroupVersionKind("", "v1", "ConfigMap"), last).code == httpx.codes.CREATED:
        assert time.monotonic() < end
        time.sleep(0.1)


def _posted(client: httpx.Client, kind: GroupVersionKind, obj: JSON) -> httpx.Response:
    options = {"dryRun": "All", "fieldValidation": "Ignore"}
    return client.post(url_of_kind(kind), params=options, json=obj)


def _asked(client: httpx.Client, kind: GroupVersionKind, obj: JSON) -> Said:
    answer = _posted(client, kind, obj)
    warnings = sorted(each for each in map(warning_of_header, answer.headers.get_list("warning")) if _OWN in each)
    refused = "" if answer.status_code == httpx.codes.CREATED else answer.json()["message"]
    return Said(answer.status_code, refused, tuple(warnings))


def _own(policies: PolicySet, obj: JSON) -> Said:
    """Return the answer of `claimgate test` to a case with the object, in the form of an API server's answer."""
    case = CaseModel.model_validate({"name": "case", "input": obj, "expect": {"allowed": True}}, by_alias=True)
    request = request_of_case(case, Suite(file=Path("suite.yaml"), root=Path()), lambda: policies, OPTIONS)
    door = LocalAnswerer(policies=policies, cluster=FilesCluster(()), options=ReviewOptions(api_server_text=True))
    verdict = run_phases(request.attributes, "auto", door).verdict
    said = verdict.status
    refused = (said.code, said.message) if said and not verdict.allowed else (httpx.codes.CREATED, "")
    return Said(*refused, tuple(sorted(verdict.warnings)))


def _named(obj: JSON, name: str) -> JSON:
    return {**obj, "metadata": {**obj["metadata"], "name": name}}


@pytest.fixture(scope="module")
def accepted(client: httpx.Client) -> list[tuple[GroupVersionKind, JSON]]:
    """Return objects that the API server accepts. `claimgate test` must give each object the same form as the API
    server.
    """
    made: list[tuple[GroupVersionKind, JSON]] = []
    refused, different = Counter[tuple[int, bool]](), []
    seed = 0
    while len(made) < COUNT:
        seed += 1
        for kind, obj in hand_written_objects(seed):
            answer = _posted(client, kind, obj)
            case = CaseModel.model_validate({"name": "case", "input": obj, "expect": {"allowed": True}}, by_alias=True)
            suite = Suite(file=Path("suite.yaml"), root=Path())
            ours = request_of_case(case, suite, lambda: load_documents([], OPTIONS), OPTIONS).attributes
            if answer.status_code == httpx.codes.CREATED:
                found = [*differences(comparable(ours.object), comparable(answer.json()))]
                different += [(seed, kind.kind, found, json.dumps(obj))] if found else []
                made.append((kind, obj))
            else:
                refused[answer.status_code, ours.is_decoded] += 1
                is_unreadable = answer.status_code == httpx.codes.BAD_REQUEST
                assert ours.is_decoded is not is_unreadable, (seed, answer.text, json.dumps(obj))
    for each in different:
        print(each[:3])
    assert different[:2] == [], len(different)
    print(f"accepted {len(made)}, refused by the API server itself (code, is_decoded): {dict(refused)}")
    assert len({kind for kind, _ in made}) == len(valid_objects())
    return made


def test_the_same_policies_give_the_same_answers(
    client: httpx.Client, accepted: list[tuple[GroupVersionKind, JSON]]
) -> None:
    policies = {kind: policies_of(kind) for kind in valid_objects()}
    loaded = {
        kind: load_documents([Document(each) for made in by_name.values() for each in made], OPTIONS)
        for kind, by_name in policies.items()
    }
    different, compared = [], Counter[str]()
    for kind, obj in accepted:
        for name in policies[kind]:
            named = _named(obj, name)
            theirs, ours = _asked(client, kind, named), _own(loaded[kind], named)
            compared["denied" if theirs.message else "warned" if theirs.warnings else "allowed"] += 1
            if ours != theirs:
                different.append((name, ours, theirs, obj))
    print(dict(compared))
    assert different[:3] == []
    assert min(compared.values()) > COUNT // 2, compared


def test_a_suite_may_expect_the_answers_of_the_api_server(
    client: httpx.Client, accepted: list[tuple[GroupVersionKind, JSON]], tmp_path: Path
) -> None:
    cases = []
    for number, (kind, obj) in enumerate(accepted[:: COUNT // 100]):
        named = _named(obj, f"{kind.kind.lower()}-judges-in-order")
        said = _asked(client, kind, named)
        text = said.message.partition("denied request: ")[2]
        expect = {"allowed": False, "code": said.code, "message": text} if said.message else {"allowed": True}
        cases.append({"name": f"case {number}", "input": named, "expect": expect})
    kinds = {kind for kind, _ in accepted}
    policies = [each for kind in kinds for made in policies_of(kind).values() for each in made]
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all(policies))
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump({"cases": cases}))
    assert f"{len(cases)} passed" in claimgate("test", str(tmp_path))
