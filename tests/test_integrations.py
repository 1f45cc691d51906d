"""The files for CI systems, hooks, kubectl and shells work. Each step is executed unchanged."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests import hostile_folder as hostile_folder_files
from tests import man_page, quick_yaml, release, verbs_page
from tests.literals import validating
from tests.page_blocks import blocks_of
from webhook.typer_application import VERBS
from webhook.yamltext import yamlfile

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
ACTION = quick_yaml.load((ROOT / "action.yml").read_text())
STEPS = {step.get("name"): step for step in ACTION["runs"]["steps"]}
HOOKS = {hook["id"]: hook for hook in quick_yaml.load((ROOT / ".pre-commit-hooks.yaml").read_text())}
GITLAB = quick_yaml.load((ROOT / "deploy" / "ci" / "gitlab.yml").read_text())["claimgate"]
BROKEN = "examples/research-team/broken/mpijob-slots.yaml"
GOOD = "examples/research-team/good/volcano-job.yaml"


def shell(script, *, cwd=ROOT, **variables):
    """Run a script by bash until the first failure, as CI systems do."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def audit_step(folder, cwd=ROOT, **given):
    """Run the step of the action that audits, with its inputs, in the environment of the tests."""
    (folder / "claimgate").symlink_to(BIN.parent)
    inputs = {name: str(declared["default"]) for name, declared in ACTION["inputs"].items()} | given
    environment = {
        name: re.sub(r"\$\{\{ (?:inputs\.([\w-]+)|(.*)) \}\}", lambda match: inputs.get(match[1] or "event", ""), text)
        for name, text in STEPS["Audit"]["env"].items()
    }
    runner = {"RUNNER_TEMP": str(folder), "GITHUB_OUTPUT": str(folder / "outputs")}
    return shell(STEPS["Audit"]["run"], cwd=cwd, **environment, **runner)


def test_an_audit_that_cannot_start_does_not_publish_a_report_from_the_checkout(tmp_path):
    sarif = tmp_path / "forged.sarif"
    sarif.write_text("{}")
    done = audit_step(tmp_path, paths=GOOD, policies="no/such/folder", sarif=str(sarif))
    assert (done.returncode, sarif.exists()) == (2, False)


def test_the_examples_of_the_page_use_inputs_hooks_and_variables_that_exist():
    """docs/integrations.md shows the action, the GitLab job and the hooks."""
    page = (ROOT / "docs" / "integrations.md").read_text()
    workflow, inputs, gitlab, hooks = [
        quick_yaml.load(block.text) for block in blocks_of(page) if block.language == "yaml"
    ]
    [step] = [each for each in workflow["steps"] if each["uses"] == "OWNER/claimgate@TAG"]
    assert {**step["with"], **inputs["with"]}.keys() <= ACTION["inputs"].keys()
    [upload] = [each for each in workflow["steps"] if "upload-sarif" in each["uses"]]
    assert upload["with"]["sarif_file"] == ACTION["inputs"]["sarif"]["default"]
    assert (ROOT / "deploy" / "ci" / gitlab["include"][0]["local"]).is_file()
    assert gitlab["claimgate"]["variables"].keys() <= GITLAB["variables"].keys()
    assert {each["id"] for each in hooks["repos"][0]["hooks"]} <= HOOKS.keys()
    named = re.findall(r"^\| `([a-z-]+)` \|[^|]*\| `?([^|`]*)`?", page.split("## GitLab")[0], re.MULTILINE)
    assert {name for name, _ in named} <= ACTION["inputs"].keys()


def test_the_action_annotates_and_writes_sarif(tmp_path):
    sarif = tmp_path / "found.sarif"
    done = audit_step(
        tmp_path, paths=f"{BROKEN}\n  {GOOD}  \n", context="examples/research-team/cluster", sarif=str(sarif)
    )
    assert done.returncode == 1
    assert f"::error file={BROKEN}" in done.stdout or f"::warning file={BROKEN}" in done.stdout
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"training-job/slots-for-ranks"}
    assert (tmp_path / "outputs").read_text() == f"sarif={sarif}\n"


def test_the_action_passes_without_a_finding(tmp_path):
    done = audit_step(tmp_path, paths=GOOD, context="examples/research-team/cluster", sarif=str(tmp_path / "s"))
    assert (done.returncode, "::error" in done.stdout) == (0, False)


