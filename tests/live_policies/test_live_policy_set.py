"""The server serves policies from files and stored policies as one set. A change of one kind removes no policy of the
other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live_policies.stored import OPTIONS, binding, compiler, policy
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import (
    JSON,
    POD,
    Attributes,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
    Phase,
)
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.input.reload import ReloadableValue, create_file_state_function
from webhook.live_policies.live_policy_set import LivePolicySet
from webhook.live_policies.objects import StoredPolicies
from webhook.policy.load import load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.yamltext.yamlfile import Document

FILE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: of-a-file}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "true"}]
"""
PODS = GroupVersionResource("", "v1", "pods")


class Stored:
    """A view of objects that the test changes. With `is_away`, every list fails."""

    def __init__(self, *values: dict[str, Any]) -> None:
        self.is_away = False
        self.put(*values)

    def put(self, *values: dict[str, Any]) -> None:
        self.held = FilesCluster([Document(value, "") for value in values], is_whole=True)

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Any:
        if self.is_away:
            raise LookupFailed(f"{gvk.kind}: not synced yet")
        return self.held.list(gvk, namespace, labels)

    def revision(self, gvk: GroupVersionKind) -> object:
        return self.held, self.is_away, gvk

    def is_synced(self, gvk: GroupVersionKind) -> bool:
        return self.held.is_synced(gvk)


class NoWrites:
    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        raise AssertionError((path, body, manager, read_s))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(FILE)
    return tmp_path


def live_set(folder: Path, view: Stored) -> LivePolicySet:
    def make() -> PolicySet:
        return load_policy_set([folder], OPTIONS)

    files: ReloadableValue[PolicySet] = ReloadableValue(
        make, create_file_state_function(lambda: sorted(folder.iterdir()))
    )
    return LivePolicySet(files, StoredPolicies(view), NoWrites(), compiler())  # type: ignore[arg-type]


def names(found: LivePolicySet) -> list[str]:
    return [each.name for each in found.current.policies]


def verdict(found: LivePolicySet) -> Verdict:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": []}}
    request = Attributes(
        uid="u",
        kind=POD,
        resource=PODS,
        operation=Operation.CREATE,
        request_kind=POD,
        request_resource=PODS,
        namespace="n",
        name="p",
        object=pod,
    )
    return answer_request(request, found.current, FilesCluster([], is_whole=False), phase=Phase.VALIDATE)


def test_stored_objects_come_and_go(folder: Path) -> None:
    view = Stored()
    found = live_set(folder, view)
    assert (names(found), found.poll()) == (["of-a-file"], False)
    view.put(policy("p", "false"), binding("p", "p"))
    assert (found.poll(), names(found)) == (True, ["of-a-file", "p"])
    assert not verdict(found).allowed
    view.put()
    assert (found.poll(), names(found)) == (True, ["of-a-file"])
    assert verdict(found).allowed


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_a_broken_policy_decides_nothing(folder: Path, failure_policy: str) -> None:
    found = live_set(folder, Stored(policy("p", "nonsense", failurePolicy=failure_policy), binding("p", "p")))
    assert verdict(found).allowed
    assert found.describe_problems() == "with errors: ValidatingPolicy/p"


def test_the_last_valid_spec_in_the_status_stays_in_force(folder: Path) -> None:
    broken, last = policy("p", "nonsense"), policy("p", "false")["spec"]
    broken["metadata"]["generation"] = 2
    view = Stored(broken, binding("p", "p"))
    found = live_set(folder, view)
    assert verdict(found).allowed
    view.put({**broken, "status": {"lastCompiled": {"generation": 1, "spec": json.dumps(last)}}}, binding("p", "p"))
    assert (found.poll(), verdict(found).allowed) == (True, False)
    assert found.describe_problems() == "with errors: ValidatingPolicy/p"


def asked_to_store(found: LivePolicySet, new: JSON, old: JSON = None) -> str:
    kind = GroupVersionKind("claimgate.dev", "v1alpha1", new["kind"])
    names = GroupVersionResource("claimgate.dev", "v1alpha1", "validatingpolicies")
    request = Attributes(
        uid="u",
        kind=kind,
        resource=names,
        operation=Operation.UPDATE if old else Operation.CREATE,
        request_kind=kind,
        request_resource=names,
        name="p",
        object=new,
        old_object=old,
    )
    refused = found.explain_refusal(request, Deadline())
    return refused.message if refused else ""


def test_a_broken_policy_is_refused_before_it_is_stored(folder: Path) -> None:
    found = live_set(folder, Stored())
    broken = policy("p", "nonsense")
    assert "spec.validations[0].expression" in asked_to_store(found, broken)
    assert "spec.validations[0].expression" in asked_to_store(found, broken, policy("p"))
    assert asked_to_store(found, policy("p"), broken) == asked_to_store(found, binding("b", "none")) == ""
    assert asked_to_store(found, {**broken, "metadata": {"name": "p", "labels": {"a": "b"}}}, broken) == ""


def test_broken_files_do_not_keep_stored_objects_out(folder: Path) -> None:
    view = Stored()
    found = live_set(folder, view)
    (folder / "policy.yaml").write_text("nonsense")
    assert [found.poll(), found.poll()] == [False, True]
    assert found.error
    view.put(policy("p"))
    assert (found.poll(), names(found)) == (True, ["of-a-file", "p"])
    (folder / "policy.yaml").write_text(FILE.replace("of-a-file", "renamed"))
    assert [found.poll(), found.poll()] == [False, True]
    assert (found.error, names(found)) == ("", ["p", "renamed"])


def test_an_unreachable_api_server_removes_no_policies(folder: Path) -> None:
    view = Stored(policy("p"))
    found = live_set(folder, view)
    view.is_away = True
    assert (found.poll(), names(found), found.explain_missing_policy_list()) == (False, ["of-a-file", "p"], "")


def test_a_server_that_never_read_the_stored_policies_is_not_ready(folder: Path) -> None:
    view = Stored(policy("p"))
    view.is_away = True
    found = live_set(folder, view)
    assert "not synced yet" in found.explain_missing_policy_list()
    view.is_away = False
    assert (found.poll(), found.explain_missing_policy_list(), names(found)) == (True, "", ["of-a-file", "p"])


def test_a_change_of_only_the_status_creates_no_new_policy_set(folder: Path) -> None:
    view = Stored(policy("p"))
    found = live_set(folder, view)
    before = found.current
    view.put({**policy("p"), "status": {"conditions": []}})
    assert (found.poll(), found.current) == (False, before)
