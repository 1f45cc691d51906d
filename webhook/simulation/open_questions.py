"""Finds open questions about the start of a job that no rule checks: about its pods, its scheduler and the nodes.

Rules report nothing about objects that they do not look up. A job with an open question does not get the answer "can
start".
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get
from webhook.cluster import Cluster
from webhook.errors import LookupFailed
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.dra.published_devices import RESOURCE_SLICE
from webhook.facts.dra.resource_slices import lacking_devices_of_claim
from webhook.facts.gpu.device_pods import PLACED, WORKLOADS, DevicePods, located_templates
from webhook.facts.kinds import LEADER_WORKER_SET, NODE
from webhook.facts.kueue.objects import QUEUE_NAME
from webhook.facts.model_servers.server_candidates import server_candidates
from webhook.facts.nodes.node_devices import problems_without_node
from webhook.facts.nodes.node_offers import ORDINARY, PodsAndNodes, known_offers, needs_of_pod, pods_and_nodes
from webhook.facts.pod_prerequisites import POD_SECURITY, check_prerequisites, configuration_in_no_file
from webhook.facts.pod_security import breaches_of_pods, enforced_level
from webhook.facts.pods.node_sources import first_node_without_amounts
from webhook.facts.pods.pod_sets import pod_sets, template_of
from webhook.facts.pods.unread_pods import unread_parts
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.simulation.aspects import ASPECTS, Aspect, aspect_of
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted, some_of
from webhook.typed.pods import Container as PodContainer

DEFAULT_SCHEDULER: Final = "default-scheduler"
VOLCANO: Final = "volcano"
_KNOWN_SCHEDULERS: Final = frozenset((DEFAULT_SCHEDULER, VOLCANO))
_OF_PODS: Final[tuple[Aspect, ...]] = tuple(aspect for aspect in ASPECTS if aspect != "admission")
_SUSPENSIONS: Final = (("spec", "suspend"), ("spec", "runPolicy", "suspend"), ("spec", "paused"))
_MOST_NAMES: Final = 5
_COMPARED: Final = frozenset(ORDINARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question on which the start depends and whose answer is unknown.

    Args:
        aspects: the affected aspects.
        what: a sentence about the unknown thing, without a full stop. For nodes that were not compared, the sentence
            begins with the word "nodes", which `what` lacks.
        is_obstacle: whether something keeps the pods from the nodes of today.
    """

    aspects: tuple[Aspect, ...]
    what: str
    is_obstacle: bool = False

    @property
    def is_about_nodes_alone(self) -> bool:
        """Return whether nodes that were not compared are the only question."""
        return self.aspects == ("nodes",) and not self.is_obstacle

    @property
    def sentence(self) -> str:
        """Return the whole sentence."""
        return f"nodes {self.what}" if self.is_about_nodes_alone else self.what


def open_questions(subject: Subject, cluster: Cluster, told: Container[str]) -> tuple[OpenQuestion, ...]:
    """Return the different open questions about a job.

    Args:
        subject: the job.
        cluster: the other objects of the cluster.
        told: the ids of rules with a finding.
    """
    if not isinstance(subject.object, dict):
        return ()
    unread = unread_parts(subject.object, subject.table, subject.deadline)
    if unread:
        return (OpenQuestion(aspects=_OF_PODS, what=_unread_pods(subject, unread)),)
    return (
        *_suspension_questions(subject),
        *_pod_security_questions(subject, told),
        *_prerequisite_questions(subject, told),
        *_scheduler_questions(subject),
        *_server_questions(subject),
        *_claim_questions(subject),
        *_node_questions(subject, cluster),
    )


def scheduler_names(subject: Subject) -> tuple[str, ...]:
    """Return the schedulers that place the pods of an object; empty for only the default scheduler.

    A Volcano Job, a SparkApplication and a label of KubeRay name the scheduler for all pods.
    """
    obj = subject.object
    of_all = (
        get(obj, ("spec", "schedulerName"), ""),
        get(obj, ("spec", "batchScheduler"), ""),
        get(obj, ("metadata", "labels", "ray.io/scheduler-name"), ""),
    )
    of_templates = (get(each.template, ("spec", "schedulerName"), "") for each in subject.once(pod_sets).all)
    return tuple(dict.fromkeys(name for name in (*of_all, *of_templates) if isinstance(name, str) and name))


