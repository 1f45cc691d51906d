"""Checks of selectors and ports. Workloads must select the pods of their own template. Only the API server may set some
labels and the selector of a Job. The ports of a Service must be port numbers, the pods must have the target ports, a
Service must have the ports that an Ingress names, and a container must have the ports that its probes name.

An API server refuses these objects before it calls validating webhooks, so only commands that read files report them.
Source: k8s.io/kubernetes v1.36 pkg/apis/apps/validation/validation.go, pkg/apis/batch/validation/validation.go and
pkg/registry/batch/job/strategy.go.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import structs

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cluster.interest import Index, interest_in_fields
from webhook.facts.kinds import CRON_JOB, JOB
from webhook.facts.pods.node_selection import labels_meet_requirement
from webhook.facts.pods.pod_sets import is_part_of_template
from webhook.facts.shapes.manifest_shape import MANIFEST_SHAPE
from webhook.facts.shapes.object_shape import OBJECT_SHAPE
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.patch.schema import is_builtin
from webhook.rules.problem import Moment, Problem
from webhook.text.wording import counted, some_of
from webhook.typed.cluster_objects import DaemonSet, Deployment, Service, ServicePort, StatefulSet
from webhook.typed.fields import OptionalNumber, Part, Parts, Text, Truth
from webhook.typed.objects import Object
from webhook.typed.pods import LabelSelector, Pod, PodTemplate, SelectorRequirement
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

TEMPLATE_LABELS: Final = OBJECT_SHAPE.rule(
    "object-shape/template-labels",
    title="The selector is missing or does not select the pods of the template",
    why=(
        "The API server refuses a workload without spec.selector. It also refuses a workload if spec.selector does not "
        "match the labels of the pod template, because the controller would not find its pods."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/apps/validation/validation.go",
    function="ValidatePodTemplateSpecForReplicaSet",
    level="warn",
)
JOB_SELECTOR: Final = OBJECT_SHAPE.rule(
    "object-shape/job-selector",
    title="The Job sets a selector or a label that only the API server may set",
    why=(
        "The API server sets a unique selector in each Job, and the matching labels in the pods. It refuses a Job with "
        "another selector or with other values of these labels, unless manualSelector is true."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/batch/validation/validation.go",
    function="validateGeneratedSelector, ValidateJobSpec, ValidateJobTemplateSpec",
    level="warn",
)
TARGET_PORT: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/target-port",
    title="A Service names a port that no container of its pods has",
    why="The Service has no endpoint for this port, so connections to the port are refused.",
    refused_by="nothing; requests fail",
    source="k8s.io/kubernetes v1.36 pkg/api/v1/pod/util.go",
    function="FindPort",
    level="warn",
    fails="silent",
)
PROBE_PORT: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/probe-port",
    title="A probe names a port that its container does not have",
    why=(
        "The kubelet looks for the name in the ports of the container. Without this port, a readiness probe and a "
        "startup probe never succeed, and a liveness probe checks nothing."
    ),
    refused_by="nothing; the pod is never ready",
    source="k8s.io/kubernetes v1.36 pkg/probe/util.go",
    function="ResolveContainerPort",
    level="warn",
    fails="waiting",
)
INGRESS_PORT: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/ingress-port",
    title="An Ingress names a port that its Service does not have",
    why=(
        "The API server accepts the Ingress. The controller of the Ingress finds no endpoint for the port, and answers "
        "requests with an error such as 503."
    ),
    refused_by="nothing; requests fail",
    source="k8s.io/api v0.36 networking/v1/types.go; kubernetes/ingress-nginx internal/ingress/controller",
    function="ServiceBackendPort, serviceEndpoints",
    level="warn",
    fails="silent",
)
SERVICE_PORT: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/service-port",
    title="A port of a Service is not a port number",
    why=(
        "A port is a number from 1 to 65535. The API server reads a port without a value as 0, and refuses the Service."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateServicePort",
    level="warn",
)
AMBIGUOUS_PORT: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/ambiguous-port",
    title="Ports of a Service repeat a number or a name, or have no name",
    why=(
        "The API server refuses the Service. Each port needs a number that no other port of its protocol has. If there "
        "are several ports, each port needs its own name."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidateService, validateServicePort",
    level="warn",
)
INGRESS: Final = frozenset((("networking.k8s.io", "Ingress"),))
SELECTING_KINDS: Final = frozenset(
    (("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job"))
)
_MOST_PORTS: Final = 4
_LAST_PORT: Final = 65535
_DEFAULT_PROTOCOL: Final = "TCP"
_DIRECTIVE: Final = "$patch"
"""The field of a strategic merge patch that says how an entry of a list changes."""
_REFUSED_SERVICE: Final = "the API server refuses the Service"
_LABELS_OF_TEMPLATE: Final = ("spec", "template", "metadata", "labels")
_SELECTOR_FIELDS: Final = frozenset(("matchLabels", "matchExpressions"))
_OPERATORS: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""The operators of a label selector, and whether they need values."""


