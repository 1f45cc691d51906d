"""Finds open questions about the start of a job that no rule checks: about its pods, its scheduler and the nodes.

Rules report nothing about objects that they do not look up. A job with an open question does not get the answer "can
start".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import get, path_as_text
from webhook.cluster import Cluster
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.known_kinds import is_built_in
from webhook.errors import LookupFailed
from webhook.facts.dra.pod_claims import pod_claims
from webhook.facts.dra.published_devices import RESOURCE_SLICE
from webhook.facts.dra.resource_slices import ClaimOfPods, lacking_devices_of_claims
from webhook.facts.dra.types import ResourceClaimTemplate
from webhook.facts.gpu.device_pods import WORKLOADS, located_templates, without_repeated_problems
from webhook.facts.kinds import LEADER_WORKER_SET, NODE, POD, RUNTIME_CLASS
from webhook.facts.model_servers.server_candidates import server_candidates
from webhook.facts.namespace_quota.limit_ranges import problems_of_limit_ranges
from webhook.facts.namespace_quota.resource_quotas import (
    may_run_elsewhere,
    problems_of_quotas,
    quotas_in_use,
    quotas_not_compared,
)
from webhook.facts.nodes.node_devices import ALL_PODS, problems_without_node
from webhook.facts.nodes.node_offers import (
    ORDINARY,
    VOLCANO_CARDS,
    NodeOffer,
    PodsAndNodes,
    all_pods_and_nodes,
    flavors_of_queue,
    is_offered_by_device_plugin,
    largest_amounts,
    pods_and_nodes,
    term_matches,
)
from webhook.facts.nodes.node_pools import starts_all_pods_at_once
from webhook.facts.nodes.shared_cards import check_amounts, check_pods_of_hami, requests_of_unlisted_cards
from webhook.facts.nodes.types import NODE_POOL
from webhook.facts.other_schedulers.kai import check_kai_fractions
from webhook.facts.pod_prerequisites import POD_SECURITY, check_prerequisites, configuration_in_no_file
from webhook.facts.pod_security import breaches_of_pods, enforced_level
from webhook.facts.pods.node_selection import first_untolerated
from webhook.facts.pods.node_sources import first_node_without_amounts, source_of_new_nodes
from webhook.facts.pods.pod_sets import is_part_of_template, pod_sets, template_of
from webhook.facts.pods.unread_pods import has_pods_in_parts, unread_parts
from webhook.facts.resource_units import parse_amount_in_kueue_units
from webhook.facts.serving_kinds.knative import deployment_mode, fields_that_knative_may_refuse
from webhook.facts.storage.mounts import read_mounts
from webhook.facts.storage.volume_claims import PersistentVolume, problems_of_absent_storage
from webhook.facts.subject import Subject
from webhook.rules.problem import Problem
from webhook.simulation.aspects import ASPECTS, NOT_COMPARED, Aspect, OpenQuestion, aspect_of
from webhook.simulation.queue_questions import queue_questions, starting_questions
from webhook.text.caches import IdentityKey
from webhook.text.wording import counted, some_of
from webhook.typed.cluster_objects import LimitRange, PersistentVolumeClaim
from webhook.typed.pods import Container as PodContainer
from webhook.typed.pods import NodeSelector, PodTemplate, Resources
from webhook.typed.serving import InferenceService
from webhook.typed.view import ReadingContext
from webhook.workloads.resource_fields import resource_fields

_OF_PODS: Final[tuple[Aspect, ...]] = tuple(aspect for aspect in ASPECTS if aspect != "admission")
OF_OTHER_CLUSTER: Final[tuple[Aspect, ...]] = ("claims", "nodes", "storage")
"""The aspects that another cluster decides if a queue may run the job there."""
_MOST_NAMES: Final = 5
_KAITO: Final = "kaito.sh"
_INFERENCE_SERVICE: Final = ("serving.kserve.io", "InferenceService")
_OTHER_RULES: Final = frozenset((("apps", "DaemonSet"), ("apps.kruise.io", "DaemonSet")))
"""Kinds with a controller that chooses the node of each pod."""
_COMPARED: Final = frozenset(ORDINARY)
_EXCLUSIVE: Final = "/exclusive-topology"
"""The end of the annotations with which JobSet and LeaderWorkerSet give a group a topology domain of its own."""
LOOKUPS: Final = (
    interest_in_fields(PersistentVolume.gvk, "metadata.labels", "spec.storageClassName", "spec.nodeAffinity"),
)
"""Objects that commands read with the rights of their user. A server does not have these rights."""


def open_questions(subject: Subject, cluster: Cluster, reported_rules: Collection[str]) -> tuple[OpenQuestion, ...]:
    """Return the open questions about a job.

    Args:
        subject: the job.
        cluster: the other objects of the cluster.
        reported_rules: the ids of rules with a finding.
    """
    if not isinstance(subject.object, dict):
        return ()
    unread = unread_parts(subject.object, subject.table, subject.deadline)
    if unread:
        return (
            OpenQuestion(aspects=_OF_PODS, what=_unread_pods(subject, unread)),
            *_questions_of_amounts(subject, cluster),
        )
    if may_run_elsewhere(subject):
        sentence = "AdmissionChecks may run the job in another cluster, where objects and nodes are not known"
        return (
            *starting_questions(subject),
            *_server_questions(subject),
            OpenQuestion(aspects=OF_OTHER_CLUSTER, what=sentence),
        )
    return (
        *queue_questions(subject),
        *_part_questions(subject),
        *_pod_security_questions(subject, reported_rules),
        *_prerequisite_questions(subject, reported_rules),
        *_knative_questions(subject),
        *_absent_volume_questions(subject, reported_rules),
        *_server_questions(subject),
        *_quota_questions(subject, reported_rules),
        *_claim_questions(subject),
        *_volume_questions(subject),
        *_node_questions(subject, cluster, reported_rules),
    )


def _unread_pods(subject: Subject, unread: tuple[str, ...]) -> str:
    kind = subject.attributes.kind.kind
    row = subject.table.row(*subject.group_kind)
    if row is None:
        return f"claimgate does not know the kind {kind}, so its pods are not read"
    if "" in unread and not has_pods_in_parts(row):
        return f"this {kind} has no whole pod template"
    if "" in unread:
        return f"the controller of {kind} makes the pods from parts, which are not read"
    return f"the pods of {', '.join(unread)} are not read"


def _part_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about an object of a built-in kind without a container or an image. The object may be a patch.

    The API server refuses the object (k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go ValidatePodSpec).
    Controllers of other kinds may add containers and images.
    """
    if not is_built_in(subject.attributes.kind):
        return
    for _, template in subject.once(located_templates):
        containers = template.spec.containers
        without_image = next((each for each in containers if not each.image), None)
        if not template.spec.is_omitted("containers") and (not containers or without_image is not None):
            lack = (
                "the pods have no container"
                if without_image is None
                else f"container {without_image.name} has no image"
            )
            sentence = f"{lack}, as in a patch: the API server refuses a Pod without it"
            yield OpenQuestion(aspects=("admission",), what=sentence)
            return


