"""Names of images are split into registry, repository, tag and digest."""

import pytest

from webhook.apimachinery.images import ImageName, parse_image_name

NAMES = {
    "a path without a registry": ("vllm/vllm-openai:v0.11.0", ImageName("", "vllm/vllm-openai", "v0.11.0", "")),
    "a registry with a port": ("localhost:5000/a/b", ImageName("localhost:5000", "a/b", "", "")),
    "a registry without a port": ("localhost/a:1", ImageName("localhost", "a", "1", "")),
    "one word": ("busybox", ImageName("", "busybox", "", "")),
    "one word with a tag": ("busybox:1.36", ImageName("", "busybox", "1.36", "")),
    "a digest": ("ghcr.io/a/b@sha256:0f", ImageName("ghcr.io", "a/b", "", "sha256:0f")),
    "a tag and a digest": ("ghcr.io/a/b:1@sha256:0f", ImageName("ghcr.io", "a/b", "1", "sha256:0f")),
    "no name": ("", ImageName("", "", "", "")),
    "a variable": ("${REGISTRY}/app:${TAG}", ImageName("", "${REGISTRY}/app", "${TAG}", "")),
}


@pytest.mark.parametrize("text, name", NAMES.values(), ids=NAMES)
def test_a_name_is_split(text, name):
    assert parse_image_name(text) == name


@pytest.mark.parametrize("registry", ["", "docker.io/", "index.docker.io/"])
def test_the_short_name_leaves_out_docker_hub(registry):
    assert parse_image_name(f"{registry}vllm/vllm-openai:v1").short_name == "vllm/vllm-openai"


def test_the_short_name_has_any_other_registry():
    assert parse_image_name("nvcr.io/nim/meta/llama:1").short_name == "nvcr.io/nim/meta/llama"


@pytest.mark.parametrize(
    "image, release",
    [
        ("registry.k8s.io/kueue/kueue:v0.18.1", (0, 18)),
        ("mirror:5000/a/kueue/kueue:0.19.2@sha256:0a", (0, 19)),
        ("kueue/kueue:v0.18.0-rc.1", (0, 18)),
        ("registry.k8s.io/kueue/kueue:main", None),
        ("registry.k8s.io/kueue/kueue@sha256:0a", None),
        ("registry.k8s.io/kueue/kueue", None),
        ("registry.k8s.io/kueue/kueueviz:v0.18.1", None),
        ("my-kueue/kueue:v0.18.1", None),
        ("", None),
    ],
)
def test_the_release_is_the_tag_of_the_image_in_any_registry(image, release):
    assert parse_image_name(image).release_of("kueue/kueue") == release