_INJECTION: Final = "inject"
"""A text in the annotation or label with which a pod requests more containers from a webhook. These containers may have
more ports.
"""
_MESH_PORTS: Final = ("envoy", "istio", "linkerd", "proxy")
"""Texts in the names of the ports that a service mesh adds."""


def _label_of_selector(service: JSON) -> Sequence[str]:
    """Return one label that the selector of a Service requires; "" for a Service without a selector."""
    return (min(("=".join(each) for each in Service.of(service).spec.selector.items()), default=""),)


BY_LABEL: Final = Index("a label that it selects", _label_of_selector)
SERVICES: Final = interest_in_fields(Service.gvk, "spec.selector", "spec.ports", "spec.clusterIP", indexes=(BY_LABEL,))
WORKLOADS_OF_AUDITS: Final = tuple(
    interest_in_fields(each.gvk, "spec.template") for each in (Deployment, StatefulSet, DaemonSet)
)
_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_ANY_UID: Final = "(uid)"
"""Replaces a uid, which no file can know. No label can have this value."""
_REMOVE_SELECTOR: Final = "remove spec.selector, or set spec.manualSelector to true if the Job takes over existing pods"


class SelectingSpec(Typed):
    """The fields that all kinds of SELECTING_KINDS have; only batch/v1 JobSpec has `manualSelector`, and lacks
    `replicas`.
    """

    selector = Part(LabelSelector)
    manual_selector = Truth()
    replicas = OptionalNumber()
    template = Part(PodTemplate)


class _Workload(Object):
    """A workload that finds its pods by a selector."""

    spec = Part(SelectingSpec)


class _JobTemplate(Typed):
    """batch/v1 JobTemplateSpec."""

    spec = Part(SelectingSpec)


class _CronJobSpec(Typed):
    """batch/v1 CronJobSpec."""

    job_template = Part(_JobTemplate)


class _CronJob(Object):
    """batch/v1 CronJob."""

    spec = Part(_CronJobSpec)


class _BackendPort(Typed):
    """networking/v1 ServiceBackendPort."""

    name = Text()
    number = OptionalNumber()


class _BackendService(Typed):
    """networking/v1 IngressServiceBackend."""

    name = Text()
    port = Part(_BackendPort)


class _Backend(Typed):
    """networking/v1 IngressBackend."""

    service = Part(_BackendService)


class _IngressPath(Typed):
    """networking/v1 HTTPIngressPath."""

    backend = Part(_Backend)


class _IngressPaths(Typed):
    """networking/v1 HTTPIngressRuleValue."""

    paths = Parts(_IngressPath)


class _IngressRule(Typed):
    """networking/v1 IngressRule."""

    http = Part(_IngressPaths)


class _IngressSpec(Typed):
    """networking/v1 IngressSpec."""

    default_backend = Part(_Backend)
    rules = Parts(_IngressRule)


class _Ingress(Object):
    """networking/v1 Ingress."""

    spec = Part(_IngressSpec)