def test_each_line_of_an_input_of_the_action_is_one_item(tmp_path):
    """A path may have blanks, and characters that a shell would expand."""
    folder = tmp_path / "a checkout"
    for name in ("my manifests", "the cluster", "no * at all"):
        (folder / name).mkdir(parents=True)
        shutil.copy(ROOT / BROKEN, folder / name)
    context = "the cluster\nno * at all"
    done = audit_step(tmp_path, cwd=folder, paths="my manifests\n\nno * at all\n", context=context, sarif="a report")
    assert done.returncode == 1, done.stderr
    results = json.loads((folder / "a report").read_text())["runs"][0]["results"]
    places = {uri for each in results for uri in files_of_result(each)}
    assert places == {"my%20manifests/mpijob-slots.yaml", "no%20%2A%20at%20all/mpijob-slots.yaml"}


def test_paths_of_the_action_are_not_options(tmp_path):
    done = audit_step(tmp_path, cwd=tmp_path, paths="--output=json", sarif=str(tmp_path / "s"))
    assert done.returncode == 2
    assert "--output=json: no such file or folder" in done.stderr


@pytest.fixture
def pull_request(tmp_path):
    """Return a checkout and its base commit. The last commit adds an exception for its own mistake."""
    (folder := tmp_path / "checkout").mkdir()
    (folder / "claimgate.yaml").write_text("{}")
    (folder / "a").mkdir()
    (folder / "a" / ".claimgateignore").write_text("left-out.yaml\n")
    for name in ("job.yaml", "left-out.yaml"):
        shutil.copy(ROOT / BROKEN, folder / "a" / name)
    git = "git -c user.name=x -c user.email=x@example.com"
    commit = f"{git} add -A && {git} commit -q -m x && git rev-parse HEAD"
    base = shell(f"git init -q . && {commit}", cwd=folder).stdout.strip()
    (folder / "claimgate.yaml").write_text("report: {skip: [training-job/slots-for-ranks], failOn: never}")
    (folder / "a" / ".claimgateignore").write_text("*\n!kept.yaml\n")
    (folder / "a" / "kept.yaml").write_text((ROOT / BROKEN).read_text())
    assert shell(commit, cwd=folder).returncode == 0
    return folder, base


def audited_files(folder):
    (run,) = json.loads((folder / "claimgate.sarif").read_text())["runs"]
    return sorted({uri for each in run["results"] for uri in files_of_result(each)})


def files_of_result(result):
    places = (*result["locations"], *result.get("relatedLocations", ()))
    return {place["physicalLocation"]["artifactLocation"]["uri"] for place in places}


def test_a_pull_request_cannot_exempt_itself(pull_request, tmp_path):
    """The action uses the configuration of the base branch, and the log says this."""
    folder, base = pull_request
    done = audit_step(tmp_path, cwd=folder, paths="a", event=base)
    assert done.returncode == 1, done.stderr
    assert f"configuration: from the base branch, at {base}\n" in done.stdout
    assert audited_files(folder) == ["a/job.yaml", "a/kept.yaml"]
    assert "::notice title=left out by configuration::left out: 1 file by .claimgateignore\n" in done.stdout


@pytest.mark.parametrize(
    ("given", "said", "code", "files"),
    [
        pytest.param(
            {"event": "0123456789012345678901234567890123456789"},
            "configuration: none, because the checkout does not have 0123",
            1,
            ["a/job.yaml", "a/kept.yaml", "a/left-out.yaml"],
            id="a shallow checkout",
        ),
        pytest.param(
            {"event": ""}, "configuration: from the checkout, because this event has no base", 0, [], id="a push"
        ),
        pytest.param(
            {"configuration": "checkout"}, "configuration: from the checkout, as the input", 0, [], id="checkout"
        ),
        pytest.param(
            {"configuration": "none"},
            "configuration: none, as the input",
            1,
            ["a/job.yaml", "a/kept.yaml", "a/left-out.yaml"],
            id="none",
        ),
        pytest.param({"configuration": "mine"}, "", 2, [], id="another word"),
    ],
)
def test_the_action_says_which_configuration_applies(given, said, code, files, pull_request, tmp_path):
    folder, base = pull_request
    done = audit_step(tmp_path, cwd=folder, paths="a", **{"event": base, **given})
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr
    if code != 2:
        assert audited_files(folder) == files


