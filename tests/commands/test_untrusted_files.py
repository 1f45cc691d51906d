"""No report has content from outside of the audited folder, even with special names or links. No file blocks the
audit.
"""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from tests.commands.test_backtest import event
from tests.commands.test_backtest import pod as pod_of_event
from webhook.cli import run_command_line
from webhook.input import log_lines
from webhook.report.formats import format_names
from webhook.yamltext.input_files import InputFile

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]
SECRET = "tok-5f1e"
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}\n  labels: {{{1}: x}}\nspec: {{containers: []}}\n"
UNREADABLE = f'kind: "{SECRET}\n  token: {SECRET}: x\n'
"""The report of this mistake would show its line."""


@pytest.fixture
def tree(tmp_path):
    """Return a folder with one good object. A secret is outside of the folder."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "good.yaml").write_text(POD.format("good", "ok"))
    (tmp_path / "secret.yaml").write_text(UNREADABLE)
    (tmp_path / "denied.yaml").write_text(POD.format(SECRET, "deny"))
    return folder


def audit(capsys, *arguments, only=True):
    code = run_command_line(["audit", *(POLICIES if only else ()), *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


LINKS = ["../secret.yaml", "../denied.yaml", "/proc/self/environ", "/dev/zero", "/dev/full", "/dev/stdin"]


@pytest.mark.parametrize("target", LINKS)
@pytest.mark.parametrize("output", format_names())
def test_a_link_out_of_an_audited_folder_is_skipped_and_reported(tree, capsys, monkeypatch, target, output):
    monkeypatch.setenv("CI_TOKEN", SECRET)
    (tree / "linked.yaml").symlink_to(target)
    code, out, err = audit(capsys, tree, "-o", output)
    assert SECRET not in out + err
    assert code == 0
    # a file was not read, so it is not known whether the object is good
    assert audit(capsys, tree, "--fail-on=warn,undecided")[0] == 3
    assert f"note: 1 file or folder is not read, first {tree}/linked.yaml: the file behind its links is outside" in err
    if output == "json":
        assert json.loads(out)["notRead"] == 1
    if output == "text":
        assert "not read: 1 link, hidden or other file" in out


def test_a_link_inside_of_an_audited_folder_is_read(tree, capsys):
    (tree / "sub").mkdir()
    (tree / "sub" / "linked.yaml").symlink_to("../denied.yaml")
    (tree / "denied.yaml").write_text(POD.format("inside", "deny"))
    code, out, err = audit(capsys, tree)
    assert code == 1
    assert "sub/linked.yaml" in out
    assert "not read" not in out + err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such names")
@pytest.mark.parametrize("output", format_names())
def test_a_file_with_a_name_that_is_not_utf_8_is_skipped_and_reported(tree, capsys, output):
    name = os.fsdecode(b"\xff.yaml")
    (tree / name).write_text(POD.format("bad", "deny"))
    code, _, err = audit(capsys, tree, "-o", output)
    assert code == 0
    assert "its name is not UTF-8" in err
    code, _, err = audit(capsys, tree / name, "-o", output)
    assert code == 2
    assert "\\xff.yaml: is not read: its name is not UTF-8" in err


@pytest.mark.parametrize(
    "beyond",
    [
        pytest.param("x: " + "[" * 300 + "]" * 300, id="deep"),
        pytest.param("x: \xff", id="not UTF-8"),
        pytest.param("x: &x [" + "a," * 999 + "]\ny: [" + "*x," * 101 + "]", id="aliases"),
    ],
)
def test_a_manifest_above_the_bounds_is_not_a_template(tree, capsys, beyond):
    (tree / "bad.yaml").write_bytes(f"{POD.format('bad', 'deny')}{beyond}\n# {{{{ x }}}}\n".encode("latin-1"))
    code, _, err = audit(capsys, tree)
    assert (code, "template" in err) == (2, False)


def test_a_report_does_not_repeat_a_long_name(tree, capsys):
    (tree / "long.yaml").write_text(POD.format("n" * 100_000, "deny"))
    _, out, _ = audit(capsys, tree, "-o", "ndjson")
    assert len(out) < 20_000


def test_a_report_is_not_written_through_a_link_out_of_the_folder(tree, capsys, monkeypatch):
    monkeypatch.chdir(tree)
    (tree.parent / "outside").mkdir()
    (tree / "reports").symlink_to("../outside")
    (tree / "own").mkdir()
    (tree / "inside").symlink_to("own")
    assert audit(capsys, ".", "-o", "sarif=reports/x")[0] == 2
    assert not list((tree.parent / "outside").iterdir())
    assert audit(capsys, ".", "-o", "sarif=inside/x")[0] == 0
    assert audit(capsys, ".", "-o", f"sarif={tree.parent}/outside/x")[0] == 0


def test_a_named_link_is_read(tree, capsys):
    """A file that the command line names is read from any place. This shows that the tests above can fail."""
    (tree / "linked.yaml").symlink_to("../denied.yaml")
    code, out, _ = audit(capsys, tree / "linked.yaml")
    assert (code, SECRET in out) == (1, True)


def test_a_link_to_a_folder_outside_is_reported(tree, capsys):
    (tree.parent / "other").mkdir()
    (tree / "away").symlink_to("../other")
    code, out, err = audit(capsys, tree)
    assert (code, "not read: 1 link, hidden or other file" in out, f"first {tree}/away" in err) == (0, True, True)


def test_an_object_behind_a_link_is_not_reported_as_absent(tree, capsys):
    """A file that was not read may contain the object that seems to be missing."""
    (tree / "linked.yaml").symlink_to("../secret.yaml")
    _, _, err = audit(capsys, tree, "--context-is-whole")
    assert "--context-is-whole is ignored: a file cannot be read" in err


SPECIAL = {
    "a pipe": os.mkfifo,
    "a link to a pipe": lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe")),
    "a full device": lambda path: path.symlink_to("/dev/full"),
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "standard input": lambda path: path.symlink_to("/dev/stdin"),
    "a file outside": lambda path: path.symlink_to("../secret.yaml"),
}


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("name", ["manifest.yaml", "kustomization.yaml"])
def test_special_files_of_a_folder_are_counted_as_not_read(tree, capsys, made, name):
    made(tree / name)
    code, out, err = audit(capsys, tree)
    assert (code, "not read: 1 link, hidden or other file" in out, SECRET in out + err) == (0, True, False)


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
def test_a_special_ignore_file_is_refused(tree, capsys, made):
    made(tree / ".claimgateignore")
    code, out, err = audit(capsys, tree)
    assert (code, SECRET in out + err) == (2, False)
    assert ".claimgateignore: cannot be read: " in err


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
def test_a_discovered_configuration_that_is_a_special_file_is_refused(tree, capsys, monkeypatch, made):
    made(tree / "claimgate.yaml")
    monkeypatch.chdir(tree)
    code, out, err = audit(capsys, ".")
    assert (code, SECRET in out + err) == (2, False)
    assert "claimgate.yaml: cannot be read: " in err


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("flag", ["--context", "--only"])
def test_special_files_in_required_folders_are_refused(tree, capsys, made, flag):
    needed = tree / "needed"
    needed.mkdir()
    (needed / "binding.yaml").write_text("")
    (tree / "secret.yaml").write_text(UNREADABLE)
    (tree / "secret.yaml").rename(needed.parent / "secret.yaml")
    made(needed / "special.yaml")
    code, out, err = audit(capsys, tree / "good.yaml", flag, needed, only=flag == "--context")
    assert (code, SECRET in out + err) == (2, False)
    assert "special.yaml: is not read: " in err


@pytest.mark.parametrize("field", ["policies", "context", "workloads"])
@pytest.mark.parametrize("name", ["../secret.yaml", "/proc/self/environ", "linked/secret.yaml"])
def test_a_discovered_configuration_names_no_files_outside_its_folder(tree, capsys, monkeypatch, field, name):
    monkeypatch.setenv("CI_TOKEN", SECRET)
    (tree / "linked").symlink_to("..")
    (tree / "claimgate.yaml").write_text(f"{field}: [{name}]\n")
    monkeypatch.chdir(tree)
    code, out, err = audit(capsys, "good.yaml", only=False)
    assert (code, SECRET in out + err) == (2, False)
    assert f"`{name}` is outside of the working directory, so it is not read; name the file with --config" in err


def test_a_named_configuration_may_name_files_outside(tree, capsys, monkeypatch):
    """A configuration that the command line names may refer to files anywhere. This shows that the test above can
    fail.
    """
    (tree / "claimgate.yaml").write_text(f"shipped: false\npolicies: [{HERE / 'policies'}]\n")
    monkeypatch.chdir(tree)
    assert audit(capsys, "good.yaml", "--config", "claimgate.yaml", only=False)[0] == 0


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
@pytest.mark.parametrize("name", ["suite.yaml", "kyverno-test.yaml", "cases.jsonl"])
def test_special_suites_are_not_read(tree, capsys, made, name):
    (tree / "policy").mkdir()
    (tree / "secret.yaml").write_text(UNREADABLE)
    made(tree / "policy" / name)
    code = run_command_line(["test", str(tree / "policy")])
    captured = capsys.readouterr()
    assert (code, SECRET in captured.out + captured.err) == (2, False)


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
def test_a_special_file_that_may_be_a_suite_of_gator_is_a_skipped_case(tree, capsys, made):
    (tree / "policy").mkdir()
    (tree / "secret.yaml").write_text(UNREADABLE)
    made(tree / "policy" / "gator.yaml")
    code = run_command_line(["test", str(tree / "policy")])
    captured = capsys.readouterr()
    assert (code, SECRET in captured.out + captured.err) == (0, False)
    assert "gator.yaml" in captured.out
    assert "it is not read: " in captured.out


@pytest.mark.parametrize("output", format_names())
def test_a_report_is_not_written_through_a_link_of_the_tree(tree, capsys, monkeypatch, output):
    (tree.parent / "profile").write_text("this text stays\n")
    (tree / "report.out").symlink_to("../profile")
    monkeypatch.chdir(tree)
    code, _, err = audit(capsys, ".", "-o", f"{output}=report.out")
    assert (code, "`report.out` is a link" in err) == (2, True)
    assert (tree.parent / "profile").read_text() == "this text stays\n"
    assert audit(capsys, ".", "-o", f"{output}=/dev/null")[0] == 0
    (tree / "report.out").unlink()
    assert audit(capsys, ".", "-o", f"{output}=report.out")[0] == 0
    assert (tree / "report.out").is_file()


def test_a_golden_answer_that_is_a_link_is_replaced_and_not_followed(tmp_path, capsys):
    target = tmp_path / "profile"
    target.write_text("this text stays\n")
    review = tmp_path / "recorded" / "review.yaml"
    pod = POD.format("good", "ok")
    (tmp_path / "one.yaml").write_text(pod)
    assert (
        run_command_line(["replay", *POLICIES, str(tmp_path / "one.yaml"), "--record", str(tmp_path / "golden")]) == 0
    )
    [expected] = (tmp_path / "golden").glob("*/expected.yaml")
    written = expected.read_text().replace("allowed: true", "allowed: false")
    expected.unlink()
    inside = expected.with_name("answer.txt")
    inside.write_text(written)
    expected.symlink_to("answer.txt")
    assert run_command_line(["test", *POLICIES, "--update-golden", str(tmp_path / "golden")]) == 0
    assert not expected.is_symlink()
    assert inside.read_text() == written
    assert not review.exists()
    capsys.readouterr()


@pytest.mark.parametrize("made", SPECIAL.values(), ids=SPECIAL)
def test_a_special_log_in_a_folder_is_a_problem(tree, capsys, made):
    logs = tree / "logs"
    logs.mkdir()
    (tree / "secret.yaml").write_text(SECRET)
    (logs / "audit.log").write_text(json.dumps(event("create", pod_of_event("fine"))) + "\n")
    made(logs / "special.log")
    code = run_command_line(["backtest", *POLICIES, str(logs)])
    captured = capsys.readouterr()
    assert (code, SECRET in captured.out + captured.err) == (2, False)
    assert "special.log: is not read: " in captured.err


def packed(tmp_path, name, text):
    file = tmp_path / name
    file.write_bytes(gzip.compress(text))
    return InputFile(str(file))


def test_a_compressed_log_that_expands_too_much_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(log_lines, "_UNPACKED_ANYHOW", 1 << 20)
    parts = list(log_lines.read_log_parts(packed(tmp_path, "bomb.log.gz", b"\n" * (64 << 20))))
    assert "unpacks to more than 200 times its size" in str(parts[-1].problem)
    assert sum(len(part.lines) for part in parts) < 24 << 20
    ordinary = b"".join(b'{"auditID": "%d", "x": "%s"}\n' % (at, os.urandom(20).hex().encode()) for at in range(50_000))
    parts = list(log_lines.read_log_parts(packed(tmp_path, "ordinary.log.gz", ordinary)))
    assert [part.problem for part in parts if part.problem] == []
    assert sum(len(part.lines) for part in parts) == 50_000


def test_a_long_line_is_joined_once(tmp_path):
    """A long line may span many blocks. They are joined only once, at the end of the line."""
    line = os.urandom(3 << 20).hex().encode()
    parts = list(log_lines.read_log_parts(packed(tmp_path, "long.log.gz", b"a\n" + line + b"\nb\n" + line)))
    assert [each for part in parts for each in part.lines] == [b"a", line, b"b", line]


def test_a_link_into_the_folder_of_git_is_not_read(tmp_path, capsys):
    """A checkout in CI keeps its token in .git/config, so a link to this file is not followed."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[http]\n\textraheader = AUTHORIZATION: basic s3cr3t\n")
    (tmp_path / "a.yaml").symlink_to(".git/config")
    (tmp_path / "b.yaml").symlink_to(tmp_path / ".git" / "config")
    (tmp_path / "plain.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n")
    (tmp_path / "c.yaml").symlink_to("plain.yaml")
    run_command_line(["audit", str(tmp_path)])
    out, err = capsys.readouterr()
    assert "s3cr3t" not in out + err
    assert "2 files or folders are not read, first " in err
    assert "a link leads into `.git`" in err


