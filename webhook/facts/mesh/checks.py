"""Jobs whose pods get the sidecar of Istio as an ordinary container: it keeps running, and the job never completes.

As a native sidecar it ends with the pod; whether Istio adds it so is what a site says, in the param of the policy.
Which pods get one: istio/istio@00af2c5549d5 pkg/kube/inject/inject.go injectRequired. Which namespaces ask for it is
for the bindings of the policy to say, as for the selectors of Istio's own webhooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.check import Check, Group
from webhook.facts.kinds import TRAIN_JOB
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.lookups import RUNTIMES
from webhook.facts.values import items, mapping, text
from webhook.paths import get
from webhook.problem import Problem

problem: Final = Group("mesh").problem
_RAY_JOB: Final = ("ray.io", "RayJob")
_INJECT: Final = "sidecar.istio.io/inject"
_NATIVE: Final = "sidecar.istio.io/nativeSidecar"
_SUBMITTER: Final = "submitter"
_ENDS_PROXY: Final = "quitquitquit"
"""What a command asks the proxy for that ends it (istio/istio pilot/cmd/pilot-agent)."""
_SAYS_NO: Final = f'set the label {_INJECT}: "false"'


def sidecar(subject: Subject) -> Iterator[Problem]:
    """Every pod set that gets a sidecar; of a Ray cluster only the pod that submits the job has to end."""
    is_train_job, is_ray_job = subject.group_kind == TRAIN_JOB, subject.group_kind == _RAY_JOB
    if is_ray_job and _has_default_submitter(subject.object):
        message = (
            "must be set because the default submitter pod gets the sidecar of Istio, which keeps running, so that "
            "pod never completes"
        )
        fix = f'set a template with the label {_INJECT}: "false"'
        yield problem("default-submitter", "spec.submitterPodTemplate", message, fix)
    pod_sets = subject.result("podSets")
    if missing := pod_sets.lacks():
        yield problem("sidecar", "spec.runtimeRef", missing=missing)
    for podset in subject.deadline.each(pod_sets.value):
        if (not is_ray_job or podset["name"] == _SUBMITTER) and _gets_sidecar(podset["template"], subject.deadline):
            who = f"the pods of `{podset['name']}` get" if is_train_job else "gets"
            message = f"{who} the sidecar of Istio, which keeps running, so the job never completes"
            fix = f"{_SAYS_NO} on the template of the runtime" if is_train_job else _SAYS_NO
            yield problem("sidecar", podset["path"], message, fix)


def _has_default_submitter(obj: JSON) -> bool:
    """ray-operator/controllers/ray/common/job.go: the template of KubeRay's own says nothing of a mesh."""
    spec = obj.get("spec")
    if not isinstance(spec, dict) or spec.get("submitterPodTemplate") is not None:
        return False
    return (spec.get("submissionMode") or "K8sJobMode") == "K8sJobMode"


def _gets_sidecar(template: JSON, deadline: Deadline) -> bool:
    """Whether Istio adds one, that nobody has thought of: no proxy on the network of the host, and none of its own."""
    spec = get(template, ("spec",))
    if not isinstance(spec, dict) or spec.get("hostNetwork") is True or _is_said(template):
        return False
    listed = [*items(spec.get("containers")), *items(spec.get("initContainers"))]
    return not any(_ends_sidecar(mapping(container), deadline) for container in deadline.each(listed))


def _is_said(template: JSON) -> bool:
    """Whether the label, or else the annotation, says whether a sidecar is wanted; an empty one says nothing."""
    labels, annotations = (mapping(get(template, ("metadata", name))) for name in ("labels", "annotations"))
    wanted = (value for value in (labels.get(_INJECT), annotations.get(_INJECT)) if isinstance(value, str | bool))
    return annotations.get(_NATIVE) == "true" or next(wanted, "") != ""


def _ends_sidecar(container: JSON, deadline: Deadline) -> bool:
    """A proxy that the pod brings itself, or a command that ends it."""
    if container.get("name") == "istio-proxy":
        return True
    words = [*items(container.get("command")), *items(container.get("args"))]
    return any(_ENDS_PROXY in text(word) for word in deadline.each(words))


CHECKS: Final = (Check(group="mesh", run=sidecar, lookups=RUNTIMES),)
