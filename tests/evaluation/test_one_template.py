"""One pod template means the same in a Pod, in a Job and in every custom kind. Verdict, message and patch are equal."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from tests.evaluation.random_templates import random_change, random_template, random_validation
from tests.literals import TABLE, mutating, namespace, policies, request, validating
from tests.workloads.every_kind import objects_around
from webhook.apimachinery import paths
from webhook.apimachinery.attributes import JSON, POD, Phase
from webhook.apimachinery.paths import path_as_text
from webhook.cluster.files import FilesCluster
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.schema import decode_object
from webhook.schema.api_defaults import with_api_defaults
from webhook.schema.sent import pod_as_sent
from webhook.workloads.podsets import group_kind, pod_templates

CLUSTER = FilesCluster([namespace()])
EXPAND = {"expand": "pods"}


def sent(template: JSON) -> JSON:
    metadata = {**(template.get("metadata") or {}), "namespace": "team"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return with_api_defaults(pod_as_sent(decoded(pod)), POD)


def decoded(pod: JSON) -> JSON:
    made = decode_object(pod, POD)
    assert not made.mismatches
    return made.value


def place_of(template: JSON, obj: JSON) -> paths.FieldPath:
    containers_of = template["spec"]["containers"]
    (path,) = [each.path for each in pod_templates(obj, TABLE) if each.template["spec"]["containers"] is containers_of]
    return path


def template_at(place: paths.FieldPath, obj: JSON) -> JSON:
    """Return the pod template at a place of the object, with the labels that its pods get from other fields of the
    object.
    """
    (template,) = [each.template for each in pod_templates(obj, TABLE) if each.path == place]
    # an InferenceService has the labels of its pods in the fields of a PodSpec
    spec = {name: value for name, value in template["spec"].items() if name not in ("labels", "annotations")}
    return {**template, "spec": spec}


def with_defaults_of_changed_limits(template: JSON, before: JSON, after: JSON) -> JSON:
    """Set each request that is a default to the limit after the policy changed the limit.

    In a Pod, the API server sets requests before the policy changes limits.
    """
    written = {each["name"]: (each.get("resources") or {}).get("requests") or {} for each in containers(template)}
    requested = {each["name"]: (each.get("resources") or {}).get("requests") or {} for each in containers(before)}
    made = decoded(deepcopy(after))
    for each in containers(made):
        name, requests = each["name"], (each.get("resources") or {}).get("requests") or {}
        for resource in [*requests]:
            is_unchanged = requests[resource] == requested.get(name, {}).get(resource)
            if is_unchanged and resource not in written.get(name, {}):
                del requests[resource]
    return with_api_defaults(pod_as_sent(decoded(made)), POD)


def containers(obj: JSON) -> list[JSON]:
    return [*(obj["spec"].get("initContainers") or ()), *obj["spec"]["containers"]]


def answers(found, obj: JSON, place: str = "") -> list[tuple[str, str]]:
    """Return evaluations and messages for the object or for a template in it. Messages have no path."""
    said = validating_decisions(
        request_context(found, request(obj, is_decoded=obj["kind"] == "Pod"), CLUSTER), Phase.VALIDATE
    )
    prefix = f"{place}: " if place else ""
    return [(each.evaluation, each.message.removeprefix(prefix)) for each in said if each.path == place]


def patched(found, obj: JSON, place: str = "") -> tuple[JSON, list[tuple[str, str]]]:
    """Return the mutated object, and evaluations and messages for the object or for a template in it. Messages have no
    path.
    """
    made, said = apply_mutating_policies(request_context(found, request(obj, is_decoded=obj["kind"] == "Pod"), CLUSTER))
    prefix = f"{place}: " if place else ""
    return made, [(each.evaluation, each.message.removeprefix(prefix)) for each in said if each.path == place]


def compare(seeds: range, kinds_for_each: int) -> None:
    """Compare the verdict on a Pod with the verdicts on other kinds. Each seed makes one template and its policies."""
    for seed in seeds:
        random = Random(seed)
        template = random_template(random)
        judging = validating(random_validation(random), annotations=EXPAND)
        rules = policies(judging, mutating(random_change(random), annotations=EXPAND))
        pod = sent(template)
        expected = answers(rules, pod)
        wanted, told = patched(rules, pod)
        for name, obj in random.sample([*objects_around(template)], kinds_for_each):
            where = place_of(template, obj)
            place = path_as_text(where)
            result = answers(rules, obj, place)
            made, said = patched(rules, obj, place)
            if is_part_of_pod(obj):  # fields that the template lacks are unknown, also for the expression of a message
                assert {each for each, _ in result} <= {*(each for each, _ in expected), "unknown"}, (seed, name)
                if {each for each, _ in said} == {"unknown"}:
                    assert made == obj, (seed, name)
                    continue
            else:
                assert result == expected, (seed, name)
            assert said == told, (seed, name)
            changed = template_at(where, made)
            assert sent(changed) == with_defaults_of_changed_limits(template, pod, wanted), (seed, name)
            assert_nothing_else_is_written(template_at(where, obj), changed, pod, wanted)


def is_part_of_pod(obj: JSON) -> bool:
    """Return whether a controller completes the templates of the object, so that absent fields are unknown."""
    row = TABLE.row(*group_kind(obj))
    return row is not None and row.pods == "parts"


def assert_nothing_else_is_written(template: JSON, changed: JSON, before: JSON, after: JSON) -> None:
    """Fail if the policy changed a field that it does not change in a Pod."""
    for part in ("metadata", "spec"):
        for field, value in (changed.get(part) or {}).items():
            if before[part].get(field) == after[part].get(field):
                assert value == template[part].get(field), field


def test_labels_beside_a_bare_pod_spec_are_seen_and_changed() -> None:
    compare(range(1912, 1913), len([*objects_around({"spec": {"containers": []}})]))


def test_one_template_means_the_same_in_every_kind() -> None:
    compare(range(84), 6)


@pytest.mark.nightly
def test_twenty_thousand_templates_mean_the_same_in_every_kind() -> None:
    compare(range(1000, 3500), 8)
