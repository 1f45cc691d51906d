"""The volumes of a Volcano Job for the rules about storage. Every container mounts them. Of several volumes with one
claim, only the first counts.
"""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.storage.mounts import MountsOfObject, read_mounts

GPU = {"limits": {"nvidia.com/gpu": 1}}


def read(volumes: JSON, kind: str = "Job") -> MountsOfObject:
    spec = {"containers": [{"name": "a", "resources": GPU}, {"name": "b"}], "initContainers": [{"name": "c"}]}
    tasks = [{"name": name, "replicas": 2, "template": {"spec": spec}} for name in ("x", "y")]
    held = {"tasks": tasks, "volumes": volumes}
    inner = {"jobTemplate": {"spec": held}} if kind == "CronJob" else held
    obj = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "metadata": {"name": "j"}, "spec": inner}
    return subject(obj).once(read_mounts)


def test_every_container_has_the_volumes_of_its_job() -> None:
    made = {"accessModes": ["ReadWriteOnce"]}
    once = read([{"mountPath": "/data/", "volumeClaimName": "c"}, {"mountPath": "/again", "volumeClaimName": "c"}])
    assert [(each.container.name, each.target) for each in once.all] == [("a", "/data"), ("b", "/data")] * 2
    assert {name: len(listed) for name, listed in once.mounts_of_claims().items()} == {"c": 4}
    own = read([{"mountPath": "/new", "volumeClaim": made}], "CronJob")
    (where,) = own.mounts_of_created_claims()
    assert where == ("spec", "jobTemplate", "spec", "volumes", 0)
    assert own.mounts_of_claims() == {}
    assert read([{"mountPath": "/none"}]).all == []
