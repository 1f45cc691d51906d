"""Jobs that never complete because Istio's sidecar runs in their pods as an ordinary container and does not end.

A native sidecar ends with the pod. The param of the policy sets whether Istio adds native sidecars: since Istio 1.27,
native sidecars are the default if every node runs Kubernetes 1.33 or later. The bindings of the policy select
namespaces, as the selectors of Istio's own webhooks do.

Source: istio/istio@00af2c5549d5 pkg/kube/inject/inject.go injectRequired, and istio/istio pull request 56428.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kinds import RAY_JOB, TRAIN_JOB
from webhook.facts.subject import Check, Subject
from webhook.facts.train_job_pods.types import RUNTIMES
from webhook.rules.problem import Problem
from webhook.rules.rule import RuleGroup
from webhook.typed.collections import Items
from webhook.typed.objects import Metadata
from webhook.typed.pods import Container, PodTemplate
from webhook.typed.ray import RayJob, RayJobSpec
from webhook.typed.view import ReadingContext

MESH: Final = RuleGroup(
    "mesh",
    source="istio/istio 00af2c5549d5 pkg/kube/inject/inject.go",
    level="warn",
    fails="waiting",
)
"""Sidecars that outlive the containers of a job."""

SIDECAR: Final = MESH.rule(
    "mesh/sidecar",
    title="A sidecar keeps the pod from completing",
    why=(
        "The proxy keeps running when the other containers have ended, so the pod and its job never complete. A native "
        "sidecar ends with the pod. Sidecars are native since Istio 1.27 if all nodes run Kubernetes 1.33 or later. "
        "If a sidecar is not native, mpirun and torchrun also connect through the proxy before the proxy is ready."
    ),
    function="injectRequired",
    issues=(
        "https://github.com/kubeflow/trainer/issues/1637",
        "https://github.com/kubeflow/trainer/pull/1778",
        "https://github.com/kubeflow/mpi-operator/issues/480",
    ),
)
DEFAULT_SUBMITTER: Final = MESH.rule(
    "mesh/default-submitter",
    title="The RayJob in a mesh uses the default submitter",
    why="A sidecar that is not native keeps running after the job was submitted, so the pod never completes.",
    source="ray-project/kuberay feeaf72f ray-operator/controllers/ray/common/job.go",
    function="GetDefaultSubmitterTemplate",
)

_INJECT: Final = "sidecar.istio.io/inject"
_NATIVE: Final = "sidecar.istio.io/nativeSidecar"
_SUBMITTER: Final = "submitter"
_ENDS_PROXY: Final = "quitquitquit"
"""A word in commands that end the proxy (istio/istio pilot/cmd/pilot-agent)."""
_SAYS_NO: Final = f'set the label {_INJECT}: "false"'


def advise_sidecar(subject: Subject) -> Iterator[Problem]:
    """Warn of pod sets that get a sidecar. In a RayJob, only the submitter pod is checked, because only this pod must
    end.
    """
    is_train_job, is_ray_job = subject.group_kind == TRAIN_JOB, subject.group_kind == RAY_JOB
    if is_ray_job:
        yield from _warn_of_sidecar_on_default_submitter(subject.typed(RayJob).spec)
    pod_sets = subject.fact_result("podSets")
    if missing := pod_sets.missing_objects_of_fields():
        yield SIDECAR.problem("spec.runtimeRef", missing=missing)
    for podset in Items(pod_sets.value, subject.deadline):
        template = PodTemplate.of(podset["template"], (), ReadingContext(subject.deadline))
        if (not is_ray_job or podset["name"] == _SUBMITTER) and _gets_sidecar(template):
            who = f"the pods of `{podset['name']}` get" if is_train_job else "gets"
            message = f"{who} the sidecar of Istio, so the job never completes unless the sidecar is native"
            fix = f"{_SAYS_NO} on the template of the runtime" if is_train_job else _SAYS_NO
            yield SIDECAR.problem(podset["path"], message, fix, is_conditional=True)


def _warn_of_sidecar_on_default_submitter(spec: RayJobSpec) -> Iterator[Problem]:
    """Warn that the default submitter pod of a RayJob gets a sidecar. KubeRay's default template does not opt out of
    the injection (ray-operator/controllers/ray/common/job.go).
    """
    if spec and spec.has_default_submitter:
        message = (
            "is not set, so the default submitter pod gets the sidecar of Istio, and the pod never completes unless "
            "the sidecar is native"
        )
        fix = f'set a whole pod template, with the label {_INJECT}: "false"'
        yield DEFAULT_SUBMITTER.problem("spec.submitterPodTemplate", message, fix, is_conditional=True)


def _gets_sidecar(template: PodTemplate) -> bool:
    """Return whether Istio adds a sidecar that nothing ends: the pods have no host network, no setting about sidecars,
    no proxy of their own, and no command that ends the proxy.
    """
    spec = template.spec
    if not spec or spec.host_network or _decides_about_sidecar(template.metadata):
        return False
    return not any(map(_is_or_ends_sidecar, spec.all_containers()))


def _decides_about_sidecar(metadata: Metadata) -> bool:
    """Return whether the pod sets a native sidecar, or turns the injection on or off by a label. Without the label, an
    annotation decides. An empty value decides nothing.
    """
    wanted = metadata.labels.get(_INJECT, metadata.annotations.get(_INJECT, ""))
    return metadata.annotations.get(_NATIVE) == "true" or wanted != ""


def _is_or_ends_sidecar(container: Container) -> bool:
    """Return whether a container is the pod's own proxy, or has a command that ends the proxy."""
    return container.name == "istio-proxy" or any(_ENDS_PROXY in word for word in container.words)


CHECKS: Final = (Check(group="mesh", run=advise_sidecar, lookups=RUNTIMES, of_made_objects=False),)
