"""What is known is known in one place: a table or a pattern that stands twice will disagree one day."""

import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "webhook"
HOMES = {
    "names that Kubernetes accepts": (r"\[-a-z0-9\]\*", {"names.py"}),
    "what a list of the API is": (r"[(]\"List\"[)]", {"object_lists.py"}),
    "releases of Trainer": (r"Final\[Release\] = \(2,", {"facts/trainer/releases.py"}),
    "kinds without a namespace": (r"VolumeAttributesClass", {"cluster/cluster_scoped.py"}),
}


@pytest.mark.parametrize(("pattern", "homes"), HOMES.values(), ids=HOMES)
def test_what_is_known_has_one_home(pattern, homes):
    modules = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert {name for name, text in modules.items() if re.search(pattern, text)} == homes
