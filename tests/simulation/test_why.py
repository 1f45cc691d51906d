"""`claimgate why`: recorded clusters with jobs that wait or died, the first line, and what is not known."""

import json
from pathlib import Path

import pytest
import yaml

from tests import quick_yaml
from tests.e2e.recorded_clusters import objects_of_folder
from webhook.apimachinery.attributes import POD
from webhook.cli import run_command_line
from webhook.cluster.files import FilesCluster
from webhook.status.owned_objects import owned_objects
from webhook.status.refusals import why_refused, why_unschedulable
from webhook.status.sources import ClusterReading, FileSource

WHY = Path(__file__).parents[1] / "data" / "why"
STORIES = quick_yaml.load((WHY / "stories.yaml").read_text())
RECORDED = quick_yaml.load((WHY / "recorded" / "stories.yaml").read_text())


def ask(story, tmp_path, capsys, *arguments):
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(story["objects"]))
    code = run_command_line(["why", story["ask"], "-n", "team", "--context", str(tmp_path), *arguments])
    return code, capsys.readouterr()


@pytest.mark.parametrize("story", STORIES, ids=[each["story"] for each in STORIES])
def test_the_first_line_has_the_deciding_reason(story, tmp_path, capsys):
    code, said = ask(story, tmp_path, capsys)
    assert (said.out.partition("\n")[0], code) == (story["first"], story["code"]), said.out + said.err
    assert story.get("also", "") in said.out


@pytest.mark.parametrize("story", RECORDED, ids=[each["story"] for each in RECORDED])
def test_a_recorded_cluster_says_what_decides_what_is_next_and_what_is_unknown(story, capsys):
    asked = ["why", story["ask"], "-n", "team", "--context", str(WHY / "recorded" / story["folder"])]
    code = run_command_line(asked)
    text = capsys.readouterr().out
    run_command_line([*asked, "-o", "json"])
    [told] = json.loads(capsys.readouterr().out)
    rules = [each["rule"] for listed in told.get("aspects", {}).values() for each in listed]
    following = [told["answer"], *rules] if told["answer"] else []
    unknown = [each["what"] for each in told["unknown"]]
    assert (text.partition("\n")[0], code) == (story["first"], story["code"]), text
    assert (following, unknown) == (story["next"], story["unknown"]), text


def test_each_recorded_cluster_has_its_expected_answer():
    folders = [each.name for each in (WHY / "recorded").iterdir() if each.is_dir()]
    assert sorted(folders) == sorted(each["folder"] for each in RECORDED), "tests/data/why/recorded/stories.yaml"


class SourceWithSelectors(FileSource):
    """A source that records the selectors with which pods were listed."""

    selects = True

    def __init__(self, cluster):
        super().__init__(cluster)
        self.selectors = []

    def list(self, kind, namespace, selector=""):
        if kind == POD:
            self.selectors.append(selector)
        return super().list(kind, namespace, selector)


SELECTED = [
    each for each in RECORDED if each["ask"].partition("/")[0] in ("deploy", "sts", "vcjob", "isvc", "rayservice")
]


@pytest.mark.parametrize("story", SELECTED, ids=[each["story"] for each in SELECTED])
def test_pods_of_other_owners_are_not_read(story):
    objects = objects_of_folder(WHY / "recorded" / story["folder"])
    kinds = {"deploy": "Deployment", "sts": "StatefulSet", "vcjob": "Job", "isvc": "InferenceService"}
    short, name = story["ask"].split("/")
    kind = kinds.get(short, "RayService")
    root = next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    source = SourceWithSelectors(FilesCluster(objects))
    owned_objects(root, ClusterReading(source))
    assert "" not in source.selectors


GATED = next(each for each in STORIES if each["story"] == "scheduling gate")
QUOTA = next(each for each in STORIES if each["story"] == "no quota in Kueue")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("job/none", "why: none does not exist in namespace team (resources jobs.batch, jobs.batch.volcano.sh)"),
        ("podd/train", "why: kind `podd` is not known: did you mean `pod`?"),
        ("train", "why: `train` does not name an object: write KIND/NAME, such as job/train"),
        (
            "jobs/train.yaml",
            "why: `jobs/train.yaml` is a file, and not an object of the cluster: `claimgate simulate FILE`",
        ),
    ],
)
def test_a_name_that_is_not_an_object_is_refused(asked, says, tmp_path, capsys):
    code, said = ask({**GATED, "ask": asked}, tmp_path, capsys)
    assert (code, said.err.startswith(f"error: {says}")) == (2, True), said.err


