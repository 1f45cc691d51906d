"""The documentation site: the navigation has every page, links lead to headings, and their texts are titles."""

import re
import tomllib
from functools import cache

from tests import documentation_site
from tests.documentation_site import DOCS, ROOT
from tests.page_blocks import PAGES

ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
CODE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
NAVIGATION = set(re.findall(r'"(\S+\.md)"', (ROOT / "zensical.toml").read_text()))


def test_every_page_of_docs_is_in_the_navigation():
    assert {path.name for path in DOCS.glob("*.md")} == {name for name in NAVIGATION if "/" not in name}
    assert tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["extra_javascript"] == ["site.js"]


def test_every_link_to_a_part_of_a_page_leads_to_a_heading():
    """The strict build also checks this, but only in `make nightly`."""
    anchors = cache(lambda page: anchors_of_headings(page.read_text()))
    lost = []
    for page in (*PAGES, *sorted((DOCS / "rules").glob("*.md"))):
        for target, anchor in ANCHOR.findall(CODE.sub("", page.read_text())):
            file = (page.parent / target).resolve() if target else page
            if file.suffix == ".md" and anchor not in anchors(file):
                lost.append((page.relative_to(ROOT).as_posix(), f"{target}#{anchor}"))
    assert lost == []


def anchors_of_headings(text):
    heads = re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head).lower()).replace(" ", "-") for head in heads
    }


def test_every_row_of_a_table_is_one_line():
    wrapped = [
        f"{page.relative_to(ROOT)}: {row}: write the row on one line"
        for page in (*PAGES, *sorted((ROOT / "tests" / "data").rglob("*.md")))
        for row in re.findall(r"^\|.*$", CODE.sub("", page.read_text()), re.MULTILINE)
        if not row.endswith("|")
    ]
    assert wrapped == []


def test_every_decision_is_listed_by_its_number_and_title():
    listed = (DOCS / "decisions" / "README.md").read_text()
    for page in sorted((DOCS / "decisions").glob("0*.md")):
        title = page.read_text().split("\n", 1)[0].removeprefix("# ")
        number, words = title.split(". ", 1)
        assert int(number) == int(page.name[:4])
        assert f"| {number} | [{words}]({page.name})" in listed


def test_a_link_that_names_a_file_reads_as_the_title_of_its_page(tmp_path, monkeypatch):
    monkeypatch.setattr(documentation_site, "PAGES", tmp_path)
    documentation_site.stage()
    assert "| [Tutorial: your first policies](tutorial.md) |" in (tmp_path / "index.md").read_text()


def test_a_bar_in_code_of_a_table_has_no_backslash_on_the_site():
    text = "| `a\\|b` | one \\| two |\nplain `a\\|b`\n"
    assert documentation_site._without_escaped_bars(text) == "| `a|b` | one \\| two |\nplain `a\\|b`\n"
