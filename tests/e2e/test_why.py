"""`claimgate why --kubeconfig` reads a real API server: by owner references, with rights that are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e import apiserver
from tests.e2e.conftest import claimgate

pytestmark = pytest.mark.e2e

SPEC = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
SECRET_MISSING = {"reason": "CreateContainerConfigError", "message": 'secret "wandb" not found'}


def test_a_pod_of_a_job_that_cannot_be_created(tmp_path: Path) -> None:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path) as server:
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "team"}}
        server.apply({**job, "spec": {"template": {"spec": SPEC}}})
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
        owner["uid"] = server.get("job", "train", "team")["metadata"]["uid"]
        pod = {"apiVersion": "v1", "kind": "Pod"}
        named = {"name": "train-a", "namespace": "team", "ownerReferences": [owner]}
        server.apply({**pod, "metadata": named, "spec": {**SPEC, "nodeName": "n1", "serviceAccountName": "default"}})
        waiting = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Pending", "containerStatuses": [{**waiting, "state": {"waiting": SECRET_MISSING}}]}
        server.kubectl(
            *("patch", "pod", "train-a", "-n", "team", "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": status})),
        )
        asked = ("--kubeconfig", str(server.kubeconfig), "-n", "team", "-o", "json")
        [told] = json.loads(claimgate("why", "job/train", *asked, code=1))
        assert told["headline"] == (
            "does not start: container main cannot be created, because something that it refers to is missing"
        )
        assert (told["made"], told["pods"], told["madeBy"]) == ({"Pod": 1}, {"count": 1, "ready": 0}, [])
        [told] = json.loads(claimgate("why", "pod/train-a", *asked, code=1))
        assert told["madeBy"] == ["Job team/train"]
