"""`claimgate policies init` writes policies that compile and have no mistakes. The suite of a policy passes, and tries
every part of the policy.
"""

from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.commands.new_policy import names_of_policies

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def test_policies_of_init_pass_their_suites(tmp_path, capsys):
    assert run_command_line(["policies", "init", *names_of_policies(), "--in", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("wrote ") == len(names_of_policies()) == 10
    assert run_command_line(["policies", "check", str(tmp_path)]) == 0
    # queue-required reads `spec` of custom kinds, with unknown schemas
    assert "; no mistake was seen; 1 not tried on every kind\n" in capsys.readouterr().out
    assert run_command_line(["test", "-v", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert " 0 failed\n" in out
    assert "no case" not in out


def test_the_list_and_the_page_name_them_all(capsys):
    assert run_command_line(["policies", "init", "--list"]) == 0
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert tuple(listed) == names_of_policies()
    page = PAGE.read_text()
    assert [name for name, text in listed.items() if f"| `{name}` | {text} |" not in page] == []


@pytest.mark.parametrize("name", names_of_policies())
def test_a_new_policy_begins_with_the_lines_to_edit(name, tmp_path, capsys):
    run_command_line(["policies", "init", name, "--in", str(tmp_path)])
    comment = "".join(
        line.removeprefix("#") for line in (tmp_path / name / "policy.yaml").read_text().splitlines() if line[:1] == "#"
    )
    assert " Edit: " in comment


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["team-labels"], "policy `team-labels` does not exist, did you mean `team-label`?"),
        (["nothing"], "policy `nothing` does not exist: expected one of checkpoint-volume, "),
        ([], "expected the name of a policy: checkpoint-volume, "),
        (["--list", "team-label"], "--list lists all policies: use it without names"),
        (["gpu-maximum", "taken"], "policy `taken` does not exist"),
    ],
)
def test_wrong_arguments_write_nothing(arguments, said, tmp_path, capsys):
    assert run_command_line(["policies", "init", *arguments, "--in", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_init_does_not_overwrite_existing_files(tmp_path, capsys):
    (tmp_path / "team-label").mkdir()
    assert run_command_line(["policies", "init", "gpu-maximum", "team-label", "--in", str(tmp_path)]) == 2
    assert "exists already, and was not changed: remove the folder, or choose another --in" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["team-label"]


@pytest.mark.parametrize("verb", ["init", "new"])
def test_a_link_without_a_target_exists_too(verb, tmp_path, capsys):
    link = tmp_path / "team-label"
    link.symlink_to(tmp_path / "elsewhere")
    assert run_command_line(["policies", verb, "team-label", "--in", str(tmp_path)]) == 2
    assert "team-label: exists already, and was not changed: " in capsys.readouterr().err
    assert (link.is_symlink(), [*tmp_path.iterdir()]) == (True, [link])
