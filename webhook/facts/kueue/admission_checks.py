"""Reads the AdmissionChecks of a ClusterQueue: missing checks, conflicts, and checks that may place pods in another
cluster.

Source: kubernetes-sigs/kueue@ff69552e pkg/cache/scheduler/clusterqueue.go updateWithAdmissionChecks and inactiveReason,
pkg/scheduler/flavorassigner/tas_flavorassigner.go podSetTopologyRequest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.facts.kueue.objects import MULTI_KUEUE_CLUSTER, MULTI_KUEUE_CONFIG, PROVISIONING_CONFIG
from webhook.facts.kueue.quota_tree import QueueFields
from webhook.facts.view import ClusterView
from webhook.rules.problem import MissingObject
from webhook.text.wording import named
from webhook.typed.collections import Entries
from webhook.typed.kueue import AdmissionCheck, MultiKueueConfig
from webhook.yamltext.placeholders import is_placeholder

_MULTI_KUEUE: Final = "kueue.x-k8s.io/multikueue"
_NO_CONDITION: Final = "has no condition Active in its file"
_PROVISIONING: Final = "kueue.x-k8s.io/provisioning-request"
KINDS_OF_PARAMETERS: Final[Mapping[str, GroupVersionKind]] = {
    _PROVISIONING: PROVISIONING_CONFIG,
    _MULTI_KUEUE: MULTI_KUEUE_CONFIG,
}
"""The kinds of parameters, by the controller of a check."""


class InactivityCause(Struct, frozen=True):
    """Why a ClusterQueue is inactive.

    Args:
        text: the reason, such as `its ResourceFlavor a100 does not exist (FlavorNotFound)`.
        missing: the object that must be created before the queue can be active, "" if waiting may help.
        is_known: whether the status or the spec shows the reason; False if the status is not written yet.
        is_of_check: whether a rule for AdmissionChecks reports the cause at the check.
    """

    text: str
    missing: str = ""
    is_known: bool = True
    is_of_check: bool = False


def why_checks_keep_queue_inactive(queue: QueueFields, view: ClusterView) -> Iterator[InactivityCause]:
    """Yield the reasons why AdmissionChecks make a ClusterQueue inactive."""
    remote, provisioning, per_flavor = [], [], []
    for name, flavors in _admission_checks_of_queue(queue, view).items():
        check = view.find(AdmissionCheck, name, namespaced=False)
        if not check:
            if view.is_whole(AdmissionCheck.gvk):
                check_name = f"AdmissionCheck `{name}`"
                yield InactivityCause(f"its {check_name} does not exist (AdmissionCheckNotFound)", check_name)
            continue
        active = check.status.condition("Active").status
        absent = None if active == "True" else _cause_in_parameters(check, view)
        if absent is not None:
            yield absent
        elif not active and view.is_of_file(check.json):
            if check.spec.controller_name not in (_MULTI_KUEUE, _PROVISIONING):
                view.note_missing(
                    MissingObject(kind=AdmissionCheck.gvk.kind, name=name, why=_NO_CONDITION, is_absent=False)
                )
        elif active != "True" and (active or view.is_whole()):
            addition = "" if active else ", and its controller has not set the condition Active"
            text = f"its AdmissionCheck `{name}` is inactive{addition} (AdmissionCheckInactive)"
            yield InactivityCause(text, is_known=bool(active))
        is_remote = check.spec.controller_name == _MULTI_KUEUE
        remote += [name] * is_remote
        per_flavor += [name] * (is_remote and bool(flavors) and flavors != queue.flavor_names())
        provisioning += [name] * (check.spec.controller_name == _PROVISIONING)
    yield from map(InactivityCause, _multi_kueue_conflicts(remote, per_flavor, provisioning))


def _cause_in_parameters(check: AdmissionCheck, view: ClusterView) -> InactivityCause | None:
    """Return why the parameters of an AdmissionCheck make the check inactive; None if the parameters may exist."""
    names = f"its AdmissionCheck `{check.name}` names"
    if mistake_in_parameters(check) is not None:
        kind = KINDS_OF_PARAMETERS[check.spec.controller_name].kind
        return InactivityCause(f"{names} no {kind} (AdmissionCheckInactive)", is_of_check=True)
    if absent := absent_parameters_of_check(check, view):
        text = f"{names} {absent}, which does not exist (AdmissionCheckInactive)"
        return InactivityCause(text, absent, is_of_check=True)
    name = check.spec.parameters.name
    is_of_clusters = KINDS_OF_PARAMETERS.get(check.spec.controller_name) == MULTI_KUEUE_CONFIG
    if not is_of_clusters or not (missing := clusters_if_all_are_absent(name, view)):
        return None
    clusters = named([f"`{each}`" for each in missing], "MultiKueueCluster")
    text = f"{names} MultiKueueConfig `{name}` with {clusters}, and no such cluster exists (AdmissionCheckInactive)"
    return InactivityCause(text, clusters, is_of_check=True)


def mistake_in_parameters(check: AdmissionCheck) -> tuple[FieldPath, str] | None:
    """Return the field of `spec.parameters` of an AdmissionCheck that is wrong, and what the field must be.

    None for a valid or omitted reference, for a placeholder, and for controllers other than Kueue's.

    Source: kubernetes-sigs/kueue@ff69552e pkg/util/admissioncheck/admissioncheck.go refValidForGK.
    """
    kind, parameters = KINDS_OF_PARAMETERS.get(check.spec.controller_name), check.spec.parameters
    if kind is None or is_placeholder(parameters.kind) or is_placeholder(parameters.api_group):
        return None
    if not parameters:
        is_left_out = check.spec.is_omitted("parameters")
        return None if is_left_out else (check.spec.path("parameters"), "is required")
    if parameters.kind != kind.kind:
        return parameters.path("kind"), f"must be {kind.kind}"
    if parameters.api_group != kind.group:
        return parameters.path("apiGroup"), f"must be {kind.group}"
    return None


def absent_parameters_of_check(check: AdmissionCheck, view: ClusterView) -> str:
    """Return kind and name of the parameters of an AdmissionCheck of Kueue if they do not exist; "" otherwise."""
    kind, parameters = KINDS_OF_PARAMETERS.get(check.spec.controller_name), check.spec.parameters
    if kind is None or parameters.kind != kind.kind or not parameters.name:
        return ""
    version = str(check.json.get("apiVersion", "")).rpartition("/")[2]
    lacks = view.lacks(kind._replace(version=version or kind.version), parameters.name)
    return f"{kind.kind} `{parameters.name}`" if lacks else ""


def clusters_if_all_are_absent(name: str, view: ClusterView) -> Sequence[str]:
    """Return the clusters that a MultiKueueConfig names if no such cluster exists; otherwise an empty sequence."""
    clusters = list(MultiKueueConfig.of(view.get_without_noting(MULTI_KUEUE_CONFIG, "", name)).spec.clusters)
    return clusters if all(view.is_absent(MULTI_KUEUE_CLUSTER, "", each) for each in clusters) else ()


def _multi_kueue_conflicts(remote: list[str], per_flavor: list[str], provisioning: list[str]) -> Iterator[str]:
    """Yield the conflicts of AdmissionChecks of MultiKueue with each other and with ProvisioningRequests."""
    if len(remote) > 1:
        checks = named(remote, "AdmissionCheck")
        yield f"its {checks} are all of MultiKueue, but only one is allowed (MultipleMultiKueueAdmissionChecks)"
    if per_flavor:
        checks = named(per_flavor, "AdmissionCheck")
        must = "must be for all flavors of the ClusterQueue"
        yield f"its {checks} of MultiKueue {must} (MultiKueueAdmissionCheckAppliedPerFlavor)"
    if remote and provisioning:
        yield "it has AdmissionChecks of MultiKueue and of ProvisioningRequests (MultiKueueWithProvisioningRequest)"


class CheckOfJob(NamedTuple):
    """An AdmissionCheck that each job of a ClusterQueue passes before its pods start. Without `flavors`, the check is
    for all flavors.
    """

    name: str
    controller: str
    flavors: frozenset[str]


def checks_of_jobs(queue: QueueFields, view: ClusterView) -> Iterator[CheckOfJob]:
    """Yield the known AdmissionChecks of a ClusterQueue, except checks of MultiKueue, which chooses a cluster."""
    for name, flavors in _admission_checks_of_queue(queue, view).items():
        controller = _controller_of_check(name, view)
        if controller not in ("", _MULTI_KUEUE):
            yield CheckOfJob(name, controller, frozenset() if flavors == queue.flavor_names() else flavors)


def may_run_in_other_cluster(queue: QueueFields | None, view: ClusterView) -> bool:
    """Return whether other clusters may run the jobs of a ClusterQueue.

    Then a job may start although the Topologies and quotas of this cluster do not allow the job. If the queue is not
    known, any AdmissionCheck of MultiKueue may be a check of the queue.
    """
    if queue is None:
        return any(check.spec.controller_name == _MULTI_KUEUE for check in view.list_visible(AdmissionCheck))
    return any(
        _controller_of_check(name, view) in ("", _MULTI_KUEUE) for name in _admission_checks_of_queue(queue, view)
    )


def runs_in_other_cluster(queue: QueueFields, view: ClusterView) -> bool:
    """Return whether a ClusterQueue has an AdmissionCheck of MultiKueue."""
    return any(_controller_of_check(name, view) == _MULTI_KUEUE for name in _admission_checks_of_queue(queue, view))


def may_run_on_future_nodes(queue: QueueFields, flavor: str, view: ClusterView) -> bool:
    """Return whether pods may be placed on nodes that do not exist yet, in this cluster or another."""
    if may_run_in_other_cluster(queue, view):
        return True
    checks = _admission_checks_of_queue(queue, view).items()
    return any(
        _controller_of_check(name, view) == _PROVISIONING
        for name, flavors in checks
        if not flavors or flavor in flavors
    )


def _admission_checks_of_queue(queue: QueueFields, view: ClusterView) -> Mapping[str, frozenset[str]]:
    return Entries(queue.admission_checks, view.deadline)


def _controller_of_check(name: str, view: ClusterView) -> str:
    """Return the controller of a check, "" if it is not known."""
    return view.copy_without_missing_objects().find(AdmissionCheck, name, namespaced=False).spec.controller_name
