"""The workload table agrees with published CRDs, and a site's own rows are checked like it."""

import json
from pathlib import Path

import pytest

from webhook.errors import InputError
from webhook.workloads import table

DATA = Path(__file__).parents[1] / "data"
CRDS = json.loads((DATA / "crds" / "templates.json").read_text())
SHIPPED = table.load()

WITHOUT_PODS = {("kueue.x-k8s.io", "Workload")}  # made by Kueue out of the jobs that are in the table

ISSUE = [
    "Pod",
    "PodTemplate",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "JobSet",
    "TrainJob",
    "TrainingRuntime",
    "ClusterTrainingRuntime",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "XGBoostJob",
    "PaddleJob",
    "JAXJob",
    "JobTemplate",
    "RayJob",
    "RayCluster",
    "RayService",
    "LeaderWorkerSet",
    "AppWrapper",
    "SparkApplication",
    "InferenceService",
    "BatchSandbox",
    "Pool",
    "Sandbox",
]


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: f"{crd['kind']} {crd['version']}")
def test_a_row_says_what_the_crd_says(crd: dict) -> None:
    row = SHIPPED.row(crd["group"], crd["kind"])
    if (crd["group"], crd["kind"]) in WITHOUT_PODS:
        assert row is None
        return
    assert row is not None
    assert crd["version"] in row.versions
    assert (row.resource, row.namespaced) == (crd["plural"], crd["namespaced"])
    known = [rule.template for rule in (*row.podSets, *row.fragments)]
    for path in crd["templates"]:
        assert path in known
    if not crd["templates"]:
        assert all(any(path.startswith(free) for free in crd["free"]) for path in known)


def test_every_kind_that_carries_pods_has_a_row() -> None:
    kinds = [row.kind for row in SHIPPED.rows]
    assert set(ISSUE) <= set(kinds)
    assert sorted(row.group for row in SHIPPED.rows if row.kind in ("Job", "CronJob")) == [
        "batch",
        "batch",
        *["batch.volcano.sh"] * 2,
    ]
    assert SHIPPED.row("kubeflow.org", "MPIJob").versions == ("v1", "v2beta1")


def test_a_site_adds_and_replaces_rows(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "- {group: example.org, versions: [v1], kind: Fleet, resource: fleets, templates: mutable, podSets: [{name: main, template: spec.pod}]}\n"
        "- {group: apps, versions: [v1], kind: Deployment, resource: deployments, templates: immutable}\n"
    )
    own = table.load([file])
    assert own.row("example.org", "Fleet").podSets[0].template == "spec.pod"
    assert own.row("apps", "Deployment").templates == "immutable"
    assert own.row("example.org", "Fleet").gvk.api_version == "example.org/v1"
    assert len(own.rows) == len(SHIPPED.rows) + 1


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("- {group: a.b, versions: [v1], kind: X, resource: xs}\n", ":1:", "is required"),
        ("- group: a.b\n  versions: [v1]\n  kind: X\n  resource: xs\n  templates: sometimes\n", ":5:", "templates"),
        (
            "- {group: a.b, versions: [v1], kind: X, resource: xs, templates: mutable, pods: 1}\n",
            ":1:",
            "is no field of a workload row",
        ),
        ("kind: X\n", ":1:", ""),
        (
            "- {group: a.b, versions: [v1], kind: X, resource: xs, templates: mutable}\n" * 2,
            ":2:",
            "`X` of group `a.b` stands twice in this file: keep one row",
        ),
        (
            "- {group: a.b, versions: [v1], kind: X, resource: xs, templates: mutable, references: [{name: spec.of, kinds: [Z]}]}\n",
            "X.references",
            "kind `Z` of group `a.b` has no row: add one",
        ),
    ],
    ids=["missing field", "unknown word", "unknown field", "no list", "same kind twice", "reference to nothing"],
)
def test_a_bad_row_is_named_with_its_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        table.load([file])
    assert place in str(raised.value)
    assert message in str(raised.value)
