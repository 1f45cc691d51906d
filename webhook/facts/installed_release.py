"""Reads which release of a controller is installed: from the image of its Deployment."""

from __future__ import annotations

from webhook.cluster.controllers import Controller, release_of_image
from webhook.facts.view import ClusterView
from webhook.releases import Release
from webhook.typed.deployments import Deployment


def installed_release(view: ClusterView, controller: Controller) -> Release | None:
    """Return the release; None where there is no such Deployment, or its image has no tag that is a release."""
    held = view.get_without_noting(Deployment.gvk, controller.place.namespace, controller.place.name)
    for container in Deployment.of(held).spec.template.spec.containers:
        release = release_of_image(container.image, controller)
        if release is not None:
            return release
    return None
