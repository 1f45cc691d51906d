"""The workload table agrees with published CRDs, and a site's own rows are checked like it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rows import all_rows
from tests.workloads.crds import embedded
from webhook.errors import InputError
from webhook.workloads import table
from webhook.workloads.rows import Factor, Row
from webhook.yamltext import yamlfile

DATA = Path(__file__).parents[1] / "data"
CRDS = json.loads((DATA / "crds" / "templates.json").read_text())
POLICIES_PAGE = DATA.parents[1] / "docs" / "policies.md"
SHIPPED = table.load_table()

WITHOUT_ROW = {
    ("kueue.x-k8s.io", "Workload"): "made by Kueue out of the jobs that are in the table",
    ("grove.io", "PodClique"): "made by Grove out of PodCliqueSets",
    ("orchestration.aibrix.ai", "PodSet"): "made by AIBrix out of RoleSets",
    ("orchestration.aibrix.ai", "RayClusterReplicaSet"): "made by AIBrix out of RayClusterFleets",
    ("serving.knative.dev", "Revision"): "made by Knative out of Services and Configurations",
    ("argoproj.io", "Experiment"): "copies of a Rollout's pods for the time of an analysis",
    ("argoproj.io", "AnalysisRun"): "a job that measures others",
    ("argoproj.io", "AnalysisTemplate"): "a job that measures others",
    ("argoproj.io", "ClusterAnalysisTemplate"): "a job that measures others",
    ("serving.kserve.io", "ServingRuntime"): "incomplete until merged with an InferenceService",
    ("serving.kserve.io", "ClusterServingRuntime"): "incomplete until merged with an InferenceService",
    ("serving.kserve.io", "LLMInferenceService"): "incomplete until merged with LLMInferenceServiceConfigs",
    ("serving.kserve.io", "LLMInferenceServiceConfig"): "incomplete until merged with an LLMInferenceService",
    ("flink.apache.org", "FlinkDeployment"): "incomplete until the operator has put Flink's own container in",
    ("flink.apache.org", "FlinkBlueGreenDeployment"): "incomplete until the operator has put Flink's own container in",
    ("machinelearning.seldon.io", "SeldonDeployment"): "incomplete until the operator has put its engine in",
    ("inference.llmaz.io", "Service"): "incomplete until merged with a model",
    ("mlops.seldon.io", "Server"): "incomplete until merged with its ServerConfig",
    ("mlops.seldon.io", "ServerConfig"): "incomplete until merged with a Server",
    ("ome.io", "InferenceService"): "incomplete until merged with a runtime",
    ("ome.io", "ServingRuntime"): "incomplete until merged with an InferenceService",
    ("ome.io", "ClusterServingRuntime"): "incomplete until merged with an InferenceService",
    ("orchestration.aibrix.ai", "KVCache"): "incomplete until the operator has put the cache's own containers in",
    ("workloads.x-k8s.io", "ClusterEngineRuntimeProfile"): "containers that are added to the pods of others",
    ("workloads.x-k8s.io", "RoleBasedGroupWarmup"): "containers that prepare nodes",
}
NOT_PODS = re.compile(r"engineRuntimes\[\]$")  # containers that are added to the pods of other objects

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


WITH_ROW = [crd for crd in CRDS if (crd["group"], crd["kind"]) not in WITHOUT_ROW]


def row_of(crd: dict) -> Row:
    row = SHIPPED.row(crd["group"], crd["kind"])
    assert row is not None, (
        f"{crd['kind']} embeds pods at {crd['templates'] or crd['podSpecs']}: add a row to kinds.yaml"
    )
    return row


def covers(rule: str, path: str) -> bool:
    """Return whether a rule of the table covers a path. A rule may name a key of a map."""
    return re.fullmatch(re.escape(path).replace(r"\{\}", r"(\{\}|\.\w+)"), rule) is not None


@all_rows("crd", WITH_ROW, ids=lambda crd: f"{crd['kind']} {crd['group']}/{crd['version']}")
def test_every_pod_spec_of_a_crd_is_in_the_row_of_its_kind(crd: dict) -> None:
    row = row_of(crd)
    assert crd["version"] in row.versions
    assert (row.resource, row.namespaced) == (crd["plural"], crd["namespaced"])
    rules = [*row.podSets, *row.fragments]
    for embeds, key in (("template", "templates"), ("podSpec", "podSpecs")):
        for path in crd.get(key, ()):
            if not NOT_PODS.search(path):
                places = {embeds: path} | ({"podSpec": f"{path}.spec"} if embeds == "template" else {})
                assert any(covers(rule.template, places.get(rule.embeds, "")) for rule in rules), path


@all_rows("row", SHIPPED.rows, ids=lambda row: f"{row.kind} {row.group}")
def test_every_path_of_a_row_is_in_a_crd(row: Row) -> None:
    """Some version of the CRD must have the path, if it describes the place. No CRD has fragments of old releases."""
    crds = [crd for crd in CRDS if (crd["group"], crd["kind"]) == (row.group, row.kind)]
    known = [path for crd in crds for key in ("templates", "podSpecs") for path in crd.get(key, ())]
    known += [f"{path}.spec" for crd in crds for path in crd.get("templates", ())]
    free = tuple(path for crd in crds for path in crd.get("free", ()))
    if crds:
        for rule in row.podSets:
            assert any(covers(rule.template, path) for path in known) or rule.template.startswith(free), rule.template


def factors(row: Row) -> Iterator[tuple[str, Factor]]:
    """Yield each factor of a number of pods, after the path to which its fields are relative."""
    for rule in row.podSets:
        start, each, _ = re.fullmatch(r"(?:(.*)(\[\]|\{\}))?([^\[{]*)", rule.template).groups()
        for factor in rule.count or ():
            yield f"{start}{each}." if each else "", factor
        for factor in rule.groups:
            yield "", factor


@all_rows("crd", WITH_ROW, ids=lambda crd: f"{crd['kind']} {crd['group']}/{crd['version']}")
def test_counts_are_read_with_the_types_and_defaults_of_the_crd(crd: dict) -> None:
    """A field may be in another version, or below an object without a schema."""
    row, group = row_of(crd), [each for each in CRDS if (each["group"], each["kind"]) == (crd["group"], crd["kind"])]
    known = {path: default for each in group for path, default in each.get("counts", {}).items()} | crd.get(
        "counts", {}
    )
    free = tuple(path for each in group for path in each.get("free", ()))
    for place, factor in factors(row):
        for field in factor.fields:
            path = next((path for path in known if covers(f"{place}{field}", path)), None)
            assert path or f"{place}{field}".startswith(free), f"{place}{field}"
            if path and known[path] is not None:
                assert factor.default == max(known[path], factor.floor if isinstance(factor.floor, int) else 0), path


def test_kinds_left_out_have_no_whole_pods_in_the_table() -> None:
    known = {(crd["group"], crd["kind"]) for crd in CRDS}
    assert known >= WITHOUT_ROW.keys()
    rows = [row for row in (SHIPPED.row(*each) for each in WITHOUT_ROW) if row is not None]
    assert [row.kind for row in rows if row.podSets or not row.resources] == []


def test_the_paths_are_those_of_the_published_crds() -> None:
    """Compare only definitions with complete files here. The same code read the other definitions."""
    files = sorted((DATA / "crds").glob("*.yaml"))
    assert files
    for file in files:
        (document,) = yamlfile.read(file)
        for found in embedded(document.value, ""):
            (line,) = [each for each in CRDS if {**each, "origin": ""} == found]
            assert line["origin"]


def test_every_kind_that_carries_pods_has_a_row() -> None:
    kinds = [row.kind for row in SHIPPED.rows]
    assert set(ISSUE) <= set(kinds)
    assert sorted(row.group for row in SHIPPED.rows if row.kind in ("Job", "CronJob")) == [
        "batch",
        "batch",
        *["batch.volcano.sh"] * 2,
    ]
    assert SHIPPED.row("kubeflow.org", "MPIJob").versions == ("v1", "v2beta1")


ROW = "group: a.b, templates: mutable"
ODD = "group: a.b\n  versions: [v1]\n  kind: X\n  resource: xs\n  templates: mutable"


def test_the_row_that_the_page_shows_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(re.search(r"```yaml\n(- group: example.org\n.*?)```", POLICIES_PAGE.read_text(), re.DOTALL)[1])
    assert table.load_table([file]).row("example.org", "Fleet").podSets[0].template == "spec.ships[].pod"


def test_the_shipped_table_passes_the_checks_of_the_tables_of_sites() -> None:
    (document,) = yamlfile.read(table.SHIPPED)
    rows, mistakes = table.checked_rows(document)
    assert not mistakes, "mend webhook/workloads/kinds.yaml at these places"
    assert rows == SHIPPED.rows


def test_a_site_adds_and_replaces_rows(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "- {group: example.org, versions: [v1], kind: Fleet, resource: fleets, templates: mutable, podSets: [{name: main, template: spec.pod}]}\n"
        "- {group: apps, versions: [v1], kind: Deployment, resource: deployments, templates: immutable}\n"
    )
    own = table.load_table([file])
    assert own.row("example.org", "Fleet").podSets[0].template == "spec.pod"
    assert own.row("apps", "Deployment").templates == "immutable"
    assert own.row("example.org", "Fleet").gvk.api_version == "example.org/v1"
    assert len(own.rows) == len(SHIPPED.rows) + 1


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("- {group: a.b, versions: [v1], kind: X}\n", ":1:", "is required"),
        ("- group: a.b\n  versions: [v1]\n  kind: X\n  resource: xs\n  templates: sometimes\n", ":5:", "templates"),
        (
            "- {group: a.b, versions: [v1], kind: X, resource: xs, templates: mutable, pod: 1}\n",
            ":1:",
            "is not a field of a workload row",
        ),
        ("kind: X\n", ":1:", 'expected a list of rows, found `{"kind": "X"}`'),
        (f"- {{{ROW}, versions: [], kind: X, resource: xs}}\n", ":1:", "expected one version or more"),
        (
            f"- {{{ROW}, versions: [v1], kind: x, resource: xs}}\n",
            ":1:",
            "expected a kind such as `PyTorchJob`, found `x`",
        ),
        (f"- {{{ROW}, versions: [v1], kind: X, resource: x/s}}\n", ":1:", "the plural in lower case"),
        (
            f"- {ODD}\n  podSets:\n  - {{template: $.spec.x}}\n",
            ":7:",
            "podSets[0].template: expected a path such as `spec.template`",
        ),
        (
            f"- {ODD}\n  podSets:\n  - {{template: spec.x, when: 'a[].b'}}\n",
            ":7:",
            "podSets[0].when: expected the path of a field such as `spec.replicas`, found `a[].b`",
        ),
        (
            f"- {ODD}\n  podSets:\n  - template: spec.x\n    count:\n    - replicas\n    - {{default: '2'}}\n",
            ":10:",
            'podSets[0].count[1].default: expected an integer, found `"2"`',
        ),
        (
            f"- {ODD}\n  podSets:\n  - template: spec.x\n    groups:\n    - {{path: a, least: [b]}}\n",
            ":9:",
            "podSets[0].groups[0]: expected a field, a `path`, or `least` with several fields",
        ),
        (
            f"- {ODD}\n  fragments:\n  - {{template: 'spec.a[0]', of: spec.x}}\n",
            ":7:",
            "fragments[0].template: expected a path",
        ),
        (
            f"- {ODD}\n  resources:\n  - {{path: 'spec.a[0]'}}\n",
            ":7:",
            "resources[0].path: expected a path",
        ),
        (
            f"- {ODD}\n  resources:\n  - {{path: spec.a, unless: 'b[]'}}\n",
            ":7:",
            "resources[0].unless: expected the path of a field",
        ),
        (
            f"- {ODD}\n  resources:\n  - {{path: spec.a, count: [{{path: 'b[]'}}]}}\n",
            ":7:",
            "resources[0].count[0].path: expected the path of a field",
        ),
        (
            f"- {ODD}\n  objects:\n  - {{template: spec.job, kind: x}}\n",
            ":7:",
            "objects[0].kind: expected a kind such as `PyTorchJob`, found `x`",
        ),
        (
            f"- {ODD}\n  objects:\n  - {{template: spec.job, kind: X, groups: [{{path: 'a[]'}}]}}\n",
            ":7:",
            "objects[0].groups[0].path: expected the path of a field",
        ),
        (f"- {{{ROW}, versions: [v1], kind: X, resource: xs}}\n---\n" * 2, ":3:", "occurs twice in this file"),
        (
            "- {group: a.b, versions: [v1], kind: X, resource: xs, templates: mutable}\n" * 2,
            ":2:",
            "`X` of group `a.b` occurs twice in this file: keep one row",
        ),
        (
            "- {group: a.b, versions: [v1], kind: X, resource: xs, templates: mutable, references: [{name: spec.of, kinds: [Z]}]}\n",
            "X.references",
            "kind `Z` of group `a.b` has no row: add one",
        ),
    ],
    ids=[
        *("missing field", "unknown word", "unknown field", "no list", "no versions", "bad kind", "bad plural"),
        *(
            "bad path",
            "bad field",
            "bad number",
            "bad factor",
            "bad fragment",
            "bad resources",
            "bad condition of resources",
            "bad count of resources",
            "bad object",
            "bad groups",
            "same kind in two documents",
        ),
        *("same kind twice", "reference to nothing"),
    ],
)
def test_an_invalid_row_is_reported_with_its_place(tmp_path: Path, text: str, place: str, message: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        table.load_table([file])
    assert place in str(raised.value)
    assert message in str(raised.value)