def _absent_volume_questions(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield questions about claims and StorageClasses that do not exist, if no rule reports them for this job. The
    policy about volumes applies only to objects that create pods with devices, and skips claims without a status.
    """
    for problem in problems_of_absent_storage(subject):
        if problem.code not in reported_rules:
            yield _question_of_problem(problem)


def _pod_security_questions(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield a question about the level of Pod Security that the namespace enforces, if the pods may break the level
    and no rule compared the level with the pods.

    The rule about Pod Security skips some kinds, Pods with nodeName, and Pods with a controller. A site may also turn
    the rule off.
    """
    enforced = enforced_level(subject)
    if enforced is None or POD_SECURITY.id in reported_rules:
        return
    templates = (template_of(each, subject) for each in subject.once(pod_sets).all)
    if subject.group_kind not in WORKLOADS or any(
        breaches_of_pods(each, enforced, is_part=is_part_of_template(each, subject)) for each in templates
    ):
        sentence = f"Pod Security `{enforced.level}` of namespace {subject.namespace} is not compared with the pods"
        yield OpenQuestion(aspects=("admission",), what=sentence)


def _prerequisite_questions(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield questions about objects that the pods need and that do not exist, if no rule reports them for this job.
    Also yield a question about ConfigMaps and Secrets that no file has.

    Policies skip Pods with a node, and Pods without devices.
    """
    for problem in check_prerequisites(subject):
        if problem.code not in reported_rules and problem.code != POD_SECURITY.id:
            yield _question_of_problem(problem)
    yield from _questions_of_named_node(subject, reported_rules)
    if names := configuration_in_no_file(subject):
        told_names = some_of(names, _MOST_NAMES)
        sentence = f"the files have other objects of namespace {subject.namespace}, but not {told_names}"
        yield OpenQuestion(aspects=("launcher",), what=sentence)


def _knative_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about fields that Knative refuses, unless settings of the cluster that are not known allow the
    fields.
    """
    if names := some_of(fields_that_knative_may_refuse(subject), _MOST_NAMES):
        is_knative = subject.group_kind != _INFERENCE_SERVICE or deployment_mode(
            subject.typed(InferenceService), subject
        )
        sentence = (
            f"the features of Knative are not known, and by default Knative refuses {names}"
            if is_knative
            else f"it is not known whether KServe deploys with Knative, which may refuse {names}"
        )
        yield OpenQuestion(aspects=("admission",), what=sentence)


def _questions_of_named_node(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield questions about a Pod with nodeName that requests a share of a GPU. Only a special scheduler or webhook
    gives shares. Policies skip Pods with nodeName.
    """
    if subject.group_kind != POD or not (subject.object.get("spec") or {}).get("nodeName"):
        return
    for check in (check_pods_of_hami, check_amounts, check_kai_fractions):
        for problem in check(subject):
            if problem.code not in reported_rules and not problem.missing:
                yield _question_of_problem(problem, is_obstacle=True)


def _question_of_problem(problem: Problem, *, is_obstacle: bool = False) -> OpenQuestion:
    """Return the question about a problem that no policy reported, or could not check because of missing objects."""
    sentence = ", ".join(map(str, problem.missing))
    if not sentence:
        sentence = ": ".join(filter(None, (problem.path, problem.found_and_message)))
    known_problem = None if problem.missing else problem
    return OpenQuestion(
        aspects=(aspect_of(problem.code),), what=sentence, is_obstacle=is_obstacle, problem=known_problem
    )


def _server_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield questions about model servers with an unknown number of processes, and about model servers that may fail
    with more processes than GPUs.
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
            sentence = f"{member.server.name} starts {processes.here} processes on {counted(gpus, 'GPU')}"
            yield OpenQuestion(aspects=("launcher",), what=f"{sentence}, and may {processes.outcome}")


def _claim_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about the first pods that cannot use the devices of a claim now. Either the cluster has too few
    devices for the claim, or the devices of the claim are on nodes that do not fit the pods. Audits report the claim or
    the template itself.
    """
    view, are_together = subject.cluster_view(), starts_all_pods_at_once(subject)
    compared = subject.once(all_pods_and_nodes) if view.is_whole(NODE) else ()
    fitting = {each.pods.podset.name: [*each.fitting] for each in compared}
    claims: dict[str, list[ClaimOfPods]] = {}
    for claim in subject.once(pod_claims).claims:
        kind = claim.referenced_kind
        if kind is not None and claim.is_found:
            pods = claim.pods or 1 if are_together and kind is ResourceClaimTemplate else 1
            claims.setdefault(claim.pod_set, []).append(ClaimOfPods(view.find(kind, claim.reference), pods))
    for name, claims_of_pod in claims.items():
        offers = fitting.get(name, [])
        reason = lacking_devices_of_claims(claims_of_pod, view, {each.name for each in offers} or None)
        if reason or (reason := _claim_on_other_nodes(claims_of_pod, offers)):
            yield OpenQuestion(aspects=("claims",), what=reason)
            return


def _claim_on_other_nodes(claims: Sequence[ClaimOfPods], offers: Sequence[NodeOffer]) -> str:
    """Return which claim has its devices on nodes that do not fit the pods; "" without such a claim."""
    for claim, _ in claims:
        allocated = get(claim.json, ("status", "allocation", "nodeSelector"))
        terms = NodeSelector.of(allocated).node_selector_terms if allocated else ()
        if terms and offers and not any(term_matches(term, offer) for offer in offers for term in terms):
            return f"{claim.gvk.kind} `{claim.name}` has its devices on nodes that do not fit the pods"
    return ""


def _quota_questions(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield questions about ResourceQuotas and LimitRanges: problems that no policy reported for this job,
    ResourceQuotas with too little free now, and limits that no rule compares with the pods.
    """
    view = subject.cluster_view()
    for problem in (*problems_of_quotas(subject), *problems_of_limit_ranges(subject)):
        if problem.code not in reported_rules:
            yield _question_of_problem(problem)
    for sentence in (*quotas_in_use(subject), *quotas_not_compared(subject)):
        yield OpenQuestion(aspects=("quota",), what=sentence)
    ranges = view.list_typed(LimitRange, view.namespace) if view.namespace else ()
    for limits in ranges:
        if _has_ratios(limits):
            sentence = f"maxLimitRequestRatio of LimitRange `{limits.name}` is not compared with the pods"
            yield OpenQuestion(aspects=("quota",), what=sentence)
            return


def _has_ratios(limits: LimitRange) -> bool:
    return any(item.max_limit_request_ratio for item in limits.spec.limits)


def _volume_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about the first claim with a volume outside the nodes that fit the pods, and about the first
    new claim with labels that no volume has. Volumes of a live cluster are not read.
    """
    view = subject.cluster_view()
    for name in subject.once(read_mounts).mounts_of_claims() if subject.namespace else ():
        claim, sentence = view.find(PersistentVolumeClaim, name), ""
        volume = claim.spec.volume_name
        if not claim or not view.is_of_file(claim.json):
            continue
        if volume and _is_on_other_nodes(volume, subject):
            sentence = (
                f"the nodeAffinity of PersistentVolume `{volume}` of claim `{name}` selects no node that fits the pods"
            )
        elif not volume and claim.status.phase in ("", "Pending") and _selects_no_volume(claim, subject):
            sentence = (
                f"claim `{name}` has a selector, but no known PersistentVolume has these labels, and most provisioners "
                "create no volume for a claim with a selector"
            )
        if sentence:
            yield OpenQuestion(aspects=("storage",), what=sentence)
            return


def _selects_no_volume(claim: PersistentVolumeClaim, subject: Subject) -> bool:
    """Return whether a claim has a selector, and no known PersistentVolume has the labels that the selector names."""
    wanted = claim.spec.selector.match_labels
    volumes = subject.cluster_view().list_visible(PersistentVolume)
    return bool(wanted) and not any(
        all(each.metadata.labels.get(key) == value for key, value in wanted.items()) for each in volumes
    )


def _is_on_other_nodes(volume: str, subject: Subject) -> bool:
    """Return whether the required node affinity of a PersistentVolume selects no node that fits the pods."""
    view = subject.cluster_view()
    required = get(view.get_without_noting(PersistentVolume.gvk, "", volume), ("spec", "nodeAffinity", "required"))
    terms = NodeSelector.of(required).node_selector_terms if required else ()
    fitting = [offer for each in subject.once(pods_and_nodes) for offer in each.fitting]
    return bool(terms and fitting) and not any(term_matches(term, offer) for offer in fitting for term in terms)


def _node_questions(subject: Subject, cluster: Cluster, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield a question about requirements of the pods that are not compared with nodes."""
    nodes = _objects_of_cluster(cluster, NODE)
    if not nodes:
        sentence = f"{NOT_COMPARED} no node was read"
    elif not cluster.is_whole():
        sentence = f"{NOT_COMPARED} the cluster may have more than the {counted(len(nodes), 'node')} of the files"
    elif name := first_node_without_amounts(IdentityKey(nodes)):
        sentence = f"{NOT_COMPARED} node {name} has no status.allocatable"
    elif subject.group_kind[0] == _KAITO:
        sentence = f"{NOT_COMPARED} KAITO adds nodes for the pods"
    elif subject.group_kind in _OTHER_RULES or any(each.partial for each in subject.once(pod_sets).all):
        sentence = f"not compared with pods of {_with_article(subject.attributes.kind.kind)}"
    else:
        yield from _obstacles_of_nodes(subject, reported_rules)
        yield from _flavor_questions(subject)
        yield from _capacity_questions(subject, reported_rules)
        left = dict.fromkeys(_requirements_not_compared(subject, cluster))
        sentence = f"not compared for {', '.join(left)}" if left else ""
    if sentence:
        yield OpenQuestion(aspects=("nodes",), what=sentence)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIO' else 'a'} {noun}"


def _questions_of_amounts(subject: Subject, cluster: Cluster) -> Iterator[OpenQuestion]:
    """Yield a question if a field outside pod templates requests more devices for one pod than the largest node has."""
    view, nodes = subject.cluster_view(), _objects_of_cluster(cluster, NODE)
    key = IdentityKey(nodes)
    if not nodes or not cluster.is_whole() or first_node_without_amounts(key) or source_of_new_nodes(view):
        return
    largest = largest_amounts(key)
    for field in resource_fields(subject.object, subject.table, subject.deadline):
        limits = Resources.of(field.resources, field.path, ReadingContext(subject.deadline)).limits
        for name, written in limits.items():
            amount = parse_amount_in_kueue_units(name, written)
            if amount and amount > largest.get(name, 0) and is_offered_by_device_plugin(name, view):
                request = f"{path_as_text(field.path)}: requests {amount} `{name}` for one pod"
                sentence = f"{request}, but the largest node has {largest.get(name, 0)}"
                yield OpenQuestion(aspects=("nodes",), what=sentence, is_obstacle=True)
                return


def _obstacles_of_nodes(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield why no existing node fits the pods, if no rule reports the reason. Rules skip Pods without extended
    resources, Pods with nodeName, kinds of some other projects, and temporary states of nodes.
    """
    obstacles: dict[OpenQuestion, None] = {}
    for each in subject.once(all_pods_and_nodes):
        if each.needs.spec.node_name:
            obstacles.update((_obstacle(reason), None) for reason in _problems_of_named_node(each))
        elif not each.fits_a_node:
            problems = [*without_repeated_problems(problems_without_node(each), subject)]
            obstacles.update(
                (_question_of_problem(problem, is_obstacle=True), None)
                for problem in problems
                if problem.code not in reported_rules
            )
            if not problems and not any(rule.startswith(f"{NODE_POOL.name}/") for rule in reported_rules):
                obstacles[_obstacle("no current node fits the pods, and no NodePool adds a node for them")] = None
        elif states := each.states_of_nodes_today:
            obstacles[_obstacle(f"no current node fits the pods: {some_of(states, _MOST_NAMES)}")] = None
    yield from obstacles


def _obstacle(sentence: str) -> OpenQuestion:
    return OpenQuestion(aspects=("nodes",), what=sentence, is_obstacle=True)


def _capacity_questions(subject: Subject, reported_rules: Collection[str]) -> Iterator[OpenQuestion]:
    """Yield a question about pods that run at the same time, if the nodes have too little room for all of them."""
    for each in () if ALL_PODS.id in reported_rules else subject.once(all_pods_and_nodes):
        count, most_pods = each.pods.pod_count, each.most_pods
        if each.fitting and most_pods < count:
            yield OpenQuestion(aspects=("nodes",), what=f"have room for {most_pods} of {count} pods at the same time")
            return


def _flavor_questions(subject: Subject) -> Iterator[OpenQuestion]:
    """Yield a question about pods that need a node with the labels of a flavor, if no node that fits has these labels.

    Kueue adds the labels of one flavor of each resource group to the pods.
    """
    labels: dict[int, list[Mapping[str, str]]] = {}
    for flavor in subject.once(flavors_of_queue):
        labels.setdefault(flavor.group, []).append(flavor.labels)
    for each in subject.once(all_pods_and_nodes) if labels else ():
        for of_group in labels.values():
            fits = any(_has_labels(offer, labels_of_flavor) for offer in each.fitting for labels_of_flavor in of_group)
            if each.fitting and not fits:
                yield _obstacle("no node that fits the pods has the labels of a ResourceFlavor of the ClusterQueue")
                return


def _has_labels(offer: NodeOffer, labels: Mapping[str, str]) -> bool:
    return all(offer.labels.get(key) == value for key, value in labels.items())


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


def _requirements_not_compared(subject: Subject, cluster: Cluster) -> Iterator[str]:
    """Yield the names of requirements on nodes that no rule compares with the nodes."""
    for each in subject.once(all_pods_and_nodes):
        spec = each.needs.spec
        if spec.has("topologySpreadConstraints"):
            yield "topologySpreadConstraints"
        if spec.affinity.has("podAffinity") or spec.affinity.has("podAntiAffinity"):
            yield "affinity"
        if each.fits_a_node and not (each.fits_a_node_today or each.states_of_nodes_today or spec.node_name):
            yield _taint_not_compared(each)
        compared = (*each.needs.devices, *_COMPARED)
        names = {name: None for container in spec.running_containers() for name in _requested_names(container)}
        yield from (name for name in names if name not in compared)
        yield from (f"{name} (no annotation {VOLCANO_CARDS})" for name in requests_of_unlisted_cards(each))
        yield from _placement_not_compared(each.pods.template, each.pods.podset.pods, subject)
        if spec.has("resourceClaims") and not _objects_of_cluster(cluster, RESOURCE_SLICE):
            yield "claims (no ResourceSlice is known)"


def _taint_not_compared(pods: PodsAndNodes) -> str:
    """Return a taint of a node that pods fit only if the API server adds a toleration for their devices."""
    taints = (first_untolerated(offer.taints, pods.needs.tolerations) for offer in pods.fitting)
    shown = next((f"{taint.key}:{taint.effect}" for taint in taints if taint is not None), "of a device")
    return f"taint {shown} (tolerated only if the API server runs ExtendedResourceToleration)"


def _placement_not_compared(template: PodTemplate, pods: int | None, subject: Subject) -> Iterator[str]:
    """Yield other settings that limit the nodes of the pods: host ports, networkTopology, an exclusive topology, and
    a RuntimeClass with an overhead or a nodeSelector.
    """
    ports = (port for container in template.spec.all_containers() for port in container.ports)
    if pods != 1 and any(port.host_port or template.spec.json.get("hostNetwork") is True for port in ports):
        yield "hostPort"
    topology = get(subject.object, ("spec", "networkTopology", "mode"), "hard")
    if get(subject.object, ("spec", "networkTopology")) and topology == "hard":
        yield "networkTopology"
    annotations = (*subject.metadata.annotations, *template.metadata.annotations)
    yield from (key for key in annotations if key.endswith(_EXCLUSIVE))
    name = template.spec.runtime_class_name
    runtime_class = subject.cluster_view().get_without_noting(RUNTIME_CLASS, "", name) if name else None
    if runtime_class is not None and (
        get(runtime_class, ("overhead", "podFixed")) or get(runtime_class, ("scheduling", "nodeSelector"))
    ):
        yield f"RuntimeClass {name}"


def _requested_names(container: PodContainer) -> Iterator[str]:
    """Yield the resources of which a container requests more than 0."""
    for amounts in (container.resources.requests, container.resources.limits):
        yield from (name for name, value in amounts.items() if parse_amount_in_kueue_units(name, value) != 0)


def _objects_of_cluster(cluster: Cluster, gvk: GroupVersionKind) -> Sequence[JSON]:
    try:
        return cluster.list(gvk, None)
    except LookupFailed:
        return ()
