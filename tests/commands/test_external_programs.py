"""What claimgate starts for files that somebody else wrote, and what these files cannot make of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.commands.external_programs import find_program
from webhook.errors import ProgramError

POLICIES = ["--only", str(Path(__file__).parents[1] / "data" / "commands" / "policies")]
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}\n  labels: {{deny: x}}\nspec: {{containers: []}}\n"
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
SECRET = "token-of-the-runner"

needs_helm = pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def script(folder: Path, name: str, text: str) -> Path:
    path = write(folder, {name: f"#!/bin/sh\n{text}\n"}) / name
    path.chmod(0o755)
    return path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of PATH that write down how they were called; returns the folder with what they wrote."""
    folder = tmp_path / "programs"
    for name in ("helm", "kubectl", "git"):
        script(folder, name, f'printf "%s\\n" "$@" > {folder}/{name}.arguments; env > {folder}/{name}.environment; pwd')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("name", ["--post-renderer=sh", "--output=x", "--load-restrictor=none", "-e=X", "plain"])
@pytest.mark.parametrize(("head", "program"), [("Chart.yaml", "helm"), ("kustomization.yaml", "kubectl")])
def test_the_name_of_a_folder_is_never_an_option(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, name: str, head: str, program: str
) -> None:
    tree = write(tmp_path / "tree", {f"{name}/{head}": CHART if head == "Chart.yaml" else "resources: []\n"})
    monkeypatch.chdir(tree)
    run_command_line(["audit", *POLICIES, ".", "--render"])
    arguments = (programs / f"{program}.arguments").read_text().split("\n")
    assert [each for each in arguments if each.startswith("-")] == ["--"]
    assert Path(arguments[-2]).is_absolute()


def test_a_program_sees_nothing_of_the_environment(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HELM_PLUGINS", "KUBECONFIG", "XDG_CONFIG_HOME", "GIT_SSH_COMMAND", "https_proxy", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    tree = write(tmp_path / "tree", {"chart/Chart.yaml": CHART, ".git/HEAD": "ref: refs/heads/main\n"})
    run_command_line(["audit", *POLICIES, str(tree), "--render"])
    run_command_line(["audit", *POLICIES, str(tree), "--changed-since", "main"])
    for program in ("helm", "git"):
        environment = (programs / f"{program}.environment").read_text()
        assert SECRET not in environment
        assert f"HOME={os.environ.get('HOME')}\n" not in environment


def test_a_program_among_the_audited_files_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "tree", "bin/helm", f"touch {tmp_path}/ran")
    script(tmp_path / "other", "helm", f"touch {tmp_path}/control")
    write(tmp_path / "tree", {"chart/Chart.yaml": CHART})
    folders = (str(tmp_path / "tree" / "bin"), "bin", "", ".", str(tmp_path / "other"), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    monkeypatch.chdir(tmp_path / "tree")
    run_command_line(["audit", *POLICIES, ".", "--render"])
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "control").exists()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("sleep 60", {"timeout_s": 0.3}, "took longer than 0 s"),
        ("sleep 60 & sleep 60", {"timeout_s": 0.3}, "took longer than 0 s"),
        ("yes", {"timeout_s": 0.5, "most_bytes": 1 << 20}, "printed more than 1 MiB"),
        ("head -c 2000000 /dev/zero", {"timeout_s": 20, "most_bytes": 1 << 20}, "printed more than 1 MiB"),
        ("echo a b >&2; exit 3", {"timeout_s": 20}, "failed: a b"),
        ("exec 1>&- 2>&-; sleep 60", {"timeout_s": 0.3}, "took longer than 0 s"),
    ],
)
def test_time_and_output_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: dict[str, float], message: str
) -> None:
    script(tmp_path, "tool", text)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    began = time.monotonic()
    with pytest.raises(ProgramError, match=message):
        find_program("tool", [], has_network=True).run(**options)  # type: ignore[arg-type]
    assert time.monotonic() - began < 30


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return write(tmp_path / "outside", {"secret.yaml": SECRET, "kustomization.yaml": "resources: [pod.yaml]\n"})


