"""`expand: pods` applies a Pod policy to every pod template. Messages and mutations have the whole path."""

import pytest

from tests.literals import PODS, job, mutating, namespace, pod, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions

EXPAND = {"expand": "pods"}
CLUSTER = FilesCluster([namespace()])
PYTORCH = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "t", "namespace": "team"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"hostNetwork": True}}},
            "Worker": {"replicas": 2, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": True}}},
        }
    },
}
DENIED = {"expression": "!has(object.spec.hostNetwork)", "message": "spec.hostNetwork: must not be set"}


def decide(found, attributes, phase=Phase.VALIDATE):
    return validating_decisions(request_context(found, attributes, CLUSTER), phase)


def test_every_template_is_evaluated_and_named():
    found = decide(policies(validating(DENIED, annotations=EXPAND)), request(PYTORCH))
    assert [decision.path for decision in found] == [
        "spec.pytorchReplicaSpecs.Master.template.spec.hostNetwork",
        "spec.pytorchReplicaSpecs.Worker.template.spec.hostNetwork",
    ]
    assert found[0].message == "spec.pytorchReplicaSpecs.Master.template.spec.hostNetwork: must not be set"


def test_a_message_without_a_path_gets_the_path_of_the_template():
    rule = {"expression": "false", "message": "no host network"}
    (found,) = decide(policies(validating(rule, annotations=EXPAND)), request(job(hostNetwork=True)))
    assert (found.path, found.message) == ("spec.template", "spec.template: no host network")


def test_later_paths_of_a_message_also_get_the_path_of_the_template():
    text = "spec.x: bad, not in spec.z; spec.y[0]: `1, spec`; likewise spec.y[1].a, spec.y[2]; special"
    (found,) = decide(
        policies(validating({"expression": "false", "message": text}, annotations=EXPAND)), request(job())
    )
    assert found.path == "spec.template.spec.x"
    assert found.message == (
        "spec.template.spec.x: bad, not in spec.z; spec.template.spec.y[0]: `1, spec`; likewise spec.template.spec.y[1].a, "
        "spec.template.spec.y[2]; special"
    )


def test_an_error_names_the_template_too():
    (found,) = decide(policies(validating("object.spec.x == 1", annotations=EXPAND)), request(job()))
    assert found.evaluation == "error"
    assert found.message.startswith("spec.template: expression 'object.spec.x == 1' resulted in error: no such key")


def patched(**spec):
    node = {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    patch = {"manager": "m", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [node]}}}}
    return workload("trainer.kubeflow.org/v1alpha1", "TrainJob", runtimeRef={"name": "r"}, runtimePatches=[patch])


def workload(api_version, kind, **spec):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "t", "namespace": "team"}, "spec": spec}


PATCHED_SPEC = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec"
NO_CLAIMS = {"expression": "!has(object.spec.resourceClaims)", "message": "spec.resourceClaims: must not be set"}
NO_GATES = {"expression": "!has(object.spec.schedulingGates)", "message": "spec.schedulingGates: must not be set"}
PATCHES = {"expand": "pods, patches"}


def test_patches_of_a_runtime_are_evaluated_if_a_policy_requests_it():
    train_job = request(patched(schedulingGates=[{"name": "a"}]))
    (without,) = decide(policies(validating(NO_GATES, annotations=EXPAND)), train_job)
    assert (without.evaluation, without.path) == ("unknown", "")  # the runtime does not exist, so the pods are unknown
    (decision,) = decide(policies(validating(NO_GATES, annotations=PATCHES)), train_job)
    assert decision.path == f"{PATCHED_SPEC}.schedulingGates"


