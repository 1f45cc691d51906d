"""Recognizes policies of Kyverno, Gatekeeper and Kubewarden by their groups, and makes a note for their users.

The module does not know which policies can be converted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.text.wording import counted

_GROUPS: Final = {
    "kyverno.io": "Kyverno",
    "policies.kyverno.io": "Kyverno",
    "constraints.gatekeeper.sh": "Gatekeeper",
    "mutations.gatekeeper.sh": "Gatekeeper",
    "templates.gatekeeper.sh": "Gatekeeper",
    "policies.kubewarden.io": "Kubewarden",
}
COMMAND: Final = "claimgate policies convert"


def project_of_policy(value: JSON) -> str:
    """Return the project of a policy; "" for other objects."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return ""
    return _GROUPS.get(str(value.get("apiVersion", "")).rpartition("/")[0], "")


def describe_foreign_policies(values: Iterable[JSON]) -> str:
    """Return a sentence with the number of policies of these projects, and the command that converts them, or ""."""
    counts = Counter((project, str(value["kind"])) for value in values if (project := project_of_policy(value)))
    if not counts:
        return ""
    counted_kinds = ", ".join(
        f"{counted(count, kind, _plural(kind))} of {project}" for (project, kind), count in sorted(counts.items())
    )
    return f"found {counted_kinds}, which claimgate does not evaluate: `{COMMAND}` prints native policies"


def _plural(kind: str) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("y") else ""
