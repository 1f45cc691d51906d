"""Finds misspelled kinds, and groups and versions that do not exist. No policy for the right kind matches such objects.

The API server refuses such objects: `no matches for kind "deployment" in version "apps/v1"`. Files of other programs,
such as a kubeconfig, also have a kind and an apiVersion. These kinds are not mistakes. A kind that is not similar to a
known one is of another program if the file has no metadata, because an object needs a name, or if its metadata has
fields that no object has.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from webhook.apimachinery.attributes import JSON
from webhook.cluster.known_kinds import COMPLETE_GROUPS, KNOWN_KINDS
from webhook.text.similar_names import nearest_name
from webhook.workloads.rows import Row
from webhook.workloads.table import Table
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_name

_VERSION: Final = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
"""Matches versions: k8s.io/apimachinery v0.36 pkg/version/helpers.go kubeVersionRegex."""
_NUMBER: Final = re.compile(r"v([0-9]{1,4})")
_LABEL: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
"""Matches what an API server accepts as the name of a version (DNS-1035)."""
_CORE: Final = "v1"
"""The only version of the core group; files of programs such as Talos have `v1alpha1`."""
_OF_PROGRAMS: Final = frozenset(("Config", "EncryptionConfig", "Policy"))
"""Kinds of `v1` for programs: kubectl, and formerly kube-apiserver and kube-scheduler."""


_OF_THE_API: Final = frozenset(
    (
        *("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "PodStatusResult", "RangeAllocation"),
        *("SerializedReference", "Status"),
    )
)
"""Kinds of `v1` that are answers or data of the API server, not objects (k8s.io/apimachinery v0.36 pkg/apis/meta/v1,
k8s.io/api core/v1). Files with such answers are data of tests or programs.
"""
_OF_REQUESTS: Final = frozenset(
    (*("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"),)
)
"""Kinds that every version of a group has for its requests (metav1.AddToGroupVersion)."""
_FORMERLY: Final = frozenset(
    (
        *(("apps", version, kind) for version in ("v1beta1", "v1beta2") for kind in ("DeploymentRollback", "Scale")),
        ("batch", "v2alpha1", "ScheduledJob"),
        ("networking.k8s.io", "v1alpha1", "ClusterCIDR"),
    )
)
"""Kinds, with group and version, that former releases of Kubernetes served."""
_LIST: Final = "List"
_OF_OPENSHIFT: Final = frozenset(
    (
        *("Build", "BuildConfig", "DeploymentConfig", "Group", "Image", "ImageStream", "ImageStreamTag", "OAuthClient"),
        *("Project", "ProjectRequest", "Route", "SecurityContextConstraints", "Template", "User"),
    )
)
"""Kinds that OpenShift 3 served in `v1`. `oc` still reads them (openshift/api legacyschema)."""
_METADATA: Final = frozenset(
    (
        *("annotations", "clusterName", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp"),
        *("finalizers", "generateName", "generation", "labels", "managedFields", "name", "namespace"),
        *("ownerReferences", "resourceVersion", "selfLink", "uid"),
    )
)
"""The fields of metadata, with those that earlier releases had (k8s.io/apimachinery v0.36 pkg/apis/meta/v1)."""


class KindMistake(NamedTuple):
    """A kind that its group does not have, or a version that its kind cannot have. `field` is the wrong field."""

    message: str
    fix: str
    field: str = "kind"

    @property
    def text(self) -> str:
        """Return the mistake and its fix as one sentence."""
        return f"{self.message}: {self.fix}"


def _version_mistake(version: str, row: Row) -> KindMistake | None:
    """Return the mistake in the version of a known kind, or None.

    The table may lack the newest version of a kind. So a version is a mistake only if no API server accepts it, or if
    it skips a whole number.
    """
    name = version.rpartition("/")[2]
    numbers = [int(match[1]) for each in (name, *row.versions) if (match := _NUMBER.match(each))]
    is_label = _LABEL.fullmatch(name) is not None
    is_skipping = len(numbers) > 1 and _VERSION.fullmatch(name) is not None and numbers[0] > max(numbers[1:]) + 1
    if is_placeholder_for_name(name) or (is_label and not is_skipping):
        return None
    refused = f"`{version}` is not a version of `{row.kind}`, so the API server refuses the object"
    return KindMistake(refused, f"write `{row.group}/{row.versions[0]}`", "apiVersion")


def kind_mistake(value: JSON, table: Table) -> KindMistake | None:
    """Return the mistake in the kind or the version of an object, or None."""
    kind, version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(version, str) or not kind or is_placeholder(kind):
        return None
    group = version.rpartition("/")[0]
    row = table.row(group, kind)
    if row is not None and group:
        return _version_mistake(version, row)
    if row is not None or (group, kind) in KNOWN_KINDS:
        return None
    if not group and (of_group := table.row(version, kind)) is not None:
        refused = f"`{version}` is a group without a version, so the API server refuses the object"
        return KindMistake(refused, f"write `{of_group.group}/{of_group.versions[0]}`", "apiVersion")
    known = KNOWN_KINDS | {(row.group, row.kind) for row in table.rows}
    kinds_of_group = [name for where, name in known if where == group]
    is_core = not group and version == _CORE
    if not kinds_of_group or (is_core and kind in _OF_OPENSHIFT) or kind.removesuffix(_LIST) in kinds_of_group:
        return None
    is_former = (group, version.rpartition("/")[2], kind) in _FORMERLY
    if is_former or kind in _OF_REQUESTS or (is_core and kind in _OF_THE_API):
        return None
    refused = f"`{kind}` is not a kind of `{version}`, so the API server refuses the object"
    sure = [name for name in kinds_of_group if group in COMPLETE_GROUPS or table.row(group, name)]
    same = next((name for name in kinds_of_group if name.lower() == kind.lower()), "") or nearest_name(kind, sure)
    if same and (group or is_core):
        return KindMistake(refused, f"write `{same}`")
    groups = sorted(where for where, name in known if name == kind and where not in ("", "extensions"))
    if group not in COMPLETE_GROUPS:
        return None
    if groups:
        return KindMistake(refused, f"group `{'` or `'.join(groups)}` has that kind")
    if ("", kind) in known:
        return KindMistake(refused, f"write `apiVersion: {_CORE}`")
    is_foreign = not _VERSION.fullmatch(version.rpartition("/")[2]) or (
        not group and (not is_core or kind in _OF_PROGRAMS)
    )
    if is_foreign or not _is_metadata_of_object(value.get("metadata")):
        return None
    return KindMistake(refused, "write the apiVersion that has this kind")


def _is_metadata_of_object(metadata: JSON) -> bool:
    """Return whether metadata may be an object's. Metadata with other fields, such as `owner`, is of another program;
    misspelt fields are not.
    """
    if not isinstance(metadata, dict):
        return False
    return all(name in _METADATA or nearest_name(name, _METADATA) for name in metadata)
