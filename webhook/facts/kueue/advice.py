"""Advice on jobs that Kueue admits, but probably not as intended: wrong nodes, and ignored settings.

Sources: kubernetes-sigs/kueue@ff69552e pkg/controller/jobframework/utils.go; kubernetes-sigs/kueue#12449.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.facts.kueue.configuration import DEVICE_CLAIMS_GATE, may_gate_be_on
from webhook.facts.kueue.fact import predict_admission
from webhook.facts.kueue.flavors import (
    FlavorFields,
    existing_flavors,
    label_of_other_flavors,
    labels_without_nodes,
    why_flavor_does_not_fit,
)
from webhook.facts.kueue.groups import KUEUE_ADVICE
from webhook.facts.kueue.managed import QueuePlace, how_kueue_manages
from webhook.facts.kueue.never import PODS
from webhook.facts.kueue.objects import MAX_EXEC_TIME, POD_GROUP
from webhook.facts.kueue.quota_tree import QueueFields, QuotaGroup
from webhook.facts.kueue.releases import OWN_KEYS, find_kueue_release, is_kueue_release_known
from webhook.facts.kueue.workload import PodSetRequests, build_workload
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.text.wording import either
from webhook.typed.kueue import ClusterQueue
from webhook.typed.objects import Object

FLAVOR_AMBIGUOUS: Final = KUEUE_ADVICE.rule(
    "kueue-advice/flavor-ambiguous",
    title="Kueue may choose a flavor that the pods do not select",
    why=(
        "Kueue compares the node selector only with the labels that the flavor has. A flavor without a selected label "
        "also fits, and its nodes may lack the label."
    ),
    source="kubernetes-sigs/kueue#12449",
    fails="pending",
    issues=(
        "https://github.com/kubernetes-sigs/kueue/issues/12446",
        "https://github.com/kubernetes-sigs/kueue/pull/12449",
        "https://github.com/kubernetes-sigs/kueue/issues/14409",
        "https://github.com/kubernetes-sigs/kueue/issues/14611",
        "https://github.com/kubernetes-sigs/kueue/issues/931",
    ),
)
FLAVOR_WITHOUT_NODES: Final = KUEUE_ADVICE.rule(
    "kueue-advice/flavor-without-nodes",
    title="No node has the labels of the flavor",
    why=(
        "Kueue admits the job and adds the labels of the flavor to its pods, which stay Pending until a node has these "
        "labels. Flavors with nodes that are provisioned on demand are not reported."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/podset/podset.go",
    function="FromAssignment",
    fails="pending",
)
CLAIMS_UNCOUNTED: Final = KUEUE_ADVICE.rule(
    "kueue-advice/claims-uncounted",
    title="Kueue does not count the device claims of the job",
    why="By default, Kueue before 0.18 counts no claims. The job uses devices for which other jobs have quota.",
    source="kubernetes-sigs/kueue@ff69552e pkg/features/kube_features.go",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/10504",),
)
NO_REQUESTS: Final = KUEUE_ADVICE.rule(
    "kueue-advice/no-requests",
    title="The job requests nothing that its queue counts",
    why=(
        "A job that requests no covered resource uses no quota, so the queue does not limit the job. Kueue documents a "
        "ValidatingAdmissionPolicy that forbids jobs without requests."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/workload/resources.go",
    level="advice",
    issues=("https://github.com/kubernetes-sigs/kueue/issues/485",),
)
MAX_EXEC_TIME_IGNORED: Final = KUEUE_ADVICE.rule(
    "kueue-advice/max-exec-time-ignored",
    title="Kueue ignores a maximum execution time above 2147483647 seconds",
    why="Kueue accepts a larger number and then ignores it.",
    function="MaximumExecutionTimeSecondsForObject",
)

_LARGEST: Final = 2**31 - 1


def advise_max_exec_time(subject: Subject) -> Iterator[Problem]:
    """Report a time limit that Kueue's webhook accepts but Kueue's controller cannot read."""
    metadata = subject.metadata
    given = metadata.labels.get(MAX_EXEC_TIME, "")
    if not subject.once(how_kueue_manages).why_not and given.isdecimal() and int(given[:20]) > _LARGEST:
        path, message = metadata.path("labels", MAX_EXEC_TIME), f"is ignored because it is above {_LARGEST} seconds"
        yield MAX_EXEC_TIME_IGNORED.problem(path, message, f"set at most {_LARGEST}", given)


def advise_flavors(subject: Subject) -> Iterator[Problem]:
    """Report pods that may get a flavor without a label that they select, or a flavor without nodes."""
    place = _place_of_admittable_job(subject)
    if place is None or place.queue is None:
        return
    for pod_set in subject.once(build_workload).pod_sets:
        for group in place.queue.groups:
            if any(value and name in group.resources for name, value in pod_set.requests.items()):
                existing = existing_flavors(group.flavors, place.view)
                if is_kueue_release_known(subject) and find_kueue_release(subject) >= OWN_KEYS:
                    yield from _check_flavor_ambiguous(pod_set, _flavors_with_quota(existing, pod_set, group, place))
                yield from _check_flavor_without_nodes(pod_set, existing, place.queue, subject)


def _place_of_admittable_job(subject: Subject) -> QueuePlace | None:
    """Return the queues of a job; None if Kueue cannot admit the job."""
    outcome = subject.once(predict_admission)
    return outcome.place if outcome.verdict == "possible" else None


def _flavors_with_quota(
    existing: Sequence[FlavorFields], pod_set: PodSetRequests, group: QuotaGroup, place: QueuePlace
) -> Sequence[FlavorFields]:
    """Return the flavors with enough quota for a pod set, counting all quota that the queue could ever borrow."""
    tree, node = place.tree, place.node
    if tree is None or node is None:
        return existing
    asked = {name: value for name, value in pod_set.requests.items() if value and name in group.resources}
    return [
        flavor
        for flavor in existing
        if all(value <= tree.potential_available_quota(node, (flavor.name, name)) for name, value in asked.items())
    ]


def _check_flavor_without_nodes(
    pod_set: PodSetRequests, existing: Sequence[FlavorFields], queue: QueueFields, subject: Subject
) -> Iterator[Problem]:
    fitting = [flavor for flavor in existing if not why_flavor_does_not_fit(flavor, pod_set.template, flavor.labels)]
    labels = labels_without_nodes(fitting, queue, subject.cluster_view()) if fitting else ""
    if labels:
        message = f"can be admitted, but no node has the labels {labels}, so the pods stay Pending"
        fix = "use another queue, or ask the administrator to add such a node or to correct the labels of the flavor"
        yield FLAVOR_WITHOUT_NODES.problem(pod_set.path_in_object(("spec",)), message, fix)


def _check_flavor_ambiguous(pod_set: PodSetRequests, existing: Sequence[FlavorFields]) -> Iterator[Problem]:
    """Yield the problem of a label that the pods select and that the first fitting flavor does not have."""
    keys = {key for flavor in existing for key in flavor.labels}
    first = next(
        (flavor for flavor in existing if not why_flavor_does_not_fit(flavor, pod_set.template, flavor.labels)), None
    )
    key = label_of_other_flavors(first, pod_set.template, keys) if first else ""
    if first and key:
        path = pod_set.path_in_object(("spec", "nodeSelector", key))
        message = (
            f"does not rule out flavor `{first.name}`, which lacks this label, so the pods may wait for a node with "
            "this label and the labels of the flavor"
        )
        fix = "use a queue without this flavor, or ask the administrator to add this label to the flavor"
        yield FLAVOR_AMBIGUOUS.problem(path, message, fix, is_conditional=True)


def advise_pods_without_quota_use(subject: Subject) -> Iterator[Problem]:
    """Report pods that use no quota: they request no covered resource, or Kueue ignores their claims."""
    place, pod_sets = (
        _place_of_admittable_job(subject),
        [pods for pods in subject.once(build_workload).pod_sets if pods.least > 0],
    )
    if place is None or place.queue is None or not pod_sets:
        return
    claiming = next((pod_set for pod_set in pod_sets if pod_set.template.spec.resource_claims), None)
    if claiming is not None and not may_gate_be_on(DEVICE_CLAIMS_GATE, subject):
        yield _claims_uncounted_problem(claiming)
    else:
        yield from _check_requests_use_quota(subject, place.queue, pod_sets)


def _claims_uncounted_problem(pod_set: PodSetRequests) -> Problem:
    gate = f"feature gate {DEVICE_CLAIMS_GATE} is off (the default before Kueue 0.18)"
    message = f"do not count against the quota of the queue because Kueue's {gate}"
    fix = "request the devices as a resource that the queue covers, or ask the administrator to turn the gate on"
    return CLAIMS_UNCOUNTED.problem(pod_set.path_in_object(("spec", "resourceClaims")), message, fix)


def _check_requests_use_quota(
    subject: Subject, queue: QueueFields, pod_sets: Sequence[PodSetRequests]
) -> Iterator[Problem]:
    covered = {name for group in queue.groups for name in group.resources}
    asked = {name for pod_set in pod_sets for name, value in pod_set.requests.items() if value}
    if PODS not in covered and asked.isdisjoint(covered) and POD_GROUP not in subject.typed(Object).labels:
        queue_name = subject.cluster_view().name_with_file(ClusterQueue.gvk, queue.name)
        message = f"requests nothing that {queue_name} has quota for, so the job uses no quota"
        yield NO_REQUESTS.problem(
            pod_sets[0].path_in_object(("spec",)), message, f"request {either(sorted(covered)[:3])}"
        )
