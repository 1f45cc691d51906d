"""Programs that an audit starts do only what claimgate asks for, with any names and contents of audited files."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.commands.external_programs import ExternalPrograms, Invocation
from webhook.errors import ProgramError

HERE = Path(__file__).parents[1] / "data" / "commands"
POLICIES = ["--only", str(HERE / "policies")]
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {0}\n  labels: {{deny: x}}\nspec: {{containers: []}}\n"
CHART = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/pod.yaml": POD.format("web")}
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="needs git")
needs_helm = pytest.mark.skipif(not shutil.which("helm"), reason="needs helm")
needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")


def write_files(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_program(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def audit(capsys, *arguments):
    code = run_command_line(["audit", *POLICIES, "-o", "ndjson", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, {json.loads(line)["object"]["name"] for line in out.splitlines() if '"fail"' in line}, err


RECORDER = f"""#!{sys.executable} -I
import json, os, sys
open("RECORD", "a").write(json.dumps([sys.argv, dict(os.environ), os.getcwd(), os.listdir(), sys.stdin.read()]) + "\\n")
"""


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Put programs that record their arguments and environment first in PATH. Return a function that returns the
    records.
    """
    file = tmp_path / "record"
    for name in ("helm", "kubectl", "git"):
        write_program(tmp_path / "bin" / name, RECORDER.replace("RECORD", str(file)))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return lambda: [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


SECRETS = {
    "HELM_PLUGINS": "/x",
    "KUBECONFIG": "/x",
    "KUSTOMIZE_PLUGIN_HOME": "/x",
    "XDG_CONFIG_HOME": "/x",
    "GIT_SSH_COMMAND": "/x",
    "GIT_CONFIG_COUNT": "0",
    "HTTPS_PROXY": "http://user:secret@proxy.example",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "LD_PRELOAD": "",
    "PYTHONPATH": "/x",
}
EXPECTED = {
    *("PATH", "LC_ALL", "HOME", "TMPDIR", "GIT_ATTR_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_CONFIG_SYSTEM", "GIT_TERMINAL_PROMPT", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"),
    "GIT_ALLOW_PROTOCOL",
}
NAMES = [
    "--post-renderer=/bin/sh",
    "--output=x",
    "--load-restrictor=LoadRestrictionsNone",
    "-chart",
    "https:/x.example",
    "oci:",
    "a b;$(c)",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_relative", [True, False])
def test_the_name_of_a_folder_is_never_an_option_of_a_program(tmp_path, capsys, monkeypatch, record, name, is_relative):
    for key, value in SECRETS.items():
        monkeypatch.setenv(key, value)
    write_files(tmp_path / "tree" / name / "chart", CHART)
    write_files(tmp_path / "tree" / name / "k", {"kustomization.yaml": "resources: []\n"})
    monkeypatch.chdir(tmp_path / "tree")
    # the folder as a shell or `find` passes it, after `--`
    audit(capsys, "--render", "--", name if is_relative else tmp_path / "tree")
    started = record()
    kinds = "--api-versions", started[0][0][5]
    helm = ["template", "--skip-schema-validation", "--include-crds", *kinds, "--kube-version", "1.36", "--", "chart"]
    assert [argv[1:-1] for argv, *_ in started] == [helm, ["kustomize", "--"]]
    for argv, environment, cwd, listed, stdin in started:
        assert argv[0] == str(tmp_path / "bin" / Path(argv[0]).name)
        assert Path(argv[-1]).is_absolute()
        assert argv[-1].endswith(f"{tmp_path}/tree/{name}/{'chart' if argv[1] == 'template' else 'k'}")
        assert set(environment) == EXPECTED
        assert environment["HOME"] == cwd
        assert not listed
        assert stdin == ""
        assert not set(SECRETS.values()) & set(environment.values()) - {"0"}


def test_git_is_started_with_safe_options(tmp_path, capsys, monkeypatch, record):
    for key, value in SECRETS.items():
        monkeypatch.setenv(key, value)
    write_files(tmp_path / "tree", {".git/x": "", "--x/pod.yaml": POD.format("a")})
    code, _, err = audit(capsys, tmp_path / "tree" / "--x", "--changed-since", "main")
    assert code == 2
    assert "`main` is not a revision of a git work tree" in err
    [(argv, environment, cwd, _, _)] = record()
    assert argv[-5:] == ["rev-parse", "--verify", "--quiet", "--end-of-options", "main^{commit}"]
    assert argv[argv.index("-C") + 1] == str(tmp_path / "tree")
    assert set(environment) == EXPECTED | {
        *("GIT_LITERAL_PATHSPECS", "GIT_NO_LAZY_FETCH", "GIT_NO_REPLACE_OBJECTS"),
        *("GIT_OPTIONAL_LOCKS", "GIT_CEILING_DIRECTORIES"),
    }
    assert cwd == environment["HOME"]


def test_programs_of_audited_and_of_relative_folders_are_not_started(tmp_path, capsys, monkeypatch, record):
    ran = tmp_path / "ran"
    program = f"#!/bin/sh\necho ran >> {ran}\n"
    tree = write_files(tmp_path / "tree", {f"sub/chart/{name}": text for name, text in CHART.items()})
    (tree / ".git").mkdir()
    for folder in ("bin", "sub/bin", "sub"):
        write_program(tree / folder / "helm", program)
    (tmp_path / "link").symlink_to(tree / "bin")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "helm").symlink_to(tree / "bin" / "helm")
    monkeypatch.chdir(tree / "sub")
    hostile = ["", ".", "bin", f"{tree}/sub/bin", f"{tree}/bin", str(tmp_path / "link"), str(tmp_path / "links")]
    monkeypatch.setenv("PATH", os.pathsep.join([*hostile, "/usr/bin", "/bin"]))
    code, _, err = audit(capsys, tree / "sub", "--render")
    assert (code, ran.exists()) == (2, False)
    assert "`helm` is only in relative or audited folders of PATH" in err or shutil.which("helm", path="/usr/bin:/bin")
    monkeypatch.setenv("PATH", os.pathsep.join([*hostile, str(tmp_path / "bin"), "/usr/bin", "/bin"]))
    audit(capsys, tree / "sub", "--render")
    [(argv, environment, *_)] = record()
    assert argv[0] == str(tmp_path / "bin" / "helm")
    assert environment["PATH"] == os.pathsep.join([str(tmp_path / "links"), str(tmp_path / "bin"), "/usr/bin", "/bin"])


def test_an_operand_that_looks_like_an_option_is_refused(tmp_path):
    with pytest.raises(ProgramError, match="could be read as an option"):
        ExternalPrograms([tmp_path]).run(
            Invocation(program="sh", operands=("--x",), separator="", timeout_s=1, max_bytes=1)
        )


def run_script(folder, script, *, timeout_s=60.0, max_bytes=1 << 20):
    return ExternalPrograms([folder]).run(
        Invocation(program="sh", options=("-c", script), timeout_s=timeout_s, max_bytes=max_bytes)
    )


def test_a_program_is_bounded(tmp_path):
    assert run_script(tmp_path, "echo out; echo 'a  b' >&2; echo c >&2; exit 3").message == "a b c"
    with pytest.raises(ProgramError, match="printed more than 1 MiB"):
        run_script(tmp_path, "cat /dev/zero")
    with pytest.raises(ProgramError, match="took longer than 0 s"):
        run_script(tmp_path, "cat /dev/zero >&2", timeout_s=0.2)
    with pytest.raises(ProgramError, match="took longer than 0 s"):
        run_script(tmp_path, "exec >&- 2>&-; sleep 100", timeout_s=0.2)
    assert len(run_script(tmp_path, "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 0").message) == 500


@pytest.mark.parametrize("script", ["sleep 100 & echo $!; exit 0", "sleep 100 >&- 2>&- & echo $!; exit 0"])
def test_processes_left_by_a_program_are_stopped(tmp_path, script):
    left = tmp_path / "left"
    with suppress(ProgramError):  # a process that the program started keeps its output open
        run_script(tmp_path, script.replace("echo $!", f"echo $! > {left}"), timeout_s=1)
    process = int(left.read_text())
    for _ in range(1000):
        if not is_running(process):
            return
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    raise AssertionError(f"`{script}` left a process running")


def is_running(process):
    try:
        os.kill(process, 0)
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux bounds other processes")
def test_memory_of_a_program_is_bounded(tmp_path):
    assert run_script(tmp_path, "sleep 0.2; ulimit -d; ulimit -v").stdout.decode().split() == ["4194304", "33554432"]


# --- the real helm and kustomize ---


@needs_helm
def test_a_chart_does_not_read_a_file_through_a_link_out_of_the_folder(tmp_path, capsys):
    secret = write_files(tmp_path, {"secret/token": "s3cr3t"}) / "secret"
    tree = tmp_path / "tree"
    template = POD.format("web").replace("spec:", '  annotations: {got: "{{ .Files.Get "token" }}"}\nspec:')
    write_files(tree, {"chart/Chart.yaml": CHART["Chart.yaml"], "chart/templates/pod.yaml": template})
    write_files(tree, {"chart/.git/config": "s3cr3t", "shared/_x.tpl": '{{ define "x" }}x{{ end }}'})
    for target in (secret / "token", "/proc/self/environ", "/dev/zero", ".git/config", "/dev/stdin"):
        (tree / "chart" / "token").unlink(missing_ok=True)
        (tree / "chart" / "token").symlink_to(target)
        code, names, err = audit(capsys, tree, "--render")
        assert (code, names) == (1, {"web"})
        assert "s3cr3t" not in err
        assert "1 file or folder is not read" in err, target
    (tree / "chart" / "token").unlink()
    (tree / "chart" / "token").symlink_to(secret / "token")
    # helm itself follows the link, so claimgate renders a copy
    assert "s3cr3t" in run_as_it_is("helm", "template", "release", tree / "chart").stdout
    (tree / "chart" / "token").unlink()
    (tree / "chart" / "token").symlink_to("../shared/_x.tpl")  # a link to a file inside the folder is followed
    (tree / "chart" / "templates" / "x").symlink_to("../../shared")
    write_files(tree, {"chart/templates/pod.yaml": POD.format('{{ include "x" . }}-web')})
    code, names, err = audit(capsys, tree, "--render")
    assert (code, names, "not read" in err) == (1, {"x-web"}, False)


def run_as_it_is(*command):
    """Run a program as a user would, without the limits that claimgate sets."""
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )


SCHEMA = '{"$ref": "file://SECRET"}'


@needs_helm
def test_the_schema_of_a_chart_reads_no_file(tmp_path, capsys):
    secret = write_files(tmp_path, {"secret.json": '{"required": ["s3cr3t"]}'}) / "secret.json"
    tree, packed = tmp_path / "tree", tmp_path / "packed"
    schema = {"values.schema.json": SCHEMA.replace("SECRET", str(secret))}
    write_files(tree / "chart", {**CHART, **schema})
    write_files(packed / "sub", {**CHART, **schema, "Chart.yaml": CHART["Chart.yaml"].replace("name: ", "name: sub")})
    assert "s3cr3t" in run_as_it_is("helm", "template", "release", tree / "chart").stderr  # helm itself reads the file
    (tree / "chart/charts").mkdir()
    with tarfile.open(tree / "chart/charts/sub-1.0.0.tgz", "w:gz") as archive:
        archive.add(packed / "sub", "sub")
    code, names, err = audit(capsys, tree, "--render")
    assert (code, names, err) == (1, {"web"}, "")


@needs_helm
def test_files_of_a_chart_outside_templates_are_audited_too(tmp_path, capsys):
    tree = write_files(tmp_path / "tree", CHART)
    write_files(tree, {"crds/crd.yaml": POD.format("crd"), "raw/pod.yaml": POD.format("raw")})
    write_files(tree, {f"other/{each}": text.replace("web", "other") for each, text in CHART.items()})
    assert audit(capsys, tree, "--render")[:2] == (1, {"web", "crd", "raw", "other"})


@needs_kubectl
def test_files_outside_the_kustomization_are_audited_too(tmp_path, capsys):
    tree = write_files(tmp_path / "tree", {"kustomization.yaml": "resources: [p.yaml]\ncomponents: [c]\n"})
    write_files(
        tree,
        {
            "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {a: b}}]\n"
        },
    )
    write_files(tree, {f"{each}.yaml": POD.format(each[-1]) for each in ("p", "q", "deep/r", "c/s")})
    assert audit(capsys, tree, "--render")[:2] == (1, {"p", "q", "r", "s"})


@needs_helm
def test_a_folder_named_like_an_option_of_helm_is_rendered(tmp_path, capsys, monkeypatch):
    """helm alone would read a folder named `--post-renderer=evil` as an option that starts a program."""
    ran = tmp_path / "ran"
    write_program(tmp_path / "evil", f"#!/bin/sh\ntouch {ran}\ncat\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    tree = write_files(tmp_path / "tree", {f"--post-renderer=evil/{each}": text for each, text in CHART.items()})
    monkeypatch.chdir(tree)
    assert audit(capsys, "--render", "--", "--post-renderer=evil")[:2] == (1, {"web"})
    assert not ran.exists()
    run_as_it_is("helm", "template", "release", tree / "--post-renderer=evil", "--post-renderer=evil")
    assert ran.exists()


OUTSIDE = {"kustomization.yaml": "resources: [pod.yaml]\n", "pod.yaml": POD.format("outside")}


@needs_kubectl
@pytest.mark.parametrize(
    ("text", "told"),
    {
        "a folder outside": ("resources: [../../outside]\n", "uses `../../outside`, which is outside"),
        "keys in any case": ("RESOURCES: [../../outside]\n", "has the key `RESOURCES`"),
        "keys that Go treats as equal": ("reſources: [../../outside]\n", "has the key `reſources`"),
        "a key twice": ("resources: []\nresources: [../../outside]\n", "outside"),
        "a link to a folder": ("resources: [link]\n", "uses `link`, which is outside"),
        "an old field": ("bases: [../../outside]\n", "outside"),
        "a component": ("components: [../../outside]\n", "outside"),
        "generators": ("generators: [../../outside]\n", "outside"),
        "transformers": ("transformers: [../../outside]\n", "outside"),
        "validators": ("validators: [../../outside]\n", "outside"),
        "an address": ("resources: ['https://host.example/x?ref=v1']\n", "--render-remote lets kustomize fetch"),
        "an address of git": ("bases: ['git::https://host.example/x']\n", "--render-remote lets kustomize fetch"),
        "an address in a base": ("resources: [nested]\n", "`https://host.example/n`, which is remote; --render-remote"),
        "a link that Go removes from the path": ("resources: [deep/../../../outside]\n", "outside"),
        "a file behind a link": ("resources: [p.yaml]\nconfigMapGenerator: [{name: x, files: [leak]}]\n", "failed: "),
        "a kustomization that is not YAML": ("resources: [p.yaml]\nx: [\n", "cannot be read"),
        "a number that no double holds": ('{"resources": ["p.yaml"], "x": 1e999}', "has a value that cannot be copied"),
        "a missing file": ("resources: [base.yaml]\n", "uses `base.yaml`, which does not exist"),
        "a missing folder": ("resources: [../base]\n", "uses `../base`, which does not exist"),
        "a short address": ("resources: [github.com/a/b]\n", "--render-remote lets kustomize fetch"),
        "an address of a file": ("patches: [{path: 'http://127.0.0.1:1/x'}]\nresources: [p.yaml]\n", "failed: "),
        "a chart": ("helmCharts: [{name: x, repo: 'https://host.example'}]\n", "--enable-helm"),
        "a function": ("transformers: [function.yaml]\n", "failed: "),
        "a file outside": ("resources: [../../outside/pod.yaml]\n", "outside"),
        "a file beside the folder": (
            "resources: [../beside.yaml]\n",
            "uses the file `../beside.yaml`, which is outside of the folder, so kustomize refuses the file",
        ),
        "a patch outside": ("resources: [p.yaml]\npatches: [{path: ../../outside/pod.yaml}]\n", "failed: "),
        "a map of files outside": ("configMapGenerator: [{name: x, files: [../../outside/pod.yaml]}]\n", "failed: "),
    }.values(),
)
def test_a_kustomization_uses_nothing_outside_its_folder(tmp_path, capsys, text, told):
    write_files(tmp_path / "outside", OUTSIDE)
    ran = tmp_path / "ran"
    program = write_program(tmp_path / "tree/k/run.sh", f"#!/bin/sh\ntouch {ran}\n")
    function = (
        "apiVersion: a.example/v1\nkind: X\nmetadata:\n  name: x\n  annotations:\n"
        f"    config.kubernetes.io/function: 'exec: {{path: {program}}}'\n"
    )
    tree = write_files(tmp_path / "tree", {"k/kustomization.yaml": text, "k/p.yaml": POD.format("p")})
    write_files(tree, {"k/function.yaml": function})
    write_files(tree, {"k/nested/kustomization.yaml": "resources: ['https://host.example/n']\n", "a/b/c/d": ""})
    write_files(tree, {"beside.yaml": POD.format("beside")})
    (tree / "k" / "link").symlink_to("../../outside")
    (tree / "k" / "leak").symlink_to("../../outside/pod.yaml")
    (tree / "k" / "deep").symlink_to("../a/b/c")
    code, names, err = audit(capsys, tree, "--render")
    assert (code, "outside" in names) == (2, False)
    assert "cannot be rendered: " in err
    assert told in err
    assert not ran.exists()


@needs_kubectl
@pytest.mark.parametrize("key", ["resources", "RESOURCES", "reſources"])
def test_kustomize_itself_accepts_folders_outside_of_the_kustomization(tmp_path, key):
    """kustomize itself reads the folder, so claimgate must check the paths in a kustomization."""
    write_files(tmp_path / "outside", OUTSIDE)
    write_files(tmp_path / "k", {"kustomization.yaml": f"{key}: [../outside]\n"})
    assert "name: outside" in run_as_it_is("kubectl", "kustomize", tmp_path / "k").stdout


@needs_kubectl
def test_a_kustomization_uses_the_named_folders(tmp_path, capsys):
    inline = (
        "transformers:\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: x}\n  prefix: my-\n"
    )
    write_files(
        tmp_path,
        {
            "base/kustomization.yaml": "resources: [pod.yaml]\n",
            "base/pod.yaml": POD.format("plain"),
            "overlay/kustomization.yaml": f"resources: [../base, ./link]\n{inline}  fieldSpecs: [{{path: metadata/name}}]\n",
            "other/x/kustomization.yaml": "resources: [pod.yaml]\n",
            "other/x/pod.yaml": POD.format("linked"),
        },
    )
    (tmp_path / "overlay" / "link").symlink_to("../other/x")
    assert audit(capsys, tmp_path, "--render")[:2] == (1, {"my-plain", "my-linked", "linked"})
    assert audit(capsys, tmp_path / "overlay", tmp_path / "base", "--render")[0] == 2
    code, _, err = audit(capsys, tmp_path / "overlay", "--render")
    assert code == 2
    assert "uses `../base`, which is outside of the audited folder; name a folder that contains both" in err


# --- the real git ---


def git(folder, *arguments):
    user = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(folder), *user, *map(str, arguments)], check=True, capture_output=True)


