"""The rare parts of a Pod that the quick search finds."""

import pytest

from webhook.facts.gpu import devices
from webhook.typed.pod_parts import (
    CLAIMS,
    DEVICE_CLASSES,
    DEVICES,
    EPHEMERAL_CONTAINERS,
    POD_RESOURCES,
    RESOURCES,
    RUNTIME_CLASS,
    VISIBLE_DEVICES,
)
from webhook.typed.pods import Pod
from webhook.typed.view import ReadingContext


def has(**spec):
    return Pod.of({"spec": spec}).parts


def test_a_part_is_found_at_every_place_of_a_pod():
    seen = has(
        resources={"limits": {"memory": "1Gi"}},
        containers=[{"resources": {"requests": {"cpu": "1", "example.com/a": None}}}, "no container"],
        initContainers=[{"resources": {"limits": {"example.com/b": 1}}}],
        ephemeralContainers=[{"resources": {"limits": {"gpu": 1}}}],
    )
    assert seen.resource_names == {"memory", "cpu", "gpu", "example.com/a", "example.com/b"}
    assert set(seen.extended) == {"example.com/a", "example.com/b"}


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        pytest.param({"containers": [{"name": "a", "resources": None}, {"resources": {}}]}, [], id="none"),
        pytest.param({"resourceClaims": [{"name": "a"}]}, [CLAIMS], id="a claim of the pod"),
        pytest.param({"resourceClaims": []}, [CLAIMS], id="a list without a claim"),
        pytest.param({"containers": [{"resources": {"limits": "all"}}]}, [RESOURCES], id="limits of another type"),
        pytest.param({"overhead": {"cpu": 1}}, [RESOURCES], id="overhead"),
        pytest.param({"runtimeClassName": "nvidia"}, [RUNTIME_CLASS], id="a runtime class"),
        pytest.param(
            {"containers": [{"env": [{"name": "A"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]},
            [VISIBLE_DEVICES],
            id="a variable that shows devices",
        ),
        pytest.param(
            {"initContainers": [{"resources": {"claims": [{"name": "a"}]}}]},
            [CLAIMS, RESOURCES],
            id="a claim of a container",
        ),
        pytest.param({"ephemeralContainers": [{"name": "a"}]}, [EPHEMERAL_CONTAINERS], id="a container for debugging"),
        pytest.param({"resources": {}}, [POD_RESOURCES], id="resources of the pod"),
        pytest.param({"containers": [{"resources": {"limits": {"gpu": 1}}}]}, [DEVICES, RESOURCES], id="gpu"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"deviceclass.resource.kubernetes.io/a": 1}}}]},
            [DEVICES, DEVICE_CLASSES, RESOURCES],
            id="a device class",
        ),
    ],
)
def test_a_part_of_a_pod_is_recognized(spec, parts):
    assert has(**spec).present == set(parts)


def test_labels_and_annotations_of_a_pod_are_recognized():
    made = Pod.of({"metadata": {"annotations": {"a": "b", "c": None}}})
    assert made.parts.present == {"a"}


def test_images_of_a_pod_include_all_containers():
    lists = {"containers": [{"image": "a"}, {"image": 1}], "initContainers": [{"image": "b"}], "ephemeralContainers": 7}
    assert has(**lists).images == ["a", "b"]


@pytest.mark.parametrize("pod", [{"spec": "x"}, {"metadata": [], "spec": {}}])
def test_a_pod_that_was_not_decoded_by_an_api_server_is_a_type_error(pod):
    assert Pod.of(pod).parts.present == set()
    with pytest.raises(TypeError):
        assert Pod.of(pod, (), ReadingContext(is_decoded=True)).parts


def test_every_device_except_gpu_has_an_extended_name():
    assert [row.name for row in devices.read_device_catalogue().resources if "/" not in row.name] == ["gpu"]
