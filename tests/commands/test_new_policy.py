"""`claimgate policies new`: with any options, the new files compile, have no mistakes, and pass their suite."""

import itertools

import pytest

from webhook.cli import run_command_line

FLAGS = ("--expand", "--mutate", "--param")
CHOICES = [choice for count in range(4) for choice in itertools.combinations(FLAGS, count)]


@pytest.mark.parametrize("flags", CHOICES, ids=lambda flags: " ".join(flags) or "plain")
def test_new_policies_pass_their_suites(flags, tmp_path, capsys):
    assert run_command_line(["policies", "new", "gpu-team", *flags, "--in", str(tmp_path)]) == 0
    folder = tmp_path / "gpu-team"
    names = {path.name for path in folder.iterdir()}
    assert names == {"policy.yaml", "binding.yaml", "suite.yaml", *(["params.yaml"] if "--param" in flags else [])}
    assert capsys.readouterr().out.count("wrote ") == len(names)
    assert run_command_line(["policies", "check", str(folder)]) == 0
    assert "; nothing is wrong\n" in capsys.readouterr().out
    assert run_command_line(["test", str(folder)]) == 0
    assert " 0 failed\n" in capsys.readouterr().out


@pytest.mark.parametrize("flags", CHOICES, ids=lambda flags: " ".join(flags) or "plain")
def test_the_suite_of_a_new_policy_fails_when_the_policy_changes(flags, tmp_path, capsys):
    run_command_line(["policies", "new", "team", *flags, "--in", str(tmp_path)])
    policy = tmp_path / "team" / "policy.yaml"
    policy.write_text(policy.read_text().replace("resources: [pods]", "resources: [pods, services]"))
    assert run_command_line(["test", str(tmp_path / "team")]) == 1
    assert "a Service is not matched" in capsys.readouterr().out


def test_the_parameter_of_a_new_policy_is_in_the_namespace_of_claimgate(tmp_path):
    run_command_line(["policies", "new", "team", "--param", "--own-namespace", "gates", "--in", str(tmp_path)])
    written = {path.name: path.read_text() for path in (tmp_path / "team").iterdir()}
    assert all("namespace: gates" in written[name] for name in ("binding.yaml", "params.yaml", "suite.yaml"))


def test_init_does_not_overwrite_existing_files(tmp_path, capsys):
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "mine.yaml").write_text("mine")
    assert run_command_line(["policies", "new", "team", "--in", str(tmp_path)]) == 2
    said = "team: exists already, and was not changed: choose another name, remove the folder, or use --case\n"
    assert capsys.readouterr().err.endswith(said)
    assert [path.name for path in tmp_path.rglob("*")] == ["team", "mine.yaml"]


@pytest.mark.parametrize("flags", CHOICES, ids=lambda flags: " ".join(flags) or "plain")
def test_a_new_policy_says_that_it_is_an_example(flags, tmp_path, capsys):
    assert run_command_line(["policies", "new", "gpu-maximum", *flags, "--in", str(tmp_path)]) == 0
    text = (tmp_path / "gpu-maximum" / "policy.yaml").read_text()
    assert text.startswith("# An example. "), (
        "an author expects that the name chooses the policy: say that the policy is an example"
    )
    out = capsys.readouterr().out
    assert "next: edit the example in " in out
    assert (
        "hint: `claimgate policies init gpu-maximum` writes another policy of this name: A pod has at most eight GPUs"
        in out
    )


@pytest.mark.parametrize("name", ["Team", "a/b", "..", "", "a b"])
def test_a_name_that_no_policy_can_have_is_refused(name, tmp_path, capsys):
    assert run_command_line(["policies", "new", name, "--in", str(tmp_path)]) == 2
    assert f"error: `{name}` cannot be the name of a policy: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""
REVIEW = """\
apiVersion: admission.k8s.io/v1
kind: AdmissionReview
request:
  uid: u
  operation: CREATE
  kind: {group: "", version: v1, kind: Pod}
  resource: {group: "", version: v1, resource: pods}
  object: {apiVersion: v1, kind: Pod, metadata: {name: p, labels: {team: a}}, spec: {containers: [{name: c, image: i}]}}
"""