def test_git_in_the_action_runs_no_program_of_the_checkout(pull_request, tmp_path):
    folder, base = pull_request
    hostile_folder_files.fill(folder, tmp_path / "mark")
    shutil.move(folder / ".git", folder / "git")
    for name in ("HEAD", "config", "objects", "refs"):  # a repository of plain files at the top of the checkout
        shutil.move(folder / "git" / name, folder / name)
    with (folder / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = touch {tmp_path}/mark\n\tsshCommand = touch {tmp_path}/mark\n")
    done = audit_step(tmp_path, cwd=folder, paths="a", event=base)
    assert "configuration: none, because the checkout does not have" in done.stdout
    assert not (tmp_path / "mark").exists()


def test_inputs_reach_the_shell_only_as_variables():
    """A script would run an input that is inserted into its text."""
    assert [name for name, step in STEPS.items() if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize(("file", "code"), [(BROKEN, 1), ("examples/research-team/cluster/namespace.yaml", 0)])
def test_the_hook_reports_only_files_of_the_commit(file, code):
    done = shell(f"{entry_of_hook('claimgate-audit')} {file}")
    assert done.returncode == code, done.stdout


def entry_of_hook(name, arguments=None):
    """Return the command of a hook. The `args` of a site replace the `args` of the hook, and pre-commit appends file
    names.
    """
    args = HOOKS[name].get("args", []) if arguments is None else arguments
    return shlex.join([*shlex.split(HOOKS[name]["entry"], comments=True), *args])


@pytest.mark.parametrize("file", ["--config=x.yaml", "--kubeconfig=.k.yaml", "-ojson=y.yaml"])
def test_the_hook_reads_no_file_name_as_an_option(file, tmp_path):
    (tmp_path / file).write_text("{}")
    done = shell(f"{entry_of_hook('claimgate-audit')} {file}", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == f"warning: {file}: no object was audited: 1 document without a Kubernetes object\n"
    done = shell(f"{entry_of_hook('claimgate-audit', ['--context=.'])} {file}", cwd=tmp_path)
    assert (done.returncode, "is an option and also the name of a file" in done.stderr) == (2, True)


def test_the_hook_for_policies_checks_them_and_runs_their_suites(tmp_path):
    entry = HOOKS["claimgate-policies"]["entry"]
    assert shell(f"{entry} examples/first-policy").returncode == 0
    broken = validating("object.spec.containers.size() == 'one'")
    (tmp_path / "policy.yaml").write_text("---\n".join(map(yamlfile.dump, broken)))
    done = shell(f"{entry} {tmp_path}")
    assert (done.returncode, "no matching overload" in done.stderr) == (2, True)  # no suite names the policy
    pattern = re.compile(HOOKS["claimgate-policies"]["files"])
    assert pattern.search("policies/team/suite.yaml")


def test_the_policy_hook_finds_a_wrong_policy_without_a_case(tmp_path):
    policy = quick_yaml.load((ROOT / "examples" / "first-policy" / "policy.yaml").read_text())
    shutil.copytree(ROOT / "examples" / "first-policy", tmp_path / "first policy")
    policy["metadata"]["name"] = "another"
    policy["spec"]["validations"] = [{"expression": "object.spec.containers.image == 'a'"}]
    (tmp_path / "first policy" / "another.yaml").write_text(yaml.safe_dump(policy))
    done = shell(entry_of_hook("claimgate-policies", ["first policy"]), cwd=tmp_path)
    assert done.returncode == 1
    assert "`object.spec.containers` is a list, which has no fields" in done.stdout


def gitlab_audit(folder, tools, **given):
    """Run the part of the GitLab job that audits, in the environment of the tests."""
    (tools / "claimgate").symlink_to(BIN.parent)
    return shell(GITLAB["script"][-1], cwd=folder, tools=str(tools), **{**GITLAB["variables"], **given})


def test_the_job_of_gitlab_writes_its_report(tmp_path):
    (folder := tmp_path / "checkout" / "my manifests").mkdir(parents=True)
    shutil.copy(ROOT / BROKEN, folder)
    done = gitlab_audit(tmp_path / "checkout", tmp_path, CLAIMGATE_PATHS="my manifests\n")
    assert done.returncode == 1, done.stderr
    report = json.loads((tmp_path / "checkout" / GITLAB["artifacts"]["reports"]["codequality"]).read_text())
    assert [each["check_name"] for each in report if each["check_name"] == "training-job/slots-for-ranks"]


def test_each_line_of_arguments_is_one_argument_without_a_shell(tmp_path):
    """A shell would run the argument. The baseline has a blank in its name."""
    (checkout := tmp_path / "checkout").mkdir()
    shutil.copy(ROOT / BROKEN, checkout / "job.yaml")
    known, touched = "known findings.json", f"$(touch {tmp_path / 'touched'})"
    written = subprocess.run(
        [BIN / "claimgate", "audit", "job.yaml", "--write-baseline", known], cwd=checkout, check=False
    )
    assert written.returncode == 0
    arguments = f"--baseline={known}\n\n--exclude={touched}\n"
    (tmp_path / "action").mkdir()
    (tmp_path / "gitlab").mkdir()
    sarif = str(tmp_path / "s")
    done = audit_step(tmp_path / "action", cwd=checkout, paths="job.yaml", arguments=arguments, sarif=sarif)
    assert done.returncode == 0, done.stdout + done.stderr
    done = gitlab_audit(checkout, tmp_path / "gitlab", CLAIMGATE_PATHS="job.yaml", CLAIMGATE_ARGUMENTS=arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "touched").exists()


def test_the_job_of_gitlab_installs_nothing_without_hashes(tmp_path):
    done = shell(GITLAB["script"][0], cwd=tmp_path, CLAIMGATE_LOCK="")
    assert (done.returncode, "CLAIMGATE_LOCK is not set" in done.stderr) == (2, True)
    assert [*tmp_path.iterdir()] == []


def test_the_plugin_of_kubectl_audits_what_kubectl_reads(tmp_path):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f'#!/bin/sh\n[ "$*" = "get -o yaml mpijobs -A" ] || exit 9\ncat {ROOT / BROKEN}\n')
    kubectl.chmod(0o755)
    plugin = ROOT / "deploy" / "kubectl" / "kubectl-claimgate"
    done = shell(f"{plugin} mpijobs -A", KUBECTL=str(kubectl))
    assert done.returncode == 1
    assert "training-job/slots-for-ranks" in done.stdout
    assert shell(f"{plugin} version").stdout.startswith("claimgate ")
    (tmp_path / "--kubeconfig=.k").write_text("")
    done = shell(f"{plugin} mpijobs *", cwd=tmp_path, KUBECTL=str(kubectl))
    assert (done.returncode, done.stderr[:6]) == (2, "error:")


def hostile_folder(tmp_path):
    """Return a checkout with files that leave a mark when they are run."""
    (folder := tmp_path / "checkout").mkdir()
    hostile_folder_files.fill(folder, tmp_path / "mark")
    shutil.copy(ROOT / BROKEN, folder)
    return folder, tmp_path / "mark"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("python -m venv x", id="the command that the action ran"),
        pytest.param("python -m pip --version", id="pip"),
        pytest.param("python -c 'import yaml'", id="an import"),
        pytest.param("python -m webhook version", id="claimgate as a module"),
        pytest.param(".claimgate/bin/pip", id="a program of a checkout"),
        pytest.param(f"env PYTHONPATH=. {BIN}/claimgate version", id="a module path"),
    ],
)
def test_files_of_the_folder_leave_a_mark(script, tmp_path):
    """Without the protection, the files leave a mark. This shows that the test above can fail."""
    folder, mark = hostile_folder(tmp_path)
    shell(script, cwd=folder)
    assert str(folder) in mark.read_text() or "./" in mark.read_text() or ".claimgate" in mark.read_text()