@pytest.mark.parametrize(
    ("release", "wrap", "denied"),
    [
        ("2.3", lambda job: job, False),
        ("2.4", lambda job: job, True),
        ("2.1", lambda job: job, False),  # Trainer 2.1 has no runtimePatches
        ("2.3", lambda job: workload("trainer.kubeflow.org/v1alpha1", "OptimizationJob", trainJobTemplate=job), False),
        ("2.4", lambda job: workload("trainer.kubeflow.org/v1alpha1", "OptimizationJob", trainJobTemplate=job), True),
    ],
)
def test_patch_fields_that_the_installed_trainer_drops_do_not_exist(release, wrap, denied):
    installed = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"trainer": release}}
    installed["metadata"] = {"name": "trainer", "namespace": "claimgate-system"}
    cluster = FilesCluster([namespace(), installed])
    train_job = request(wrap(patched(resourceClaims=[{"name": "gpu"}])))
    found = policies(validating(NO_CLAIMS, annotations=PATCHES))
    said = [
        each.evaluation for each in validating_decisions(request_context(found, train_job, cluster), Phase.VALIDATE)
    ]
    assert ("deny" in said) is denied


def test_an_unreadable_release_is_an_error_of_the_policy():
    installed = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"trainer": "latest"}}
    installed["metadata"] = {"name": "trainer", "namespace": "claimgate-system"}
    found = policies(validating(NO_CLAIMS, annotations=PATCHES))
    cluster = FilesCluster([namespace(), installed])
    (said,) = validating_decisions(request_context(found, request(patched(resourceClaims=[])), cluster), Phase.VALIDATE)
    assert said.message == (
        "failed to configure policy: the policy cannot be evaluated: data.trainer of ConfigMap `trainer` is `latest`: "
        "write a release such as 2.3"
    )


def test_a_pod_is_evaluated_once():
    found = decide(policies(validating(DENIED, annotations=EXPAND)), request(pod(hostNetwork=True)))
    assert [decision.path for decision in found] == ["spec.hostNetwork"]


def test_without_the_annotation_nothing_expands():
    assert decide(policies(validating(DENIED)), request(PYTORCH)) == ()


def test_the_virtual_pod_has_kind_and_namespace_and_the_request_stays():
    text = (
        "object.apiVersion + object.kind + object.metadata.namespace + request.kind.kind + request.resource.resource"
        " + request.name"
    )
    rule = {"expression": "false", "messageExpression": f"string({text})"}
    (found,) = decide(policies(validating(rule, annotations=EXPAND)), request(job()))
    assert found.message == "spec.template: v1PodteamJobjobsj"


def test_the_operations_of_the_pod_rule_carry_over():
    found = policies(validating(DENIED, annotations=EXPAND, rule={**PODS, "operations": ["CREATE"]}))
    old = job(hostNetwork=True)
    assert decide(found, request(job(hostNetwork=True), "UPDATE", old)) == ()


def test_the_selectors_of_the_pod_rule_see_the_template():
    constraints = {"resourceRules": [PODS], "objectSelector": {"matchLabels": {"a": "b"}}}
    found = policies(validating(DENIED, annotations=EXPAND, matchConstraints=constraints))
    (decision,) = decide(found, request(PYTORCH))
    assert decision.path.startswith("spec.pytorchReplicaSpecs.Worker")


def test_an_update_sees_the_same_template_before():
    rule = {"expression": "oldObject == null || object.spec.x == oldObject.spec.x", "message": "spec.x: differs"}
    found = policies(validating(rule, annotations=EXPAND))
    (decision,) = decide(found, request(job(x=2), "UPDATE", job(x=1)))
    assert decision.message == "spec.template.spec.x: differs"
    (same,) = decide(found, request(job(x=1), "UPDATE", job(x=1)))
    assert same.action == "admit"


def test_a_deleted_object_shows_its_templates_as_old():
    rule = {"expression": "object != null || !has(oldObject.spec.keep)", "message": "spec.keep: stays"}
    found = policies(validating(rule, annotations=EXPAND, rule={**PODS, "operations": ["DELETE"]}))
    (decision,) = decide(found, request(None, "DELETE", job(keep=True)))
    assert decision.message == "spec.template.spec.keep: stays"


@pytest.mark.parametrize("sub", ["status", "scale"])
def test_subresources_are_not_expanded(sub):
    found = policies(validating(DENIED, annotations=EXPAND))
    assert decide(found, request(job(hostNetwork=True), "UPDATE", job(), sub_resource=sub)) == ()


