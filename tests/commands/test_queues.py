"""`claimgate queues` prints the tree of queues as text, JSON or a picture, from files or from a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cluster.server import ApiServer, page, resources
from webhook.cli import run_command_line
from webhook.yamltext import yamlfile

FOLDER = Path(__file__).parents[1] / "data" / "commands" / "queues"
FILE = str(FOLDER / "queues.yaml")
TEXT = """\
Cohort org
  spot  nvidia.com/gpu  16 nominal      16 shared
  a100  nvidia.com/gpu  0 nominal       16 shared     6 used
  old   cpu             0 nominal       96 shared
  old   memory          0 nominal       512Gi shared
  Cohort research
    a100  nvidia.com/gpu  0 nominal      16 shared     6 used
    spot  nvidia.com/gpu  0 nominal      0 shared
    old   cpu             0 nominal      96 shared
    old   memory          0 nominal      512Gi shared
    ClusterQueue language
      a100  nvidia.com/gpu  16 nominal    lends at most 8  24 potential
      LocalQueue team-b/held
        ! is stopped by its stopPolicy Hold
      LocalQueue team-b/main
        can admit at most 24 nvidia.com/gpu of a100
    ClusterQueue vision
      a100  nvidia.com/gpu  8 nominal      borrows at most 4    12 potential     6 used
      spot  nvidia.com/gpu  0 nominal                           16 potential
      old   cpu             96 nominal                          96 potential
      old   memory          512Gi nominal                       512Gi potential
      LocalQueue team-a/main
        can admit at most 12 nvidia.com/gpu of a100
        can admit at most 16 nvidia.com/gpu of spot
        can admit at most 96 cpu, 512Gi memory of old
ClusterQueue ghost
  ! is inactive because its ResourceFlavor `h100` does not exist (FlavorNotFound)
  h100  nvidia.com/gpu  8 nominal      8 potential
LocalQueue team-b/lost
  ! its ClusterQueue nowhere does not exist
flavor unused has no quota in any queue
used: as the status of the ClusterQueues says
2 cohorts, 3 ClusterQueues, 4 LocalQueues; 3 with obstacles
"""


def test_the_tree_is_shown_with_what_each_queue_could_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["queues", FILE, "--context-is-whole"]) == 1
    assert capsys.readouterr().out == TEXT


def test_json_has_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["queues", FILE, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    vision = next(each for each in found["queues"] if each["name"] == "vision")
    assert vision["amounts"][0] == {
        "flavor": "a100",
        "resource": "nvidia.com/gpu",
        "nominal": "8",
        "borrowingLimit": "4",
        "lendingLimit": None,
        "potential": "12",
        "used": "6",
    }
    assert found["queues"][0]["amounts"][1]["shared"] == "16"
    assert [(each["kind"], each["parent"]) for each in found["queues"]][:2] == [("Cohort", ""), ("Cohort", "org")]
    assert found["unusedFlavors"] == ["unused"]
    assert found["usedAccordingTo"] == "ClusterQueues"


def test_workloads_say_what_is_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workloads show the quota in use, because the status of a ClusterQueue may be outdated, or missing in files."""
    file = tmp_path / "workloads.yaml"
    file.write_text("""
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: job-a, namespace: team-b}
spec: {queueName: main, podSets: [{name: main, count: 2}]}
status:
  conditions: [{type: QuotaReserved, status: "True"}]
  admission:
    clusterQueue: language
    podSetAssignments: [{name: main, count: 2, flavors: {nvidia.com/gpu: a100}, resourceUsage: {nvidia.com/gpu: 10}}]
""")
    assert run_command_line(["queues", FILE, str(file), "-o", "text", "-o", f"json={tmp_path / 'q.json'}"]) == 1
    shown = capsys.readouterr().out
    assert "16 nominal    lends at most 8  24 potential  10 used" in shown
    assert "6 used" not in shown
    assert "used: the sum of 1 Workload with reserved quota" in shown
    assert json.loads((tmp_path / "q.json").read_text())["usedAccordingTo"] == "Workloads"


