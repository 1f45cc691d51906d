"""A problem at one place is reported once. Advice about several places is reported as one problem with these places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline
from webhook.evaluation.decision_list import without_repeats
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.rules import policy_rules
from webhook.rules.decisions import Decision, ValidationAction, Verdict
from webhook.rules.problem import Problem
from webhook.yamltext import yamlfile

RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": []}}},
}
WARN = (ValidationAction.WARN,)


def named(kind: str, api_version: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "team"}, "spec": spec}


def pod(**amounts: Any) -> dict[str, Any]:
    return named("Pod", "v1", containers=[{"name": "a", "image": "i", "resources": amounts}])


def train_job(**amounts: Any) -> dict[str, Any]:
    trainer = {"resourcesPerNode": amounts, "numProcPerNode": 1}
    return named("TrainJob", "trainer.kubeflow.org/v1alpha1", runtimeRef={"name": "torch"}, trainer=trainer)


def validated(obj: dict[str, Any], *others: dict[str, Any]) -> Verdict:
    cluster = ClusterWithAssumedNamespaces(FilesCluster([RUNTIME, *others], is_whole=bool(others)))
    return answer_request(attributes_of_object(obj, TABLE.row), shipped_policies(), cluster, phase=Phase.VALIDATE)


@all_rows(
    ("obj", "code", "rules"),
    [
        (pod(limits={"gpu": "all"}), 400, ["gpu-portable/all"]),
        (pod(limits={"gpu": 2}), 422, ["pod-resources/unknown-resource"]),
        (pod(limits={"gpu": 2, "nvidia.com/gpu": 1}), 400, ["gpu-portable/contradiction"]),
        (
            pod(limits={"gpu": "all", "npu": 1}),
            400,
            ["pod-resources/unknown-resource", "gpu-portable/all"],
        ),
        (train_job(limits={"gpu": 2}), 422, ["gpu-portable/untranslated"]),
        (train_job(limits={"gpu": "all"}), 400, ["gpu-portable/all"]),
        (named("Job", "batch.volcano.sh/v1alpha1", template={}), 422, ["volcano-job/task-required"]),
    ],
)
def test_a_mistake_in_one_field_is_reported_once(obj: dict[str, Any], code: int, rules: list[str]) -> None:
    verdict = validated(obj)
    denied = [each for each in verdict.decisions if each.action == "deny" and ValidationAction.DENY in each.actions]
    assert verdict.status is not None
    assert verdict.status.code == code
    assert [each.rule for each in denied] == rules
    assert not [each for each in verdict.warnings if "object-shape/unknown-field" in each]


def test_a_missing_claim_template_of_a_job_in_a_queue_is_one_warning() -> None:
    """Kueue cannot count the devices, and the pods would stay Pending. Both have one cause."""
    container = {"name": "a", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "absent"}]
    pods = {"restartPolicy": "Never", "resourceClaims": claims, "containers": [container]}
    job = named("Job", "batch/v1", template={"spec": pods})
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    queue = named("LocalQueue", "kueue.x-k8s.io/v1beta2", clusterQueue="gpus")
    queue["metadata"]["name"] = "main"
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "a", "resources": []}]}]
    gpus = named("ClusterQueue", "kueue.x-k8s.io/v1beta2", namespaceSelector={}, resourceGroups=groups)
    gpus["metadata"] = {"name": "gpus"}
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a"}}
    verdict = validated(job, queue, gpus, flavor)
    (warning,) = (each for each in verdict.warnings if "`absent`" in each)
    assert warning.endswith("(device-claims/claim-exists)")


def test_advice_about_several_roles_is_one_warning() -> None:
    roles = {role: {"replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}} for role in ("Master", "Worker")}
    verdict = validated(named("PyTorchJob", "kubeflow.org/v1", pytorchReplicaSpecs=roles))
    (warning,) = (each for each in verdict.warnings if "operator-variable" in each)
    assert warning == (
        "spec.pytorchReplicaSpecs.Master.template (likewise spec.pytorchReplicaSpecs.Worker.template): sets variable "
        "WORLD_SIZE, but this value is ignored because the operator sets the variable too: remove the variable "
        "(training-job/operator-variable)"
    )


def test_rules_that_yield_name_existing_rules() -> None:
    policies = [yamlfile.read(path) for path in shipped.policies_folder().glob("*/rules.yaml")]
    own = {
        rule.id
        for (document,) in policies
        for rules in policy_rules.read_policy_rules(document).values()
        for rule in rules
    }
    checks = SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)
    others = {other for rule in checks.values() for other in rule.yields_to}
    assert others
    assert others <= {*own, *checks}


def test_after_the_deadline_decisions_are_not_compared() -> None:
    """The deadline passes while the decisions are compared. No decision is lost."""
    advice = Decision(policy="p", binding="b", evaluation="deny", actions=WARN)
    first = structs.replace(advice, problems=(problem("a.x"), problem("a.y")))
    made = (first, structs.replace(advice, problems=(problem("b.x[0]"), problem("c.x"))))
    policies = [replace(shipped_policies().policies[0], name="p")]
    (told,) = without_repeats(made, policies, Deadline())
    assert [(each.path, each.also) for each in told.problems] == [("a.x", ("b.x[0]", "c.x")), ("a.y", ())]
    late = Deadline(at=0)
    late.left = 0
    assert without_repeats(made, policies, late) == made


def test_denials_keep_a_problem_for_each_place() -> None:
    denied = Decision(policy="p", binding="b", evaluation="deny", actions=(ValidationAction.DENY,))
    made = (structs.replace(denied, problems=(problem("a"), problem("b"))),)
    assert without_repeats(made, [replace(shipped_policies().policies[0], name="p")], Deadline()) == made


def problem(path: str) -> Problem:
    return Problem(code="x/y", path=path, message="is wrong", fix="mend it")


CONTAINER = {"name": "pytorch", "image": "i", "env": [{"name": "WORLD_SIZE", "value": "3"}]}