def test_hidden_manifests_are_counted_as_not_read(tree, capsys):
    (tree / ".hidden").mkdir()
    (tree / ".git").mkdir()
    for name in (".first.yaml", ".hidden/second.json", ".git/third.yaml"):
        (tree / name).write_text(POD.format("hidden", "deny"))
    (tree / ".pre-commit-config.yaml").write_text("repos: []\n")
    code, out, err = audit(capsys, tree)
    assert code == 0
    assert "not read: 2 links, hidden and other files" in out
    assert (
        f"note: 2 files or folders are not read, first {tree}/.first.yaml: the name of the file or of a folder" in err
    )
    assert audit(capsys, tree, "--fail-on=warn,undecided")[0] == 3
    assert audit(capsys, tree, "--fail-on=warn,undecided", "--exclude", ".hidden", "--exclude", ".first.yaml")[0] == 0


def test_dependencies_with_manifests_are_counted_as_not_read(tree, capsys):
    for folder, text in (("vendor", POD.format("of-others", "deny")), ("node_modules", "{}")):
        (tree / folder / "package").mkdir(parents=True)
        (tree / folder / "package/pod.yaml").write_text(text)
    (tree / "vendor/modules.txt").write_text("# k8s.io/api\n")
    code, out, err = audit(capsys, tree)
    assert (code, "of-others" in out) == (0, False)
    assert f"note: 1 file or folder is not read, first {tree}/vendor: a package manager fills it" in err
    assert audit(capsys, tree, "--exclude", "vendor")[2].count("not read") == 0
    assert audit(capsys, tree / "vendor")[0] == 1


def test_a_named_hidden_manifest_is_read(tree, capsys):
    (tree / ".first.yaml").write_text(POD.format("hidden", "deny"))
    code, out, err = audit(capsys, tree, str(tree / ".first.yaml"))
    assert code == 1
    assert "not read" not in out + err
