"""An audit of many objects: order, parts, several processes, Ctrl-C, and hostile files beside others."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.input import document_stream

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p{0}\n  labels:\n    {1}: x\nspec:\n  containers: []\n"


def audit(*arguments):
    return run_command_line(["audit", *POLICIES, *map(str, arguments)])


def many(folder, files, each):
    for number in range(files):
        texts = [POD.format(number * each + at, "deny" if at % 3 == 0 else "ok") for at in range(each)]
        (folder / f"f{number:03}.yaml").write_text("---\n".join(texts))
    return folder


def findings(file):
    rows = map(json.loads, file.read_text().splitlines())
    return [row for row in rows if row["result"] != "summary"]


@pytest.mark.parametrize("format_", ["ndjson", "text", "sarif"])
def test_several_processes_write_the_output_of_one_process(tmp_path, monkeypatch, capsys, format_):
    monkeypatch.setattr(document_stream, "_BLOCK", 700)
    folder = many(tmp_path, 6, 8)
    written = []
    for jobs in (1, 3):
        out = tmp_path / f"{jobs}.out"
        assert audit(folder, "--jobs", jobs, "-o", f"{format_}={out}", "--exclude", "*.out") == 1
        written.append((out.read_text(), capsys.readouterr()))
    assert written[0] == written[1]
    assert all(file in written[0][0] for file in ("f000.yaml", "f005.yaml"))


def test_findings_come_in_the_order_of_the_input_with_their_lines(tmp_path, monkeypatch):
    folder = many(tmp_path, 3, 9)
    audit(folder, "-o", f"ndjson={tmp_path / 'whole'}")
    monkeypatch.setattr(document_stream, "_BLOCK", 300)
    audit(folder, "--jobs", 2, "-o", f"ndjson={tmp_path / 'parts'}")
    whole = findings(tmp_path / "whole")
    assert findings(tmp_path / "parts") == whole
    names = [each["object"]["name"] for each in whole]
    assert sorted(names, key=lambda name: int(name[1:])) == names
    assert len({(each["file"], each["line"]) for each in whole if each["result"] == "fail"}) == 9


def test_objects_that_policies_look_up_are_found_in_any_part_of_a_file(tmp_path, monkeypatch, capsys):
    """The Namespace and the claim of a Pod come later in the file than the Pods, and in other parts."""
    monkeypatch.setattr(document_stream, "_BLOCK", 400)
    claims = "resourceClaims: [{name: g, resourceClaimName: c}]\n  containers: [{name: a, image: x, resources: {claims: [{name: h}]}}]"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: team}\nspec:\n  " + claims + "\n"
    claim = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: team}\n"
        "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}\n"
    )
    file = tmp_path / "a.yaml"
    file.write_text("---\n".join([pod, *(POD.format(n, "a") for n in range(9)), claim]))
    run_command_line(["audit", str(file), "-o", "ndjson"])
    in_parts = capsys.readouterr().out
    monkeypatch.undo()
    run_command_line(["audit", str(file), "-o", "ndjson"])
    assert capsys.readouterr().out == in_parts


HOSTILE = {
    "broken.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: before\n---\nkind: [\n---\n"
    + POD.format("after", "deny"),
    "aliases.yaml": "kind: Pod\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
    "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
    "deep.yaml": "kind: " + "[" * 5000,
    "cut.yaml.gz": "\x1f",
    "last.yaml": POD.format("last", "deny"),
}
TOLD = {
    "broken.yaml": "broken.yaml:7:1: not YAML: did not find expected node content",
    "aliases.yaml": "aliases.yaml:7:5: f[0]: aliases add more than 100000 values",
    "deep.yaml": "deep.yaml:1:206: nested more than 200 levels deep",
    "loop.yaml": "loop.yaml: cannot be read: too many levels of symbolic links",
    "binary.yaml": "binary.yaml:1: is not UTF-8 text; expected YAML or JSON",
    "powershell.yaml": "powershell.yaml:1: is not UTF-8 but UTF-16; save the file as UTF-8",
}


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_hostile_file_is_reported_and_other_files_are_audited(tmp_path, capsys, jobs):
    for name, text in HOSTILE.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary.yaml").write_bytes(b"kind: \xff\x00")
    (tmp_path / "powershell.yaml").write_bytes("kind: Pod\n".encode("utf-16"))
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    (tmp_path / "folder").symlink_to(tmp_path)
    assert audit(tmp_path, "--jobs", jobs, "-o", f"ndjson={tmp_path / 'out'}") == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert sorted(told) == sorted(f"error: {tmp_path / text}" for text in TOLD.values())
    found = findings(tmp_path / "out")
    assert [each["object"]["name"] for each in found if each["result"] == "fail"] == ["pafter", "plast"]


INTERRUPTED = """
import os, signal, sys
from webhook.commands import audit_part
from webhook.cli import run_command_line
first = sys.argv.pop(1)  # the file of the one who interrupts, while objects are audited
before = audit_part.PartAudit._findings_of_document
command = os.getpid()
def interrupting(self, *arguments):
    try:
        os.close(os.open(first, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        os.kill(command, signal.SIGINT)
    yield from before(self, *arguments)
audit_part.PartAudit._findings_of_document = interrupting
sys.exit(run_command_line(["audit", *sys.argv[2:], "--jobs", sys.argv[1]]))
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_audit_leaves_a_valid_report(tmp_path, jobs):
    folder = many(tmp_path, 4, 8)
    out = tmp_path / "out.sarif"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "first"), jobs, *POLICIES, str(folder), "-o", f"sarif={out}"],
        capture_output=True, text=True, timeout=120, cwd=HERE.parents[2], check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "error: interrupted after " in done.stderr
    assert json.loads(out.read_text())["runs"]


def test_a_killed_worker_is_reported(tmp_path, monkeypatch, capsys):
    from webhook.commands import audit_part

    monkeypatch.setattr(audit_part.PartAudit, "audit_part", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert audit(many(tmp_path, 2, 2), "--jobs", 2) == 2
    assert "error: --jobs: a worker process was killed, perhaps because memory was used up" in capsys.readouterr().err
