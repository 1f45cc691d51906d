"""StorageClasses of claims that wait for a volume.

https://kubernetes.io/docs/concepts/storage/storage-classes/
"""

from __future__ import annotations

from typing import Final

from webhook.facts.storage.groups import STORAGE
from webhook.facts.storage.types import StorageClass
from webhook.facts.view import ClusterView
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

CLASS_EXISTS: Final = STORAGE.rule(
    "storage/class-exists",
    title="The StorageClasses of claims that wait for a volume exist.",
    why="Nobody makes a volume of a class that does not exist, so the pods stay Pending.",
    source="https://kubernetes.io/docs/concepts/storage/storage-classes/",
)


def missing_storage_class_problem(
    who: str, wanted: str, path: FieldPath, view: ClusterView, *, is_created: bool = False
) -> Problem:
    """Return the problem of a StorageClass that does not exist; of a claim that is created already, the class cannot be
    changed.
    """
    near = view.nearest(wanted, (known.name for known in view.list_visible(StorageClass)))
    message = f"{who} asks for StorageClass `{wanted}`, which does not exist, so no volume is created for it"
    fix = f"write `{near}` if that is meant" if near else "name a StorageClass that exists"
    if is_created:
        fix = f"create the claim again with {f'StorageClass `{near}`' if near else 'a StorageClass that exists'}"
    return CLASS_EXISTS.problem(path, message, fix)


def is_storage_class_absent(name: str, view: ClusterView) -> bool:
    """Return whether the view of a whole cluster has no class of this name."""
    if not name or is_placeholder(name) or view.find(StorageClass, name, namespaced=False):
        return False
    return view.is_whole(StorageClass.gvk)
