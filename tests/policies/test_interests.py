"""A view with only the declared objects of the shipped policies gives the same verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.literals import TABLE, shipped_policies
from tests.policies.test_suites import FOLDERS, cases
from webhook.apimachinery.attributes import CRD, JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.cluster.interest import Interest
from webhook.cluster.lookup import namespace_and_name
from webhook.cluster.naming import group_kind
from webhook.cluster.packed import projection_of_fields
from webhook.facts.subject import SHIPPED
from webhook.policy.policy_set import PolicySet
from webhook.suites import own
from webhook.suites.case import Case, Request, answer_of_case
from webhook.suites.expectation import Expectation
from webhook.workloads.podsets import pod_templates

SCHEDULING = "scheduling.volcano.sh"
CRD_KIND = (CRD.group, CRD.kind)
SIGNS_IN_FILES = {
    ("apps", "Deployment"),
    ("autoscaling.openshift.io", "MachineAutoscaler"),
    ("cluster.x-k8s.io", "MachineDeployment"),
    ("karpenter.sh", "NodePool"),
}
"""Objects of files that show that nodes may be added. A live view uses the labels of nodes instead."""
CLUSTERS_IN_FILES = {
    ("eksctl.io", "ClusterConfig"),
    ("k3d.io", "Simple"),
    ("kind.sigs.k8s.io", "Cluster"),
    ("kind.x-k8s.io", "Cluster"),
    ("kops.k8s.io", "Cluster"),
    ("kubeadm.k8s.io", "ClusterConfiguration"),
    ("kubeadm.k8s.io", "MasterConfiguration"),
    ("kubekey.kubesphere.io", "Cluster"),
    ("provisioning.cattle.io", "Cluster"),
}
"""Objects of files that create a cluster with a release of Kubernetes. A live view is a view of one cluster."""
CONFIGURATION_IN_FILES = {("", "Secret"), ("bitnami.com", "SealedSecret")}
"""Objects of files that show which Secrets a pod has. A live view holds no Secret."""
DEVICES_IN_FILES = {
    ("nvidia.com", "ClusterPolicy"),
    ("deviceplugin.intel.com", "GpuDevicePlugin"),
    ("karpenter.k8s.aws", "EC2NodeClass"),
    ("operator.knative.dev", "KnativeServing"),
    ("", "ConfigMap"),
    ("", "PersistentVolume"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
}
"""Objects of files about sharing of devices, classes of nodes, volumes, configurations of device plugins and model
servers, pods of budgets and autoscalers, settings of Knative, and fields of custom kinds. A live view does not have
them, so look-ups fail and the rules report nothing (docs/shared-gpus.md)."""


def cut(objects: Iterable[JSON], interests: Iterable[Interest]) -> Iterator[JSON]:
    """Yield the objects that a live view would hold, with only their fields that it would hold."""
    for found in (each for value in objects for _, each in objects_of_list(value)):
        group, slash, _ = found["apiVersion"].partition("/")
        kind, (namespace, name) = (group if slash else "", found["kind"]), namespace_and_name(found)
        if kind in SIGNS_IN_FILES | DEVICES_IN_FILES | CLUSTERS_IN_FILES | CONFIGURATION_IN_FILES:
            yield found
            continue
        for interest in interests:
            if interest.kind == kind and interest.includes(namespace or "default", name):
                yield projection_of_fields(interest.fields)(found)
                break


def test_kinds_are_known_without_an_import_of_checks() -> None:
    loaded = shipped_policies()
    kinds = {each.kind for each in loaded.interests(of_audits=True)}
    assert loaded.kinds_looked_up() == kinds | kinds_in_files(loaded)


def test_a_server_does_not_hold_workloads_for_advice() -> None:
    scaled = {("apps", "Deployment"), ("apps", "StatefulSet")}
    of_server, of_audits = (
        {each.kind for each in shipped_policies().interests(of_audits=of_audits) if not each.scope.name}
        for of_audits in (False, True)
    )
    assert not scaled & of_server
    assert scaled <= of_audits


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_verdict_needs_only_the_declared_interests(folder: Path) -> None:
    differs = {case.id: said for case in cases(folder) if (said := differences(case))}
    assert differs == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_audit_of_one_folder_of_policies_needs_only_the_declared_kinds(folder: Path) -> None:
    """An audit of files keeps only objects of these kinds. If a check reads another kind, name the kind in `lookups` of
    the check, in `lookups_of_audits`, or in `kinds_in_files` if a live view does not have the kind.
    """
    differs = {case.id: said for case in cases(folder) if (said := differences(case, of_declared_kinds))}
    assert differs == {}


def of_declared_kinds(asked: Request) -> Iterator[JSON]:
    """Yield the objects of the context that an audit of files keeps for look-ups of these policies."""
    interests, in_files = asked.policies.interests(of_audits=True), {CRD_KIND, *kinds_in_files(asked.policies)}
    for found in (each for value in asked.context for _, each in objects_of_list(value)):
        kind, place = group_kind(found), namespace_and_name(found)
        is_of_gang = "group-name" in json.dumps(found)  # kept for the number of pods in a gang
        if kind in in_files or is_of_gang or any(is_of(interest, kind, *place) for interest in interests):
            yield found


def is_of(interest: Interest, kind: tuple[str, str], namespace: str, name: str) -> bool:
    return interest.kind == kind and interest.includes(namespace or "default", name)


def kinds_in_files(loaded: PolicySet) -> set[tuple[str, str]]:
    """Return the kinds that the checks of the policies look up only in files."""
    groups = {group for policy in loaded.policies for group in policy.checks}
    return {kind for group in groups for check in SHIPPED.checks(group) for kind in check.kinds_in_files}


def declared(asked: Request) -> Iterator[JSON]:
    """Yield the objects of the context that a live view would hold, and objects that only files have."""
    yield from cut(asked.context, asked.policies.interests())
    yield from counted_in_files_alone(asked)


def differences(case: Case, hold: Callable[[Request], Iterable[JSON]] = declared) -> Sequence[object]:
    asked = own.request_of_case(*case.mismatches.args)
    held = tuple(hold(asked))
    expected = case.mismatches.args[0].expect
    return Expectation(**expected.model_dump()).judge(answer_of_case(replace(asked, context=held)))


def counted_in_files_alone(asked: Request) -> Iterator[JSON]:
    """Yield the context of a case that is only read from files: objects that create pods, and definitions."""
    if asked.attributes.kind.group in ("kubeflow.org", "trainer.kubeflow.org"):
        yield from (each for each in asked.context if each.get("kind") == CRD.kind)
    if (asked.attributes.kind.group, asked.attributes.kind.kind) in ((SCHEDULING, "PodGroup"), ("", "Pod")):
        yield from (each for each in asked.context if pod_templates(each, TABLE))


def test_a_heartbeat_of_a_node_changes_no_held_object() -> None:
    (nodes,) = [each for each in shipped_policies().interests() if each.kind == ("", "Node")]
    project = projection_of_fields(nodes.fields)

    def node(minute: int) -> JSON:
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-11-28T10:{minute}:00Z"}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [ready]}}

    assert project(node(10)) == project(node(15))
    assert project(node(10))["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
