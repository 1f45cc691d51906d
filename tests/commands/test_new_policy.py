"""`claimgate policies new`: whatever is chosen, what it writes compiles, has nothing wrong, and passes its own suite."""

import itertools

import pytest

from webhook.cli import run_command_line

FLAGS = ("--expand", "--mutate", "--param")
CHOICES = [choice for count in range(4) for choice in itertools.combinations(FLAGS, count)]


@pytest.mark.parametrize("flags", CHOICES, ids=lambda flags: " ".join(flags) or "plain")
def test_what_it_writes_works(flags, tmp_path, capsys):
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
def test_its_suite_fails_when_the_policy_no_longer_does_what_it_says(flags, tmp_path, capsys):
    run_command_line(["policies", "new", "team", *flags, "--in", str(tmp_path)])
    policy = tmp_path / "team" / "policy.yaml"
    policy.write_text(policy.read_text().replace("resources: [pods]", "resources: [pods, services]"))
    assert run_command_line(["test", str(tmp_path / "team")]) == 1
    assert "a Service is not asked about" in capsys.readouterr().out


def test_its_parameter_is_where_claimgate_runs(tmp_path):
    run_command_line(["policies", "new", "team", "--param", "--own-namespace", "gates", "--in", str(tmp_path)])
    written = {path.name: path.read_text() for path in (tmp_path / "team").iterdir()}
    assert all("namespace: gates" in written[name] for name in ("binding.yaml", "params.yaml", "suite.yaml"))


def test_what_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "mine.yaml").write_text("mine")
    assert run_command_line(["policies", "new", "team", "--in", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("team: exists, and is left as it is: choose another name, or remove it\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["team", "mine.yaml"]


@pytest.mark.parametrize("name", ["Team", "a/b", "..", "", "a b"])
def test_a_name_that_no_policy_can_have_is_refused(name, tmp_path, capsys):
    assert run_command_line(["policies", "new", name, "--in", str(tmp_path)]) == 2
    assert f"error: `{name}` cannot be the name of a policy: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
