"""The checks of model servers, in every kind with pods or parts of pods that are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.cluster.interest import interest_in_fields
from webhook.facts.check import Check
from webhook.facts.dra.pod_claims import LOOKUPS
from webhook.facts.gpu.device_pods import PLACED, SERVING
from webhook.facts.model_servers import listening, parts_of_pods, refused_arguments, server_groups, words
from webhook.facts.model_servers.server_checks import check_server
from webhook.facts.model_servers.servers_of_object import LWS, is_node_of_ray, read_servers, server_candidates
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.virtual_pods import relocate_problem_to_train_job
from webhook.rules.problem import Problem
from webhook.typed.cluster_objects import LimitRange
from webhook.typed.pod_parts import CLAIMS, DEVICES

KINDS: Final = PLACED | frozenset(
    (("apps", "DaemonSet"), ("apps.kruise.io", "DaemonSet"), ("kaito.sh", "Workspace"), ("kaito.sh", "InferenceSet"))
)
"""Kinds with whole pods that may serve models."""
_WHOLE_ENVIRONMENT: Final = SERVING | {("", "Pod"), ("apps", "DaemonSet"), ("apps", "ReplicaSet"), LWS}
"""Kinds whose controllers add no variables, those of a LeaderWorkerSet aside, whose names begin with LWS_."""


def check_model_servers(subject: Subject) -> Iterator[Problem]:
    """Yield what is wrong with the model servers of an object."""
    return (relocate_problem_to_train_job(each, subject) for each in _check_servers(subject))


def _check_servers(subject: Subject) -> Iterator[Problem]:
    candidates = subject.once(server_candidates)
    if not candidates:
        return
    servers = subject.once(read_servers)
    for member in servers:
        yield from check_server(member)
        yield from server_groups.check_server_groups(member, subject)
        yield from server_groups.check_pods_that_wait_for_each_other(member, subject)
    yield from listening.check_listening(servers, subject)
    by_path = {member.path: member.server for member in servers}
    for candidate in subject.deadline.charge_for_items(candidates):
        path = candidate.pod_set.locate(candidate.container.at)
        server = by_path.get(path)
        yield from words.check_words_of_command(candidate.container, server, path)
        if subject.group_kind in _WHOLE_ENVIRONMENT:
            yield from words.check_undefined_variables(candidate.container, server, path)
        is_ray_node = is_node_of_ray(candidate, subject)
        yield from refused_arguments.check_ray_in_image(candidate.container, server, path, is_ray_node=is_ray_node)


CHECKS: Final = (
    Check(
        group="model-server",
        run=check_model_servers,
        kinds=KINDS,
        lookups=(*LOOKUPS, *listening.LOOKUPS, interest_in_fields(LimitRange.gvk, "spec.limits")),
        of_made_objects=False,
        of_pods_with=frozenset((CLAIMS, DEVICES)),
    ),
    Check(
        group="model-server",
        run=parts_of_pods.check_parts_of_inference_service,
        kinds=frozenset((("serving.kserve.io", "InferenceService"),)),
        lookups=parts_of_pods.LOOKUPS,
    ),
    Check(
        group="model-server",
        run=parts_of_pods.check_serving_runtime,
        kinds=frozenset(("serving.kserve.io", kind) for kind in ("ServingRuntime", "ClusterServingRuntime")),
    ),
    Check(
        group="model-server",
        run=parts_of_pods.check_parts_of_llm_service,
        kinds=frozenset((("serving.kserve.io", "LLMInferenceService"),)),
    ),
    Check(
        group="model-server",
        run=parts_of_pods.check_dynamo_graph,
        kinds=frozenset(("nvidia.com", kind) for kind in ("DynamoGraphDeployment", "DynamoComponentDeployment")),
    ),
    Check(
        group="model-server",
        run=parts_of_pods.check_nim_service,
        kinds=frozenset((("apps.nvidia.com", "NIMService"),)),
        of_made_objects=False,
    ),
)
