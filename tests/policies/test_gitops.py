"""The statements of docs/gitops.md are true: custom kinds are stored as sent, and its ignore rule covers the changes."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import quick_yaml
from tests.literals import TABLE, shipped_policies
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.cluster.files import FilesCluster

PAGE = (Path(__file__).parents[2] / "docs" / "gitops.md").read_text()
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
SANDBOX = "sandbox.opensandbox.io/v1alpha1", "BatchSandbox"
BUILT_IN = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}


def config_map(name, data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "claimgate-system"},
        "data": data,
    }


def documented():
    blocks = [quick_yaml.load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    first, second, _ = blocks
    return first, config_map("gpu-limits", second["data"])


def reviewed(obj, *params):
    door = LocalAnswerer(policies=shipped_policies(), cluster=FilesCluster([NAMESPACE, *params]))
    return run_phases(fixtures.attributes_of_object(obj, TABLE.row), "auto", door)


def template():
    requests = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": {**requests, "gpu": "2"}}}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}


def built_in(kind):
    pods = template()
    if kind in ("Job", "CronJob"):
        pods["spec"]["restartPolicy"] = "Never"
        spec = {"template": pods}
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}} if kind == "CronJob" else spec
    else:
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pods}
        spec |= {"serviceName": "s"} if kind == "StatefulSet" else {}
    return {"apiVersion": BUILT_IN[kind], "kind": kind, "metadata": {"name": "x", "namespace": "team-a"}, "spec": spec}


def test_custom_kinds_are_not_changed():
    api_version, kind = SANDBOX
    metadata = {"name": "b", "namespace": "team-a"}
    sandbox = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": {"replicas": 1, "template": template()},
    }
    outcome = reviewed(copy.deepcopy(sandbox), *documented())
    assert outcome.verdict.allowed, outcome.verdict.status
    assert outcome.patched_object == sandbox
    assert reviewed(sandbox).patched_object != sandbox


def test_the_pods_of_custom_kinds_are_translated():
    pod = {"apiVersion": "v1", "kind": "Pod", **template()}
    pod["metadata"] = {"name": "b-0", "namespace": "team-a"}
    outcome = reviewed(pod, *documented())
    assert outcome.verdict.allowed
    limits = outcome.patched_object["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}


@pytest.mark.parametrize("kind", BUILT_IN)
def test_the_gitops_ignore_rule_covers_all_changed_fields(kind):
    """Like Argo CD, delete the paths from both sides, and compare the rest."""
    if shutil.which("jq") is None:
        pytest.skip("needs jq")
    sent = fixtures.attributes_of_object(built_in(kind), TABLE.row).object
    stored = reviewed(copy.deepcopy(sent), *documented())
    assert stored.verdict.allowed, stored.verdict.status
    assert stored.patched_object != sent
    assert compared(stored.patched_object) == compared(sent)
    assert "gpu" not in json.dumps(compared(sent))


def compared(obj):
    (application,) = (each for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "ignoreDifferences" in each)
    (rule,) = quick_yaml.load(application)["spec"]["ignoreDifferences"]
    filters = " | ".join(f"del({path})" for path in rule["jqPathExpressions"])
    done = subprocess.run(["jq", filters], input=json.dumps(obj), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
