"""Names of container images, such as `registry.k8s.io/kueue/kueue:v0.18.1@sha256:…`.

Source: distribution/reference v0.6.0 normalize.go (splitDockerDomain) and reference.go. Invalid names are split too,
because users write names with variables and placeholders.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from webhook.apimachinery.releases import Release, parse_release

_DOCKER_HUB: Final = ("docker.io", "index.docker.io", "registry-1.docker.io")


class ImageName(NamedTuple):
    """The parts of a name as they are written; a part that is not written is "".

    Attributes:
        registry: the host of the registry, with its port.
        repository: the path in the registry.
        tag: without the colon.
        digest: without the `@`.
    """

    registry: str
    repository: str
    tag: str
    digest: str

    @property
    def last_part(self) -> str:
        """Return the last part of the repository, such as `kueue`."""
        return self.repository.rpartition("/")[2]

    @property
    def short_name(self) -> str:
        """Return the registry and the repository, without the registry of Docker Hub."""
        is_written = self.registry and self.registry not in _DOCKER_HUB
        return f"{self.registry}/{self.repository}" if is_written else self.repository

    def is_in_any_registry(self, repository: str) -> bool:
        """Return whether this is an image of a repository, perhaps from a mirror with a longer path."""
        return f"/{self.repository}".endswith(f"/{repository}")

    def release_of(self, repository: str) -> Release | None:
        """Return the release in the tag of an image of a repository; None for other images and tags."""
        return parse_release(self.tag) if self.is_in_any_registry(repository) else None


def parse_image_name(text: str) -> ImageName:
    """Split the name of an image."""
    name, _, digest = text.partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    first, _, rest = folder.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return ImageName(first, f"{rest}/{last}" if rest else last, tag, digest)
    return ImageName("", f"{folder}{slash}{last}", tag, digest)