NO_NETWORK = {"PIP_NO_INDEX": "1", "PIP_RETRIES": "0"}


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(
            lambda folder, tools: shell(
                STEPS["Install claimgate"]["run"],
                cwd=folder,
                RUNNER_TEMP=str(tools),
                GITHUB_ACTION_PATH=str(ROOT),
                **NO_NETWORK,
            ),
            id="the installation of the action, until its first package",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda folder, tools: shell(
                GITLAB["script"][0], cwd=folder, CLAIMGATE_LOCK=str(ROOT / "requirements.lock"), **NO_NETWORK
            ),
            id="the installation of GitLab's job, until its first package",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda folder, tools: audit_step(tools, cwd=folder, sarif=str(tools / "s"), PYTHONPATH=str(folder)),
            id="the audit of the action",
        ),
        pytest.param(
            lambda folder, tools: gitlab_audit(folder, tools, PYTHONPATH=str(folder)), id="the audit of GitLab's job"
        ),
        pytest.param(
            lambda folder, tools: shell(f"{entry_of_hook('claimgate-audit')} mpijob-slots.yaml", cwd=folder),
            id="the hook for manifests",
        ),
        pytest.param(
            lambda folder, tools: shell(f"{entry_of_hook('claimgate-policies')} .", cwd=folder),
            id="the hook for policies",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda folder, tools: shell(
                f"{ROOT}/deploy/kubectl/kubectl-claimgate explain gpu-portable/all", cwd=folder
            ),
            id="the plug-in of kubectl",
        ),
        *(
            pytest.param(
                lambda folder, tools, line=line: shell(line, cwd=folder),
                id=line,
                marks=[] if line.startswith("claimgate audit") else pytest.mark.slow,
            )
            for line in (
                "claimgate audit . --jobs 2",
                "claimgate replay -- *.yaml",
                "claimgate simulate -- mpijob-slots.yaml",
                "claimgate test .",
                "claimgate policies check ../nothing || claimgate config show",
                "claimgate demo --dir ../demo",
            )
        ),
    ],
)
def test_no_program_of_an_audited_folder_is_started(run, tmp_path):
    folder, mark = hostile_folder(tmp_path)
    (tools := tmp_path / "tools").mkdir()
    done = run(folder, tools)
    assert done.returncode in (0, 1, 2), done.stderr
    assert not mark.exists(), mark.read_text()
    assert "Traceback" not in done.stderr


