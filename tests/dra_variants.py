"""Valid and invalid claims, templates, classes and taint rules, each with a description.

`tests/e2e/dra_verdicts.py` writes the answers of a real kube-apiserver to tests/data/dra/verdicts.tsv.
tests/policies/test_dra_verdicts.py compares the shipped policies with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.dra_devices import CLASS, DRIVER, cel, choice, devices, either, exact, opaque, told
from tests.dra_selectors import wide

JSON = Any
VERSIONS = ("v1", "v1beta2", "v1beta1")


def flat(request: JSON) -> JSON:
    """Return a request in the form of v1beta1, in which the fields of `exactly` are beside the name."""
    if not isinstance(request, dict) or not isinstance(request.get("exactly"), dict):
        return request
    return {key: value for key, value in request.items() if key != "exactly"} | request["exactly"]


def in_version(held: JSON, version: str) -> JSON:
    if version != "v1beta1" or not isinstance(held.get("requests"), list):
        return held
    return held | {"requests": [flat(request) for request in held["requests"]]}


def claim(spec: JSON, version: str = "v1", name: str = "c") -> JSON:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def template(spec: JSON, version: str = "v1", name: str = "t") -> JSON:
    return {**claim(spec, version, name), "kind": "ResourceClaimTemplate"}


def device_class(spec: JSON, version: str = "v1", name: str = CLASS) -> JSON:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def variants() -> Iterator[tuple[str, JSON]]:
    """Yield every object with its own description."""
    for index, (name, held) in enumerate(devices()):
        yield f"claim v1: {name}", claim({"devices": held})
        version = ("v1beta1", "v1beta2")[index % 3 == 2]
        if version == "v1beta1" or index % 2:
            yield f"template {version}: {name}", template({"spec": {"devices": in_version(held, version)}}, version)
    yield from _shapes()
    yield from _templates()
    yield from _classes()
    yield from _rules()
    yield from _groups()


def _shapes() -> Iterator[tuple[str, JSON]]:
    for version in VERSIONS:
        yield f"claim {version}: flat request", claim({"devices": {"requests": [flat(exact())]}}, version)
        yield f"claim {version}: request under exactly", claim({"devices": {"requests": [exact()]}}, version)
        both = exact() | {"deviceClassName": CLASS}
        yield f"claim {version}: request both flat and under exactly", claim({"devices": {"requests": [both]}}, version)
        for field, value in (("count", 2), ("allocationMode", "All"), ("adminAccess", False), ("selectors", []), ("selectors", [cel("true")]),
                             ("tolerations", [{"operator": "Exists"}]), ("capacity", {"requests": {"a": "1"}}), ("deviceClassName", ""), ("count", 0)):  # fmt: skip
            beside = either(choice()) | {field: value}
            yield (
                f"claim {version}: {field} {value} beside firstAvailable",
                claim({"devices": {"requests": [beside]}}, version),
            )
            alone = {"name": "main", field: value}
            yield (
                f"claim {version}: {field} {value} without a class",
                claim({"devices": {"requests": [alone]}}, version),
            )
        yield f"claim {version}: no spec", {key: value for key, value in claim({}, version).items() if key != "spec"}
        yield f"claim {version}: spec null", claim(None, version)
        yield f"claim {version}: spec a list", claim([], version)
        yield f"claim {version}: devices null", claim({"devices": None}, version)
        yield f"claim {version}: devices a list", claim({"devices": [exact()]}, version)
        yield f"claim {version}: requests one level too high", claim({"requests": [exact()]}, version)
        yield f"claim {version}: a template's depth", claim({"spec": {"devices": {"requests": [exact()]}}}, version)
        yield f"claim {version}: resourceClassName", claim({"resourceClassName": CLASS}, version)
    for name in ("C", "a" * 253, "a" * 254, "a_b", "a.b"):
        shown = name if len(name) < 30 else f"{len(name)} letters"
        yield f"claim named `{shown}`", claim({"devices": {"requests": [exact()]}}, name=name)
        yield f"template named `{shown}`", template({"spec": {"devices": {"requests": [exact()]}}}, name=name)
        yield f"class named `{shown}`", device_class({}, name=name)


def _templates() -> Iterator[tuple[str, JSON]]:
    good = {"devices": {"requests": [exact()]}}
    for name, metadata in (
        ("labels", {"labels": {"a": "b"}}), ("annotations", {"annotations": {"a/b": "any thing"}}), ("null", None), ("empty", {}), ("a list", []),
        ("a name", {"name": "x"}), ("an empty name", {"name": ""}), ("a namespace", {"namespace": "default"}), ("generateName", {"generateName": "x-"}),
        ("finalizers", {"finalizers": ["a.b/c"]}), ("owners", {"ownerReferences": []}), ("creationTimestamp null", {"creationTimestamp": None}),
        ("creationTimestamp", {"creationTimestamp": "2024-01-01T00:00:00Z"}), ("uid", {"uid": "x"}), ("a bad label", {"labels": {"a b": "c"}}),
        ("a bad label value", {"labels": {"a": "b c"}}), ("a label that is a number", {"labels": {"a": 1}}), ("a bad annotation key", {"annotations": {"a b": "c"}}),
        ("labels a list", {"labels": ["a"]}), ("a null label", {"labels": {"a": None}}), ("an upper annotation key", {"annotations": {"A.b/C": "c"}}),
        ("an unknown field", {"label": {"a": "b"}}),
    ):  # fmt: skip
        yield f"template with metadata: {name}", template({"metadata": metadata, "spec": good})
    yield "template with a claim's depth", template(good)
    yield "template without inner spec", template({})
    yield "template with inner spec null", template({"spec": None})
    yield "template with an unknown field", template({"spec": good, "replicas": 1})


def _classes() -> Iterator[tuple[str, JSON]]:
    for version in VERSIONS:
        yield f"class {version}: empty", device_class({}, version)
        yield f"class {version}: selector", device_class({"selectors": [cel('device.driver == "x"')]}, version)
        yield f"class {version}: 33 selectors", device_class({"selectors": [cel("true")] * 33}, version)
        yield f"class {version}: selector without cel", device_class({"selectors": [{}]}, version)
        yield (
            f"class {version}: selector that does not compile",
            device_class({"selectors": [cel("device.x")]}, version),
        )
        yield f"class {version}: selector too complex", device_class({"selectors": [cel(wide(6))]}, version)
        yield (
            f"class {version}: cel.bind",
            device_class({"selectors": [cel("cel.bind(a, device.driver, a == 'x')")]}, version),
        )
        yield f"class {version}: config", device_class({"config": [opaque()]}, version)
        yield f"class {version}: 33 configs", device_class({"config": [opaque()] * 33}, version)
        yield f"class {version}: config for requests", device_class({"config": [opaque(requests=["main"])]}, version)
        yield f"class {version}: config without opaque", device_class({"config": [{}]}, version)
        yield f"class {version}: parameters a list", device_class({"config": [opaque([])]}, version)
        yield f"class {version}: suitableNodes", device_class({"suitableNodes": {"nodeSelectorTerms": []}}, version)
    yield "class: no spec", {key: value for key, value in device_class({}).items() if key != "spec"}
    yield "class: spec null", device_class(None)
    yield "class: selectors a map", device_class({"selectors": cel("true")})
    yield "class: an unknown field", device_class({"selector": []})
    for name in ("nvidia.com/gpu", "gpu", "", None, "example.com/gpu-1", "kubernetes.io/gpu", "x.kubernetes.io/gpu", "requests.example.com/gpu", "a/b/c", "Example.com/gpu",
                 "example.com/", "/gpu", "example.com/a b", "a" * 244 + "/b", "a" * 245 + "/b", "example.com/" + "b" * 63, "example.com/" + "b" * 64, "cpu",
                 "deviceclass.resource.kubernetes.io/x", 1):  # fmt: skip
        shown = name if not isinstance(name, str) or len(name) < 40 else f"{name[0]}… of {len(name)}"
        yield f"class: extendedResourceName `{shown}`", device_class({"extendedResourceName": name})


def rule(spec: JSON, version: str = "v1alpha3") -> JSON:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec,
    }


def _rules() -> Iterator[tuple[str, JSON]]:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    for version in ("v1alpha3", "v1beta2"):
        for name, selector in (
            ("none", ...), ("null", None), ("empty", {}), ("driver", {"driver": DRIVER}), ("pool", {"pool": "node-1"}), ("pool with slashes", {"pool": "a/b/c"}),
            ("device", {"device": "gpu-0"}), ("all three", {"driver": DRIVER, "pool": "p", "device": "d"}), ("a bad driver", {"driver": "A_b"}),
            ("an empty driver", {"driver": ""}), ("a bad pool", {"pool": "A"}), ("an empty pool", {"pool": ""}), ("a bad device", {"device": "gpu.0"}), ("a long pool", {"pool": "a" * 254}),
            ("an empty device", {"device": ""}), ("deviceClassName", {"deviceClassName": CLASS}), ("selectors", {"selectors": [cel("true")]}), ("null driver", {"driver": None}),
        ):  # fmt: skip
            yield (
                f"rule {version}: selector {name}",
                rule({"taint": taint} | ({} if selector is ... else {"deviceSelector": selector}), version),
            )
        for effect in ("NoSchedule", "NoExecute", "None", "", None, ..., "PreferNoSchedule", "noexecute"):
            held = {"key": "a"} | ({} if effect is ... else {"effect": effect})
            yield (
                f"rule {version}: effect {told(effect)}",
                rule({"deviceSelector": {"driver": DRIVER}, "taint": held}, version),
            )
        for key in ("", ..., None, "a/b/c", "a b", "a" * 63, "a" * 64):
            held = {"effect": "NoSchedule"} | ({} if key is ... else {"key": key})
            shown = told(key) if not isinstance(key, str) or len(key) < 30 else f"of {len(key)}"
            yield (
                f"rule {version}: key {shown}",
                rule({"deviceSelector": {"driver": DRIVER}, "taint": held}, version),
            )
        for value in ("v", "", None, "a b", "a" * 64):
            held = {**taint, "value": value}
            shown = told(value) if not isinstance(value, str) or len(value) < 30 else f"of {len(value)}"
            yield (
                f"rule {version}: value {shown}",
                rule({"deviceSelector": {"driver": DRIVER}, "taint": held}, version),
            )
        yield f"rule {version}: no taint", rule({"deviceSelector": {"driver": DRIVER}}, version)
        yield f"rule {version}: taint null", rule({"taint": None}, version)
        yield f"rule {version}: spec null", rule(None, version)


GROUP = "scheduling.k8s.io/v1alpha2"


def pod_group(claims: JSON, **more: JSON) -> JSON:
    metadata = {"name": "g", "namespace": "default"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims, **more}
    return {"apiVersion": GROUP, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def workload(*claims: JSON) -> JSON:
    templates = [
        {"name": f"t{index}", "schedulingPolicy": {"basic": {}}, "resourceClaims": each}
        for index, each in enumerate(claims)
    ]
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": GROUP, "kind": "Workload", "metadata": metadata, "spec": {"podGroupTemplates": templates}}


def _groups() -> Iterator[tuple[str, JSON]]:
    one = {"name": "gpu", "resourceClaimTemplateName": "t"}
    listed: dict[str, JSON] = {
        "none": [],
        "null": None,
        "a map": one,
        "one of a template": [one],
        "one of a claim": [{"name": "gpu", "resourceClaimName": "c"}],
        "four": [{**one, "name": f"c{index}"} for index in range(4)],
        "five": [{**one, "name": f"c{index}"} for index in range(5)],
        "twice one name": [one, one],
        "a null": [None],
        "a text": ["gpu"],
        "no name": [{"resourceClaimName": "c"}],
        "a null name": [{"name": None, "resourceClaimName": "c"}],
        "an empty name": [{"name": "", "resourceClaimName": "c"}],
        "a bad name": [{"name": "a.b", "resourceClaimName": "c"}],
        "a name of 64": [{"name": "a" * 64, "resourceClaimName": "c"}],
        "a name that is a number": [{"name": 1, "resourceClaimName": "c"}],
        "no source": [{"name": "gpu"}],
        "null sources": [{"name": "gpu", "resourceClaimName": None, "resourceClaimTemplateName": None}],
        "both sources": [{**one, "resourceClaimName": "c"}],
        "both sources, one empty": [{**one, "resourceClaimName": ""}],
        "one source and a null": [{**one, "resourceClaimName": None}],
        "an empty claim": [{"name": "gpu", "resourceClaimName": ""}],
        "an empty template": [{"name": "gpu", "resourceClaimTemplateName": ""}],
        "a bad claim": [{"name": "gpu", "resourceClaimName": "A_b"}],
        "a bad template": [{"name": "gpu", "resourceClaimTemplateName": "a..b"}],
        "a source that is a number": [{"name": "gpu", "resourceClaimName": 1}],
        "an unknown field": [{**one, "request": "a"}],
    }
    for name, claims in listed.items():
        yield f"pod group: {name}", pod_group(claims)
        yield f"workload: {name}", workload([one], claims)