def make_repository(folder, files):
    write_files(folder, files)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def program(tmp_path):
    ran = tmp_path / "ran"
    return write_program(tmp_path / "evil", f"#!/bin/sh\necho ran >> {ran}\nexit 1\n"), ran


def hostile_configuration(program):
    return f"""
[core]
\trepositoryformatversion = 1
\tsshCommand = {program}
\tfsmonitor = {program}
\thooksPath = {program.parent}
\tpager = {program}
\teditor = {program}
\tgitProxy = {program}
\talternateRefsCommand = {program}
\taskPass = {program}
\tattributesFile = attributes
[extensions]
\tpartialClone = evil
[remote "evil"]
\turl = ssh://host.example/x
\tpromisor = true
\tpartialclonefilter = blob:none
[remote "other"]
\turl = ext::{program}
\tpromisor = true
[protocol]
\tallow = always
[protocol "ssh"]
\tallow = always
[protocol "ext"]
\tallow = always
[filter "evil"]
\tsmudge = {program}
\tclean = {program}
\tprocess = {program}
[diff]
\texternal = {program}
[diff "evil"]
\ttextconv = {program}
\tcommand = {program}
[credential]
\thelper = {program}
[gpg]
\tprogram = {program}
[log]
\tshowSignature = true
[alias]
\trev-parse = !{program}
\tls-tree = !{program}
\tcat-file = !{program}
[pager]
\trev-parse = {program}
\tcat-file = {program}
"""


