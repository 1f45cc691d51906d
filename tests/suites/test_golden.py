"""Golden folders: replay records them, test compares them, and no confidential value is written."""

import json
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.yamltext import yamlfile
from webhook.yamltext.confidential import without_confidential

EXAMPLES = Path(__file__).parents[2] / "examples" / "research-team"
CONTEXT = ("--context", str(EXAMPLES / "cluster"), "--context-is-whole")
RANKS = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: ranks, namespace: research}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: pytorch
            image: example.org/train
            command: [python, train.py]
            env: [{name: TOKEN, value: hunter2}, {name: NCCL_SOCKET_IFNAME, value: eth0}]
"""


def record(folder, *arguments):
    return run_command_line(["replay", *map(str, arguments), "--record", str(folder)])


def expected(folder):
    [file] = folder.glob("*/expected.yaml")
    return file, yamlfile.read(file)[0].value


def test_a_recorded_review_gets_the_same_answer(tmp_path, capsys):
    assert record(tmp_path, EXAMPLES / "broken" / "pytorchjob-too-many-gpus.yaml", *CONTEXT) == 0
    file, answer = expected(tmp_path)
    assert file.parent.name == "000-PyTorchJob-research-finetune-large"
    assert (answer["allowed"], answer["contextIsWhole"], answer["rules"]) == (
        *(True, True),
        ["kueue-never/exceeds-max-quota"],
    )
    held = sorted(each.stem for each in (file.parent / "cluster").glob("*.yaml"))
    assert {"ClusterQueue", "LocalQueue", "ResourceFlavor"} <= set(held)
    assert run_command_line(["test", str(tmp_path)]) == 0
    assert "1 case: 1 passed" in capsys.readouterr().out


def test_a_denial_is_recorded_with_its_message(tmp_path):
    assert record(tmp_path, EXAMPLES / "broken" / "mpijob-slots.yaml", *CONTEXT) == 1
    _, answer = expected(tmp_path)
    assert (answer["code"], answer["reason"]) == (422, "Invalid")
    assert "slotsPerWorker" in answer["message"]
    assert run_command_line(["test", str(tmp_path)]) == 0


def test_an_answer_that_differs_is_a_failure_until_it_is_updated(tmp_path, capsys):
    record(tmp_path, EXAMPLES / "broken" / "mpijob-slots.yaml", *CONTEXT)
    file, _ = expected(tmp_path)
    before = file.read_text()
    file.write_text(before.replace("code: 422", "code: 400"))
    capsys.readouterr()
    assert run_command_line(["test", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "the answer differs:" in out
    assert "-code: 400" in out
    assert "+code: 422" in out
    assert run_command_line(["test", str(tmp_path), "--update-golden"]) == 0
    assert file.read_text() == before


@pytest.mark.parametrize("place", ["", "000-MPIJob-research-slots", "000-MPIJob-research-slots/cluster"])
def test_nothing_is_recorded_through_a_link(tmp_path, capsys, monkeypatch, place):
    """The link may be the folder itself, or a folder in it."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for folder in (outside, inside):
        folder.mkdir()
    monkeypatch.chdir(inside)
    job = EXAMPLES / "broken" / "mpijob-slots.yaml"
    record("golden", job, *CONTEXT)
    (recorded,) = (inside / "golden").iterdir()
    linked = inside / "golden" / place.replace("000-MPIJob-research-slots", recorded.name)
    linked.rename(outside / "there")
    linked.symlink_to(outside / "there")
    (outside / "there" / "honest.yaml").write_text("honest")
    before = {path: path.read_bytes() for path in outside.rglob("*.yaml")}
    assert record("golden", job, *CONTEXT) == 2
    assert "is a link or below a link" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in outside.rglob("*.yaml")} == before


def test_golden_folders_use_the_configured_policies(tmp_path, capsys):
    record(tmp_path, EXAMPLES / "broken" / "mpijob-slots.yaml", *CONTEXT)
    only = Path(__file__).parents[1] / "data" / "commands" / "policies"
    assert run_command_line(["test", str(tmp_path), "--only", str(only)]) == 1
    assert "+allowed: true" in capsys.readouterr().out


def test_confidential_values_are_left_out(tmp_path, capsys):
    job = tmp_path / "job.yaml"
    job.write_text(RANKS)
    record(tmp_path / "recorded", job)
    written = [each.read_text() for each in (tmp_path / "recorded").rglob("*.yaml")]
    assert len(written) > 1
    assert not [text for text in written if "hunter2" in text or "eth0" in text]
    assert run_command_line(["test", str(tmp_path / "recorded")]) == 0


def test_an_answer_that_depends_on_a_confidential_value_is_reported(tmp_path, capsys):
    job = tmp_path / "job.yaml"
    job.write_text(RANKS)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        (Path(__file__).parents[1] / "data" / "commands" / "policies" / "policies.yaml")
        .read_text()
        .replace(
            """!("deny" in object.?metadata.?labels.orValue({}))""",
            """object.spec.containers.all(c, c.?env.orValue([]).all(e, e.?value.orValue("") != "eth0"))""",
        )
    )
    assert record(tmp_path / "recorded", job, "--only", policy) == 1
    assert "has another answer than the recorded review" in capsys.readouterr().err
    assert expected(tmp_path / "recorded")[1]["allowed"] is True


def test_only_a_recorded_folder_is_updated(tmp_path, capsys):
    fixture = EXAMPLES / "broken" / "mpijob-slots.yaml"
    record(tmp_path, fixture, *CONTEXT)
    record(tmp_path, fixture, *CONTEXT)
    file, _ = expected(tmp_path)
    file.unlink()
    assert record(tmp_path, fixture, *CONTEXT) == 2
    assert "already exists, and was not recorded: name another folder" in capsys.readouterr().err


def test_a_running_server_cannot_be_recorded(capsys):
    assert record("x", EXAMPLES / "broken" / "mpijob-slots.yaml", "--server", "https://localhost:1") == 2
    assert "--record: a server does not return the objects" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("expected.yaml", "allowed: true\n", "expected the answer of a review with `phase`"),
        ("review.yaml", "a: 1\n", "expected"),
        ("review.yaml", "a: 1\n---\nb: 2\n", "expected one document"),
    ],
)
def test_a_folder_with_mistakes_is_a_failure_that_names_them(name, text, message, tmp_path, capsys):
    record(tmp_path, EXAMPLES / "broken" / "mpijob-slots.yaml", *CONTEXT)
    file, _ = expected(tmp_path)
    (file.parent / name).write_text(text)
    assert run_command_line(["test", str(tmp_path)]) == 1
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"kind": "Secret", "data": {"a": "x"}, "stringData": {"b": "x"}, "type": "Opaque"}, {"kind": "Secret", "data": {"a": "***"}, "stringData": {"b": "***"}, "type": "Opaque"}),
        ({"kind": "ConfigMap", "data": {"a": "x"}}, {"kind": "ConfigMap", "data": {"a": "x"}}),
        ({"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}}, 1]}, {"env": [{"name": "A", "value": "***"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}}, 1]}),
        ({"spec": [{"envVars": {"A": "x"}, "runtimeEnvYAML": "x"}]}, {"spec": [{"envVars": {"A": "***"}, "runtimeEnvYAML": "***"}]}),
        ({"env": None}, {"env": None}),
        (None, None),
    ],
)  # fmt: skip
def test_objects_without_confidential_values(value, shown):
    before = json.dumps(value)
    assert without_confidential(value) == shown
    assert json.dumps(value) == before
