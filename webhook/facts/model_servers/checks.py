"""The checks of model servers: in pod templates, and in fields from which a controller builds containers.

Few containers start a model server, so the modules of the rules are imported only when a container may start one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.gpu.device_pods import PLACED, SERVING
from webhook.facts.kinds import LEADER_WORKER_SET
from webhook.facts.model_servers import services
from webhook.facts.model_servers.server_candidates import may_start_server_in_entrypoint, server_candidates
from webhook.facts.nodes.node_offers import CLASS_LOOKUPS, NODE_LOOKUPS
from webhook.facts.pods.pod_sets import RUNTIME_LOOKUPS
from webhook.facts.subject import Check, Subject, group_kinds_of_types
from webhook.facts.view import NAMESPACES
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import Deployment, LimitRange, StatefulSet
from webhook.typed.objects import ConfigMap
from webhook.typed.pod_parts import CLAIMS, DEVICES

KINDS: Final = PLACED | frozenset(
    (("apps", "DaemonSet"), ("apps.kruise.io", "DaemonSet"), ("kaito.sh", "Workspace"), ("kaito.sh", "InferenceSet"))
)
"""Kinds with whole pod templates that may run model servers."""
_WHOLE_ENVIRONMENT: Final = SERVING | {("", "Pod"), ("apps", "DaemonSet"), ("apps", "ReplicaSet"), LEADER_WORKER_SET}
"""Kinds with controllers that add no variables, and LeaderWorkerSet, which adds only variables that begin with LWS_."""
_RAY_START: Final = "ray start"
"""KubeRay does not change a command with this text. Source: ray-operator/controllers/ray/common/pod.go BuildPod."""


def check_model_servers(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of the model servers of an object."""
    if subject.once(server_candidates):
        from webhook.facts.pods.pod_sets import relocate_problem_to_train_job

        yield from (relocate_problem_to_train_job(each, subject) for each in _check_servers(subject))
    if may_start_server_in_entrypoint(subject):
        from webhook.facts.model_servers.server_groups import check_entrypoint_of_ray_job

        yield from check_entrypoint_of_ray_job(subject)


def _check_servers(subject: Subject) -> Iterator[Problem]:
    from webhook.facts.model_servers import clients, listening, refused_arguments, server_groups, words
    from webhook.facts.model_servers.processes import NO_GPU
    from webhook.facts.model_servers.server_checks import (
        check_alternatives,
        check_autoscalers,
        check_missing_gpu,
        check_server,
        check_temporary_folder,
        check_time_slices,
    )
    from webhook.facts.model_servers.servers_of_object import is_node_of_ray, read_alternatives, read_servers

    servers = subject.once(read_servers)
    for member in servers:
        missing = list(check_missing_gpu(member, subject))
        yield from (each for each in check_server(member) if not missing or each.code != NO_GPU.id)
        yield from missing
        yield from check_time_slices(member, subject)
        if subject.group_kind in _WHOLE_ENVIRONMENT:
            yield from check_temporary_folder(member)
        yield from server_groups.check_server_groups(member, subject)
        yield from server_groups.check_address_of_service(member, subject)
        yield from server_groups.check_pods_that_wait_for_each_other(member, subject)
    yield from clients.check_clients(servers, subject)
    yield from listening.check_ports_of_servers(servers, subject.cluster_view())
    yield from check_autoscalers(servers, subject)
    by_path = {member.path: member.server for member in servers}
    for candidate in subject.deadline.charge_for_items(subject.once(server_candidates)):
        path = candidate.pod_set.locate(candidate.container.at)
        server = by_path.get(path)
        if server is None:
            yield from check_alternatives(read_alternatives(candidate, subject))
        is_ray_node = is_node_of_ray(candidate, subject)
        if not is_ray_node or candidate.container.mentions(_RAY_START):
            # if the command of a Ray node lacks `ray start`, KubeRay joins its words to one line of a bash script, and
            # bash may split the words again
            yield from words.check_words_of_command(candidate.container, server, path, subject.object)
        yield from words.check_client_before_server(candidate.container, candidate.spec, path)
        if subject.group_kind in _WHOLE_ENVIRONMENT:
            yield from words.check_undefined_variables(candidate.container, server, path)
        yield from refused_arguments.check_ray_in_image(candidate.container, server, path, is_ray_node=is_ray_node)


def check_parts_of_pods(subject: Subject) -> Iterator[Problem]:
    """Yield the problems of model servers in containers that a controller builds from several parts."""
    from webhook.facts.model_servers import parts_of_pods

    yield from parts_of_pods.CHECK_OF_KIND[subject.group_kind](subject)


CHECKS: Final = (
    Check(
        group="model-server",
        run=check_model_servers,
        kinds=KINDS,
        lookups=(
            *LOOKUPS,
            *services.LOOKUPS,
            *NODE_LOOKUPS,
            *CLASS_LOOKUPS,
            interest_in_fields(LimitRange.gvk, "spec.limits"),
            NAMESPACES,
        ),
        kinds_in_files=group_kinds_of_types(ConfigMap, Deployment, StatefulSet),
        of_made_objects=False,
        of_pods_with=frozenset((CLAIMS, DEVICES)),
    ),
    Check(
        group="model-server",
        run=check_parts_of_pods,
        kinds=frozenset((("serving.kserve.io", "InferenceService"),)),
        lookups=RUNTIME_LOOKUPS,
    ),
    Check(
        group="model-server",
        run=check_parts_of_pods,
        kinds=frozenset(
            (
                ("serving.kserve.io", "ServingRuntime"),
                ("serving.kserve.io", "ClusterServingRuntime"),
                ("serving.kserve.io", "LLMInferenceService"),
                ("nvidia.com", "DynamoGraphDeployment"),
                ("nvidia.com", "DynamoComponentDeployment"),
            )
        ),
    ),
    Check(
        group="model-server",
        run=check_parts_of_pods,
        kinds=frozenset((("apps.nvidia.com", "NIMService"),)),
        of_made_objects=False,
    ),
    Check(
        group="model-server",
        run=services.check_backends_of_route,
        kinds=frozenset((("gateway.networking.k8s.io", "HTTPRoute"),)),
        lookups=services.ROUTE_LOOKUPS,
    ),
)