def _unread_pods(subject: Subject, unread: tuple[str, ...]) -> str:
    kind = subject.attributes.kind.kind
    if subject.table.row(*subject.group_kind) is None:
        return f"claimgate does not know the kind {kind}, so its pods are not read"
    if "" in unread:
        return f"the controller of {kind} makes the pods from parts, which are not read"
    return f"the pods of {', '.join(unread)} are not read"


def _suspension_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about an object that is suspended, paused or gated, if no queue of Kueue would resume it."""
    name = subject.metadata.labels.get(QUEUE_NAME)
    path = next((each for each in _SUSPENSIONS if get(subject.object, each) is True), None)
    if path is not None and not name:
        what = f"{'.'.join(path)} is true, so no pod starts before someone changes it"
        yield OpenQuestion(aspects=("queue",), what=what)
    elif not name and any(get(each.template, ("spec", "schedulingGates")) for each in subject.once(pod_sets).all):
        what = "schedulingGates keep the pods from the scheduler until someone removes the gates"
        yield OpenQuestion(aspects=("queue",), what=what)


def _pod_security_questions(subject: Subject, told: Container[str]) -> Iterator[OpenQuestion]:
    """Yield a question about the level of Pod Security that the namespace enforces, if no rule compared it with the
    pods.

    The rule does not apply to all kinds, and not to a Pod with a node or a controller, and a site may turn it off.
    """
    enforced = enforced_level(subject)
    if enforced is None or POD_SECURITY.id in told:
        return
    templates = (template_of(each, subject) for each in subject.once(pod_sets).all)
    if subject.group_kind not in WORKLOADS or any(breaches_of_pods(each, enforced) for each in templates):
        what = f"Pod Security `{enforced.level}` of namespace {subject.namespace} is not compared with the pods"
        yield OpenQuestion(aspects=("admission",), what=what)


def _prerequisite_questions(subject: Subject, told: Container[str]) -> Iterator[OpenQuestion]:
    """Yield questions about objects that the pods need: objects that do not exist, if no policy checks it for this job,
    and ConfigMaps and Secrets that incomplete files lack.

    Policies skip Pods with a node, and Pods without devices.
    """
    for problem in check_prerequisites(subject):
        if problem.code not in told and problem.code != POD_SECURITY.id:
            what = f"{problem.path}: {problem.found_and_message}"
            yield OpenQuestion(aspects=(aspect_of(problem.code),), what=what)
    if names := configuration_in_no_file(subject):
        told_names = some_of(names, _MOST_NAMES)
        what = f"the files have other objects of namespace {subject.namespace}, but not {told_names}"
        yield OpenQuestion(aspects=("launcher",), what=what)


def _scheduler_questions(subject: Subject) -> Iterator[OpenQuestion]:
    names = [each for each in scheduler_names(subject) if each not in _KNOWN_SCHEDULERS]
    if names:
        said = f"scheduler {names[0]} is" if len(names) == 1 else f"schedulers {', '.join(names)} are"
        yield OpenQuestion(aspects=("queue", "quota"), what=f"{said} not known to claimgate")


def _server_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield questions about model servers: the number of their processes is unknown, or the effect of too many
    processes.
    """
    if not subject.once(server_candidates):
        return
    from webhook.facts.model_servers.servers_of_object import read_servers

    for member in subject.once(read_servers):
        processes, gpus = member.processes, member.gpus.count
        is_one_group = subject.group_kind == LEADER_WORKER_SET and processes.total is not None
        if processes.unknown and gpus is not None and not is_one_group:
            yield OpenQuestion(aspects=("launcher",), what=processes.unknown)
        elif processes.is_advice and gpus is not None and (processes.here or 0) > gpus:
            what = f"{member.server.name} starts {processes.here} processes on {counted(gpus, 'GPU')}"
            yield OpenQuestion(aspects=("launcher",), what=f"{what}, and may {processes.outcome}")


