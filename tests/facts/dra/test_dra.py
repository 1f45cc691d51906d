"""The fact `dra`: claims resolved, one form for every version, and missing objects reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.facts.subjects import subject
from tests.yamldata import documents
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.paths import path_as_text
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.interest import Index
from webhook.errors import LookupFailed
from webhook.facts.dra.pod_claims import claims_of_templates, why_no_admin_access
from webhook.facts.dra.requested_devices import ClaimContents
from webhook.facts.dra.requests import DeviceRequestOfClaim, read_requests
from webhook.facts.dra.types import ClaimSpec
from webhook.facts.gpu.devices import device_of_class_name as device_class_of
from webhook.facts.view import ClusterView
from webhook.text.similar_names import nearest_name
from webhook.typed.pods import PodTemplate
from webhook.typed.view import ReadingContext
from webhook.workloads.podsets import PodSet

MANIFESTS = Path(__file__).parents[2] / "data" / "manifests" / "dra"


def of(
    obj: dict,
    *context: dict,
    namespace: str = "team",
    cluster: Cluster | None = None,
    is_whole: bool = False,
    sees_all: bool = False,
) -> dict:
    held = cluster or FilesCluster(context, is_whole=is_whole)
    asked = replace(subject(obj), cluster=ClusterView(held, namespace, sees_all_namespaces=sees_all))
    result = asked.fact_result("dra")
    return {**result.value, "missing": [str(each) for each in result.missing_objects_of_fields()]}


def requests_in(spec: object, version: str = "v1", at: tuple[str, ...] = ("spec",)) -> list[DeviceRequestOfClaim]:
    return [*read_requests(ClaimSpec({"devices": spec}, at, ReadingContext()), version)]


def pod(claims: list, *containers: dict) -> dict:
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": list(containers), "resourceClaims": claims}}


def user(*names: object, limits: dict | None = None) -> dict:
    claims = [name if isinstance(name, dict) else {"name": name} for name in names]
    return {"name": "c", "resources": {"claims": claims, "limits": limits or {}}}


def template(name: str, *asked: dict, version: str = "v1", namespace: str = "team") -> dict:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": list(asked)}}},
    }


def exactly(name: str, device_class: str = "gpu.nvidia.com", **more: object) -> dict:
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


def device_class(name: str, **spec: object) -> dict:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


EXACT = {
    "name": "r", "kind": "exactly", "device_class": "gpu.nvidia.com", "allocation_mode": "ExactCount", "count": 2, "devices": 2, "at_least": 2, "is_gpu": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"name": "r", "deviceClassName": "gpu.nvidia.com", "count": 2}, "spec.devices.requests[0]"),
        (
            {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}},
            "spec.devices.requests[0].exactly",
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2}},
            "spec.devices.requests[0].exactly",
        ),
    ],
    ids=["v1beta1 and v1alpha3", "v1beta2 and v1", "with the default written out"],
)
def test_every_version_is_converted_to_one_form(request_: dict, path: str) -> None:
    version = "v1" if "exactly" in request_ else "v1beta1"
    (found,) = requests_in({"requests": [request_]}, version)
    assert {key: getattr(found, key) for key in EXACT} == EXACT
    assert (path_as_text(found.at), found.device.vendor) == (path, "nvidia")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (exactly("r"), {"count": 1, "devices": 1, "at_least": 1}),
        (exactly("r", allocationMode="All"), {"count": 0, "devices": None, "at_least": 1}),
        (exactly("r", allocationMode="Some", count=4), {"devices": None, "at_least": 0}),
        (exactly("r", count=-1), {"devices": None, "at_least": 0, "count": -1}),
        (exactly("r", adminAccess=True), {"has_admin_access": True}),
        (
            exactly("r", "compute-domain-default-channel.nvidia.com"),
            {"is_gpu": False, "device": device_class_of("compute-domain-default-channel.nvidia.com")},
        ),
        ({"name": "r"}, {"kind": "none", "devices": None}),
        ({"name": "r", "exactly": {"deviceClassName": "a"}, "firstAvailable": [{"name": "x"}]}, {"kind": "both"}),
        ({"name": "r", "firstAvailable": []}, {"kind": "none"}),
        (
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "big", "deviceClassName": "gpu.nvidia.com", "count": 2},
                    {"name": "small", "deviceClassName": "gpu.nvidia.com", "count": 4},
                ],
            },
            {"kind": "firstAvailable", "devices": None, "at_least": 2, "is_gpu": True},
        ),
        (
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "a", "deviceClassName": "x", "count": 2},
                    {"name": "b", "deviceClassName": "y", "count": 2},
                ],
            },
            {"devices": 2, "at_least": 2, "is_gpu": False},
        ),
    ],
)
def test_requests_give_the_number_of_devices(request_: dict, expected: dict) -> None:
    (found,) = requests_in({"requests": [request_]})
    assert {key: getattr(found, key) for key in expected} == expected


def test_claims_of_v1alpha2_have_no_requests() -> None:
    (found,) = requests_in(None, "v1alpha2")
    assert (found.kind, found.at) == ("unsupported", ("spec",))


@pytest.mark.parametrize("devices", [None, {}, {"requests": None}, {"requests": ["r"]}])
def test_a_claim_without_requests_asks_for_nothing(devices: object) -> None:
    assert requests_in(devices) == []


def test_a_claim_is_resolved_through_its_template() -> None:
    fact = of(
        pod([{"name": "gpu", "resourceClaimTemplateName": "big"}], user("gpu")),
        template("big", exactly("r", count=8)),
        device_class("gpu.nvidia.com", extendedResourceName="nvidia.com/gpu"),
    )
    (claim,) = fact["claims"]
    assert (claim["found"], claim["absent"], claim["devices"], claim["gpu"]) == (True, False, 8, True)
    assert (claim["source"], claim["kind"], claim["reference"]) == ("template", "ResourceClaimTemplate", "big")
    assert claim["requestNames"] == ["r"]
    assert claim["users"] == ["spec.containers[0].resources.claims[0]"]
    assert claim["requests"][0]["extendedResource"] == "nvidia.com/gpu"
    assert fact["missing"] == []


def test_a_named_claim_is_resolved() -> None:
    claim = {**template("mine", exactly("r")), "kind": "ResourceClaim"}
    claim["spec"] = claim["spec"]["spec"]
    (found,) = of(
        pod([{"name": "gpu", "resourceClaimName": "mine"}], user("gpu")), claim, device_class("gpu.nvidia.com")
    )["claims"]
    assert (found["found"], found["kind"], found["devices"]) == (True, "ResourceClaim", 1)


def test_a_missing_object_is_named_and_not_guessed() -> None:
    fact = of(pod([{"name": "gpu", "resourceClaimTemplateName": "big"}], user("gpu")))
    (claim,) = fact["claims"]
    assert (claim["found"], claim["absent"], claim["devices"]) == (False, False, None)
    assert fact["missing"] == ["ResourceClaimTemplate big not found"]


@pytest.mark.parametrize(("sees_all", "elsewhere"), [(False, []), (True, ["other"])])
def test_an_object_missing_among_others_is_known_to_be_absent(sees_all: bool, elsewhere: list[str]) -> None:
    fact = of(
        pod([{"name": "gpu", "resourceClaimTemplateName": "bigg"}], user("gpu")),
        template("big", exactly("r")),
        template("bigg", namespace="other"),
        is_whole=True,
        sees_all=sees_all,
    )
    (claim,) = fact["claims"]
    assert (claim["found"], claim["absent"], claim["nearest"], claim["elsewhere"]) == (False, True, "big", elsewhere)


@pytest.mark.parametrize(
    "context",
    [
        (),
        (template("x", namespace="other"),),
        (template("x"),),
        (template("big", namespace="other"),),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},),
    ],
    ids=[
        "no object",
        "other claims in another namespace",
        "other claims in this namespace",
        "a claim of that name in another namespace",
        "a system namespace",
    ],
)
def test_an_object_is_known_to_be_absent_only_in_a_whole_cluster(context: tuple) -> None:
    asked = pod([{"name": "gpu", "resourceClaimTemplateName": "big"}])
    told = [of(asked, *context, is_whole=is_whole)["claims"][0]["absent"] for is_whole in (False, True)]
    assert told == [False, True]


@pytest.mark.parametrize(
    ("context", "near"),
    [
        ((), ""),
        ((device_class("other"),), ""),
        ((device_class("gpu.nvidia.co"),), "gpu.nvidia.co"),
    ],
    ids=["no object", "a class of another driver", "a similar name"],
)
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_class_is_known_to_be_absent_only_in_a_whole_cluster(context: tuple, near: str, is_whole: bool) -> None:
    claim = pod([{"name": "gpu", "resourceClaimTemplateName": "t"}])
    (request,) = of(claim, template("t", exactly("r")), *context, is_whole=is_whole)["claims"][0]["requests"]
    assert (request["classAbsent"], request["nearestClass"]) == (is_whole, near)


def test_a_cluster_scoped_owner_has_no_namespace_to_look_in() -> None:
    fact = of(
        pod([{"name": "gpu", "resourceClaimTemplateName": "big"}], user("gpu")),
        template("bigg", namespace="default"),
        namespace="",
    )
    assert (fact["claims"][0]["found"], fact["claims"][0]["absent"], fact["missing"]) == (False, False, [])


def test_a_compute_domain_counts_as_having_its_template() -> None:
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "d", "namespace": "team"},
        "spec": {"channel": {"resourceClaimTemplate": {"name": "channel"}}},
    }
    (claim,) = of(pod([{"name": "c", "resourceClaimTemplateName": "channel"}], user("c")), domain, template("other"))[
        "claims"
    ]
    assert (claim["promised"], claim["absent"]) == (True, False)


def test_an_object_of_an_unsynced_view_is_reported_as_missing() -> None:
    class Deaf:
        def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> dict | None:
            raise LookupFailed("watch not synced")

        def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> list:
            raise LookupFailed("watch not synced")

        def is_namespaced(self, gvk: GroupVersionKind) -> bool:
            raise LookupFailed("watch not synced")

        def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> list:
            raise LookupFailed("watch not synced")

        def is_synced(self, gvk: GroupVersionKind) -> bool:
            return False

    obj = pod([{"name": "gpu", "resourceClaimTemplateName": "big"}], user("gpu"))
    fact = of(obj, cluster=Deaf())
    assert fact["missing"] == ["ResourceClaimTemplate big not looked up: watch not synced"]
    assert fact["claims"][0]["absent"] is False


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        ({"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}, "both"),
        ({"name": "a"}, "none"),
        ({"name": "a", "resourceClaimName": ""}, "none"),
        ({"name": "a", "source": {"resourceClaimName": "x"}}, "old"),
    ],
)
def test_the_source_of_a_claim_is_found(entry: dict, source: str) -> None:
    (claim,) = of(pod([entry]))["claims"]
    assert (claim["source"], claim["kind"], claim["found"]) == (source, "", False)


def test_references_know_their_claims_and_requests() -> None:
    fact = of(
        pod(
            [{"name": "gpu", "resourceClaimTemplateName": "big"}],
            user({"name": "gpu", "request": "main"}, {"name": "gpu", "request": "mian"}, {"name": "none"}),
        ),
        template("big", exactly("main")),
    )
    found = [(r["declared"], r["resolved"], r["requestFound"], r["nearestRequest"]) for r in fact["references"]]
    assert found == [(True, True, True, ""), (True, True, False, "main"), (False, False, False, "")]


def test_a_claim_object_lists_its_own_requests() -> None:
    own = template("t", exactly("r", count=2))
    fact = of(own, device_class("other"))
    assert [(r["name"], r["devices"], r["classFound"]) for r in fact["requests"]] == [("r", 2, False)]
    assert fact["requests"][0]["path"] == "spec.spec.devices.requests[0].exactly"


@pytest.mark.parametrize(
    ("labels", "allowed"),
    [({"resource.kubernetes.io/admin-access": "true"}, True), ({}, False), (None, False), ([], False)],
)
def test_a_namespace_says_whether_it_allows_admin_access(labels: object, allowed: bool) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
    view = ClusterView(FilesCluster([namespace]), "team")
    assert (why_no_admin_access(view) == "", view.missing_objects_by_field()) == (allowed, {})
    view = ClusterView(FilesCluster([]), "team")
    assert (why_no_admin_access(view), [str(each) for each in view.missing_objects_by_field()[""]]) == (
        None,
        ["Namespace team not found"],
    )


def test_published_claims_are_all_read() -> None:
    """Every published request has `exactly` or `firstAvailable`, with a number or All. v1alpha2 is not read."""
    kinds: dict[str, int] = {}
    for file in sorted(MANIFESTS.rglob("*.yaml")):
        for obj in documents(file):
            if isinstance(obj, dict) and str(obj.get("kind")).startswith("ResourceClaim"):
                for request in of(obj)["requests"]:
                    kinds[request["kind"]] = kinds.get(request["kind"], 0) + 1
                    assert request["kind"] == "unsupported" or request["atLeast"] > 0
    assert kinds["exactly"] > 40
    assert set(kinds) <= {"exactly", "firstAvailable", "unsupported"}


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("abcd", ["abdc"], "abdc"),
        ("single-gpu", ["single-gpus", "dual"], "single-gpus"),
        ("a", ["b"], ""),
        ("gpu", ["gpus"], ""),
        ("gpux", ["gpus"], "gpus"),
        ("same", ["same"], ""),
        ("vaLUE", ["name", "value"], "value"),
        ("vaLue", ["valuE", "valued"], "valuE"),
    ],
)
def test_nearest(name: str, known: list, expected: str) -> None:
    assert nearest_name(name, known) == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'", ""),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", ""),
        ("device.attributes['gpu.nvidia.com'].cudaDriverVersion.compareTo(semver('12.0.0')) > 0", ""),
        ("device.attributes['x'].on", ""),
        ("device.allowMultipleAllocations", ""),
        ("cel.bind(d, device.driver, d == 'x')", ""),
        ("device.attribute['x'].a", "undefined field 'attribute'"),
        ("device.driver", "evaluates to string, expected bool"),
        ("device.driver ==", "Syntax error"),
        ("", "there is no expression"),
        ("true || " * 2000 + "true", "at most 10240 are allowed"),
    ],
)
def test_selectors_are_compiled_where_devices_are_known(expression: str, problem: str) -> None:
    asked = exactly("r", selectors=[{"cel": {"expression": expression}}])
    (found,) = requests_in({"requests": [asked]})
    (selector,) = found.selectors
    assert path_as_text(selector.at) == "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert problem in selector.errors.problem
    assert bool(problem) == bool(selector.errors.problem)


def test_a_selector_without_cel_has_no_expression() -> None:
    (found,) = requests_in({"requests": [exactly("r", selectors=[{"cel": None}])]})
    assert found.selectors == ()


def test_entries_that_are_not_objects_are_ignored() -> None:
    container = {"name": "c", "resources": {"claims": [None, "gpu", {"name": "gpu"}]}}
    podset = PodSet(name="", path=(), template=pod([None, "gpu"], container))
    found = claims_of_templates([(podset, PodTemplate.of(podset.template))], ClusterView(FilesCluster(), "team"))
    assert found.claims == []
    assert [(path_as_text(r.at), r.claim) for r in found.references] == [
        ("spec.containers[0].resources.claims[2]", None)
    ]


def test_duplicates_are_seen() -> None:
    """A pod may name a claim twice, and a container a claim or a request (validateContainerResourceClaims)."""
    claims = [
        {"name": "a", "resourceClaimName": "x"},
        {"name": "b", "resourceClaimName": "x"},
        {"name": "a", "resourceClaimName": "y"},
    ]
    taken = (
        {"name": "a", "request": "r"},
        {"name": "a", "request": "s"},
        {"name": "a"},
        {"name": "b"},
        {"name": "b", "request": "r"},
    )
    fact = of(pod(claims, user(*taken), user("a")))
    assert [c["duplicate"] for c in fact["claims"]] == [False, False, True]
    assert [r["duplicate"] for r in fact["references"]] == [False, False, True, False, True, False]


def test_requests_of_a_template_are_computed_again_after_a_class_change():
    asks = template("one", exactly("gpu", count=2))
    claims = [{"name": "gpus", "resourceClaimTemplateName": "one"}]
    named, other = device_class("gpu.nvidia.com", extendedResourceName="example.com/gpu"), device_class("gpu.nvidia.co")
    seen = [of(pod(claims), asks, *context)["claims"][0] for context in ([named], [named], [other], [named])]
    assert [claim["requests"][0]["nearestClass"] for claim in seen] == ["", "", "gpu.nvidia.co", ""]
    assert [claim["requests"][0]["extendedResource"] for claim in seen] == ["example.com/gpu"] * 2 + [
        "",
        "example.com/gpu",
    ]
    assert [claim["atLeast"] for claim in seen] == [2, 2, 2, 2]
    changed = template("one", exactly("gpu", count=3))
    assert of(pod(claims), changed, named)["claims"][0]["atLeast"] == 3


def contents_of(*context: dict) -> ClaimContents:
    podset = PodSet(name="", path=(), template=pod([{"name": "a", "resourceClaimTemplateName": "t"}], user("a")))
    (claim,) = claims_of_templates(
        [(podset, PodTemplate.of(podset.template))], ClusterView(FilesCluster(context), "team")
    ).claims
    return claim.contents


def test_requests_of_a_claim_are_computed_again_after_a_class_change() -> None:
    asked, gpus, name = template("t", exactly("r")), device_class("gpu.nvidia.com"), "gpu.nvidia.com"
    first = contents_of(asked, gpus)
    assert contents_of(asked, gpus) is first
    changed = contents_of(asked, device_class("gpu.nvidia.com", extendedResourceName="x.com/gpu"))
    assert (first.classes[name].extended_resource, changed.classes[name].extended_resource) == ("", "x.com/gpu")
    absent = contents_of(asked, device_class("gpu.nvidia.co")).classes[name]
    assert (absent.is_found, absent.nearest) == (False, "gpu.nvidia.co")
    assert contents_of(template("t", exactly("s")), gpus).request_names == ("s",)


@pytest.mark.parametrize(
    "asked",
    [
        [exactly("r", selectors=[{"cel": {"expression": "true"}}])],
        [{"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.nvidia.com"}]}],
        [exactly(f"r{n}") for n in range(5)],
    ],
)
def test_long_claims_are_not_cached(asked: list) -> None:
    held, gpus = template("t", *asked), device_class("gpu.nvidia.com")
    assert contents_of(held, gpus) == contents_of(held, gpus)
    assert contents_of(held, gpus) is not contents_of(held, gpus)