def check_labels_of_template(subject: Subject) -> Iterator[Problem]:
    """Report a selector that is empty or does not select the pods of its template.

    The API server writes the selector of a Job, unless manualSelector is set.
    """
    if subject.mismatches:
        return
    spec = subject.typed(_Workload).spec
    if (
        (subject.group_kind == JOB and not spec.manual_selector)
        or _has_open_labels(spec)
        or is_part_of_template(spec.template, subject)
    ):
        return
    selector = spec.selector
    is_empty = not selector.match_labels and not selector.match_expressions
    if is_empty and not _SELECTOR_FIELDS.issuperset(selector.json):
        return  # manifest-shape/unknown-field reports the cause
    if is_empty and subject.group_kind != JOB and subject.attributes.kind.version == "v1":
        message = f"has no label, so the API server refuses the {subject.attributes.kind.kind}"
        fix = "set spec.selector.matchLabels to labels of the pod template"
        yield TEMPLATE_LABELS.problem(spec.path("selector"), message, fix)
        return
    unmet = _unmet_requirements(selector, spec.template.metadata.labels)
    if unmet:
        more = f" and {counted(len(unmet) - 1, 'other requirement')}" if len(unmet) > 1 else ""
        message = f"do not match spec.selector, which requires {unmet[0]}{more}, so the API server refuses the object"
        yield TEMPLATE_LABELS.problem(
            _LABELS_OF_TEMPLATE, message, "set the labels that spec.selector requires in the pod template"
        )


def services_of_pods(labels: Mapping[str, JSON], view: ClusterView) -> Iterator[Service]:
    """Yield the Services of the namespace that select pods with these labels."""
    for name, value in view.deadline.charge_for_items(list(labels.items())):
        if not isinstance(value, str):
            continue
        for service in view.typed_under_key(Service, BY_LABEL, f"{name}={value}"):
            selector = service.spec.selector
            if selector and all(labels.get(key) == wanted for key, wanted in selector.items()):
                yield service


def check_ports_of_services(subject: Subject) -> Iterator[Problem]:
    """Report the first Service with a named targetPort that no container of the workload has.

    Only Services that require all labels of the workload's selector are compared, so the Service is for this workload.
    A Service is not reported if it also selects the pods of a workload that has the port, or if the owner has switched
    the workload off with 0 replicas.
    """
    view = subject.cluster_view()
    if not subject.attributes.is_plain or not view.has_any(Service.gvk, view.namespace):
        return
    spec = subject.typed(_Workload).spec
    pod, metadata, own = spec.template.spec, spec.template.metadata, spec.selector.match_labels
    if not own or spec.replicas == 0 or _has_open_labels(spec) or is_part_of_template(spec.template, subject):
        return
    if any(map(is_placeholder, (*own, *own.values()))):
        return
    containers = [*pod.running_containers()]
    ports = [port for container in containers for port in container.ports]
    if any(container.is_omitted("ports") for container in containers) or any(not port.container_port for port in ports):
        return
    if any(_INJECTION in key for key in (*metadata.annotations, *metadata.labels)):
        return
    names = {port.name for port in ports}
    with_ports = [container for container in containers if container.ports] or containers
    for service in services_of_pods(metadata.labels, view):
        if service.spec.cluster_ip == "None" or not own.items() <= service.spec.selector.items():
            continue
        for target in (port.target_port for port in service.spec.ports):
            if not isinstance(target, str) or target in names or target.isdigit() or is_placeholder(target):
                continue
            if not target or any(each in target for each in _MESH_PORTS) or _reaches_other_pods(service, target, view):
                continue
            message = f"has no port with the name `{target}`, to which Service `{service.name}` sends requests"
            fix = f"name a port `{target}`, or set targetPort of the Service to the name or number of a port"
            yield TARGET_PORT.problem(with_ports[0].at, message, fix, needs="ports")  # such as of a proxy in a patch
            break


