"""What the first look at the resources of a Pod sees."""

from webhook.facts.gpu import devices
from webhook.typed.pods import PodSpec


def named(**spec):
    return PodSpec.of(spec).resource_names


def test_names_stand_for_every_place_of_a_pod():
    seen = named(
        resources={"limits": {"memory": "1Gi"}},
        containers=[{"resources": {"requests": {"cpu": "1", "example.com/a": None}}}, "no container"],
        initContainers=[{"resources": {"limits": {"example.com/b": 1}}}],
        ephemeralContainers=[{"resources": {"limits": {"gpu": 1}}}],
    )
    assert seen.names == {"memory", "cpu", "gpu", "example.com/a", "example.com/b"}
    assert set(seen.extended) == {"example.com/a", "example.com/b"}
    assert not seen.has_claims


def test_a_container_may_have_claims():
    assert named(containers=[{"resources": {"claims": [{"name": "a"}]}}]).has_claims


def test_a_pod_without_resources_names_none():
    assert not any(named(containers=[{"name": "a", "resources": None}, {"resources": {"limits": "all"}}]))


def test_every_device_but_gpu_has_an_extended_name():
    assert [row.name for row in devices.catalogue().resources if "/" not in row.name] == ["gpu"]
