"""Every output format with sums counts the findings that configuration and annotations leave out. With --no-config,
none are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from webhook.cli import run_command_line
from webhook.manifests.leave_alone import current_day
from webhook.report.formats import format_names
from webhook.report.writer import LeftOut
from webhook.yamltext import yamlfile

BROKEN = Path(__file__).parents[2] / "examples/research-team/broken/mpijob-slots.yaml"
RULE = "training-job/slots-for-ranks"
EXCEPTION = {"rules": [RULE], "owner": "team", "reason": "migration", "expires": "2999-01-01"}
GRANTED = {
    "apiVersion": "claimgate.dev/v1alpha1",
    "kind": "PolicyException",
    "metadata": {"name": "slots", "namespace": "team"},
    "spec": {**EXCEPTION, "names": ["granted"], "expires": str(current_day())},
}
TEXT = (
    "left out: 1 file by .claimgateignore, 1 object by ignore, 1 finding by exceptions, 1 finding by annotations, "
    "1 finding by PolicyExceptions, 1 finding by report; levels, failOn of claimgate.yaml may leave out more"
)
COUNTS = {
    "files": 1,
    "objects": 1,
    "excepted": 1,
    "annotated": 1,
    "commented": 0,
    "granted": 1,
    "unreported": 1,
    "settings": ["levels", "failOn"],
    "params": [],
}
NOTHING = {**dict.fromkeys(COUNTS, 0), "settings": [], "params": []}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write seven jobs. Six are left out, each in a different way."""
    monkeypatch.chdir(tmp_path)
    job = yamlfile.read(BROKEN)[0].value

    def write(name: str, **metadata: Any) -> None:
        made = {**job, "metadata": {"name": name, "namespace": "team", **metadata}}
        Path("jobs", f"{name}.yaml").write_text(yamlfile.dump(made))

    Path("jobs").mkdir()
    write("listed")
    write("alone", namespace="ignored")
    write("excepted")
    write("annotated", annotations={"claimgate.dev/ignore": json.dumps({**EXCEPTION, "reason": "its own"})})
    write("granted")
    write("known")
    write("broken")
    Path("jobs", "exception.yaml").write_text(json.dumps(GRANTED))
    Path("jobs", ".claimgateignore").write_text("listed.yaml\n")
    return tmp_path


def configure(baseline: str = "known.json") -> None:
    value = {
        "ignore": {"namespaces": ["ignored"]},
        "exceptions": [{**EXCEPTION, "names": ["excepted"]}],
        "ignoreAnnotations": ["team"],
        "policyExceptions": [{"rules": [RULE], "maxDays": 1}],
        "levels": {"rules": {"gpu-portable/all": "off"}},
        "report": {"baseline": baseline, "failOn": "never"},
    }
    Path("claimgate.yaml").write_text(json.dumps(value))


def audit(*arguments: str) -> int:
    return run_command_line(["audit", "--rule", RULE, *arguments, "--", "jobs"])


@pytest.fixture
def configured(folder: Path) -> Path:
    run_command_line(["audit", "--write-baseline", "known.json", "--rule", RULE, "--", "jobs/known.yaml"])
    known = json.loads(Path("known.json").read_text())
    for each in known["findings"]:
        each["file"] = "jobs/known.yaml"
    configure()
    return folder


WITHOUT_SUMS = {
    "ndjson": "its last line has the sum alone",
    "junit": "a suite has the sums that its schema has",
    "gitlab": "its schema has no sums",
    "policyreport": "its schema has no such sum",
    "openreports": "its schema has no such sum",
}
"""The formats that do not report what the configuration left out."""


