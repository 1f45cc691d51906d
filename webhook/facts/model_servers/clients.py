"""Compares the ports of a model server with what connects to them: probes, Services, and InferencePools.

A probe of a port where nothing listens never succeeds. A port is compared only if listening.py knows the ports of the
server, and if no other container of the pod may listen on the port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath, get
from webhook.cluster.packed import charge_for_objects
from webhook.errors import LookupFailed
from webhook.facts.gpu.device_pods import SERVING
from webhook.facts.kinds import LEADER_WORKER_SET, STATEFUL_SET
from webhook.facts.model_servers.listening import (
    SWITCHED_ON,
    TRITON_PORTS,
    advise_container_ports,
    has_port_of_flag,
    loopback_of_server,
    may_other_container_listen,
    may_other_process_listen,
    number_of_port,
    port_flag,
    port_of_server,
    ports_of_server,
    words_for_ports,
)
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.model_servers.servers_of_object import ServerContainer, pods_of_template_in_group
from webhook.facts.model_servers.services import AlphaInferencePool, InferencePool
from webhook.facts.model_servers.started_servers import (
    DYNAMO_FRONTEND,
    LMDEPLOY,
    SGLANG,
    TGI,
    TRITON,
    VLLM,
)
from webhook.facts.shapes.manifest_shape import MANIFEST_SHAPE
from webhook.facts.shapes.selectors import is_name_of_port, services_of_pods
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.rules.problem import Moment, Problem
from webhook.text.caches import IdentityKey
from webhook.typed.cluster_objects import Deployment, Service, StatefulSet
from webhook.typed.pods import HttpGetAction
from webhook.typed.view import ReadingContext

PROBE_PORT: Final = MODEL_SERVER.rule(
    "model-server/probe-port",
    title="A probe connects to a port where the model server does not listen",
    why="The probe never succeeds, so the pod is never ready, or the kubelet kills the container again and again.",
    refused_by="nothing; the pod is never ready",
    yields_to=(f"{MANIFEST_SHAPE.name}/probe-port",),
    source="https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/",
    fails="waiting",
    issues=("https://github.com/vllm-project/aibrix/issues/1054",),
)
SERVICE_PORT: Final = MODEL_SERVER.rule(
    "model-server/service-port",
    title="A Service sends requests to a port where the model server does not listen",
    why="Connections to the Service are refused, although the pod is ready.",
    refused_by="nothing; requests fail",
    yields_to=(f"{MANIFEST_SHAPE.name}/target-port",),
    source="https://kubernetes.io/docs/concepts/services-networking/service/",
    fails="silent",
)
LOOPBACK: Final = MODEL_SERVER.rule(
    "model-server/loopback",
    title="A model server listens on the loopback address, where no probe reaches it",
    why="Probes connect to the address of the pod, where the server does not listen, so the probe never succeeds.",
    refused_by="nothing; the pod is never ready",
    source="PyPI sglang 0.5.23 sglang/srt/server_args.py",
    fails="waiting",
    issues=("https://github.com/sgl-project/sglang/issues/1927",),
)
HEADLESS: Final = MODEL_SERVER.rule(
    "model-server/headless-probe",
    title="A probe connects to vLLM that runs with --headless",
    why="With --headless vLLM answers no HTTP requests, so the probe never succeeds.",
    refused_by="nothing; the pod is never ready",
    source="vllm-project/vllm vllm/entrypoints/cli/serve.py@00a5fdd2",
    fails="waiting",
)
POOL_PORT: Final = MODEL_SERVER.rule(
    "model-server/pool-port",
    title="An InferencePool sends requests to a port where the model server does not listen",
    why="The endpoint picker silently skips pods that lack the port of the pool, so no request arrives.",
    refused_by="nothing; requests fail",
    source="kubernetes-sigs/gateway-api-inference-extension@ca3d9dd4 api/v1/inferencepool_types.go",
    fails="silent",
    issues=("https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/2562",),
)
POOL_SELECTOR: Final = MODEL_SERVER.rule(
    "model-server/pool-selector",
    title="The selector of an InferencePool nearly matches the labels of the pods",
    why="The pool sends requests only to pods with all labels of its selector. A misspelt label selects no pod.",
    refused_by="nothing; requests fail",
    source="kubernetes-sigs/gateway-api-inference-extension@ca3d9dd4 api/v1/inferencepool_types.go",
    level="advice",
    fails="silent",
)
SERVICE_SELECTOR: Final = MODEL_SERVER.rule(
    "model-server/service-selector",
    title="The selector of a Service nearly matches the labels of the pods",
    why="A Service sends requests only to pods with all labels of its selector. A misspelt label selects no pod.",
    refused_by="nothing; requests fail",
    source="https://kubernetes.io/docs/concepts/services-networking/service/#services-with-selector",
    fails="silent",
)
_LONGEST_LABEL: Final = 63
_READINESS: Final = "readinessProbe"
_LIVENESS: Final = "livenessProbe"
_STARTUP: Final = "startupProbe"
PROBES: Final = (_READINESS, _LIVENESS, _STARTUP)
_HOST_FLAG: Final = {
    TGI: "--hostname 0.0.0.0",
    LMDEPLOY: "--server-name 0.0.0.0",
    DYNAMO_FRONTEND: "--http-host 0.0.0.0",
}
_KSERVE: Final = "KServe"
_ADDS_PROBE: Final = {
    ("serving.kserve.io", "InferenceService"): _KSERVE,
    ("serving.knative.dev", "Service"): "Knative",
}
"""Kinds with controllers that add a readinessProbe to a container without a readinessProbe."""
_WITH_OWN_PORTS: Final = SERVING | {LEADER_WORKER_SET}
"""Kinds with controllers that add no ports to containers."""
_OF_KSERVE: Final = "kserve-container"
_PORT_OF_KSERVE: Final = 8080
_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/"
_OTHER_PORT: Final = re.compile(r"(?::|-port[= ]+)([0-9]{2,5})(?![0-9])")
"""A port in a command: in an address, or the value of a flag for a port."""
_SPEAKS_TLS: Final = frozenset((VLLM, SGLANG))


def check_clients(members: Sequence[ServerContainer], subject: Subject) -> Iterator[Problem]:
    """Report probes, Services and InferencePools that no server answers, and advise on ports that a container lists."""
    for member in members:
        ports = ports_of_server(member)
        reported = list(_check_clients_of_server(member, ports, subject))
        yield from reported
        if ports and not reported and subject.group_kind not in _ADDS_PROBE:
            yield from advise_container_ports(member, ports)


def _check_clients_of_server(member: ServerContainer, ports: Sequence[int], subject: Subject) -> Iterator[Problem]:
    """Report probes, Services and InferencePools that do not reach a server on these ports."""
    view, labels = subject.cluster_view(), _labels_of_pods(member, subject)
    services = [each for each in _services_of_template(member, labels, view) if _is_for_requests(each, member)]
    yield from _check_selectors(member, labels, view)
    if member.server.arguments.has("headless"):  # DNS needs a Service without a cluster IP for the names of such pods
        services = [each for each in services if each.spec.cluster_ip != "None"]
    yield from _check_probes(member, ports, has_service=any(_connects_to(each, member, ports) for each in services))
    if subject.group_kind in _WITH_OWN_PORTS:
        yield from _check_named_ports(member, services)
    if not ports:
        return
    if subject.group_kind in _ADDS_PROBE:
        yield from _check_added_probe(member, ports, _ADDS_PROBE[subject.group_kind])
    for service in services:
        yield from _check_service(member, ports, service)
    yield from _check_pools(member, ports, labels, view)


def _check_probes(member: ServerContainer, ports: Sequence[int], *, has_service: bool) -> Iterator[Problem]:
    probed = list(_probed_ports(member))
    arguments, name, loopback = member.server.arguments, member.server.name, loopback_of_server(member)
    connected: Sequence[tuple[str, int, str]] = ()
    if loopback or arguments.has("headless", "socket"):
        connected = [each for each in probed if not may_other_container_listen(member, each[1], ports)]
    if arguments.has("headless") and not arguments.is_open:
        if connected or has_service:
            who = f"its {connected[0][0]} sends requests" if connected else "a Service sends requests to it"
            message = f"starts vLLM with --headless, which answers no requests, but {who}"
            fix, words = "remove the probe, and leave the pod out of the Service", arguments.written("headless")
            if connected:
                moment = _moment_of_probe(connected[0][0])
                yield HEADLESS.problem(member.path, message, fix, words=words, fails=moment)
            else:  # without a probe the pod is ready
                yield _problem_of_service(member.path, message, fix, words=words)
        return
    if arguments.has("socket") and connected and not arguments.is_open:
        message = f"listens on the Unix socket of --uds, but its {connected[0][0]} connects to port {connected[0][1]}"
        fix = "remove --uds, or use a probe that runs a command"
        yield _problem_of_probe(member.path, f"{name} {message}", fix, connected[0][0])
        return
    if loopback and (connected or has_service):
        who = f"its {connected[0][0]}" if connected else "the Service"
        message = f"{name} listens on {loopback}, but {who} connects to the address of the pod"
        fix, words = f"add {_HOST_FLAG.get(name, '--host 0.0.0.0')}", arguments.written("host")
        if connected:
            moment = _moment_of_probe(connected[0][0])
            yield LOOPBACK.problem(member.path, message, fix, words=words, fails=moment)
        else:
            yield _problem_of_service(member.path, message, fix, words=words)
    if not ports:
        return
    wrong = chain(
        _wrong_scheme(member, ports[0], probed), _wrong_port(member, ports, probed), _wrong_port_of_path(member)
    )
    for probe, message, fix in wrong:
        at = member.locate((*member.container.at, probe))
        yield _problem_of_probe(at, f"{message}, so the probe never succeeds", fix, probe)


def check_probes_of_frontend(member: ServerContainer, at: FieldPath) -> Iterator[Problem]:
    """Report a probe of a frontend of Dynamo that connects to a port where the frontend does not listen; `at` is the
    path with the probes.
    """
    ports = ports_of_server(member)
    for probe, message, fix in _wrong_port(member, ports, _probed_ports(member)) if ports else ():
        yield _problem_of_probe((*at, probe), f"{message}, so the probe never succeeds", fix, probe)


def _problem_of_probe(path: FieldPath, message: str, fix: str, probe: str) -> Problem:
    return PROBE_PORT.problem(path, message, fix, fails=_moment_of_probe(probe))


def _moment_of_probe(probe: str) -> Moment | None:
    """Return the moment of a probe that never succeeds; None for the moment of the rule. If only the livenessProbe
    fails, the pod is ready until the kubelet kills the container.
    """
    return "start" if probe == _LIVENESS else None


def _problem_of_service(path: FieldPath, message: str, fix: str, words: tuple[str, ...] = ()) -> Problem:
    return SERVICE_PORT.problem(path, message, fix, words=words)


def _wrong_port(
    member: ServerContainer, ports: Sequence[int], probed: Iterable[tuple[str, int, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield the first probe that connects to another port than the server's, with the message and the fix."""
    wrong = next(((probe, number) for probe, number, _ in probed if number not in ports), None)
    if wrong is not None and not (may_other_process_listen(member, wrong[1]) or has_port_of_flag(member, wrong[1])):
        message = f"connects to port {wrong[1]}, but {member.server.name} listens on {words_for_ports(ports)}"
        off = member.server.arguments.written("allow-http")
        fix = f"set port {ports[0]} in the probe, or {port_flag(member)} {wrong[1]}"
        if off:
            fix = f"remove {off[0]}, or ask port {ports[0]}"
        yield wrong[0], message, fix


