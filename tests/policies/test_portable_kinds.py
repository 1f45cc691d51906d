"""`gpu` is translated in every pod template of every kind of the workload table."""

from __future__ import annotations

import pytest

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import JSON, Operation
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.workloads.podsets import pod_templates
from webhook.workloads.rows import PodSetRule, Row

POLICIES = shipped_policies("gpu-portable", "opensandbox")
TEMPLATES = [
    pytest.param(row, version, rule, id=f"{row.group}/{version} {row.kind} {rule.template or 'itself'}")
    for row in TABLE.rows
    for version in row.versions
    for rule in row.podSets
]
PATCHES = {
    # kind -> containers of partial pod templates; those of a TrainJob's runtimePatches have no resources in the CRD
    ("flow.volcano.sh", "JobFlow"): "spec.flows[].patch.jobSpec.tasks[].template.spec.containers[].resources",
    ("apps.kruise.io", "UnitedDeployment"): "spec.topology.subsets[].patch.spec.containers[].resources",
    ("sandbox.opensandbox.io", "BatchSandbox"): "spec.shardPatches[].spec.containers[].resources",
    ("workloads.x-k8s.io", "RoleBasedGroup"): (
        "spec.roles[].leaderWorkerPattern.workerTemplatePatch.spec.containers[].resources"
    ),
    ("workloads.x-k8s.io", "RoleBasedGroupSet"): (
        "spec.groupTemplate.spec.roles[].standalonePattern.templateRef.patch.spec.containers[].resources"
    ),
}
OWN_FORM = {
    # operators create the containers of these kinds from amounts without resource names
    ("apps.nvidia.com", "NIMCache"),
    ("kubeai.org", "Model"),
    ("production-stack.vllm.ai", "CacheServer"),
    ("production-stack.vllm.ai", "VLLMRouter"),
    ("production-stack.vllm.ai", "VLLMRuntime"),
}
OUTSIDE = [
    # (group, kind), with the places of resources outside a pod template
    *(
        ((row.group, row.kind), rule.path.replace("{}", ".model"))
        for row in TABLE.rows
        for rule in row.resources
        if rule.holds == "resources"
    ),
    (("trainer.kubeflow.org", "OptimizationJob"), "spec.trainJobTemplate.spec.trainer.resourcesPerNode"),
    *PATCHES.items(),
]


def resources(gpu: JSON) -> JSON:
    return {"limits": {"cpu": "1", "gpu": gpu}}


def pod_spec(gpu: JSON) -> JSON:
    return {
        "containers": [{"name": "main", "image": "x", "resources": resources(gpu)}],
        "initContainers": [{"name": "init", "image": "x", "resources": resources(gpu)}],
    }


def embedded(rule: PodSetRule, gpu: JSON) -> JSON:
    if rule.embeds == "podSpec":
        return pod_spec(gpu)
    if rule.embeds == "object":
        return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod_spec(gpu)}}}
    return {"spec": pod_spec(gpu)}


def planted(path: str, value: JSON) -> JSON:
    """Return an object with the value at a path: `a.b[].c` gives {a: {b: [{c: value}]}}. `{}` is a key."""
    head, _, rest = path.partition(".")
    inner = planted(rest, value) if rest else value
    if head.endswith("[]"):
        return {head[:-2]: [{"name": "one", **inner} if isinstance(inner, dict) and rest else inner]}
    if head.endswith("{}"):
        return {head[:-2]: {"Worker": inner}}
    return {head: inner}


def merged(left: JSON, right: JSON) -> JSON:
    return {**left, **{k: merged(left[k], v) if isinstance(left.get(k), dict) else v for k, v in right.items()}}


def workload(row: Row, version: str, rule: PodSetRule, gpu: JSON) -> JSON:
    obj = {
        "apiVersion": f"{row.group}/{version}".removeprefix("/"),
        "kind": row.kind,
        "metadata": {"name": "x", **({"namespace": "team-a"} if row.namespaced else {})},
    }
    if rule.when and not rule.when.startswith(rule.template):  # the rule applies only if this other field is set
        obj = merged(obj, planted(rule.when, {"spec": {"containers": [{"name": "other", "image": "x"}]}}))
    return merged(obj, planted(rule.template, embedded(rule, gpu)) if rule.template else embedded(rule, gpu))


def answer(obj: JSON, before: JSON = None) -> PhasesOutcome:
    """Return the answer to a creation. With `before`, return the answer to an update that changes a value."""
    operation = Operation.CREATE if before is None else Operation.UPDATE
    attributes = fixtures.attributes_of_object(obj, TABLE.row, operation=operation, old_object=before)
    return run_phases(
        attributes, "auto", LocalAnswerer(policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster()))
    )


