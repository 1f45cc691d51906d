"""What holds for every verb: its exit codes are in one table, all errors have one form, and no verb imports the code of
another.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from webhook import __version__
from webhook.cli import run_command_line, run_with_traceback
from webhook.commands.output import Output, parse_outputs
from webhook.errors import ConfigurationError
from webhook.input import shipped
from webhook.typer_application import EXAMPLES, EXIT_CODES, OPTION_GROUPS, VERB_GROUPS, VERBS, create_typer_application


def test_help_names_every_verb_and_every_exit_code(capsys):
    assert run_command_line(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for verb, summary in VERBS.items():
        assert verb in text
        assert summary in text
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in text


def test_version_is_that_of_the_distribution(capsys):
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out == f"claimgate {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(
            ["nope"], "error: there is no command `nope`; `claimgate --help` lists all commands", id="unknown verb"
        ),
        pytest.param(
            ["audti"], "error: there is no command `audti`; did you mean `claimgate audit`?", id="misspelt verb"
        ),
        pytest.param(
            ["lint"], "error: there is no command `lint`; did you mean `claimgate audit`?", id="a verb of another tool"
        ),
        pytest.param(
            ["webhook-config", "--failure-policy", "Foo"],
            "error: invalid value for '--failure-policy': 'Foo' is not one of 'Fail', 'Ignore'"
            " (see `claimgate webhook-config --help`)",
            id="a value that is not a choice",
        ),
        pytest.param(["--nope"], "error: no such option: --nope", id="unknown flag"),
        pytest.param(["replay"], "error: replay: no file is named; add FIXTURE or -f FILE", id="no fixture"),
        pytest.param(["simulate", "a", "-f", "b"], "error: simulate: name one file, as FILE or -f FILE", id="two jobs"),
        pytest.param(["replay", "--phase", "later", "x"], "error: invalid value for '--phase'", id="bad phase"),
    ],
)
def test_bad_usage_is_exit_2_and_one_error_line(arguments, expected, capsys):
    assert run_command_line(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(expected)
    assert err.count("error: ") == 1


def test_no_verb_prints_help_on_stderr_and_is_bad_usage(capsys):
    assert run_command_line([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: claimgate")


def test_help_imports_no_verb():
    code = (
        "import sys; from webhook.cli import run_command_line; run_command_line(['--help']);"
        "sys.exit(','.join(name for name in sys.modules if name.startswith('webhook.commands')) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


LATE = (
    "webhook.facts.kueue.managed",
    "webhook.facts.launch.commands_of_kinds",
    "webhook.facts.model_servers.servers_of_object",
    "webhook.facts.train_job_pods.merged_train_job",
    "webhook.commands.audit_live",
    "multiprocessing",
    "kubernetes",
)
"""Modules that an audit of a Pod does not need. Imports take half of the time of a short run."""


def test_an_audit_of_a_pod_imports_no_rules_of_other_objects(tmp_path):
    pod = tmp_path / "pod.yaml"
    pod.write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a:1}]}}")
    code = (
        f"import sys; from webhook.cli import run_command_line; run_command_line(['audit', {str(pod)!r}]);"
        f"sys.exit(','.join({{*{LATE}}} & {{*sys.modules}}) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"imported, although a check needs them later or never: {done.stderr}"


def test_a_closed_stdout_prints_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "webhook", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_commands_work_on_a_terminal_without_utf_8():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    fixture = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "caf\u00e9"}}'
    done = subprocess.run(
        [sys.executable, "-m", "webhook", "replay", "-"],
        input=fixture,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "CREATE Node caf\\xe9" in done.stdout


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param(None, (Output("text"),), id="text by default"),
        pytest.param(["json=-"], (Output("json"),), id="a dash is stdout"),
        pytest.param(
            ["text", "json=a=b"], (Output("text"), Output("json", "a=b")), id="one for stdout, one for a file"
        ),
    ],
)
def test_outputs(chosen, expected):
    assert parse_outputs(chosen, ("text", "json")) == expected


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        pytest.param(["xml"], "unknown format `xml`, expected one of text, json", id="unknown format"),
        pytest.param(["json="], "`json=` does not name a file", id="no file"),
        pytest.param(["json=https://x/y"], "`https://x/y` is an address, and only a file", id="an address"),
        pytest.param(["json", "text"], "only one format can go to stdout", id="two for stdout"),
    ],
)
def test_bad_outputs_are_configuration_errors(chosen, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_outputs(chosen, ("text", "json"))


def test_a_file_that_cannot_be_written_is_exit_2(tmp_path, capsys):
    fixture = tmp_path / "pod.json"
    fixture.write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}')
    assert run_command_line(["replay", str(fixture), "-o", f"json={tmp_path}/absent/x.json"]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/absent/x.json: no such file or directory\n"


def test_an_excerpt_under_a_problem_is_not_a_separate_error(tmp_path, capsys):
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n"
        "spec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n"
        "  validations: [{expression: objekt.spec}]\n"
    )
    assert run_command_line(["policies", "check", str(policy)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("error: ")
    assert [line for line in lines if line.startswith(" | ")]
    assert not [line for line in lines if line.startswith("error:  ")]


def test_an_internal_error_exits_with_70_and_its_place(capsys):
    assert run_with_traceback(lambda: 1 // 0) == 70
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert err.endswith("error: this is a fault of claimgate itself; the lines above say where\n")


@pytest.mark.parametrize("verb", ["policies list", "policies check", "policies export", "test", "audit .", "replay ."])
def test_shipped_policies_say_which_releases_they_are_for(verb, capsys):
    """The error is one line. It does not list each mistake that an older CEL finds in the policies."""
    assert run_command_line([*verb.split(), "--kubernetes-version", "1.33"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: --kubernetes-version: the shipped policies use the CEL of Kubernetes 1.34 and later; "
        "name your own policies with --only, or leave out --kubernetes-version\n"
    )


def test_shipped_policies_do_not_work_with_an_older_release():
    assert run_command_line(["policies", "list", "--kubernetes-version", "1.34"]) == 0
    shipped_by_name = str(Path(shipped.policies_folder()))
    assert run_command_line(["policies", "list", shipped_by_name, "--kubernetes-version", "1.33"]) == 2


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS), ("policies", "check"), ("certs", "inject")])
def test_help_has_no_words_of_python(verb, capsys):
    """The help has no names of types, and writes every argument in capitals."""
    assert run_command_line([*verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"<(str|int|float|Path|list|bool)\b|list\[|None|\{[A-Z]", shown)
    assert all(len(line) <= 110 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("bash", "complete -o default -F _claimgate_completion claimgate"),
        ("zsh", "#compdef claimgate"),
        ("fish", "complete --command claimgate"),
    ],
)
def test_completion_is_that_of_the_shell_that_is_named(shell, said, capsys):
    with pytest.raises(SystemExit) as end:
        run_command_line(["--show-completion", shell])
    assert end.value.code == 0
    assert said in capsys.readouterr().out


def test_completion_of_an_unknown_shell_lists_the_known_shells(capsys):
    assert run_command_line(["--show-completion", "csh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["audit"], ["replay"], ["test"], ["policies", "check"], ["audit", ".", "--context"]], ids=" ".join
)
def test_an_address_is_shown_unchanged(arguments, capsys):
    assert run_command_line([*arguments, "https://example.org/a.yaml"]) == 2
    said = "https://example.org/a.yaml: is an address, and only files, folders and `-` are read: download it"
    assert said in capsys.readouterr().err


POD = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}'


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        pytest.param("--kubeconfig=.k.yaml", "*.yaml", id="an option with its value"),
        pytest.param("--config=c.yaml", "*", id="the configuration"),
        pytest.param("-ojson=y.json", "*", id="a short option with its value"),
        pytest.param("-v", "*", id="a short option"),
        pytest.param("--publish", "*", id="an option with the next file as its value"),
        pytest.param("--config=a/c.yaml", "*/*.yaml", id="a folder and a file"),
        pytest.param("--nothing", "*", id="a word that is not an option"),
        pytest.param("-", "*", id="standard input"),
        pytest.param("--", "*", id="the end of options"),
    ],
)
def test_the_name_of_a_file_is_never_an_option(file, pattern, tmp_path, monkeypatch, capsys):
    """A shell expands a pattern to the names of files. A file with the name of an option must not become an option."""
    monkeypatch.chdir(tmp_path)
    Path("z.yaml").write_text(POD)
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("")
    named = [*sorted(str(each) for each in Path().glob(pattern)), "z.yaml"]
    for verb in VERBS:
        code = run_command_line([verb, *named])
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), verb
        assert f"`{file}` is " in err
        assert "and also the name of a file in this folder" in err
    # the message names this fix
    whole = [str(Path.cwd() / each) if each == "-" else f"./{each}" for each in named]
    assert run_command_line(["audit", *whole]) == 0
    if file not in ("-", "--"):
        assert run_command_line(["audit", "--", *named]) == 0
    capsys.readouterr()


def test_options_next_to_files_of_other_names_are_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("z.yaml").write_text(POD)
    # --config reads z.yaml as a configuration
    assert run_command_line(["audit", "--output=text", "-v", "--config", "z.yaml", "z.yaml"]) == 2
    assert "z.yaml" in capsys.readouterr().err
    assert run_command_line(["audit", "--output=text", "-v", "z.yaml"]) == 0
    assert run_command_line(["audit", "--", "--output=text"]) == 2
    assert capsys.readouterr().err.startswith("error: --output=text: no such file")


def test_a_dangling_link_counts_as_an_existing_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("--output=json").symlink_to("nowhere")
    assert run_command_line(["audit", "--output=json", "z.yaml"]) == 2
    assert "also the name of a file" in capsys.readouterr().err


def test_files_may_be_named_as_for_kubectl(tmp_path, capsys):
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}")
    file = str(tmp_path / "pod.yaml")
    for verb in (["audit"], ["replay"]):
        answers = [
            (run_command_line([*verb, *how]), capsys.readouterr().out) for how in ([file], ["-f", file], [f"-f{file}"])
        ]
        assert answers[0] == answers[1] == answers[2]


def test_help_shows_each_verb_in_one_group():
    assert sorted(verb for verbs in VERB_GROUPS.values() for verb in verbs) == sorted(VERBS), "typer_application.py"


def flags_of_commands():
    group = typer.main.get_command(create_typer_application())
    for verb in VERBS:
        command = group.get_command(None, verb)
        for name, inner in (getattr(command, "commands", None) or {"": command}).items():
            yield f"{verb} {name}".strip(), {flag for each in inner.params for flag in each.opts}


def test_help_shows_examples_of_each_command_that_have_its_flags():
    flags = dict(flags_of_commands())
    assert sorted(EXAMPLES) == sorted(flags), "add examples to typer_application.py"
    for path, lines in EXAMPLES.items():
        words = [shlex.split(line.partition(" | ")[0], comments=False) for line in lines]
        assert [each[: 1 + len(path.split())] for each in words] == [["claimgate", *path.split()]] * len(lines)
        assert {word for each in words for word in each if word.startswith("-")} <= flags[path]


def test_each_group_of_options_has_only_flags_of_verbs():
    known = set().union(*(flags for _, flags in flags_of_commands()))
    assert {flag for names in OPTION_GROUPS.values() for flag in names} - known == set()


def test_help_shows_every_option_once(capsys):
    assert run_command_line(["audit", "--help"]) == 0
    options = capsys.readouterr().out.partition("\nOptions:")[2]
    shown = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", options, re.MULTILINE)
    assert sorted(shown) == sorted({*shown})
    assert set(shown) - {"--help"} == {flag for flag in dict(flags_of_commands())["audit"] if flag.startswith("--")}