@needs_helm
def test_a_chart_reads_nothing_behind_a_link_that_leaves_it(
    tmp_path: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = POD.format("web") + '# {{ .Files.Get "leak" }}\n# {{ .Files.Get "inside" }}\n'
    text = template.replace("deny: x", 'deny: x, leak: "{{ .Files.Get `leak` }}", inside: "{{ .Files.Get `inside` }}"')
    tree = write(tmp_path / "tree", {"chart/Chart.yaml": CHART, "chart/templates/pod.yaml": text, "chart/real": "kept"})
    (tree / "chart" / "leak").symlink_to(outside / "secret.yaml")
    (tree / "chart" / "inside").symlink_to("real")
    (tree / "chart" / "environment").symlink_to("/proc/self/environ")
    os.mkfifo(tree / "chart" / "pipe")
    assert run_command_line(["audit", *POLICIES, str(tree), "--render", "-o", "json"]) == 1
    out, err = capsys.readouterr()
    assert SECRET not in out + err
    assert "3 files or folders are not read" in err
    assert '"web"' in out


@needs_kubectl
@pytest.mark.parametrize(
    ("kustomization", "told"),
    [
        ("resources: [https://example.org/pod.yaml]", "is neither a file nor a folder below"),
        ("resources: ['github.com/owner/repository?ref=main']", "is neither a file nor a folder below"),
        ("bases: ['git::https://example.org/x']", "is neither a file nor a folder below"),
        ("components: [../../outside]", "is neither a file nor a folder below"),
        ("resources: [away]", "is neither a file nor a folder below"),
        ("resources: [nested]", "`https://example.org/nested` in "),
        ("resources: [pod.yaml]\npatches: [{path: HTTPS://example.org/patch.yaml}]", "is an address"),
        ("resources: [pod.yaml]\nconfigMapGenerator: [{name: a, files: ['k=http://example.org/x']}]", "is an address"),
        ("resources: [pod.yaml]\nconfigMapGenerator: [{name: a, files: [leak]}]", "failed"),
        ("helmCharts: [{name: a, repo: https://example.org, version: 1.0.0}]", "failed"),
        ("resources: [pod.yaml]\nx: [", "kustomization.yaml"),
    ],
)
def test_a_kustomization_takes_nothing_from_elsewhere(
    tmp_path: Path, outside: Path, capsys: pytest.CaptureFixture[str], kustomization: str, told: str
) -> None:
    nested = {"nested/kustomization.yaml": "resources: [https://example.org/nested]\n"}
    tree = write(tmp_path / "tree", {"kustomization.yaml": kustomization, "pod.yaml": POD.format("a"), **nested})
    (tree / "away").symlink_to(outside)
    (tree / "leak").symlink_to(outside / "secret.yaml")
    run_command_line(["audit", *POLICIES, str(tree / "kustomization.yaml"), str(tree), "--render"])
    out, err = capsys.readouterr()
    assert SECRET not in out + err
    assert told in err


@needs_kubectl
def test_a_kustomization_of_files_is_rendered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"base/kustomization.yaml": "resources: [pod.yaml]\n", "base/pod.yaml": POD.format("a")}
    overlay = {"overlay/kustomization.yaml": "resources: [../base]\nnamePrefix: my-\n", ".git/HEAD": ""}
    tree = write(tmp_path / "tree", texts | overlay)
    assert run_command_line(["audit", *POLICIES, str(tree / "overlay"), "--render", "-o", "json"]) == 1
    assert '"my-a"' in capsys.readouterr().out


def git(folder: Path, *arguments: str) -> None:
    user = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *user, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tree = write(tmp_path / "tree", {"pod.yaml": POD.format("a"), "inner/pod.yaml": POD.format("b")})
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "first")
    return tree


def audited_since_head(tree: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run_command_line(["audit", *POLICIES, str(tree), "--changed-since", "HEAD"])
    return code, capsys.readouterr().out


def test_a_bare_repository_in_a_folder_is_never_entered(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is plain files, so a pull request can bring it, with a remote that holds what it lacks, and a command."""
    command = script(tmp_path, "command", f"touch {tmp_path}/ran")
    inner = repository / "inner"
    git(repository, "clone", "-q", "--bare", str(repository), str(tmp_path / "bare"))
    shutil.copytree(tmp_path / "bare", inner, dirs_exist_ok=True)
    for key, value in {
        "core.sshCommand": str(command),
        "core.fsmonitor": str(command),
        "core.bare": "true",
        "remote.origin.url": "ssh://git@127.0.0.1/x",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "extensions.partialClone": "origin",
        "core.repositoryformatversion": "1",
    }.items():
        git(repository, "config", "-f", str(inner / "config"), key, value)
    shutil.rmtree(inner / "objects")
    (inner / "objects").mkdir()
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    assert audited_since_head(repository, capsys)[0] == 0
    assert audited_since_head(inner, capsys)[0] == 0
    assert not (tmp_path / "ran").exists()


def test_the_configuration_of_a_repository_starts_nothing(
    tmp_path: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = script(tmp_path, "command", f"touch {tmp_path}/ran; cat")
    for key in (
        *("core.sshCommand", "core.fsmonitor", "core.pager", "core.editor", "core.askPass", "diff.external"),
        *("diff.x.textconv", "diff.x.command", "filter.x.smudge", "filter.x.clean", "filter.x.process"),
        *("credential.helper", "alias.cat-file", "alias.rev-parse", "gpg.program", "uploadpack.packObjectsHook"),
    ):
        git(repository, "config", key, f"!{command}" if key.startswith(("alias", "credential")) else str(command))
    write(repository, {".gitattributes": "*.yaml diff=x filter=x\n"})
    (repository / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction"):
        shutil.copy(command, repository / ".git" / "hooks" / hook)
    assert audited_since_head(repository, capsys)[0] == 0
    assert not (tmp_path / "ran").exists()


def test_files_of_a_repository_inside_the_work_tree_count_as_changed(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = write(repository / "vendored", {"pod.yaml": POD.format("c")})
    git(inner, "init", "-q")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "its own")
    code, out = audited_since_head(repository, capsys)
    assert (code, "vendored/pod.yaml" in out, "tree/pod.yaml" in out) == (1, True, False)
