"""Finds misspelled kinds and wrong groups, which no policy for the right kind matches.

The API server refuses such objects: `no matches for kind "deployment" in version "apps/v1"`. Files of other programs,
such as a kubeconfig, also have a kind and an apiVersion. These kinds are not mistakes.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.cluster.known_kinds import COMPLETE_GROUPS, KNOWN_KINDS
from webhook.text.similar_names import nearest_name
from webhook.workloads.table import Table

_VERSION: Final = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
"""Matches versions: k8s.io/apimachinery v0.36 pkg/version/helpers.go kubeVersionRegex."""
_CORE: Final = "v1"
"""The only version of the core group; files of programs such as Talos have `v1alpha1`."""
_OF_PROGRAMS: Final = frozenset(("Config", "EncryptionConfig", "Policy"))
"""Kinds of `v1` for programs: kubectl, and formerly kube-apiserver and kube-scheduler."""


def kind_mistake(value: JSON, table: Table) -> str:
    """Return the mistake in the kind of an object, or ""."""
    kind, version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(version, str) or not kind:
        return ""
    group = version.rpartition("/")[0]
    if (group, kind) in KNOWN_KINDS or table.row(group, kind):
        return ""
    known = KNOWN_KINDS | {(row.group, row.kind) for row in table.rows}
    own = [name for where, name in known if where == group]
    is_core = not group and version == _CORE
    if not own:
        return ""
    refused = f"`{kind}` is not a kind of `{version}`, so the API server refuses the object"
    sure = [name for name in own if group in COMPLETE_GROUPS or table.row(group, name)]
    same = next((name for name in own if name.lower() == kind.lower()), "") or nearest_name(kind, sure)
    if same and (group or is_core):
        return f"{refused}: write `{same}`"
    groups = sorted(where for where, name in known if name == kind and where not in ("", "extensions"))
    if group not in COMPLETE_GROUPS:
        return ""
    if groups:
        return f"{refused}: group `{'` or `'.join(groups)}` has that kind"
    is_foreign = not _VERSION.fullmatch(version.rpartition("/")[2]) or (
        not group and (not is_core or kind in _OF_PROGRAMS)
    )
    return "" if is_foreign else refused