@all_rows(("row", "version", "rule"), TEMPLATES)
def test_every_container_is_translated(row: Row, version: str, rule: PodSetRule) -> None:
    obj = workload(row, version, rule, 2)
    outcome = answer(obj)
    assert outcome.verdict.allowed, outcome.verdict.status
    before = [podset for podset in pod_templates(obj, TABLE) if "initContainers" in podset.template["spec"]]
    after = [
        podset for podset in pod_templates(outcome.patched_object, TABLE) if "initContainers" in podset.template["spec"]
    ]
    assert before
    assert len(after) == len(before)
    for podset in after:
        for name in ("containers", "initContainers"):
            limits = [container["resources"]["limits"] for container in podset.template["spec"][name]]
            assert limits == [{"cpu": "1", "nvidia.com/gpu": "2"}], podset.path


@all_rows(("row", "version", "rule"), TEMPLATES)
def test_gpu_all_is_denied_with_its_place(row: Row, version: str, rule: PodSetRule) -> None:
    status = answer(workload(row, version, rule, "all")).verdict.status
    assert status is not None
    assert status.code == 400
    where = (rule.template or "").partition("[]")[0].partition("{}")[0]
    assert status.message.startswith(where)
    assert "containers[0].resources.limits.gpu: `all` is not allowed" in status.message


def outside(kind: tuple[str, str], path: str, gpu: JSON) -> JSON:
    row = TABLE.row(*kind)
    assert row is not None
    metadata = {"name": "x", "namespace": "team-a"}
    obj = {"apiVersion": f"{row.group}/{row.versions[0]}", "kind": row.kind, "metadata": metadata}
    template = {"spec": {"containers": [{"name": "one", "image": "x"}]}}
    beneath = {"spec": {"template": template}} if row.kind == "BatchSandbox" else {}
    return merged(merged(obj, beneath), planted(path, resources(gpu)))


def wrapped(obj: JSON) -> JSON:
    metadata = {"name": "wrapper", "namespace": "team-a"}
    spec = {"components": [{"template": {**obj, "metadata": {"name": "x"}}}]}
    return {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": metadata, "spec": spec}


def reached(obj: JSON, path: str) -> JSON:
    for step in path.replace("[]", ".0").split("."):
        obj = obj[int(step)] if step.isdecimal() else obj[step]
    return obj


@all_rows("operation", [Operation.CREATE, Operation.UPDATE])
@all_rows("around", ["", "AppWrapper"])
@all_rows(("kind", "path"), OUTSIDE, ids=str)
def test_requests_outside_templates_are_translated(
    kind: tuple[str, str], path: str, around: str, operation: Operation
) -> None:
    obj, before = outside(kind, path, 1), outside(kind, path, None)
    if around:
        obj, before, path = wrapped(obj), wrapped(before), f"spec.components[].template.{path}"
    outcome = answer(obj, before if operation is Operation.UPDATE else None)
    assert outcome.verdict.allowed, outcome.verdict.status
    assert reached(outcome.patched_object, path) == {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}


@all_rows(("kind", "path"), OUTSIDE, ids=str)
def test_a_stored_value_that_does_not_change_is_not_translated(kind: tuple[str, str], path: str) -> None:
    """A stored object keeps its value, because the field may be immutable."""
    obj = outside(kind, path, 1)
    outcome = answer(merged(obj, {"metadata": {"labels": {"a": "b"}}}), obj)
    assert outcome.verdict.allowed
    assert reached(outcome.patched_object, path) == {"limits": {"cpu": "1", "gpu": 1}}


@all_rows(("row", "version", "rule"), TEMPLATES)
def test_a_template_that_changes_is_translated(row: Row, version: str, rule: PodSetRule) -> None:
    obj = workload(row, version, rule, 2)
    outcome = answer(obj, workload(row, version, rule, None))
    assert outcome.verdict.allowed, outcome.verdict.status
    said = str(outcome.patched_object)
    assert ("nvidia.com/gpu" in said, "'gpu'" in said) == ((False, True) if row.kind == "Pod" else (True, False))


def test_every_row_is_translated_somewhere() -> None:
    """Each row has pod templates, resources, or objects with other rows. Kinds without these are listed in a constant
    above.
    """
    for row in TABLE.rows:
        kind = (row.group, row.kind)
        assert row.podSets or row.resources or row.objects or kind in PATCHES or kind in OWN_FORM, kind
        assert not row.fragments or row.group == "trainer.kubeflow.org" or kind in PATCHES, kind