def test_a_mutation_of_the_virtual_pod_goes_into_the_template():
    found = policies(mutating('Object{metadata: Object.metadata{labels: {"x": "y"}}}', annotations=EXPAND))
    changed, decisions = apply_mutating_policies(request_context(found, request(PYTORCH), CLUSTER))
    assert changed["spec"]["pytorchReplicaSpecs"]["Master"]["template"] == {
        "spec": {"hostNetwork": True},
        "metadata": {"labels": {"x": "y"}},
    }
    assert changed["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["metadata"] == {"labels": {"a": "b", "x": "y"}}
    assert [decision.path for decision in decisions] == [
        "spec.pytorchReplicaSpecs.Master.template",
        "spec.pytorchReplicaSpecs.Worker.template",
    ]
    assert PYTORCH["spec"]["pytorchReplicaSpecs"]["Master"]["template"] == {"spec": {"hostNetwork": True}}


def test_the_patch_is_that_of_the_whole_object():
    found = policies(mutating('[JSONPatch{op: "remove", path: "/spec/hostNetwork"}]', annotations=EXPAND))
    verdict = answer_request(request(job(hostNetwork=True)), found, CLUSTER, phase=Phase.MUTATE)
    assert verdict.patch == ({"op": "remove", "path": "/spec/template/spec/hostNetwork"},)


def test_without_a_change_there_is_no_patch():
    found = policies(mutating("Object{}", annotations=EXPAND))
    sent = request(job(hostNetwork=True))
    changed, _ = apply_mutating_policies(request_context(found, sent, CLUSTER))
    assert changed is sent.object


def test_a_template_removed_by_an_earlier_mutation_is_skipped():
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    first = mutating('[JSONPatch{op: "remove", path: "/spec/template"}]', name="a", rule=rule)
    second = mutating("Object{}", name="b", annotations=EXPAND)
    _, decisions = apply_mutating_policies(request_context(policies(first, second), request(job()), CLUSTER))
    assert [decision.policy for decision in decisions] == ["a"]


def test_placeholder_metadata_is_ignored():
    # volcano-sh/kthena templates/vllm.yaml
    obj = {**job(), "spec": {"template": {"metadata": "${METADATA}", "spec": {"a": 1}}}}
    rule = {"expression": "object.metadata != {'namespace': 'team'}", "message": "as it should"}
    assert [each.evaluation for each in decide(policies(validating(rule, annotations=EXPAND)), request(obj))] == [
        "deny"
    ]
    mark = 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'
    found = policies(mutating(mark, annotations=EXPAND))
    changed, _ = apply_mutating_policies(request_context(found, request(obj), CLUSTER))
    assert changed["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}


def test_a_bare_pod_spec_accepts_mutations_of_its_spec():
    from webhook.workloads.rows import PodSetRule, Row
    from webhook.workloads.table import Table

    row = Row(
        group="example.com",
        versions=("v1",),
        kind="Bare",
        resource="bares",
        templates="mutable",
        podSets=(PodSetRule(template="spec.podSpec", name="p", embeds="podSpec"),),
    )
    from dataclasses import replace

    found = policies(mutating('[JSONPatch{op: "add", path: "/spec/x", value: 1}]', annotations=EXPAND))
    found = replace(found, table=Table((row,)))
    obj = {"apiVersion": "example.com/v1", "kind": "Bare", "metadata": {"name": "b"}, "spec": {"podSpec": {"a": 1}}}
    changed, (decision,) = apply_mutating_policies(request_context(found, request(obj, resource="bares"), CLUSTER))
    assert decision.action == "deny"  # a PodSpec has no field x, so the mutation fails
    found = replace(
        policies(mutating('[JSONPatch{op: "add", path: "/spec/hostNetwork", value: true}]', annotations=EXPAND)),
        table=Table((row,)),
    )
    changed, _ = apply_mutating_policies(request_context(found, request(obj, resource="bares"), CLUSTER))
    assert changed["spec"]["podSpec"] == {"a": 1, "hostNetwork": True}