def _claim_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about the first claim for which the cluster has too few devices now. Audits report the claim or
    the template itself.
    """
    view = subject.cluster_view()
    for claim in subject.once(pod_claims).claims:
        kind = claim.referenced_kind
        reason = lacking_devices_of_claim(view.find(kind, claim.reference), view) if kind and claim.is_found else ""
        if reason:
            yield OpenQuestion(aspects=("claims",), what=f"{claim.kind} `{claim.reference}`: {reason}")
            return


def _node_questions(subject: Subject, cluster: Cluster) -> Iterator[OpenQuestion]:
    """Yield a question about requirements of the pods that are not compared with nodes."""
    nodes = _objects_of_cluster(cluster, NODE)
    if not nodes:
        what = "not compared: no node was read"
    elif not cluster.is_whole():
        what = f"not compared: there may be others than the {counted(len(nodes), 'node')} of the files"
    elif name := first_node_without_amounts(IdentityKey(nodes)):
        what = f"not compared: node {name} has no status.allocatable"
    elif subject.group_kind not in PLACED:
        what = f"not compared with pods of a {subject.attributes.kind.kind}"
    else:
        yield from _obstacles_of_nodes(subject)
        left = dict.fromkeys(_requirements_not_compared(subject, cluster))
        what = f"not compared for {', '.join(left)}" if left else ""
    if what:
        yield OpenQuestion(aspects=("nodes",), what=what)


def _obstacles_of_nodes(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield why no node of today takes pods, as far as no rule reports it: rules do not compare Pods without extended
    resources, Pods with nodeName, and temporary states of nodes.
    """
    compared = subject.once(pods_and_nodes)
    said: dict[str, None] = {}
    for each in _all_pods_and_nodes(subject):
        if each.needs.spec.node_name:
            said.update(dict.fromkeys(_problems_of_named_node(each)))
        elif not each.fits_a_node:
            told = () if each in compared else problems_without_node(each)
            said.update(dict.fromkeys(_problem_as_question(problem) for problem in told))
        elif states := each.states_of_nodes_today:
            said[f"no node of today takes the pods: {some_of(states, _MOST_NAMES)}"] = None
    yield from (OpenQuestion(aspects=("nodes",), what=each, is_obstacle=True) for each in said)


def _all_pods_and_nodes(subject: Subject) -> Iterator[PodsAndNodes]:
    """Yield the pods of each template with the nodes, also pods without extended resources."""
    compared = {id(each.pods.template): each for each in subject.once(pods_and_nodes)}
    view = subject.cluster_view()
    for podset, template in subject.once(located_templates):
        pods = DevicePods(podset, template, (), {})
        each = compared.get(id(template))
        yield each or PodsAndNodes(pods, needs_of_pod(template.spec, view), known_offers(view), view)


def _problems_of_named_node(each: PodsAndNodes) -> Iterator[str]:
    """Yield why the node that pods name does not run them. These pods skip the scheduler."""
    name = each.needs.spec.node_name
    offer = next((offer for offer in each.offers if offer.name == name), None)
    if offer is None:
        yield f"nodeName is {name}, which is not a node of the cluster"
    elif not each.needs.kubelet_accepts(offer):
        yield f"nodeName is {name}, but this node does not have what the pods require"
    elif not offer.is_ready:
        yield f"nodeName is {name}, and this node is not Ready"


def _problem_as_question(problem: Problem) -> str:
    return ", ".join(map(str, problem.missing)) or ": ".join(filter(None, (problem.path, problem.message)))


def _requirements_not_compared(subject: Subject, cluster: Cluster) -> Iterator[str]:
    """Yield the names of requirements on nodes that no rule compares with the nodes."""
    for each in _all_pods_and_nodes(subject):
        spec = each.needs.spec
        if spec.has("topologySpreadConstraints"):
            yield "topologySpreadConstraints"
        if spec.affinity.has("podAffinity") or spec.affinity.has("podAntiAffinity"):
            yield "affinity"
        if each.fits_a_node and not (each.fits_a_node_today or each.states_of_nodes_today or spec.node_name):
            yield "taints"
        known = (*each.needs.devices, *_COMPARED)
        names = {name: None for container in spec.running_containers() for name in _requested_names(container)}
        yield from (name for name in names if name not in known)
        if spec.has("resourceClaims") and not _objects_of_cluster(cluster, RESOURCE_SLICE):
            yield "claims (no ResourceSlice is known)"


def _requested_names(container: PodContainer) -> Iterator[str]:
    yield from container.resources.requests
    yield from container.resources.limits


def _objects_of_cluster(cluster: Cluster, gvk: GroupVersionKind) -> Sequence[JSON]:
    try:
        return cluster.list(gvk, None)
    except LookupFailed:
        return ()
