"""The message about Pod Security has a bounded length for any template."""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.pod_prerequisites import check_prerequisites

LABELS = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "v1.18"}
NAMESPACE: JSON = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": LABELS}}
MANY = range(2_000)


def job(annotations: JSON, containers: list[JSON], **spec: JSON) -> JSON:
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": containers, **spec}}
    metadata = {"name": "train", "namespace": "team"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def test_a_message_is_short_even_if_a_user_repeats_any_part_many_times() -> None:
    long = "x" * 50_000
    context = {"capabilities": {"add": [f"C{n}" for n in MANY]}, "seLinuxOptions": {"type": long}}
    annotations = {f"container.apparmor.security.beta.kubernetes.io/c{n}": long for n in MANY}
    annotations |= {f"container.seccomp.security.alpha.kubernetes.io/c{n}": "unconfined" for n in MANY}
    containers = [{"name": f"c{n}", "image": "i", "securityContext": context} for n in MANY]
    sysctls = {"sysctls": [{"name": f"kernel.a{n}", "value": "1"} for n in MANY]}
    volumes = [{"name": long, "hostPath": {"path": "/"}} for _ in MANY]
    obj = job(annotations, containers, securityContext=sysctls, volumes=volumes)
    (found,) = check_prerequisites(subject(obj, NAMESPACE))
    assert len(found.message) < 3_000
    assert "sysctls must not list kernel.a0, kernel.a1, kernel.a2 and 1997 more" in found.message
    assert "; and 1998 others" in found.message


def test_profile_annotations_that_pod_security_refuses() -> None:
    annotations = {
        "container.apparmor.security.beta.kubernetes.io/main": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/other": "localhost/a",
        "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
    }
    (found,) = check_prerequisites(subject(job(annotations, [{"name": "main", "image": "i"}]), NAMESPACE))
    name = "container.apparmor.security.beta.kubernetes.io/main"
    assert f"the value of annotation {name} must be runtime/default or begin with localhost/" in found.message
    assert "seccomp" not in found.message
