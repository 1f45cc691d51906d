"""docs/untrusted-files.md lists every place where the program opens a file, and what limits the reading."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "untrusted-files.md"
OPENERS = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "GzipFile", "ZipFile", "TarFile"}
READERS = {
    "fsspec",
    "gzip",
    "lzma",
    "bz2",
    "tarfile",
    "zipfile",
    "shelve",
    "dbm",
    "sqlite3",
    "mmap",
    "linecache",
    "fileinput",
}
CERTIFICATES = {"load_cert_chain", "load_verify_locations", "load_kube_config", "load_incluster_config", "copyfile"}


def opens_in_tree(tree):
    inside = {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            inside[child] = node.name if is_function else inside.get(node, "module")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            of = called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""
            if name in OPENERS | CERTIFICATES or of in READERS:
                yield inside[node], name


NAMED_BY_AN_OPEN = re.compile(rf"\b({'|'.join(sorted(OPENERS | READERS | CERTIFICATES))})\b")
"""A module without one of these words opens no file."""


@cache
def opens_of_program():
    return {
        (path.relative_to(ROOT).as_posix().removeprefix("webhook/"), function)
        for folder in ("webhook", "certs", "claimgate")
        for path in (ROOT / folder).rglob("*.py")
        if NAMED_BY_AN_OPEN.search(text := path.read_text(encoding="utf-8"))
        for function, _ in opens_in_tree(ast.parse(text))
    }


def opens_of_page():
    section = PAGE.read_text(encoding="utf-8").partition("## Every place that opens a file")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)
    return {(module, function) for module, named in rows for function in re.findall(r"`([^`]+)`", named)}


def test_the_page_lists_every_place_that_opens_a_file():
    lacking = sorted(opens_of_program() - opens_of_page())
    assert not lacking, (
        f"say in {PAGE.name} what these open and who bounds it, or open by webhook/yamltext/input_files.py: {lacking}"
    )


def test_the_page_lists_no_other_place():
    assert sorted(opens_of_page() - opens_of_program()) == []


def test_the_collector_sees_each_way_to_open_a_file():
    text = """
def a(): open("x")
def b(): Path("x").open()
def c(): x.read_text()
def d(): os.open("x", 0)
def e(): gzip.open("x")
def f(): zipfile.ZipFile("x")
def g(): Path("x").read_bytes()
async def h(): os.fdopen(1)
def i(): tarfile.open("x")
def j(): harmless("x")
"""
    assert [function for function, _ in opens_in_tree(ast.parse(text))] == list("abcdefghi")
