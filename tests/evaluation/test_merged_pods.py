"""`expand: pods` also covers pods that are not a template of the object, such as the pods of a TrainJob. It reports
pods that it cannot read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.literals import TABLE, mutating, namespace, policies, request, validating
from webhook.apimachinery.attributes import JSON, NOBODY, Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.facts.pods.unread_pods import has_pods_in_parts

EXPAND = {"expand": "pods"}
GPUS = "object.spec.containers.all(c, quantity(c.resources.limits['nvidia.com/gpu']).compareTo(quantity('4')) <= 0)"
AT_MOST_4 = validating({"expression": GPUS, "message": "at most 4 GPUs in a pod"}, annotations=EXPAND)
AT_PATH = {
    "expression": GPUS,
    "message": "spec.containers[0].resources.limits[nvidia.com/gpu]: must be at most 4",
}


def runtime(**container: Any) -> JSON:
    template = {"spec": {"containers": [{"name": "node", "image": "torch:1", **container}]}}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    node = {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": template}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "ours"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [node]}}},
    }


def train_job(**spec: Any) -> JSON:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "team"},
        "spec": {"runtimeRef": {"name": "ours"}, **spec},
    }


def gpus(count: JSON) -> JSON:
    return {"limits": {"nvidia.com/gpu": count}}


def said(obj: JSON, rules: list[JSON], *context: JSON) -> list[tuple[str, str]]:
    cluster = FilesCluster([namespace(), *context])
    found = validating_decisions(request_context(policies(rules), request(obj, is_plain=True), cluster), Phase.VALIDATE)
    return [(each.evaluation, each.message) for each in found]


@pytest.mark.parametrize("count", [8, "8"])
def test_the_pods_of_a_train_job_are_evaluated(count: JSON) -> None:
    job = train_job(trainer={"numNodes": 2, "resourcesPerNode": gpus(count)})
    place = "spec.runtimeRef: in replicated job `node` of ClusterTrainingRuntime `ours`: "
    assert said(job, AT_MOST_4, runtime()) == [("deny", f"{place}at most 4 GPUs in a pod")]
    assert said(train_job(trainer={"resourcesPerNode": gpus(4)}), AT_MOST_4, runtime()) == [("admit", "")]


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ([-1], "", "must be an object, not a list"),
        ({"template": [1]}, ".template", "must be an object, not a list"),
        (
            {"template": {"spec": {"containers": "x"}}},
            ".template.spec.containers",
            "must be a list, not the string `x`",
        ),
    ],
)
def test_the_pods_of_a_train_job_with_a_wrong_type_are_not_evaluated(value: JSON, path: str, message: str) -> None:
    patch = {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": value}}]}}}
    job = train_job(runtimePatches=[{"manager": "example.com/a", "trainingRuntimeSpec": patch}])
    at = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec"
    assert said(job, AT_MOST_4, runtime()) == [("unknown", f"not evaluated: {at}{path}: {message}")]


def test_a_problem_in_merged_pods_names_the_field_that_sets_it() -> None:
    at_path = validating({**AT_PATH, "message": AT_PATH["message"].replace("[nvidia.com/gpu]", '["nvidia.com/gpu"]')})
    at_path[0]["metadata"]["annotations"] = {"claimgate.dev/expand": "pods"}
    own = said(train_job(trainer={"resourcesPerNode": gpus(8)}), at_path, runtime())
    assert own == [("deny", 'spec.trainer.resourcesPerNode.limits["nvidia.com/gpu"]: must be at most 4')]
    of_runtime = said(train_job(), at_path, runtime(resources=gpus(8)))
    where = 'spec.containers[0].resources.limits["nvidia.com/gpu"]: must be at most 4'
    assert of_runtime == [
        ("deny", f"spec.runtimeRef: in replicated job `node` of ClusterTrainingRuntime `ours`, {where}")
    ]


@pytest.mark.parametrize("own", [None, "Never"])
def test_the_pods_of_a_train_job_have_the_restart_policy_of_a_job_set(own: str | None) -> None:
    made = runtime()
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    if own:
        job["template"]["spec"]["template"]["spec"]["restartPolicy"] = own
    rules = validating(f"object.spec.restartPolicy == '{own or 'OnFailure'}'", annotations=EXPAND)
    assert said(train_job(), rules, made) == [("admit", "")]


def test_without_the_runtime_nothing_is_evaluated() -> None:
    assert said(train_job(), AT_MOST_4) == [("unknown", "not evaluated: ClusterTrainingRuntime ours not found")]


def test_a_train_job_inside_an_object_is_evaluated() -> None:
    inner = {key: value for key, value in train_job(trainer={"resourcesPerNode": gpus(8)}).items() if key != "metadata"}
    wrapper = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "w", "namespace": "team"},
        "spec": {"components": [{"template": inner}]},
    }
    ((evaluation, message),) = said(wrapper, AT_MOST_4, runtime())
    assert evaluation == "deny"
    assert message.startswith("spec.components[0].template.spec.runtimeRef: in replicated job `node`")


def test_an_update_has_the_previous_pods() -> None:
    grown = {"expression": "object.spec.containers[0].image == oldObject.spec.containers[0].image", "message": "new"}
    rules = policies(validating(grown, annotations=EXPAND))
    now, before = (train_job(trainer={"image": image}) for image in ("a:2", "a:1"))
    cluster = FilesCluster([namespace(), runtime()])
    (decision,) = validating_decisions(request_context(rules, request(now, "UPDATE", before), cluster), Phase.VALIDATE)
    assert (decision.evaluation, decision.path) == ("deny", "spec.runtimeRef")


@pytest.mark.parametrize("row", [row for row in TABLE.rows if has_pods_in_parts(row)], ids=lambda row: row.kind)
def test_pods_that_a_controller_builds_from_parts_are_not_evaluated(row: Any) -> None:
    obj = {"apiVersion": f"{row.group}/{row.versions[0]}", "kind": row.kind, "metadata": {"name": "x"}, "spec": {}}
    told = "builds pods from parts" if row.makes else "has parts of pods"
    text = f"not evaluated: {row.kind} {told}, which are not read"
    assert said({**obj, "metadata": {"name": "x", "namespace": "team"}}, AT_MOST_4) == [("unknown", text)]


@pytest.mark.parametrize(
    ("spec", "places"),
    [
        ({"predictor": {"model": {"modelFormat": {"name": "vllm"}, "resources": gpus(8)}}}, ["spec.predictor"]),
        ({"predictor": {"containers": [{"name": "c", "resources": gpus(4)}]}}, []),
        (
            {"predictor": {"containers": [{"name": "c", "resources": gpus(4)}]}, "transformer": {"logger": {}}},
            ["spec.transformer"],
        ),
    ],
)
def test_pods_of_a_part_without_a_template_are_not_evaluated(spec: JSON, places: list[str]) -> None:
    """KServe creates the pods from the runtime and from the fields of a part of the InferenceService."""
    metadata = {"name": "s", "namespace": "team"}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": spec,
    }
    whole = [("admit", "")] if "containers" in spec["predictor"] else []
    told = "not evaluated: InferenceService has no whole pod template at {}"
    assert said(service, AT_MOST_4) == [*whole, *(("unknown", told.format(each)) for each in places)]
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": metadata}
    inside = said({**wrapper, "spec": {"components": [{"template": service}]}}, AT_MOST_4)
    at = "spec.components[0].template."
    assert inside == [*whole, *(("unknown", told.format(f"{at}{each}")) for each in places)]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("argoproj.io/v1alpha1 Rollout", {"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}),
        ("sandbox.opensandbox.io/v1alpha1 BatchSandbox", {"poolRef": "pool"}),
        ("serving.knative.dev/v1 Service", {}),
    ],
)
def test_an_object_without_a_template_is_not_evaluated(kind: str, spec: JSON) -> None:
    """The pod template is absent, or in another object."""
    api_version, name = kind.split()
    obj = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x", "namespace": "team"}, "spec": spec}
    assert said(obj, AT_MOST_4) == [("unknown", f"not evaluated: {name} has no whole pod template")]


def test_pods_of_an_unknown_kind_inside_an_object_are_not_evaluated() -> None:
    inner = {"apiVersion": "example.com/v1", "kind": "Fleet", "spec": {"pods": 2}}
    metadata = {"name": "w", "namespace": "team"}
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": metadata}
    at = "spec.components[0].template"
    told = f"not evaluated: AppWrapper has no whole pod template at {at}"
    assert said({**wrapper, "spec": {"components": [{"template": inner}]}}, AT_MOST_4) == [("unknown", told)]


@pytest.mark.parametrize(
    ("condition", "applies"),
    [
        ("request.namespace != 'team'", False),
        ("request.operation == 'DELETE' || oldObject != null", False),
        ("has(object.spec.nodeName)", True),
        ("has(object.metadata.labels)", True),
        ("request.namespace == 'team'", True),
    ],
)
def test_a_condition_about_the_request_is_evaluated_although_the_pods_are_not_known(
    condition: str, applies: bool
) -> None:
    rules = [{"name": "c", "expression": condition}]
    judging = validating("true", annotations=EXPAND, matchConditions=rules)
    expected = [("unknown", "not evaluated: ClusterTrainingRuntime ours not found")] if applies else []
    assert said(train_job(), judging) == expected
    change = mutating("Object{spec: Object.spec{schedulerName: 'kai'}}", annotations=EXPAND, matchConditions=rules)
    _, decisions = apply_mutating_policies(
        request_context(policies(change), request(train_job(), is_plain=True), FilesCluster([namespace()]))
    )
    assert [(each.evaluation, each.message) for each in decisions] == expected


def changes(*rules: JSON, **spec: Any) -> list[tuple[str, str]]:
    job = train_job(**spec)
    cluster = FilesCluster([namespace(), runtime()])
    made, decisions = apply_mutating_policies(request_context(policies(*rules), request(job, is_plain=True), cluster))
    assert made is job
    return [(each.evaluation, each.message) for each in decisions]


def test_the_pods_of_a_train_job_are_not_changed() -> None:
    told = (
        "not evaluated: the pods of TrainJob get this change when they are created, and TrainJob itself is not changed"
    )
    change = "Object{spec: Object.spec{schedulerName: 'kai'}}"
    assert changes(mutating(change, annotations=EXPAND)) == [("unknown", told)]
    never = [{"name": "never", "expression": "object.spec.containers.size() == 9"}]
    assert changes(mutating(change, annotations=EXPAND, matchConditions=never)) == []
    assert changes(mutating("Object{metadata: Object.metadata{}}", annotations=EXPAND)) == []


def test_a_mutation_of_later_pods_is_not_sent_to_the_api_server() -> None:
    rules = policies(mutating("Object{spec: Object.spec{schedulerName: 'kai'}}", annotations=EXPAND))
    job = train_job()
    made, decisions = apply_mutating_policies(
        request_context(rules, request(job), FilesCluster([namespace(), runtime()]))
    )
    assert made is job
    assert decisions == ()


def test_labels_are_written_where_pods_get_them_from() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    notebook = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": {"name": "n"},
        "spec": {"template": {"spec": spec}},
    }
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "s", "labels": {"old": "1", "kept": "1"}},
        "spec": {"predictor": {**spec, "labels": {"old": "2"}}},
    }
    add = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'kept': '1', 'new': '1'}}]"
    rules = policies(mutating(add, annotations=EXPAND))
    made, _ = apply_mutating_policies(request_context(rules, request(notebook), FilesCluster([namespace()])))
    assert made == {**notebook, "metadata": {"name": "n", "labels": {"kept": "1", "new": "1"}}}
    made, _ = apply_mutating_policies(request_context(rules, request(service), FilesCluster([namespace()])))
    assert (made["metadata"]["labels"], made["spec"]["predictor"]["labels"]) == ({"kept": "1"}, {"new": "1"})


IMAGE = {"expression": "object.spec.containers.all(c, c.image == 'i')", "message": "another image"}
OTHER = {"spec": {"containers": [{"name": "c", "image": "j"}]}}


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        (
            "apps.kruise.io/v1alpha1 UnitedDeployment",
            {
                "template": {"cloneSetTemplate": {"spec": {"template": {**OTHER}}}},
                "topology": {"subsets": [{"name": "a"}, {"name": "b", "patch": OTHER}]},
            },
            "spec.topology.subsets[1].patch",
        ),
        (
            "workloads.x-k8s.io/v1alpha2 RoleBasedGroup",
            {"roles": [{"name": "a", "leaderWorkerPattern": {"template": {**OTHER}, "workerTemplatePatch": OTHER}}]},
            "spec.roles[0].leaderWorkerPattern.workerTemplatePatch",
        ),
        (
            "sandbox.opensandbox.io/v1alpha1 BatchSandbox",
            {"template": {**OTHER}, "shardPatches": [OTHER]},
            "spec.shardPatches[0]",
        ),
    ],
)
def test_a_patch_of_some_pods_of_a_template_is_not_evaluated(kind: str, spec: JSON, path: str) -> None:
    api_version, name = kind.split()
    obj = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x", "namespace": "team"}, "spec": spec}
    found = said(obj, validating(IMAGE, annotations=EXPAND))
    told = f"not evaluated: {name} patches some of its pods at {path}, which is not read"
    assert [each[0] for each in found] == ["deny", "unknown"]
    assert found[1] == ("unknown", told)


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ("!has(request.userInfo.uid)", "admit"),
        ("request.userInfo.?username.orValue('') != 'bob'", "admit"),
        ("!('system:nodes' in request.userInfo.?groups.orValue([]))", "admit"),
        ("request.userInfo.username != 'bob'", "unknown"),
    ],
)
def test_a_question_about_the_user_of_an_object_in_a_file_sees_no_user(asks: str, told: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "team"}, **OTHER}
    asked = replace(request(pod, is_plain=True), user_info=NOBODY)
    rules = policies(validating({"expression": asks, "message": "no"}))
    decided = validating_decisions(request_context(rules, asked, FilesCluster([namespace()])), Phase.VALIDATE)
    assert [each.evaluation for each in decided] == [told]