def check_ports_of_probes(subject: Subject) -> Iterator[Problem]:
    """Report the first probe of each container that names a port which the container does not have.

    The kubelet reads only the ports of the container itself. A controller may add ports to a template of a custom kind,
    so such templates are not checked. Source: k8s.io/kubernetes v1.36 pkg/kubelet/prober/worker.go doProbe.
    """
    template_of = subject.template_of
    if not subject.attributes.is_plain or subject.is_patch or (template_of and not is_builtin(template_of)):
        return
    for container in subject.typed(Pod).spec.running_containers():
        probes = (container.startup_probe, container.readiness_probe, container.liveness_probe)
        if container.is_part or container.is_omitted("ports") or not any(probe.json for probe in probes):
            continue
        if any(port.container_port is None or is_placeholder(port.name) for port in container.ports):
            continue
        names = {port.name for port in container.ports}
        for probe in probes:
            named = (each.port for each in probe.connections if is_name_of_port(each.port))
            port = next((each for each in named if each not in names), None)
            if port is not None:
                is_liveness = probe is container.liveness_probe
                effect = (
                    "the kubelet never checks the container" if is_liveness else "the container never becomes ready"
                )
                message = f"names port `{port}`, but container `{container.name}` has no port of this name, so {effect}"
                fix = f"give a port of the container the name `{port}`, or write the number of a port"
                moment: Moment | None = "silent" if is_liveness else None
                yield PROBE_PORT.problem(probe.at, message, fix, needs="ports", fails=moment)
                break


def check_ports_of_ingress(subject: Subject) -> Iterator[Problem]:
    """Report each backend of an Ingress with a port that its Service does not have.

    A Service is compared only if it is known. If several Services of the files have its name, one with the port is
    enough. A Service without ports may be a patch, or a name outside the cluster. ingress-nginx also finds a port by
    its targetPort.
    """
    view = subject.cluster_view()
    if not subject.attributes.is_plain or subject.is_patch or not view.has_any(Service.gvk, view.namespace):
        return
    spec = subject.typed(_Ingress).spec
    backends = [spec.default_backend, *(path.backend for rule in spec.rules for path in rule.http.paths)]
    named = {each.service.name for each in backends}
    ports: dict[str, list[ServicePort]] = {}
    for service in view.typed_here(Service):
        if service.name in named:
            ports.setdefault(service.name, []).extend(service.spec.ports)
    for backend in backends:
        port, known = backend.service.port, ports.get(backend.service.name, [])
        is_filled_in = port.is_omitted("number") or port.is_omitted("name") or is_placeholder(port.name)
        if not known or is_filled_in or not (port.number or port.name):
            continue
        numbers, names = [str(each.port) for each in known], [each.name for each in known if each.name]
        field, asked, own = ("number", str(port.number), numbers) if port.number else ("name", port.name, names)
        targets = [str(each.target_port) for each in known]
        if asked not in (*own, *targets) and not any(map(is_placeholder, targets)):
            message = f"is not a port of Service `{backend.service.name}`, so the Ingress answers with an error"
            choices = [f"`{name}`" for name in names] if field == "name" and names else numbers
            of_service = some_of([*dict.fromkeys(choices)], _MOST_PORTS)
            fix = f"write one of its ports: {of_service}" if len(known) > 1 else f"write its port {of_service}"
            yield INGRESS_PORT.problem(port.path(field), message, fix, asked)


def is_name_of_port(port: JSON) -> bool:
    """Return whether a port is a name. Names have only small letters, so `PORT` is a placeholder for a number."""
    return isinstance(port, str) and not port.isdigit() and port == port.lower() and not is_placeholder(port)


def _reaches_other_pods(service: Service, target: str, view: ClusterView) -> bool:
    """Return whether a Service also selects the pods of a workload that has a port with this name."""
    selector = service.spec.selector
    templates = chain(
        (each.spec.template for each in view.typed_here(Deployment)),
        (each.spec.template for each in view.typed_here(StatefulSet)),
        (each.spec.template for each in view.typed_here(DaemonSet)),
    )
    return any(
        port.name == target
        for each in templates
        if selector.items() <= each.metadata.labels.items()
        for container in each.spec.running_containers()
        for port in container.ports
    )


