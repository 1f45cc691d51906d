"""The place of a field of the pods of a TrainJob: in spec.trainer, or in the origins of the merge."""

from __future__ import annotations

from tests.facts.subjects import subject
from tests.facts.trainer.made import job, node, replicated, runtime
from tests.rows import all_rows
from webhook.apimachinery.paths import parse_path
from webhook.facts.pods.pod_sets import relocate_problem_to_train_job
from webhook.facts.train_job_pods.virtual_pods import virtual_pods
from webhook.rules.problem import Problem

GPU = 'limits["nvidia.com/gpu"]'
TRAINER = {
    "image": "mine",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}},
}
SIDECAR = {"name": "sidecar", "image": "runtime"}
ON_RUNTIME = runtime(
    replicated("node", node({"requests": {"cpu": 1}}, env=[{"name": "R"}]), SIDECAR, step="trainer"),
    replicated("other", node()),
)


PLACES = {
    "image": ("containers[0].image", "spec.trainer.image"),
    "variable": ("containers[0].env[2].value", "spec.trainer.env[1].value"),
    "variable of the runtime": ("containers[0].env[0].value", None),
    "all variables": ("containers[0].env", "spec.trainer.env"),
    "amount": (f"containers[0].resources.{GPU}", f"spec.trainer.resourcesPerNode.{GPU}"),
    "amount of the runtime": ("containers[0].resources.requests.cpu", None),
    "field that only the runtime has": ("containers[0].volumeMounts[0]", None),
    "other container": ("containers[1].image", None),
    "container as a whole": ("containers[0]", None),
    "field of the pod": ("nodeSelector", None),
}


@all_rows(("at", "expected"), PLACES.values(), ids=PLACES)
def test_the_place_of_a_field_of_the_pods(at: str, expected: str | None) -> None:
    trained, other = subject(job(trainer=TRAINER), ON_RUNTIME).once(virtual_pods)
    assert trained.path_in_trainer_spec(parse_path(f"spec.{at}")) == (
        None if expected is None else parse_path(expected)
    )
    assert other.path_in_trainer_spec(parse_path(f"spec.{at}")) is None


TOLD = {
    "field of spec.trainer": ("spec.runtimeRef.node.spec.containers[0].image", ("spec.trainer.image", "is old")),
    "field of the runtime": (
        "spec.runtimeRef.other.spec.containers[0].image",
        ("spec.runtimeRef", "in replicated job `other`, spec.containers[0].image is old"),
    ),
    "pod as a whole": ("spec.runtimeRef.other", ("spec.runtimeRef", "in replicated job `other`, is old")),
    "field of the TrainJob": ("spec.runtimeRef", ("spec.runtimeRef", "is old")),
}


@all_rows(("path", "expected"), TOLD.values(), ids=TOLD)
def test_a_problem_is_reported_for_the_train_job(path: str, expected: tuple[str, str]) -> None:
    asked = subject(job(trainer=TRAINER), ON_RUNTIME)
    told = relocate_problem_to_train_job(Problem(code="g/r", path=path, message="is old", fix=""), asked)
    assert (told.path, told.message) == expected


def test_a_problem_of_another_object_stays() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    one = Problem(code="g/r", path="spec.runtimeRef.node.spec", message="is old", fix="")
    assert relocate_problem_to_train_job(one, subject(pod)) is one
