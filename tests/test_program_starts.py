"""docs/untrusted-files.md lists every place that starts a process, and what limits it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "untrusted-files.md"
HEADING = "## Every place that starts a process"
MODULES = {"subprocess", "multiprocessing", "pty", "webbrowser", "runpy"}
OF_OS = re.compile(r"(exec|spawn|posix_spawn)\w*|fork|forkpty|system|popen|startfile")
ANYWHERE = re.compile(
    r"create_subprocess_\w+|subprocess_\w+|ProcessPoolExecutor|load_kube_config|new_client_from_config"
)


def starts_in_tree(tree):
    inside, names = {}, {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            inside[child] = node.name if is_function else inside.get(node, "module")
        if isinstance(node, ast.Import):
            names |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_start(ast.unparse(node.func), names):
            yield inside[node]


def is_start(called, names):
    first, _, rest = called.partition(".")
    package, _, name = ".".join(filter(None, (names.get(first, first), rest))).partition(".")
    if package == "ray":
        return name == "init"
    is_of_os = package in ("os", "posix") and OF_OS.fullmatch(name) is not None
    return bool(name and package in MODULES) or is_of_os or ANYWHERE.fullmatch(called.rpartition(".")[2]) is not None


NAMED_BY_A_START = re.compile(rf"\b(os|posix|ray|{'|'.join(sorted(MODULES))})\b|{ANYWHERE.pattern}")
"""A module that starts a process imports one of these packages, or has one of these names."""


@cache
def starts_of_program():
    return {
        (path.relative_to(ROOT).as_posix(), function)
        for folder in ("webhook", "certs", "claimgate", "deploy")
        for path in (ROOT / folder).rglob("*.py")
        if NAMED_BY_A_START.search(text := path.read_text(encoding="utf-8"))
        for function in starts_in_tree(ast.parse(text))
    }


def starts_of_page():
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)
    return {(module, function) for module, named in rows for function in re.findall(r"`([^`]+)`", named)}


def test_the_page_lists_every_place_that_starts_a_process():
    lacking = sorted(starts_of_program() - starts_of_page())
    assert not lacking, (
        f"start these by webhook/commands/external_programs.py, or say in {PAGE.name} what they start: {lacking}"
    )


def test_the_page_lists_no_other_place():
    assert sorted(starts_of_page() - starts_of_program()) == []


def test_the_page_names_every_script_of_deploy():
    scripts = [
        each
        for each in (ROOT / "deploy").rglob("*")
        if each.is_file() and each.suffix != ".py" and each.read_bytes()[:2] == b"#!"
    ]
    assert scripts
    text = PAGE.read_text(encoding="utf-8")
    assert [name for each in scripts if (name := each.relative_to(ROOT).as_posix()) not in text] == []


@pytest.mark.parametrize(
    ("text", "is_seen"),
    [
        ("subprocess.run(x)", True),
        ("subprocess.Popen(x)", True),
        ("from subprocess import Popen as P\nP(x)", True),
        ("import subprocess as s\ns.check_output(x)", True),
        ("os.execv(x)", True),
        ("os.fork()", True),
        ("from os import posix_spawn\nposix_spawn(x)", True),
        ("os.spawnlp(x)", True),
        ("os.system(x)", True),
        ("os.popen(x)", True),
        ("pty.spawn(x)", True),
        ("multiprocessing.Process(x)", True),
        ("ProcessPoolExecutor(1)", True),
        ("concurrent.futures.ProcessPoolExecutor(1)", True),
        ("asyncio.create_subprocess_exec(x)", True),
        ("loop.subprocess_shell(x)", True),
        ("webbrowser.open(x)", True),
        ("config.load_kube_config(x)", True),
        ("ray.init()", True),
        ("os.path.join(x)", False),
        ("ray.get(x)", False),
        ("copy.copy(x)", False),
    ],
)
def test_the_collector_sees_each_way_to_start_a_process(text, is_seen):
    assert bool(NAMED_BY_A_START.search(text) and [*starts_in_tree(ast.parse(text))]) is is_seen