def test_no_page_tells_users_to_run_python_in_their_folder():
    """Without -I or -P, `python -m` imports from the current folder, so an audited folder would run its code."""
    pages = [ROOT / "README.md", ROOT / "action.yml", ROOT / ".pre-commit-hooks.yaml", *(ROOT / "deploy").rglob("*")]
    pages += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*")]
    told = re.compile(r"python[0-9.]* +(?:-(?!I|P)\w+ +)*-m +(?!tests\.)\S+")
    lines = [
        f"{page.relative_to(ROOT)}: {line.strip()}"
        for page in pages
        if page.is_file()
        for line in page.read_text(errors="replace").splitlines()
        if told.search(line) and page.parent.name != "servers"  # manifests may have these commands
    ]
    assert lines == []


def test_the_manual_is_up_to_date():
    assert man_page.PAGE.read_text() == man_page.page(), "the help changed: run make docs"
    assert verbs_page.PAGE.read_text() == verbs_page.page(), "the help changed: run make docs"


def test_kubectl_finds_the_plugin():
    """krew installs the plug-in as a file with this name in the PATH."""
    kubectl = shutil.which("kubectl", path=f"{os.environ['PATH']}{os.pathsep}/usr/local/kubebuilder/bin")
    if kubectl is None:
        pytest.skip("needs kubectl")
    path = f"{ROOT / 'deploy' / 'kubectl'}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}"
    assert shell(f"{kubectl} claimgate version", PATH=path).stdout.startswith("claimgate ")
    done = shell(f"{kubectl} claimgate explain gpu-portable/all", PATH=path)
    assert (done.returncode, "gpu-portable/all" in done.stdout) == (0, True)


def test_the_plugin_knows_every_verb():
    """kubectl reads an unknown verb as a resource."""
    text = (ROOT / "deploy" / "kubectl" / "kubectl-claimgate").read_text()
    (known,) = re.findall(r"^  ([a-z-]+(?:\|[a-z-]+)+)\) exec claimgate", text, re.MULTILINE)
    assert set(known.split("|")) == set(VERBS)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish", "powershell"])
def test_each_option_has_completion(name):
    done = shell(f"claimgate --show-completion {name}")
    assert done.returncode == 0
    assert "_CLAIMGATE_COMPLETE" in done.stdout


def test_completion_knows_verbs():
    done = shell("claimgate", COMP_WORDS="claimgate re", COMP_CWORD="1", _CLAIMGATE_COMPLETE="complete_bash")
    assert "replay" in done.stdout.split()