def test_a_file_is_refused_before_a_cluster_is_looked_for(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert run_command_line(["why", "job.yaml"]) == 2
    assert capsys.readouterr().err.startswith("error: why: `job.yaml` is a file")


def test_the_json_answer_has_state_and_reasons(tmp_path, capsys):
    _, said = ask(QUOTA, tmp_path, capsys, "-o", "json")
    [told] = json.loads(said.out)
    assert told["state"] == "waits"
    assert told["headline"] == QUOTA["first"].removeprefix("⚠ Job team/train ")
    assert [each["object"]["kind"] for each in told["now"]] == ["Workload"]
    assert told["now"][0]["words"].startswith("QuotaReserved is False (WaitingForQuota): couldn't assign flavors")
    assert (told["made"], told["answer"], told["queue"]["clusterQueue"]) == ({"Workload": 1}, "nothing-found", "cq")


def test_a_wait_is_a_finding_if_no_workload_reports_the_wait(tmp_path, capsys):
    others = [each for each in QUOTA["objects"] if not owners_of(each)]
    assert len(others) < len(QUOTA["objects"])
    _, said = ask({**QUOTA, "objects": others}, tmp_path, capsys, "-o", "json")
    [told] = json.loads(said.out)
    rules = [each["rule"] for each in told["aspects"]["quota"]]
    assert (told["made"], told["answer"], rules) == ({}, "waits", ["kueue-not-now/waiting-for-quota"])


def owners_of(obj):
    return obj["metadata"].get("ownerReferences")


def test_texts_from_the_cluster_cannot_control_the_terminal(tmp_path, capsys):
    [pod] = GATED["objects"]
    hostile = {**pod["spec"], "schedulingGates": [{"name": "a\x1b[2Jb\n::error::c"}]}
    _, said = ask({**GATED, "objects": [{**pod, "spec": hostile}]}, tmp_path, capsys)
    assert "\x1b" not in said.out
    assert not any(line.startswith("::") for line in said.out.splitlines())


def test_values_of_other_types_are_not_read(tmp_path, capsys):
    [pod] = GATED["objects"]
    odd = {**pod, "spec": {"schedulingGates": "x", "containers": 3}, "status": {"conditions": {"a": 1}, "phase": ["x"]}}
    code, said = ask({**GATED, "objects": [odd]}, tmp_path, capsys)
    assert code in (1, 3)
    assert "scheduler default-scheduler has not said anything about the pod" in said.out


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("pods is forbidden: failed quota: q: must specify limits.cpu", "ResourceQuota q demands requests or limits"),
        ('failed calling webhook "a.b": Post "https://x": no endpoints', "admission webhook a.b does not answer"),
        ("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: x", "policy p denies them"),
        ("pods is forbidden: no PriorityClass with name high was found", "their PriorityClass does not exist"),
        ("something else", "the API server refuses the objects that it creates"),
    ],
)
def test_the_reason_why_pods_are_refused_is_read(message, says):
    assert says in why_refused(message)[0]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ('persistentvolumeclaim "data" not found', "PersistentVolumeClaim data does not exist"),
        ("no nodes available to schedule pods", "the cluster has no node"),
        ('0/1 nodes are available: resourceclaim "a" not found', "ResourceClaim a does not exist"),
        ("0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable.", "of 2 nodes 1 has as many pods"),
        ("all nodes are unavailable: 3 Insufficient cpu.", "no node accepts the pod: 3 have too little free cpu"),
        ("something else", "the scheduler does not place the pod: something else"),
        ("0/3 nodes are available: 3 new reason, with comma.", "of 3 nodes 3 new reason, with comma"),
    ],
)
def test_the_reason_why_no_node_fits_is_read_from_the_scheduler(message, says):
    assert says in why_unschedulable(message)[1]


def test_a_whole_context_needs_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["why", "job/train", "--context-is-whole"]) == 2
    assert "--context-is-whole is about the files of --context" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize("story", RECORDED[:6], ids=[each["story"] for each in RECORDED[:6]])
def test_each_line_fits_the_terminal(story, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    run_command_line(["why", story["ask"], "-n", "team", "--context", str(WHY / "recorded" / story["folder"])])
    first, *others = capsys.readouterr().out.splitlines()
    long_names = [line for line in others if " " not in line.strip()]
    assert [line for line in (first, *others) if len(line) > int(columns) and line not in long_names] == []
    assert " ".join([first, *(line.strip() for line in others)]).startswith(story["first"])
