"""A walk over a list that a user can lengthen checks the clock, in proportion to the work.

`python -m tests.bench.bench_many_elements` finds uncharged lists by the clock. This test counts the checks.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.facts.subjects import POD
from tests.literals import TABLE, namespace, pod, policies, request, validating
from webhook.admission import fixtures
from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.deadline import STEP, Deadline
from webhook.evaluation.request_context import request_context
from webhook.evaluation.request_objects import RequestObjects
from webhook.evaluation.typed_input import decode_patched_object, decode_request_objects
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.check import problems_of_group
from webhook.facts.dra.requests import read_requests
from webhook.facts.dra.types import ResourceClaim
from webhook.facts.gpu.resources import count_gpus_of_json_resources
from webhook.facts.jobset.checks import check_job_set
from webhook.facts.ray.ray import ray_cluster_spec_of, validate_num_gpus
from webhook.facts.subject import Check, Subject
from webhook.facts.training_jobs.autoscaler import max_pods_of_job
from webhook.facts.training_jobs.typed_job import read_job
from webhook.facts.view import ClusterView
from webhook.facts.volcano_objects.types import Job
from webhook.rules.problem import Problem
from webhook.schema import decode
from webhook.schema.types import Items as ListOf
from webhook.schema.values import ValueDeclarations
from webhook.typed.environment import read_environment
from webhook.typed.pods import PodSpec
from webhook.typed.view import ReadingContext
from webhook.workloads.embedded import embedded_objects
from webhook.workloads.podsets import patch_templates, pod_templates

MANY = 1000


class Looks(Deadline):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def check_clock(self) -> None:
        self.count += 1
        super().check_clock()


def of_kind(api_version: str, kind: str, spec: JSON) -> JSON:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def subject(obj: JSON, looks: Deadline) -> Subject:
    attributes = fixtures.attributes_of_object(obj, TABLE.row)
    view = ClusterView(FilesCluster(), "default", deadline=looks)
    return Subject(
        object=obj, old_object=None, attributes=attributes, cluster=view, table=TABLE, assumptions=ClusterAssumptions()
    )


CHOICES = of_kind(
    "resource.k8s.io/v1",
    "ResourceClaim",
    {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "a"}] * MANY}]}},
)
ROLES = of_kind(
    "kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {f"R{i}": {"template": {}} for i in range(MANY)}}
)
TASKS_WITHOUT_TEMPLATE = of_kind("batch.volcano.sh/v1alpha1", "Job", {"tasks": [{}] * MANY})
PLUGIN = of_kind("batch.volcano.sh/v1alpha1", "Job", {"tasks": [], "plugins": {"mpi": ["--port=1"] * MANY}})


PATCHES = of_kind(
    "trainer.kubeflow.org/v1alpha1",
    "TrainJob",
    {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {}}] * MANY},
)
WRAPPER = of_kind("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{}] * MANY})
MISTYPED = of_kind(
    "kubeflow.org/v1",
    "PyTorchJob",
    {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"args": [1] * MANY}]}}}}},
)
LONG_TEXT = of_kind("kubeflow.org/v1", "PyTorchJob", {"nprocPerNode": "[" * 100_000, "pytorchReplicaSpecs": {}})
ELASTIC = of_kind(
    "kubeflow.org/v1",
    "PyTorchJob",
    {
        "elasticPolicy": {"maxReplicas": 3, "metrics": [{"type": "Resource"}] * MANY},
        "pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {}}},
    },
)


def alternatives(looks: Deadline) -> None:
    assert read_requests(ResourceClaim.of(CHOICES, (), ReadingContext(looks)).claim_spec, "v1")[0].choices


def virtual_pods(looks: Deadline) -> None:
    attributes = fixtures.attributes_of_object(ROLES, TABLE.row)
    view = ClusterView(FilesCluster(), "default", deadline=looks)
    assert len(RequestObjects(attributes, TABLE, view).pod_template_targets()) == MANY


def containers(looks: Looks) -> None:
    spec = PodSpec.of({"containers": [{}] * MANY}, (), ReadingContext(looks))
    spec.all_containers()
    looks.count = 0
    between = [looks.count for _ in spec.all_containers()]
    assert between[-1] > between[0]


def flags_of_plugin(looks: Looks) -> None:
    spec = Job.of(PLUGIN, (), ReadingContext(looks)).spec
    assert len(spec.plugins["mpi"]) == MANY
    looks.count = 0
    assert spec.plugin_flags["mpi"].values == {"port": "1"}
    first = looks.count
    assert spec.plugin_flags["mpi"].values == {"port": "1"}
    assert looks.count == first, "they are parsed once"


def resource_names(looks: Deadline) -> None:
    assert count_gpus_of_json_resources({"limits": {f"g{i}": 1 for i in range(MANY)}}, looks) == 0


def long_setting_of_a_job(looks: Looks) -> None:
    job = subject(LONG_TEXT, looks).once(read_job)
    looks.count = 0
    assert [job.is_placeholder_at("nprocPerNode") for _ in range(MANY // 100)] == [False] * (MANY // 100)


def metrics(looks: Looks) -> None:
    job = subject(ELASTIC, looks).once(read_job)
    looks.count = 0
    assert max_pods_of_job(job) == 3


def unknown_keys(looks: Looks) -> None:
    keys = {f"jobset.sigs.k8s.io/global-{i:06}": "" for i in range(MANY)}
    job_set = {**of_kind("jobset.x-k8s.io/v1alpha2", "JobSet", {}), "metadata": {"name": "x", "annotations": keys}}
    assert len(list(check_job_set(subject(job_set, looks)))) >= MANY


def problems(looks: Looks) -> None:
    def run(_: Subject) -> Iterator[Problem]:
        yield from (Problem(code="x/y", path="") for _ in range(MANY))

    asked = subject(POD, looks)
    asked.checks = {"x": (Check(group="x", run=run, kinds=frozenset()),)}
    assert len(problems_of_group("x", asked).problems) == MANY


def variables_without_names(looks: Looks) -> None:
    assert read_environment([{}] * MANY, looks).names == [""] * MANY


def wrong_choices(looks: Looks) -> None:
    declared = ValueDeclarations({"a": {"b": {"list": {"one": ["cat", "dog"]}}}})
    assert len(list(declared.breaches({"b": ["cow"] * MANY}, "a", (), looks))) == MANY


def values_of_a_wrong_type(looks: Deadline) -> None:
    assert len(decode([1] * MANY, ListOf("text"), (), looks).mismatches) == MANY


def wrong_types_of_a_template(looks: Looks) -> None:
    attributes = replace(fixtures.attributes_of_object(MISTYPED, TABLE.row), is_decoded=False)
    decoded = decode_request_objects(attributes, looks)
    looks.count = 0
    (template,) = decoded.decode_templates(pod_templates(MISTYPED, TABLE, looks))
    assert len(template.mismatches) == MANY


def pod_with(container: JSON) -> JSON:
    return of_kind("v1", "Pod", {"containers": [dict(container) for _ in range(MANY)]})


def decoding_after_a_patch(looks: Deadline) -> None:
    before, after = pod_with({"name": "a"}), pod_with({"name": "b"})
    assert decode_patched_object(after, before, GroupVersionKind("", "v1", "Pod"), looks) == after


def settings_of_a_wrong_type(looks: Looks) -> None:
    declared = ValueDeclarations({"a": {"b": {"list": {"flag": True}}}})
    breaches = declared.breaches({"b": [1] * MANY}, "a", (), looks)
    next(breaches)
    looks.count = 0
    assert len(list(breaches)) == MANY - 1


def groups_of_a_ray_cluster(looks: Looks) -> None:
    asked = subject(of_kind("ray.io/v1", "RayCluster", {"workerGroupSpecs": [{}] * MANY}), looks)
    assert ray_cluster_spec_of(asked).groups()
    looks.count = 0
    assert list(validate_num_gpus(asked)) == []


def requests_for_gpu(looks: Looks) -> None:
    asked = subject(pod_with({"resources": {"limits": {"gpu": 1}}}), looks)
    asked.attributes = replace(asked.attributes, namespace="")
    assert len(asked.fact("portableGpu")["asks"]) == MANY


def params_of_a_binding(looks: Looks) -> None:
    chosen = {"paramRef": {"selector": {"matchLabels": {"team": "a"}}, "parameterNotFoundAction": "Allow"}}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    loaded = policies(validating("true", paramKind=kind, binding=chosen))
    made = [{**kind, "metadata": {"name": f"{number}", "namespace": "team"}} for number in range(MANY)]
    context = request_context(loaded, request(pod()), FilesCluster([namespace(), *made]), looks)
    policy = loaded.policies[0]
    assert context.params.params_of_binding(policy, policy.bindings[0]) == ()


WALKS: dict[str, tuple[int, Callable[[Looks], Any]]] = {
    "alternatives of a request": (10, alternatives),
    "templates as virtual Pods": (15, virtual_pods),
    "containers": (1, containers),
    "flags of a plugin": (1, flags_of_plugin),
    "names of resources": (10, resource_names),
    "placeholders in a long setting": (2, long_setting_of_a_job),
    "metrics of an autoscaler": (1, metrics),
    "keys that JobSet does not know": (20, unknown_keys),
    "values of a wrong type": (4, values_of_a_wrong_type),
    "wrong types of a template": (2, wrong_types_of_a_template),
    "decoding after a patch": (6, decoding_after_a_patch),
    "settings of a wrong type": (1, settings_of_a_wrong_type),
    "groups of a Ray cluster": (2, groups_of_a_ray_cluster),
    "requests for gpu": (25, requests_for_gpu),
    "elements without a template": (1, lambda looks: pod_templates(TASKS_WITHOUT_TEMPLATE, TABLE, looks)),
    "elements without an object": (1, lambda looks: list(embedded_objects(WRAPPER, TABLE, looks))),
    "problems of a check": (1, problems),
    "variables without names": (1, variables_without_names),
    "values that are not a choice": (3, wrong_choices),
    "params of a binding": (1, params_of_a_binding),
    "patches of templates": (3, lambda looks: patch_templates(PATCHES, TABLE, looks)),
}


@pytest.mark.parametrize(("units", "walk"), WALKS.values(), ids=WALKS)
def test_a_long_walk_checks_the_clock(units: int, walk: Callable[[Looks], Any]) -> None:
    looks = Looks()
    walk(looks)
    assert looks.count >= MANY * units // (2 * STEP)