@pytest.mark.nightly
def test_the_action_installs_as_written(tmp_path):
    folder, mark = hostile_folder(tmp_path)
    done = shell(STEPS["Install claimgate"]["run"], cwd=folder, RUNNER_TEMP=str(tmp_path), GITHUB_ACTION_PATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert shell(f"{tmp_path}/claimgate/bin/claimgate version").stdout.startswith("claimgate ")
    assert not mark.exists()


@pytest.mark.nightly
def test_the_job_of_gitlab_installs_what_a_release_locks(tmp_path):
    folder, mark = hostile_folder(tmp_path)
    (dist := tmp_path / "dist").mkdir()
    assert shell(f"python -m pip wheel -q --no-deps --no-build-isolation --no-index -w {dist} .").returncode == 0
    (wheel,) = dist.glob("*.whl")
    lock = dist / "claimgate.lock"
    lock.write_text(release.lock_of_release(wheel).replace("./", f"file://{dist}/", 1))
    script = "\n".join(GITLAB["script"])
    variables = {**GITLAB["variables"], "CLAIMGATE_LOCK": str(lock)}
    done = shell(script, cwd=folder, **variables)
    assert done.returncode == 1, done.stderr
    assert "training-job/slots-for-ranks" in done.stdout
    assert not mark.exists()
    lock.write_text(lock.read_text().replace("--hash=sha256:", "--hash=sha256:0", 1))
    assert shell(script, cwd=folder, **variables).returncode != 0


@pytest.mark.nightly
def test_a_wheel_that_pipx_installs_works_alone(tmp_path):
    """The wheel is installed into an empty root, and used without the repository."""
    if shutil.which("pipx", path=f"{BIN}{os.pathsep}{os.environ['PATH']}") is None:
        pytest.skip("needs pipx 1.3 or newer")
    assert shell(f"python -m pip wheel -q --no-deps --no-build-isolation --no-index -w {tmp_path} .").returncode == 0
    (wheel,) = tmp_path.glob("*.whl")
    root = {"PIPX_HOME": f"{tmp_path}/pipx", "PIPX_BIN_DIR": f"{tmp_path}/bin"}
    assert shell(f"pipx install '{wheel}[serve]'", cwd=tmp_path, **root).returncode == 0
    claimgate = f"{tmp_path}/bin/claimgate"
    assert (tmp_path / "pipx" / "venvs" / "claimgate" / "share" / "man" / "man1" / "claimgate.1").is_file()
    assert shell(f"{claimgate} demo", cwd=tmp_path).returncode == 0
    assert shell(f"{claimgate} explain gpu-portable/all", cwd=tmp_path).returncode == 0
    assert shell(f"{claimgate} audit {ROOT / BROKEN}", cwd=tmp_path).returncode == 1
    with subprocess.Popen([claimgate, "ui", "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            with urllib.request.urlopen(f"{address}/page/editor.js") as answer:
                assert answer.status == 200
        finally:
            server.terminate()


@pytest.mark.slow
def test_the_command_line_starts_without_posix(tmp_path):
    """Windows has no fork, and no modules of POSIX."""
    code = (
        "import os, sys\n"
        "for name in ('resource', 'fcntl', 'pwd', 'grp', 'termios', 'uvloop'): sys.modules[name] = None\n"
        "for name in ('fork', 'register_at_fork'): delattr(os, name)\n"
        "from webhook.cli import run_command_line\n"
        "sys.exit(run_command_line(sys.argv[1:]))"
    )

    def start(*arguments):
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert start("audit", BROKEN).returncode == 1
    assert start("replay", BROKEN).returncode in (0, 1)
    assert start("test", "examples/first-policy").returncode == 0
    assert start("explain", "gpu-portable/all").returncode == 0
    assert start("policies", "check", "examples/first-policy").returncode == 0
    done = start("ui")
    assert (done.returncode, done.stderr) == (
        2,
        "error: ui: this system cannot fork, so no evaluation would be bounded: use Linux or macOS\n",
    )
    done = start("serve", "--tls-cert", "a", "--tls-key", "b")
    told = "this needs the module fcntl, which Windows does not have: use WSL or the container image"
    assert (done.returncode, told in done.stderr) == (2, True), "add the module to _POSIX_MODULES in webhook/cli.py"
    assert "Traceback" not in done.stderr
    done = start("audit", "examples", "--jobs", "2")
    told = "error: --jobs: this system cannot fork: use --jobs 1, Linux, macOS or WSL\n"
    assert (done.returncode, done.stderr) == (2, told)
