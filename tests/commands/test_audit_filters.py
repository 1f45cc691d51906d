"""Which findings an audit leaves out, and which findings give exit code 1. Results are equal with one process, with a
file in parts, and with two processes.
"""

import json
from pathlib import Path

import pytest

from tests.rows import all_rows
from webhook.cli import run_command_line
from webhook.input import document_stream

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}-{1}\n  labels: {{{0}: x}}\nspec: {{containers: []}}\n"
CODES = {"fail": 1, "warn": 1}


@pytest.fixture(params=[1, 2], ids="jobs {}".format)
def audit(request, monkeypatch, capsys, tmp_path):
    """Return a function that audits with one or two processes, with each document as a part. It returns exit code,
    findings and stderr.
    """
    monkeypatch.setattr(document_stream, "_BLOCK", 60)

    def audited(*arguments, jobs=request.param):
        code = run_command_line(["audit", *POLICIES, *map(str, arguments), "--jobs", str(jobs), "-o", "ndjson"])
        out, err = capsys.readouterr()
        lines = map(json.loads, out.splitlines())
        return code, [(each["object"]["name"], each["result"]) for each in lines if each["result"] in CODES], err

    return audited


def objects(folder, *labels):
    texts = [POD.format(label, number) for number, label in enumerate(labels)]
    file = folder / "objects.yaml"
    file.write_text("---\n".join(texts))
    return file


DENIED, WARNED = ("deny-0", "fail"), ("warn-1", "warn")


@all_rows(
    ("flags", "code", "found"),
    [
        ((), 1, [DENIED, WARNED]),
        (("--rule", "denies"), 1, [DENIED]),
        (("--rule", "denies", "--rule", "warns"), 1, [DENIED, WARNED]),
        (("--skip", "denies"), 1, [WARNED]),
        (("--skip", "denies", "--skip", "warns"), 0, []),
        (("--min-severity", "high"), 1, [DENIED]),
        (("--min-severity", "critical"), 0, []),
        (("--fail-on", "deny"), 1, [DENIED, WARNED]),
        (("--fail-on", "deny", "--skip", "denies"), 0, [WARNED]),
        (("--fail-on", "never"), 0, [DENIED, WARNED]),
        (("--fail-on", "undecided"), 0, [DENIED, WARNED]),
        (("--fail-on", "never, deny"), 1, [DENIED, WARNED]),
        (("--fail-on", "denied"), 2, []),
    ],
)
def test_flags_choose_what_is_reported_and_what_fails(audit, tmp_path, flags, code, found):
    assert audit(objects(tmp_path, "deny", "warn", "none"), *flags)[:2] == (code, found)


@pytest.mark.parametrize(
    "flags", [(), ("--rule", "denies"), ("--skip", "warns"), ("--min-severity", "high"), ("--jobs", "2")]
)
def test_formats_without_passes_have_the_same_counts(tmp_path, flags):
    """If no output format lists passes, an audit creates no finding for a pass. The sums must stay the same."""
    file = objects(tmp_path, "deny", "warn", "none")
    arguments = ["audit", *POLICIES, str(file), *flags, "-o"]
    run_command_line([*arguments, f"text={tmp_path / 'listed'}", "-o", f"ndjson={tmp_path / 'listing'}"])
    run_command_line([*arguments, f"text={tmp_path / 'counted'}"])
    assert (tmp_path / "counted").read_text() == (tmp_path / "listed").read_text()
    listed = [json.loads(line)["result"] for line in (tmp_path / "listing").read_text().splitlines()]
    assert "pass" not in listed


def test_an_unknown_rule_is_an_error(audit, tmp_path):
    code, found, err = audit(objects(tmp_path, "deny"), "--rule", "denys")
    assert (code, found) == (2, [])
    assert "--rule: " in err
    assert "denies" in err


def test_findings_of_a_baseline_are_not_reported_again(audit, tmp_path):
    file, known = objects(tmp_path, "deny", "warn"), tmp_path / "known.json"
    assert audit(file, "--write-baseline", known)[0] == 0
    assert audit(file, "--baseline", known)[:2] == (0, [])
    objects(tmp_path, "deny", "warn", "deny")
    assert audit(file, "--baseline", known)[:2] == (1, [("deny-2", "fail")])


def test_baseline_findings_that_are_gone_are_reported(audit, tmp_path):
    file, known = objects(tmp_path, "deny", "warn"), tmp_path / "known.json"
    audit(file, "--write-baseline", known)
    assert "--baseline" not in audit(file, "--baseline", known)[2]
    # the finding is hidden by --rule, not fixed
    assert "--baseline" not in audit(file, "--baseline", known, "--rule", "denies")[2]
    objects(tmp_path, "none", "warn")
    assert "note: --baseline: 1 known finding gone, first denies" in audit(file, "--baseline", known)[2]


def test_an_object_twice_in_a_file_has_two_findings_in_a_baseline(audit, tmp_path):
    file, known = tmp_path / "objects.yaml", tmp_path / "known.json"
    twice = POD.format("deny", 0)
    file.write_text(f"{twice}---\n{twice}")
    audit(file, "--write-baseline", known)
    code, found, err = audit(file, "--baseline", known)
    assert (code, found, "--baseline" in err) == (0, [], False)
    file.write_text(f"{twice}---\n{twice}---\n{twice}")
    assert audit(file, "--baseline", known)[:2] == (1, [DENIED])
    file.write_text(twice)
    assert "note: --baseline: 1 known finding gone" in audit(file, "--baseline", known)[2]


def test_two_processes_write_the_baseline_that_one_writes(audit, tmp_path):
    file = objects(tmp_path, *("deny", "warn", "none") * 3)
    for jobs in (1, 2):
        audit(file, "--write-baseline", tmp_path / f"{jobs}.json", jobs=jobs)
    assert (tmp_path / "1.json").read_text() == (tmp_path / "2.json").read_text()
    assert len(json.loads((tmp_path / "1.json").read_text())["findings"]) == 6


@all_rows("text", ["", "{}", "[]", '{"version": 2, "findings": []}', '{"version": 1, "findings": [1]}'])
def test_a_file_that_is_not_a_baseline_is_an_error(audit, tmp_path, text):
    (tmp_path / "known.json").write_text(text)
    code, _, err = audit(objects(tmp_path, "deny"), "--baseline", tmp_path / "known.json")
    assert (code, "this file is not a baseline" in err) == (2, True)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"values.yaml": "replicas: 2\n"}, "1 document without a Kubernetes object"),
        ({"empty.yaml": ""}, "1 file has no document"),
        ({"notes.txt": "x"}, "there is no YAML, JSON or NDJSON file"),
        ({"a.yaml": "a: {{ .x }}\n"}, "1 file is a template; audit what charts make with --render"),
        ({"b.yaml": "kind: Pod\n${POD}\n"}, "1 file is a template; audit what charts make with --render"),
    ],
)
def test_nothing_to_audit_fails_where_input_is_required(audit, tmp_path, files, reason):
    (tmp_path / "d").mkdir()
    for name, text in files.items():
        (tmp_path / "d" / name).write_text(text)
    told = f"no object was audited: {reason}\n"
    code, _, err = audit(tmp_path / "d")
    assert (code, f"warning: {tmp_path}/d: {told}" in err) == (0, True), err
    code, _, err = audit(tmp_path / "d", "--require-input")
    assert (code, f"error: {tmp_path}/d: --require-input: {told}" in err) == (2, True), err
