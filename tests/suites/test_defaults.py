"""Defaults that an API server would fill in, of unusual objects."""

import pytest

from webhook.suites.defaults import defaulted, pull_policy, settled


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("a@sha256:x", "IfNotPresent"),
        ("r:5/a", "Always"),
    ],
)
def test_images_are_pulled_by_their_tag(image, policy):
    assert pull_policy(image) == policy


def test_defaults_of_unusual_objects():
    assert settled(None) is None
    broken = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": ["text"]}}
    assert defaulted(broken)["spec"]["containers"] == ["text"]
    assert defaulted({"apiVersion": "apps/v1", "kind": "Deployment", "spec": "text"})["spec"] == "text"
    probes = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": "a:1", "livenessProbe": {}}]}}
    assert defaulted(probes)["spec"]["containers"][0]["livenessProbe"]["periodSeconds"] == 10