def check_port_numbers(subject: Subject) -> Iterator[Problem]:
    """Report the first port of a Service that is not a port number. A chart without a value for the port writes `port:`
    without a number, which the API server reads as 0. A Service with 0 for both ports is not reported, because a
    program fills in the ports.
    """
    mistyped = {each.at for each in subject.mismatches}  # manifest-shape/wrong-type reports these
    for port in subject.typed(Service).spec.ports if subject.attributes.is_plain else ():
        is_blank = port.port == 0 and port.target_port == 0
        is_unknown = port.is_omitted("port") or port.path("port") in mistyped
        if not 0 < (port.port or 0) <= _LAST_PORT and not is_blank and not is_unknown:
            message, fix = f"must be a number from 1 to {_LAST_PORT}", "set the number of the port"
            if port.port:
                yield SERVICE_PORT.problem(port.path("port"), message, fix, port.port)
            else:
                yield SERVICE_PORT.problem(port.path("port"), f"is 0 or not set, but {message}", fix)
            return


def check_ports_are_distinct(subject: Subject) -> Iterator[Problem]:
    """Report ports of a Service that repeat an earlier port or name, and ports that need a name.

    A Service without a selector may be a patch. A patch need not name its ports.
    """
    spec = subject.typed(Service).spec
    if not subject.attributes.is_plain or any(_DIRECTIVE in port.json for port in spec.ports):
        return
    numbers: dict[tuple[int, str], ServicePort] = {}
    names: dict[str, ServicePort] = {}
    unnamed: list[ServicePort] = []
    for port in spec.ports:
        protocol = port.protocol or _DEFAULT_PROTOCOL
        same_number = same_name = port
        if port.port and not is_placeholder(protocol) and not port.is_omitted("protocol"):
            same_number = numbers.setdefault((port.port, protocol), port)
        if port.name and not is_placeholder(port.name):
            same_name = names.setdefault(port.name, port)
        if same_number is not port:
            message = f"is also the {protocol} port of {path_as_text(same_number.at)}, so {_REFUSED_SERVICE}"
            yield AMBIGUOUS_PORT.problem(port.path("port"), message, "change the number, or remove the port", port.port)
        elif same_name is not port:
            message = f"is also the name of {path_as_text(same_name.at)}, so {_REFUSED_SERVICE}"
            yield AMBIGUOUS_PORT.problem(port.path("name"), message, "give each port its own name", port.name)
        elif not port.name and not port.is_omitted("name"):
            unnamed.append(port)
    if unnamed and len(spec.ports) > 1 and spec.selector:
        message = f"is not set, but each of several ports needs a name, so {_REFUSED_SERVICE}"
        problem = AMBIGUOUS_PORT.problem(
            unnamed[0].path("name"), message, "name the port, for example http", needs="name"
        )
        yield structs.replace(problem, also=tuple(path_as_text(port.path("name")) for port in unnamed[1:]))


def _unmet_requirements(
    selector: LabelSelector, labels: Mapping[str, str], unknown: Container[str] = ()
) -> Sequence[str]:
    """Return the requirements of a selector that labels do not meet, as text; empty if one requirement is invalid,
    because the API server then compares no labels.

    Args:
        selector: the selector.
        labels: the labels; a placeholder may be any text.
        unknown: the keys of labels with values that are not known.
    """
    unmet = [
        f"`{key}: {value}`"
        for key, value in selector.match_labels.items()
        if labels.get(key) != value
        and key not in unknown
        and not any(map(is_placeholder, (key, value, labels.get(key, ""))))
    ]
    for requirement in selector.match_expressions:
        if not _is_valid(requirement):
            return ()
        is_known = requirement.key not in unknown and not any(map(is_placeholder, requirement.values))
        if is_known and not labels_meet_requirement(labels, requirement):
            unmet.append(f"`{requirement.key} {requirement.operator}`")
    return unmet