@pytest.mark.parametrize("flags", [["--expand"], ["--expand", "--mutate"]], ids=["validates", "mutates"])
def test_objects_and_reviews_become_cases_of_the_suite(flags, tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(f"{JOB}---\n{JOB}")
    (tmp_path / "review.yaml").write_text(REVIEW)
    files = [f"--case={tmp_path / 'job.yaml'}", f"--case={tmp_path / 'review.yaml'}"]
    assert run_command_line(["policies", "new", "team", *flags, *files, "--in", str(tmp_path)]) == 0
    said = "is changed" if "--mutate" in flags else "is denied"
    out = capsys.readouterr().out
    added = [line.partition(": ")[2] for line in out.splitlines() if line.startswith("added to ")]
    assert added == [f"Job j {said}", f"Job j {said} (2)", "Pod p is allowed"]
    assert run_command_line(["policies", "new", "team", files[1], "--in", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("Pod p is allowed (2)\n")
    assert run_command_line(["test", "-v", str(tmp_path / "team")]) == 0
    out = capsys.readouterr().out
    assert (out.count("Job j"), out.count("Pod p")) == (2, 2)
    suite = (tmp_path / "team" / "suite.yaml").read_text()
    assert suite.startswith("# `claimgate test team` runs these cases")
    if "--mutate" not in flags:
        assert "message: 'spec.template.metadata.labels: must have the label team" in suite


def test_a_folder_of_policies_without_a_suite_gets_one(tmp_path, capsys):
    folder = tmp_path / "team"
    run_command_line(["policies", "new", "team", "--in", str(tmp_path)])
    (folder / "suite.yaml").unlink()
    (tmp_path / "review.yaml").write_text(f"{REVIEW}---\n{REVIEW.replace('team: a', 'tier: a')}")
    capsys.readouterr()
    asked = ["policies", "new", "team", "--case", str(tmp_path / "review.yaml"), "--in", str(tmp_path)]
    assert run_command_line(asked) == 0
    suite = folder / "suite.yaml"
    assert capsys.readouterr().out == f"added to {suite}: Pod p is allowed\nadded to {suite}: Pod p is denied\n"
    assert run_command_line(["test", str(folder)]) == 0
    policy = folder / "policy.yaml"
    policy.write_text(policy.read_text().replace("'team'", "'tier'"))
    assert run_command_line(["test", str(folder)]) == 1


def test_a_folder_without_policies_gets_no_suite(tmp_path, capsys):
    (tmp_path / "team").mkdir()
    (tmp_path / "review.yaml").write_text(REVIEW)
    asked = ["policies", "new", "team", "--case", str(tmp_path / "review.yaml"), "--in", str(tmp_path)]
    assert run_command_line(asked) == 2
    assert "team: no policy found" in capsys.readouterr().err
    assert list((tmp_path / "team").iterdir()) == []


def test_a_path_in_place_of_a_name_gets_the_option_that_names_its_folder(tmp_path, capsys):
    assert run_command_line(["policies", "new", "gpu/team", "--in", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(f"hint: NAME is not a path: write `--in {tmp_path}/gpu team`\n")


def test_a_list_of_cases_in_one_line_is_not_changed(tmp_path, capsys):
    run_command_line(["policies", "new", "team", "--in", str(tmp_path)])
    suite = tmp_path / "team" / "suite.yaml"
    (tmp_path / "job.yaml").write_text(JOB)
    before = "cases: [{name: a, input: {apiVersion: v1, kind: Service}, expect: {allowed: true}}]\n"
    suite.write_text(before)
    assert (
        run_command_line(["policies", "new", "team", "--case", str(tmp_path / "job.yaml"), "--in", str(tmp_path)]) == 2
    )
    assert "write `cases:` with each case below it" in capsys.readouterr().err
    assert suite.read_text() == before