def test_every_format_with_sums_counts_what_was_left_out(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [each for each in format_names() if each not in WITHOUT_SUMS]
    assert audit(*(f"--output={name}={name}.out" for name in names)) == 0
    said = {name: (configured / f"{name}.out").read_text() for name in names}
    capsys.readouterr()
    assert TEXT in said["text"]
    assert json.loads(said["json"])["leftOut"] == COUNTS
    assert json.loads(said["sarif"])["runs"][0]["properties"]["leftOut"] == COUNTS
    assert "7 objects in 7 files: 4 without findings, 1 with findings (1 fail), 1 left out, 1 not read" in said["text"]
    assert f"::notice title=left out by configuration::{TEXT}\n" in said["github"]
    silent = [name for name, text in said.items() if "left out" not in text and "leftOut" not in text]
    assert silent == [], (
        "the writers of these formats in webhook/report must write Totals.configured, or WITHOUT_SUMS in "
        "this file must say why they do not"
    )
    assert "1 finding by annotations" in said["markdown"]
    assert TEXT in said["html"]


def test_several_processes_count_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"report": {"skip": [RULE]}, "exceptions": [{**EXCEPTION, "names": ["excepted"]}]}
    Path("claimgate.yaml").write_text(json.dumps(value))
    for jobs in ("1", "2"):
        audit("--output=github", f"--jobs={jobs}")
        said = "left out: 1 file by .claimgateignore, 1 finding by exceptions, 6 findings by report"
        assert capsys.readouterr().out.splitlines() == [f"::notice title=left out by configuration::{said}"]


@pytest.mark.parametrize("form", ["flag", "variable"])
def test_the_flag_no_config_leaves_out_nothing(
    form: str, configured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "variable":
        monkeypatch.setenv("CLAIMGATE_NO_CONFIG", "true")
    assert audit("--output=json", *(["--no-config"] if form == "flag" else [])) == 1
    made = json.loads(capsys.readouterr().out)
    names = [each["object"]["name"] for each in made["findings"] if each["result"] == "fail"]
    assert names == ["alone", "annotated", "broken", "excepted", "granted", "known", "listed"]
    assert made["leftOut"] == NOTHING


def test_a_copy_of_the_tree_has_the_configuration(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("base", "jobs").mkdir(parents=True)
    Path("base", "claimgate.yaml").write_text(json.dumps({"ignore": {"namespaces": ["ignored"]}}))
    assert audit("--output=json", "--config-from=base") == 1
    assert json.loads(capsys.readouterr().out)["leftOut"] == {**NOTHING, "objects": 1}
    Path("base", "jobs", ".claimgateignore").write_text("b*.yaml\n")
    assert audit("--output=json", "--config-from=base") == 1
    assert json.loads(capsys.readouterr().out)["leftOut"]["files"] == 1
    Path("base", "claimgate.yaml").unlink()
    assert audit("--output=json", "--config-from=base") == 1
    assert json.loads(capsys.readouterr().out)["leftOut"]["objects"] == 0


def test_without_these_settings_nothing_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If no ignore file leaves out files, the report does not say that files were left out."""
    Path("jobs", ".claimgateignore").unlink()
    assert audit() == 1
    assert "left out" not in capsys.readouterr().out
    assert audit("--output=github") == 1
    assert "notice" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ["--no-config", "--config=claimgate.yaml"],
            "each chooses the configuration",
            id="--no-config with --config",
        ),
        pytest.param(
            ["--config-from=.", "--no-config"],
            "each chooses the configuration",
            id="--no-config with --config-from",
        ),
        pytest.param(["--config-from=nowhere"], "`nowhere` is not a folder", id="--config-from without a folder"),
    ],
)
def test_mistakes(arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(*arguments) == 2
    assert said in capsys.readouterr().err


def test_a_param_in_the_audited_files_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A ConfigMap in the audited files can turn a rule off, even with `--no-config`. So the summary names the
    ConfigMap.
    """
    param = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "training-jobs"}, "data": {"off": RULE}}
    param["metadata"]["namespace"] = "claimgate-system"  # type: ignore[index]
    assert audit("--no-config") == 1
    assert "of the audited files" not in capsys.readouterr().out
    Path("jobs", "param.yaml").write_text(yamlfile.dump(param))
    assert audit("--no-config") == 0
    told = "ConfigMap claimgate-system/training-jobs of the audited files may leave out more"
    assert f"left out: nothing counted; {told}" in capsys.readouterr().out
    audit("--no-config", "-o", "json")
    assert json.loads(capsys.readouterr().out)["leftOut"]["params"] == ["ConfigMap claimgate-system/training-jobs"]


def test_a_summary_names_five_params_and_json_names_all() -> None:
    found = LeftOut(params=tuple("abcdefg"))
    assert str(found) == "left out: nothing counted; a, b, c, d, e, 2 others of the audited files may leave out more"
    assert found.as_json()["params"] == list("abcdefg")