def test_the_picture_has_every_queue_and_is_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["queues", FILE, "-o", "svg"]) == 1
    root = ET.fromstring(capsys.readouterr().out)
    texts = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"ClusterQueue vision", "LocalQueue team-a/main", "8 + 4 = 12 nvidia.com/gpu (6 in use) of a100"} <= {*texts}
    boxes = [each.attrib for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert all(int(each.get("y", 0)) + int(each["height"]) <= int(root.attrib["height"]) for each in boxes)


def test_the_picture_cuts_names_before_the_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "q" * 63
    flavors = "{name: a, resources: [{name: cpu, nominalQuota: 1}]}"
    file = tmp_path / "q.yaml"
    file.write_text(f"""
- {{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: a}}}}
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: ClusterQueue
  metadata: {{name: {name}}}
  spec: {{namespaceSelector: {{}}, resourceGroups: [{{coveredResources: [cpu], flavors: [{flavors}]}}]}}
- {{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: main, namespace: team}}, spec: {{clusterQueue: {name}}}}}
""")
    assert run_command_line(["queues", str(file), "-o", "svg"]) == 0
    texts = [*ET.fromstring(capsys.readouterr().out).iter("{http://www.w3.org/2000/svg}text")]
    (shown,) = (each for each in texts if (each.text or "").startswith("ClusterQueue"))
    bars_at = min(int(each.attrib["x"]) for each in texts if (each.text or "").startswith("1 cpu"))
    assert int(shown.attrib["x"]) + 8 * len(shown.text or "") < bars_at
    assert shown[0].text == f"ClusterQueue {name}"


def test_cohorts_with_a_cycle_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "q.yaml"
    file.write_text("""
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}, spec: {parentName: b}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: b}, spec: {parentName: a}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: {cohortName: b, namespaceSelector: {}}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: main, namespace: team}, spec: {clusterQueue: q}}
""")
    assert run_command_line(["queues", str(file)]) == 1
    shown = capsys.readouterr().out
    assert shown.count("its parents form a cycle") == 3
    assert "LocalQueue team/main" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "error: queues: name either PATH, or --live for a cluster"),
        (["--live", FILE], "error: queues: name either PATH, or --live for a cluster"),
        (["nowhere"], "error: nowhere: no such file or folder"),
        ([FILE, "-o", "png"], "error: --output: unknown format `png`, expected one of text, json, svg"),
    ],
    ids=["neither a path nor --live", "a path and --live", "a file that does not exist", "an unknown format"],
)
def test_invalid_arguments_of_queues_are_reported(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["queues", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_repeated_key_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a, name: b}\nspec: {}\n")
    assert run_command_line(["queues", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"warning: {file}:3:21: metadata: key `name` appears twice in one mapping")
    assert "Cohort b" in out


def test_a_cluster_without_queues_has_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "q.yaml"
    file.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: n}}")
    assert run_command_line(["queues", str(file)]) == 0
    assert capsys.readouterr().err == "note: there are no queues\n"


PLURALS = {
    "Namespace": ("/api/v1", "namespaces"),
    "LocalQueue": ("/apis/kueue.x-k8s.io/v1beta2", "localqueues"),
    "ClusterQueue": ("/apis/kueue.x-k8s.io/v1beta2", "clusterqueues"),
    "Cohort": ("/apis/kueue.x-k8s.io/v1beta2", "cohorts"),
    "ResourceFlavor": ("/apis/kueue.x-k8s.io/v1beta2", "resourceflavors"),
    "Topology": ("/apis/kueue.x-k8s.io/v1beta2", "topologies"),
    "AdmissionCheck": ("/apis/kueue.x-k8s.io/v1beta2", "admissionchecks"),
}


def served(server: ApiServer) -> None:
    objects: list[dict[str, Any]] = yamlfile.read(FILE)[0].value["items"]
    for root in {root for root, _ in PLURALS.values()}:
        rows = [(name, kind, kind == "LocalQueue") for kind, (at, name) in PLURALS.items() if at == root]
        server.answers[root] = resources(*rows)
    server.answers["/apis/kueue.x-k8s.io"] = (200, {"preferredVersion": {"version": "v1beta2"}})
    for kind, (root, name) in PLURALS.items():
        own = [
            {**each, "metadata": {**each["metadata"], "resourceVersion": "1"}}
            for each in objects
            if each["kind"] == kind
        ]
        server.answers[f"{root}/{name}"] = page(*own)


def test_a_live_cluster_shows_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = ApiServer()
    try:
        served(server)
        assert run_command_line(["queues", "--kubeconfig", str(server.kubeconfig(tmp_path))]) == 1
    finally:
        server.shutdown()
        server.server_close()
    assert capsys.readouterr().out == TEXT


def test_files_report_nothing_as_absent_unless_they_are_the_whole_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    run_command_line(["queues", FILE])
    out = capsys.readouterr().out
    assert "FlavorNotFound" in TEXT
    assert "its ClusterQueue nowhere does not exist" in TEXT
    assert "does not exist" not in out
