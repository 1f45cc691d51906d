"""Findings about the device claims of pods beyond the cases of the policies."""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.check import problems_of_group

CLASS = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"


def pod(claims: list[JSON], *containers: JSON) -> JSON:
    metadata = {"name": "p", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": list(containers), "resourceClaims": claims}}  # fmt: skip


def user(*claims: JSON, **limits: JSON) -> JSON:
    return {"name": "c", "resources": {"claims": list(claims), "limits": limits}}


def template(name: str, device_class: str) -> JSON:
    request = {"name": "r", "exactly": {"deviceClassName": device_class}}
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {"devices": {"requests": [request]}}}}  # fmt: skip


def device_class(name: str, **spec: JSON) -> JSON:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def broken(obj: JSON, *context: JSON) -> list[tuple[str, str]]:
    problems = problems_of_group("device-claims", subject(obj, *context)).problems
    return [(each.code.removeprefix("device-claims/"), each.path) for each in problems]


def unchecked(obj: JSON, *context: JSON) -> list[tuple[str, str]]:
    problems = problems_of_group("device-claims", subject(obj, *context)).unchecked
    return [(each.code.removeprefix("device-claims/"), ", ".join(map(str, each.missing))) for each in problems]


GPU, CHANNEL, AMD = "gpu.nvidia.com", "compute-domain-default-channel.nvidia.com", "gpu.amd.com"
CONTEXT = (template("g", GPU), template("c", CHANNEL), template("x", "x"), device_class(GPU), device_class(CHANNEL))
CLAIMS = [{"name": name, "resourceClaimTemplateName": name} for name in ("g", "c")]


def test_a_gpu_counts_as_requested_twice_only_for_the_same_vendor() -> None:
    other = user({"name": "c"})
    for container, twice in (
        (user({"name": "g"}, **{"nvidia.com/gpu": 1}), True),
        (user({"name": "g"}, **{"amd.com/gpu": 1}), False),
        (user({"name": "c"}, **{"nvidia.com/gpu": 1}), False),
    ):
        found = broken(pod(CLAIMS, container, other), *CONTEXT)
        assert (("gpu-asked-twice", "spec.containers[0]") in found) is twice


def test_the_resource_of_a_device_class_is_the_same_gpu() -> None:
    named = device_class(GPU, extendedResourceName="example.com/accelerator")
    found = pod(CLAIMS[:1], user({"name": "g"}, **{"example.com/accelerator": 1}))
    assert broken(found, template("g", GPU), named) == [("gpu-asked-twice", "spec.containers[0]")]


def test_names_that_are_not_labels_are_compared_too() -> None:
    taken = [{"name": "A"}, {"name": "A"}, {"name": "A", "request": "r"}, {"name": "B", "request": "r"}]
    found = broken(pod([], user(*taken)))
    assert [path for code, path in found if code == "taken-twice"] == [
        "spec.containers[0].resources.claims[1]",
        "spec.containers[0].resources.claims[2]",
    ]


def test_a_class_in_resources_is_looked_up() -> None:
    path = f'spec.containers[0].resources.limits["{CLASS}"]'
    assert broken(pod([], user(**{CLASS: 1})), device_class(GPU)) == []
    assert unchecked(pod([], user(**{CLASS: 1}))) == []  # NVIDIA's driver installs the class
    own = user(**{"deviceclass.resource.kubernetes.io/own.acme.io": 1})
    assert unchecked(pod([], own)) == [("class-exists", "DeviceClass own.acme.io not found")]
    assert broken(pod([], user(**{CLASS: "500m"})), device_class(GPU)) == [("class-amount", path)]
    requested = {"name": "c", "resources": {"requests": {CLASS: 1}}}
    assert broken(pod([], requested), device_class(GPU)) == [("class-amount", path.replace("limits", "requests"))]


def test_a_missing_object_is_reported_by_the_rule_that_needs_it() -> None:
    claims = [{"name": "g", "resourceClaimName": "g"}, {"name": "x", "resourceClaimTemplateName": "x"}]
    obj = pod(claims, user({"name": "g", "request": "r"}, {"name": "x"}))
    assert unchecked(obj, template("x", "x"), device_class(GPU)) == [
        ("claim-exists", "ResourceClaim g not found"),
        ("class-exists", "DeviceClass x not found"),
        ("request-exists", "ResourceClaim g not found"),
    ]


def test_a_claim_with_two_sources_or_none_refers_to_no_object() -> None:
    claims = [{"name": "a", "resourceClaimName": "a", "resourceClaimTemplateName": "a"}, {"name": "b"}]
    obj = pod(claims, user({"name": "a", "request": "r"}, {"name": "b", "request": "r"}))
    assert (broken(obj), unchecked(obj)) == ([], [])
