"""The third-party file matches its table, and the page loads nothing from other hosts."""

import base64
import hashlib
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "webhook" / "playground" / "page"
TABLE = (PAGE / "THIRD_PARTY.md").read_text()


def test_the_file_has_the_checksum_of_the_table():
    digest = base64.b64encode(hashlib.sha512((PAGE / "editor.js").read_bytes()).digest()).decode()
    assert f"| editor.js | `sha512-{digest}` |" in TABLE


def test_every_package_has_version_licence_and_checksum():
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (\S+) \| `sha512-(\S+)` \|$", TABLE, re.MULTILINE)
    assert len(rows) == 17
    assert {licence for _, _, licence, _ in rows} == {"MIT"}
    assert all(len(base64.b64decode(digest)) == 64 for *_, digest in rows)
    assert "Copyright" in TABLE


def test_the_page_loads_nothing_from_elsewhere():
    for path in PAGE.glob("*.*"):
        if path.name != "THIRD_PARTY.md":
            addresses = set(re.findall(r"https?://[\w./-]+", path.read_text()))
            assert addresses <= {"http://www.w3.org/2000/svg"}, path


def test_the_page_writes_no_markup():
    """A name with any content is text."""
    for name in ("playground.js", "result.js"):
        text = (PAGE / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)
