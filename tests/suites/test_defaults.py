"""Defaults that an API server would fill in, of unusual objects."""

import pytest

from webhook.suites.defaults import comparable_object, pull_policy, with_template_defaults


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
    assert comparable_object(None) is None
    broken = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": ["text"]}}
    assert with_template_defaults(broken)["spec"]["containers"] == ["text"]
    assert with_template_defaults({"apiVersion": "apps/v1", "kind": "Deployment", "spec": "text"})["spec"] == "text"
    probes = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": "a:1", "livenessProbe": {}}]}}
    assert with_template_defaults(probes)["spec"]["containers"][0]["livenessProbe"]["periodSeconds"] == 10