def _has_open_labels(spec: SelectingSpec) -> bool:
    """Return whether a placeholder replaces labels of the pods or of the selector, or an object around them."""
    metadata, selector = spec.template.metadata, spec.selector
    return (
        spec.is_omitted("selector")
        or spec.is_omitted("template")
        or spec.template.is_omitted("metadata")
        or metadata.is_omitted("labels")
        or selector.is_omitted("matchLabels")
        or selector.is_omitted("matchExpressions")
    )


def _is_valid(requirement: SelectorRequirement) -> bool:
    """Return whether a requirement is valid. With an invalid requirement, the API server compares no labels."""
    needs_values = _OPERATORS.get(requirement.operator)
    return needs_values is not None and needs_values == bool(requirement.values)


class SelectorMistake(NamedTuple):
    """A wrong field of a Job: the path, the message, the fix, and the value that the finding shows."""

    at: FieldPath
    message: str
    fix: str
    value: str | None = None


def check_selector_of_job(subject: Subject) -> Iterator[Problem]:
    """Report selectors and labels that a Job or a CronJob sets although only the API server may set them. A stored Job
    is not checked, because it has the values of the API server.
    """
    if subject.mismatches:
        return
    if subject.group_kind == CRON_JOB:
        mistakes = _mistakes_in_template(subject.typed(_CronJob).spec.job_template.spec)
    elif subject.typed(_Workload).metadata.json.get("uid"):
        return
    else:
        job = subject.typed(_Workload)
        mistakes = mistakes_in_selector_of_job(job.spec, "" if is_placeholder(job.metadata.name) else job.metadata.name)
    for each in mistakes:
        yield JOB_SELECTOR.problem(each.at, each.message, each.fix, each.value)


def _mistakes_in_template(spec: SelectingSpec) -> Iterator[SelectorMistake]:
    """Yield the mistakes in the Job template of a CronJob. A Job template may not have a selector."""
    for name in ("selector", "manualSelector"):
        if spec.json.get(name) not in (None, False):
            message = "must not be set, because the API server writes the selector of each Job"
            yield SelectorMistake(spec.path(name), message, "remove the field")
    yield from _mistakes_in_labels(spec, "")


def mistakes_in_selector_of_job(spec: SelectingSpec, name: str) -> Iterator[SelectorMistake]:
    """Yield the fields of a Job that the API server sets, and a missing selector if manualSelector is true.

    `name` is the name of the Job, or "" if the name is not known.
    """
    if spec.manual_selector:
        if not spec.has("selector"):
            message = "must be set, because manualSelector is true"
            yield SelectorMistake(spec.path("selector"), message, "set the selector, or remove manualSelector")
        return
    yield from _mistakes_in_own_selector(spec, name)
    if name:
        yield from _mistakes_in_labels(spec, name)


def _mistakes_in_own_selector(spec: SelectingSpec, name: str) -> Iterator[SelectorMistake]:
    """Yield a mistake if a selector requires other labels than the API server sets; `name` is "" if not known."""
    generated = dict.fromkeys(_UID_LABELS, _ANY_UID) | dict.fromkeys(_NAME_LABELS, name)
    unmet = _unmet_requirements(spec.selector, generated, () if name else _NAME_LABELS)
    if unmet:
        message = (
            f"must not ask for {unmet[0]} because the API server writes the selector of a Job without manualSelector, "
            "and refuses other labels in it"
        )
        yield SelectorMistake(spec.path("selector"), message, _REMOVE_SELECTOR)


def _mistakes_in_labels(spec: SelectingSpec, name: str) -> Iterator[SelectorMistake]:
    """Yield pod labels with other values than the API server gives them."""
    labels = spec.template.metadata.labels
    for keys, field in ((_UID_LABELS, "uid"), (_NAME_LABELS, "name")):
        for key in keys:
            value = labels.get(key)
            if value is not None and not is_placeholder(value) and not (field == "name" and value == name):
                message = (
                    f"must be the {field} of the Job, which the API server writes, so the API server refuses the Job"
                )
                yield SelectorMistake(
                    spec.path("template", "metadata", "labels", key), message, "remove the label", value
                )
