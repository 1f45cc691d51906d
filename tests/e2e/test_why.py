"""`claimgate why --kubeconfig` follows owner references in a real API server, also without some rights."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.conftest import claimgate, environment_as_installed, first_line
from tests.e2e.recorded_clusters import Loader, filling_pods, objects_of_folder

pytestmark = pytest.mark.e2e

RECORDED = Path(__file__).parents[1] / "data" / "why" / "recorded"
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
        labels = {"batch.kubernetes.io/controller-uid": owner["uid"]}
        named = {"name": "train-a", "namespace": "team", "labels": labels, "ownerReferences": [owner]}
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


def test_recorded_clusters_in_a_namespace_of_5000_pods(tmp_path: Path) -> None:
    """The first line of each answer equals the first line of the answer from files. `pytest -s` prints the times."""
    if reason := apiserver.missing():
        pytest.skip(reason)
    stories = yaml.safe_load((RECORDED / "stories.yaml").read_text())
    clusters = [objects_of_folder(RECORDED / each["folder"]) for each in stories]
    with apiserver.running(tmp_path) as server, Loader(server) as loader:
        for name in ("team", "lab"):
            server.kubectl("create", "namespace", name)
        loader.define_kinds(obj for objects in clusters for obj in objects)
        loader.load_pods(filling_pods("team", 5_000))
        for objects in clusters:
            loader.load(objects)
        wrong, environment = {}, environment_as_installed(tmp_path / "bytecode")
        first_line(environment, "why", stories[0]["ask"], "--kubeconfig", str(server.kubeconfig), "-n", "team")
        for story in stories:
            started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            asked = ("why", story["ask"], "--kubeconfig", str(server.kubeconfig), "-n", "team")
            first, code = first_line(environment, *asked)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{time.perf_counter() - started:.2f} s ({processor_s:.2f} of processor)  {code}  {story['story']}")
            if first != story["first"][2:]:  # the first line without the sign of the state
                wrong[story["story"]] = first
        assert not wrong
