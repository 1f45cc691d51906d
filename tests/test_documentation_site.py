"""The site of the documentation: every page can be reached, and links read as titles."""

import re
import tomllib

from tests import documentation_site
from tests.documentation_site import DOCS, ROOT

NAVIGATION = set(re.findall(r'"(\S+\.md)"', (ROOT / "zensical.toml").read_text()))


def test_every_page_of_docs_is_in_the_navigation():
    assert {path.name for path in DOCS.glob("*.md")} == {name for name in NAVIGATION if "/" not in name}
    assert tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["extra_javascript"] == ["site.js"]


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
