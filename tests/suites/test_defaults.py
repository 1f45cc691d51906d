"""Objects are compared with the defaults of an API server. Unusual objects stay unchanged."""

from __future__ import annotations

from webhook.suites.recorded import comparable_object


def test_an_object_without_defaults_equals_one_with_them() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}}
    container = {"name": "c", "image": "a:1"}
    filled = {**container, "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File", "resources": {}}
    made = comparable_object({**pod, "spec": {"containers": [container]}})
    assert made == comparable_object({**pod, "spec": {"containers": [filled], "restartPolicy": "Always"}})
    assert made != comparable_object({**pod, "spec": {"containers": [filled], "restartPolicy": "Never"}})


def test_unusual_objects_stay_as_they_are() -> None:
    assert comparable_object(None) is None
    assert comparable_object({"spec": {"a": 1}}) == {"spec": {"a": 1}}
    broken = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": ["text"]}}
    assert comparable_object(broken)["spec"]["containers"] == ["text"]