def _wrong_port_of_path(member: ServerContainer) -> Iterator[tuple[str, str, str]]:
    """Yield the first probe that requests a path below /v2/ on Triton's gRPC port or metrics port, with the message and
    the fix. Triton answers these paths only on its HTTP port.

    Source: triton-inference-server/server@0299e638 src/http_server.cc HTTPMetricsServer.
    """
    _, switch, default = TRITON_PORTS[0]
    arguments, ports = member.server.arguments, ports_of_server(member)
    if member.server.name != TRITON or arguments.text(switch, "true") not in SWITCHED_ON:
        return
    http, container = arguments.number("port", default), member.container
    probes = (container.readiness_probe, container.liveness_probe, container.startup_probe)
    for name, probe in zip(PROBES, probes, strict=True):
        path, port = probe.http_get.url_path, number_of_port(probe.http_get.port, member)
        if path.startswith("/v2/") and port in ports and port != http:
            message = f"asks port {port} for {path[:_LONGEST_LABEL]}, which Triton answers on port {http}"
            yield name, message, f"use port {http}"
            return


def _wrong_scheme(
    member: ServerContainer, port: int, probed: Iterable[tuple[str, int, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield the first probe that uses HTTP for a server with TLS, or HTTPS for a server without TLS."""
    arguments, name = member.server.arguments, member.server.name
    if name not in _SPEAKS_TLS or arguments.is_open:
        return
    has_tls = arguments.has("certificate")
    for probe, number, scheme in probed:
        if number != port or not scheme:
            continue
        if (scheme == "HTTPS") != has_tls and not may_other_process_listen(member, port):
            has = "uses HTTP, but with --ssl-certfile" if has_tls else "uses HTTPS, but without --ssl-certfile"
            accepts = f"{name} accepts only TLS" if has_tls else f"{name} does not accept TLS"
            fix = "set httpGet.scheme: HTTPS" if has_tls else "remove httpGet.scheme, or add --ssl-certfile"
            yield probe, f"{has} {accepts}", fix
            return


def _connects_to(service: Service, member: ServerContainer, ports: Sequence[int]) -> bool:
    """Return whether a Service may connect to the server.

    At least one port of the Service must possibly belong to the container of the server.
    """
    for each in service.spec.ports:
        target = each.port_of_pods
        number = number_of_port(target, member)
        if number is None and isinstance(target, str):
            named = (
                port.container_port
                for other in member.spec.running_containers()
                for port in other.ports
                if port.name == target
            )
            number = next(named, None)
        if number is None or not may_other_container_listen(member, number, ports):
            return True
    return not service.spec.ports


def _check_named_ports(member: ServerContainer, services: Sequence[Service]) -> Iterator[Problem]:
    """Report probes and Services that refer to a port by a name that no port has.

    The kubelet cannot connect to a port that it does not find, so a container with such a readinessProbe is never
    ready. A livenessProbe of such a port has no effect, and is not reported. Source: k8s.io/kubernetes v1.36
    pkg/kubelet/prober/worker.go doProbe.

    If a port has no number, the manifest is a template. A name may then be a placeholder for a number, as in
    `targetPort: PORT` beside `containerPort: PORT`, so nothing is reported.
    """
    container = member.container
    ports = [each for other in member.spec.running_containers() for each in other.ports]
    if container.is_omitted("ports") or any(each.container_port is None for each in ports):
        return
    for name, probe in ((_READINESS, container.readiness_probe), (_STARTUP, container.startup_probe)):
        port = probe.http_get.port or probe.tcp_socket.port
        if is_name_of_port(port) and number_of_port(port, member) is None:
            lacks = "the container has no port of this name, so the probe never succeeds"
            fix = "give a port of the container this name, or write the number of a port"
            at = member.locate((*container.at, name))
            yield _problem_of_probe(at, f"connects to port `{port}`, but {lacks}", fix, name)
            break
    names = {each.name for each in ports}
    for service in services:
        targets = [each.target_port for each in service.spec.ports]
        if service.spec.cluster_ip == "None" or not targets:
            continue
        if all(is_name_of_port(each) and each not in names for each in targets):
            message = f"has no port with the name `{targets[0]}`, to which Service `{service.name}` sends requests"
            fix = f"name a port `{targets[0]}`, or set targetPort to a number"
            yield _problem_of_service(member.path, message, fix)


def _check_added_probe(member: ServerContainer, ports: Sequence[int], by: str) -> Iterator[Problem]:
    """Report a server that the readinessProbe of KServe or Knative does not reach. KServe and Knative probe the first
    port of the container, or port 8080 if the container lists no port. In a pod with several containers, Knative adds
    no probe to a container without ports.

    Source: kserve/kserve@aaac4e294 pkg/controller/v1beta1/inferenceservice/reconcilers/deployment; knative/serving
    pkg/apis/serving/v1/revision_defaults.go.
    """
    container = member.container
    has_others = len(list(member.spec.containers)) > 1
    is_probed = container.name == _OF_KSERVE if by == _KSERVE else container.ports or not has_others
    if not is_probed or container.readiness_probe or container.is_omitted("ports"):
        return
    probed_port = next((each.container_port for each in container.ports), _PORT_OF_KSERVE)
    if (
        probed_port is None
        or probed_port in ports
        or may_other_process_listen(member, probed_port)
        or has_port_of_flag(member, probed_port)
    ):
        return
    where = f"{member.server.name} listens on {words_for_ports(ports)}"
    message = f"{where}, but {by} adds a readinessProbe of port {probed_port}, so the pod is never ready"
    fix = f"list containerPort {ports[0]}, or set {port_flag(member)} {probed_port}"
    yield _problem_of_probe(member.path, message, fix, _READINESS)


def _probed_ports(member: ServerContainer) -> Iterator[tuple[str, int, str]]:
    """Yield each probe of a container that connects to a port: the name of the probe, the number of the port, and the
    scheme. The scheme is "" for probes that do not use HTTP.
    """
    container = member.container
    probes = (container.readiness_probe, container.liveness_probe, container.startup_probe)
    for name, probe in zip(PROBES, probes, strict=True):
        for handler in probe.connections:
            number = number_of_port(handler.port, member)
            if number is not None:
                yield name, number, (handler.scheme or "HTTP") if isinstance(handler, HttpGetAction) else ""


def _labels_of_pods(member: ServerContainer, subject: Subject) -> Mapping[str, JSON]:
    """Return the labels of a template, and the labels that the controller adds to the first pod of the template."""
    written = get(member.pod_set.template, ("metadata", "labels"))
    labels, name = written if isinstance(written, dict) else {}, subject.metadata.name
    if not name:
        return labels
    if subject.group_kind == STATEFUL_SET:
        return {**labels, "statefulset.kubernetes.io/pod-name": f"{name}-0", "apps.kubernetes.io/pod-index": "0"}
    if subject.group_kind == LEADER_WORKER_SET:
        has_leader = pods_of_template_in_group(member.pod_set, subject) == 1
        index = {f"{_WORKER_SET}worker-index": "0"} if has_leader else {}
        return {**labels, f"{_WORKER_SET}name": name, f"{_WORKER_SET}group-index": "0", **index}
    return labels


def _services_of_template(member: ServerContainer, labels: Mapping[str, JSON], view: ClusterView) -> Sequence[Service]:
    """Return the Services of the namespace that select the pods of a server; computed once for each template."""
    if not view.has_any(Service.gvk, view.namespace):
        return ()
    key = _services_of_template, IdentityKey(member.pod_set.template)
    return view.once(key, lambda: tuple(services_of_pods(labels, view)))


def _is_for_requests(service: Service, member: ServerContainer) -> bool:
    """Return whether a Service may carry requests. A Service carries no requests if the command uses all ports of the
    Service for another purpose. Examples are ports of Ray, and the port where the nodes of a server meet.
    """
    numbers = [each.port_of_pods for each in service.spec.ports]
    text = member.container.command_line
    member.container.charge_search(text)
    others = {*_OTHER_PORT.findall(text)} - {str(port_of_server(member))}
    return not numbers or not all(str(number) in others for number in numbers)


def _check_service(member: ServerContainer, ports: Sequence[int], service: Service) -> Iterator[Problem]:
    if service.spec.cluster_ip == "None":
        return  # clients of a headless Service connect to the pods, at any port
    numbers = list[int | None]()
    for each in service.spec.ports:
        numbers.append(number_of_port(each.port_of_pods, member))
    known = {number for number in numbers if number is not None}
    if known and None not in numbers and known.isdisjoint(ports) and not may_other_process_listen(member, *known):
        where = f"{member.server.name} listens on {words_for_ports(ports)}"
        message = f"{where}, but Service `{service.name}` sends requests to {numbers[0]}"
        fix = f"set targetPort {ports[0]}, or {port_flag(member)} {numbers[0]}"
        yield _problem_of_service(member.path, message, fix, words=member.server.arguments.written("port"))


def _pools(view: ClusterView) -> Iterator[InferencePool | AlphaInferencePool]:
    yield from view.typed_here(InferencePool)
    yield from view.typed_here(AlphaInferencePool)


def _check_pools(
    member: ServerContainer, ports: Sequence[int], labels: Mapping[str, JSON], view: ClusterView
) -> Iterator[Problem]:
    for pool in _pools(view) if labels else ():
        selector, numbers = pool.selected_labels, pool.numbers
        is_selected = selector and all(labels.get(key) == wanted for key, wanted in selector.items())
        if is_selected and numbers and not {*numbers} & {*ports} and not may_other_process_listen(member, *numbers):
            field = "targetPortNumber" if isinstance(pool, AlphaInferencePool) else "targetPorts[0].number"
            message = f"{member.server.name} listens on {words_for_ports(ports)}, but {field} of InferencePool "
            message += f"`{pool.name}` is {numbers[0]}"
            fix = f"set {field} {ports[0]}, or {port_flag(member)} {numbers[0]}"
            yield POOL_PORT.problem(member.path, message, fix)
        wrong = [(key, wanted) for key, wanted in selector.items() if labels.get(key) != wanted]
        if len(wrong) == 1 and (held := labels.get(wrong[0][0])) and _is_misspelt(wrong[0][1], held):
            key, wanted = wrong[0]
            message = f"the selector of InferencePool `{pool.name}` wants {key}: {wanted}, but the pods have {held}"
            yield POOL_SELECTOR.problem(member.path, message, f"write {key}: {held} in the selector")


def _check_selectors(member: ServerContainer, labels: Mapping[str, JSON], view: ClusterView) -> Iterator[Problem]:
    """Report a Service that selects no known pods because one value of its selector has another spelling.

    Values that differ only in case, dots or dashes mean the same workload. With another letter or digit, the Service
    may be for a workload that is not known.
    """
    for service in view.typed_here(Service) if labels else ():
        selector = service.spec.selector
        wrong = [(key, wanted) for key, wanted in selector.items() if labels.get(key) != wanted]
        if len(wrong) != 1:
            continue
        (key, wanted), actual = wrong[0], str(labels.get(wrong[0][0], ""))
        if _as_plain_word(wanted) == _as_plain_word(actual) and not _selects_known_workload(selector, view):
            message = f"the selector of Service `{service.name}` wants {key}: {wanted}, but the pods have {actual}"
            yield SERVICE_SELECTOR.problem(member.path, message, f"write {key}: {actual} in the selector")
            return


def _as_plain_word(value: str) -> str:
    """Return a value of a label without differences in case, dots, dashes and underscores."""
    return value[:_LONGEST_LABEL].lower().replace(".", "-").replace("_", "-")


def _selects_known_workload(selector: Mapping[str, str], view: ClusterView) -> bool:
    """Return whether a selector selects the pods of a Deployment or a StatefulSet. Only known objects are compared."""
    try:
        listed = [each for gvk in (Deployment.gvk, StatefulSet.gvk) for each in view.cluster.list(gvk, view.namespace)]
    except LookupFailed:  # a live view has no workloads
        return view.is_whole()
    reading = ReadingContext(view.deadline)
    workloads = (Deployment.of(each, (), reading) for each in charge_for_objects(listed, view.deadline))
    labels = (each.spec.template.metadata.labels for each in workloads)
    return any(all(given.get(key) == wanted for key, wanted in selector.items()) for given in labels)


def _is_misspelt(wanted: str, actual: JSON) -> bool:
    """Return whether a value is probably the other value with a letter too many or too few."""
    if not isinstance(actual, str) or max(len(wanted), len(actual)) > _LONGEST_LABEL or len(wanted) == len(actual):
        return False
    has_other_digits = [each for each in wanted if each.isdigit()] != [each for each in actual if each.isdigit()]
    return not has_other_digits and bool(get_close_matches(wanted, [actual], 1, 0.85))
