"""A controller completes a pod template with other fields. Some fields of the pods are known from the template, and the
others are unknown.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import pytest

from tests.evaluation.test_common_policies import CHANGES, DENIALS, GOOD, evaluations, made, the_policy, without_queue
from tests.literals import TABLE, mutating, namespace, policies, request, validating
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster.files import FilesCluster
from webhook.evaluation.mutating import apply_mutating_policies
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions

EXPAND: Final = {"expand": "pods"}
IMAGES: Final = "object.spec.containers.all(c, c.image.startsWith('example.com/'))"


def spark(spec: JSON, **labels: str) -> JSON:
    return made("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec, **labels)


def scheduled(spec: JSON, **labels: str) -> JSON:
    return made("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication", {"template": spec}, **labels)


def connect(spec: JSON, **labels: str) -> JSON:
    server = {"server": spec["driver"], **{key: each for key, each in spec.items() if key != "driver"}}
    return made("sparkoperator.k8s.io/v1alpha1", "SparkConnect", server, **labels)


KINDS: Final[dict[str, Any]] = {
    "SparkApplication": spark,
    "ScheduledSparkApplication": scheduled,
    "SparkConnect": connect,
}


def driver(template: JSON, **beside: Any) -> JSON:
    return {"image": "example.com/spark:1", "driver": {"template": template, **beside}, "executor": {"instances": 1}}


def container(**fields: Any) -> JSON:
    return {"spec": {"containers": [{"name": "spark-kubernetes-driver", **fields}]}}


def result(obj: JSON, expression: str) -> tuple[str, str]:
    """Return the evaluation and the message for the one template of the object."""
    rules = policies(validating({"expression": expression, "message": "denied"}, annotations=EXPAND))
    context = request_context(rules, request(obj, is_plain=True), FilesCluster([namespace()]))
    (found,) = [each for each in validating_decisions(context, Phase.VALIDATE) if each.path]
    return found.evaluation, found.message


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_the_template_lacks_is_not_known(kind: str) -> None:
    obj = KINDS[kind](driver(container(env=[{"name": "A", "value": "b"}])))
    evaluation, message = result(obj, IMAGES)
    told = "`spec.containers[0].image` of these pods is not known, because their controller completes the template"
    assert (evaluation, message.endswith(told)) == ("unknown", True)


NEVER_KNOWN: Final = (
    "object.spec.containers[0].env.size() == 0",
    "!has(object.spec.volumes)",
    "has(object.spec.dnsPolicy)",
)


@pytest.mark.parametrize("expression", NEVER_KNOWN)
@pytest.mark.parametrize("kind", KINDS)
def test_lists_that_a_controller_adds_to_and_defaults_are_not_known(kind: str, expression: str) -> None:
    assert result(KINDS[kind](driver(container(env=[{"name": "A", "value": "b"}]))), expression)[0] == "unknown"


SECURE: Final = {"securityContext": {"privileged": True}}


@pytest.mark.parametrize(
    ("template", "expression", "expected"),
    [
        (container(**SECURE), "object.spec.containers.all(c, !c.securityContext.privileged)", "deny"),
        (container(**SECURE), "object.spec.containers.exists(c, c.securityContext.privileged)", "admit"),
        (container(**SECURE), "object.spec.containers.all(c, !c.securityContext.runAsNonRoot)", "unknown"),
        ({"metadata": {"labels": {"team": "a"}}, **container()}, "object.metadata.labels.team == 'a'", "admit"),
        ({"metadata": {"labels": {"team": "a"}}, **container()}, "has(object.metadata.labels.owner)", "unknown"),
        ({"metadata": {"labels": {"team": "a"}}, **container()}, "object.metadata.labels.size() == 1", "unknown"),
        (container(), "!has(object.spec.resourceClaims)", "admit"),
        (container(), "object.metadata.namespace == 'team'", "admit"),
        ({"spec": {"tolerations": [{"key": "a"}]}}, "object.spec.tolerations.exists(t, t.key == 'b')", "deny"),
        ({"spec": {"hostNetwork": True}}, "!object.spec.hostNetwork", "deny"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_the_template_has_is_known(kind: str, template: JSON, expression: str, expected: str) -> None:
    assert result(KINDS[kind](driver(template)), expression)[0] == expected


@pytest.mark.parametrize("build", [spark, scheduled])
@pytest.mark.parametrize(
    ("beside", "template", "expression", "expected"),
    [
        # Spark replaces these fields in its own container
        ({}, container(image="docker.io/bad"), IMAGES, "unknown"),
        ({}, container(resources={"limits": {"memory": "1Gi"}}), "'memory' in object.spec.containers[0].resources.limits", "unknown"),
        ({"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}, container(resources={"limits": {"nvidia.com/gpu": 16}}), "object.spec.containers[0].resources.limits['nvidia.com/gpu'] == '16'", "unknown"),
        ({}, container(resources={"limits": {"nvidia.com/gpu": 16}}), "object.spec.containers[0].resources.limits['nvidia.com/gpu'] == '16'", "admit"),
        # Spark does not change other containers
        ({}, {"spec": {"containers": [{"name": "proxy", "image": "docker.io/bad"}, {"name": "spark-kubernetes-driver"}]}}, IMAGES, "deny"),
        # the operator adds to these fields
        ({"sidecars": [{"name": "s", "image": "s"}]}, container(**SECURE), "object.spec.containers.size() == 1", "unknown"),
        ({"tolerations": [{"key": "b"}]}, {"spec": {"tolerations": [{"key": "a"}]}}, "object.spec.tolerations.size() == 1", "unknown"),
        ({"labels": {"team": "b"}}, {"metadata": {"labels": {"team": "a"}}, **container()}, "object.metadata.labels.team == 'b'", "admit"),
        ({"nodeSelector": {"pool": "b"}}, container(), "object.spec.nodeSelector.pool == 'b'", "admit"),
    ],
)  # fmt: skip
def test_what_spark_and_its_operator_set_is_not_read_from_the_template(
    build: Any, beside: JSON, template: JSON, expression: str, expected: str
) -> None:
    assert result(build(driver(template, **beside)), expression)[0] == expected


@pytest.mark.parametrize("build", [spark, scheduled])
def test_settings_of_spark_may_replace_the_whole_template(build: Any) -> None:
    spec = {**driver({"metadata": {"labels": {"a": "b"}}, **container()}), "sparkConf": {"spark.kubernetes.x": "1"}}
    assert result(build(spec), "object.metadata.labels.a == 'b'")[0] == "unknown"


def test_the_server_of_a_spark_connect_has_the_image_of_its_template() -> None:
    assert result(connect(driver(container(image="docker.io/bad"))), IMAGES) == (
        "deny",
        "spec.server.template: denied",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_inside_another_object_is_known_in_part(kind: str) -> None:
    inner = {**KINDS[kind](driver(container())), "metadata": {"name": "s"}}
    wrapper = made("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": inner}]})
    assert result(wrapper, IMAGES)[0] == "unknown"


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_written_to_the_template_of_the_object(kind: str) -> None:
    obj = KINDS[kind](driver({"spec": {"tolerations": [{"key": "a"}]}}))
    change = "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: {'key': 'b'}}]"
    rules = policies(mutating(change, annotations=EXPAND))
    changed, _ = apply_mutating_policies(
        request_context(rules, request(obj, is_plain=True), FilesCluster([namespace()]))
    )
    assert changed == KINDS[kind](driver({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}))


@pytest.mark.parametrize("name", [*DENIALS, *CHANGES])
@pytest.mark.parametrize("kind", KINDS)
def test_no_common_policy_is_wrong(kind: str, name: str) -> None:
    """The template is right, or lacks fields that the controller may set. So no policy may deny the object or fail."""
    good = deepcopy(GOOD)
    good["spec"]["containers"][0]["name"] = "spark-kubernetes-driver"
    for template in (
        good,
        {"spec": {"containers": [{"name": "spark-kubernetes-driver"}]}},
        {"metadata": GOOD["metadata"]},
    ):
        obj = KINDS[kind](driver(template))
        assert {each[0] for each in evaluations(name, obj, GOOD)} <= {"admit", "unknown"}
        context = request_context(the_policy(name), request(obj, is_plain=True), FilesCluster([namespace()]))
        _, decisions = apply_mutating_policies(context)
        assert {each.evaluation for each in decisions} <= {"admit", "unknown"}


@pytest.mark.parametrize("name", DENIALS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_common_policy_allows_a_template_that_breaks_it(kind: str, name: str) -> None:
    template = deepcopy(GOOD)
    template["spec"]["containers"][0]["name"] = "spark-kubernetes-driver"
    breaks, text = DENIALS[name]
    if breaks is not without_queue:
        breaks(template, {})
    obj = KINDS[kind](driver(template))
    if breaks is without_queue:
        breaks(template, obj)
    found = evaluations(name, obj, template)
    assert {each[0] for each in found} <= {"deny", "unknown"}
    assert all(text in each[2] for each in found if each[0] == "deny")


def test_every_kind_with_parts_lists_the_fields_that_its_controller_keeps() -> None:
    rows = [row for row in TABLE.rows if row.pods == "parts"]
    assert {row.kind for row in rows} == KINDS.keys()
    assert all(rule.completion.keeps for row in rows for rule in row.podSets)