def lazy_configuration(program):
    return (
        f"[core]\n\trepositoryformatversion = 1\n\tsshCommand = {program}\n\tbare = false\n\tworktree = .\n"
        '[extensions]\n\tpartialClone = evil\n[remote "evil"]\n\turl = ssh://host.example/x\n\tpromisor = true\n'
    )


@needs_git
def test_the_configuration_of_a_repository_starts_nothing(tmp_path, capsys, program):
    file, ran = program
    attributes = "*.yaml filter=evil diff=evil\n"
    files = {"lost.yaml": POD.format("lost"), "same.yaml": POD.format("same"), ".gitattributes": attributes}
    tree = make_repository(tmp_path / "tree", files)
    blob = subprocess.run(
        ["git", "-C", str(tree), "rev-parse", "HEAD:lost.yaml"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (tree / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (tree / ".git" / "config").write_text(hostile_configuration(file))
    code, names, err = audit(capsys, tree, "--changed-since", "HEAD")
    assert not ran.exists()
    assert (code, names) == (1, {"lost"})
    assert "note: 1 object unchanged and not audited" in err
    assert "note: 1 file could not be compared with the revision, so all its objects are audited; first " in err
    run_as_it_is("git", "-C", tree, "show", "--textconv", "HEAD:./same.yaml")
    assert ran.exists()


@needs_git
def test_a_bare_repository_among_the_files_is_not_entered(tmp_path, capsys, program):
    file, ran = program
    tree = make_repository(tmp_path / "tree", {"a.yaml": POD.format("a")})
    bare = tree / "bare"
    subprocess.run(["git", "clone", "-q", "--bare", str(tree), str(bare)], check=True, capture_output=True)
    (bare / "config").write_text(hostile_configuration(file).replace("[core]", "[core]\n\tbare = true"))
    write_files(bare, {"pod.yaml": POD.format("tracked"), "refs/keep": "", "sub/new.yaml": POD.format("new")})
    shutil.rmtree(bare / "hooks", ignore_errors=True)
    git(tree, "add", "-f", "bare/pod.yaml", "bare/config", "bare/HEAD", "bare/objects", "bare/refs")
    git(tree, "commit", "-qm", "second")
    code, names, err = audit(capsys, tree, "--changed-since", "HEAD")
    assert not ran.exists()
    assert (code, names) == (1, {"new"})
    assert "could not be compared" not in err
    assert audit(capsys, bare, "--changed-since", "HEAD")[:2] == (1, {"new"})
    assert not ran.exists()
    for each in (bare / "objects").rglob("*"):
        if each.is_file():
            each.unlink()
    (bare / "config").write_text(lazy_configuration(file))
    assert audit(capsys, tree, "--changed-since", "HEAD")[:2] == (1, {"new"})
    assert not ran.exists()
    run_as_it_is("git", "-C", bare / "sub", "show", "HEAD:./x")
    assert ran.exists()


@needs_git
@pytest.mark.parametrize("jobs", [1, 2])
def test_files_of_a_nested_work_tree_are_audited_and_counted(tmp_path, capsys, program, jobs):
    file, ran = program
    tree = make_repository(tmp_path / "tree", {"a.yaml": POD.format("a")})
    inner = make_repository(tree / "inner", {"b.yaml": POD.format("b"), "c/d.yaml": POD.format("d")})
    (inner / ".git" / "config").write_text(hostile_configuration(file))
    code, names, err = audit(capsys, tree, "--changed-since", "HEAD", "--jobs", jobs)
    assert (code, names) == (1, {"b", "d"})
    assert "note: 1 object unchanged and not audited" in err
    assert "note: 2 files could not be compared with the revision, so all their objects are audited; first " in err
    assert "it is in a work tree of git that was not named" in err
    # a file that the command line names is compared
    assert audit(capsys, tree, inner, "--changed-since", "HEAD")[:2] == (0, set())
    assert not ran.exists()


@needs_git
def test_files_in_odd_places_are_compared(tmp_path, capsys):
    names = ["-x.yaml", "a b.yaml", 'q"u.yaml', "--/y.yaml", ":(top)z.yaml", "n\nl.yaml", "*.yaml", "\N{SNOWMAN}.yaml"]
    tree = make_repository(tmp_path / "tree", {each: POD.format(f"p{at}") for at, each in enumerate(names)})
    assert audit(capsys, tree, "--changed-since", "HEAD")[:2] == (0, set())
    assert audit(capsys, tree / "--", "--changed-since", "HEAD")[:2] == (0, set())
    for each in names:
        assert audit(capsys, tree / each, "--changed-since", "HEAD")[:2] == (0, set()), each
    (tree / "-x.yaml").write_text(POD.format("changed"))
    assert audit(capsys, tree, "--changed-since", "HEAD")[:2] == (1, {"changed"})


@needs_git
def test_objects_with_parts_that_are_not_read_are_compared(tmp_path, capsys):
    deep = '{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"deny": "x"}}, "x": [%s]}'
    tree = make_repository(tmp_path / "tree", {"a.json": deep % ("[" * 400 + "1e999" + "]" * 400)})
    assert audit(capsys, tree, "--changed-since", "HEAD")[0] == 0
    (tree / "a.json").write_text(deep % ("[" * 400 + "2e999" + "]" * 400))
    code, names, err = audit(capsys, tree, "--changed-since", "HEAD")
    assert (code in (1, 3), "unchanged" in err) == (True, False), names


@needs_git
def test_git_replace_objects_are_ignored(tmp_path, capsys):
    tree = make_repository(tmp_path / "tree", {"a.yaml": POD.format("a")})
    (tree / "a.yaml").write_text(POD.format("changed"))
    git(tree, "hash-object", "-w", "a.yaml")
    ids = [
        subprocess.run(["git", "-C", str(tree), *asked], capture_output=True, text=True, check=True).stdout.strip()
        for asked in (("rev-parse", "HEAD:a.yaml"), ("hash-object", "a.yaml"))
    ]
    git(tree, "replace", *ids)
    assert audit(capsys, tree, "--changed-since", "HEAD")[:2] == (1, {"changed"})


@needs_git
@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give files away")
def test_git_still_checks_the_owner_of_a_work_tree(tmp_path, capsys, monkeypatch):
    tree = make_repository(tmp_path / "tree", {"a.yaml": POD.format("a")})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for each in (tree, *tree.rglob("*")):
        os.chown(each, 1234, 1234)
    code, _, err = audit(capsys, tree, "--changed-since", "HEAD")
    assert code == 2
    assert f"belongs to another user, so git does not read it; `git config --global --add safe.directory {tree}`" in err
    write_files(tmp_path / "home", {".gitconfig": f"[safe]\n\tdirectory = {tree}\n"})
    assert audit(capsys, tree, "--changed-since", "HEAD")[:2] == (0, set())


@needs_git
def test_a_folder_outside_a_work_tree_is_reported(tmp_path, capsys):
    write_files(tmp_path, {"a.yaml": POD.format("a")})
    code, _, err = audit(capsys, tmp_path, "--changed-since", "HEAD")
    assert code == 2
    assert f"--changed-since: {tmp_path} is in no git work tree" in err
