"""Finds the objects in audited files that policies look up. Other objects are not decoded.

A first walk searches each text for the kinds that policies look up, and decodes only documents that may have such a
kind. Memory grows only with the objects of these kinds. Long or frequent kinds are decoded only if needed:

- A CustomResourceDefinition, if it may serve a version that current releases no longer serve.
- Charts and most Deployments, if they may state the release of a controller.
- Deployments of controllers that facts read, such as Cluster Autoscaler.
- Deployments and StatefulSets that name a device, or that are in a file with a Service for a named port. The index
  keeps only the fields that rules compare with budgets, autoscalers and Services.
- Objects of any kind with pods of a gang. Rules count the pods of a gang.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission import fixtures
from webhook.apimachinery.attributes import CRD, JSON
from webhook.cluster import kustomizations
from webhook.cluster.controllers import find_releases_in_document, may_state_release
from webhook.cluster.file_tree import GATOR_SUITE, KYVERNO_TEST
from webhook.cluster.naming import NAMELESS, group_kind
from webhook.cluster.packed import projection_of_fields
from webhook.facts.removed_versions import read_removed_versions
from webhook.input import document_stream
from webhook.input.document_stream import SourcePart
from webhook.typed.cluster_objects import Deployment
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import InputFile

KFCTL: Final = ("kfdef.apps.kubeflow.org", "KfDef")
"""The kind of a configuration of kfctl."""
_APPLYING: Final = (
    *(kustomizations.FLUX, kustomizations.ARGO, kustomizations.ARGO_SET, kustomizations.POLICY_GENERATOR),
    *(KFCTL, KYVERNO_TEST, GATOR_SUITE),
)
"""Kinds that say how folders are applied, or which files are never applied."""
_FREQUENT: Final = frozenset((("apps", "Deployment"), ("apps", "StatefulSet")))
"""Kinds with thousands of objects in some trees of files. The index keeps only a few fields of these objects."""
_KEPT: Final = projection_of_fields(
    frozenset(
        (
            "spec.replicas",
            "spec.template.metadata.labels",
            *(f"spec.template.spec.{name}" for name in ("nodeSelector", "affinity", "tolerations", "runtimeClassName")),
            *(f"spec.template.spec.{name}" for name in ("resourceClaims", "resources", "overhead")),
            *(
                f"spec.template.spec.{name}.{field}"
                for name in ("containers", "initContainers")
                for field in ("name", "resources", "restartPolicy", "ports")
            ),
        )
    )
)
_CONTROLLER: Final = re.compile(
    "cluster-autoscaler|gpu-operator|karpenter/controller|kuberay/operator|projecthami/hami"
)
"""Matches the image of a controller. Facts read the controller's release, arguments or presence (nodes, ray)."""
_IS_SCALED: Final = re.compile(r"""kind["']?\s*:\s*["']?(?:Deployment|StatefulSet)\b""")
_DEVICE: Final = re.compile("gpu|tpu|neuron|gaudi|[Aa]scend|mlu|dcu|gcu|xpu|iluvatar|vastai|claims")
"""Matches the name of a device, or `claims` of a container."""
_NAMED_PORT: Final = re.compile(r"""targetPort["']?\s*:\s*["']?[A-Za-z]""")
"""Matches the named port of a Service. Some pods that the Service selects may lack this port."""
_GANG: Final = re.compile(r"scheduling\.k8s\.io/group-name|kueue\.x-k8s\.io/pod-group-name")
"""Matches the annotation and the label by which pods name their gang, of Volcano and of Kueue."""
_HIDDEN: Final = re.compile(r"""\\(?:x|u00|U000000)6[bBeE49]|\?\s+["']?kind""")
"""Matches `kind` as an explicit key (`? kind`) or with a letter as an escape, which the other patterns miss."""


class AuditIndex(Struct):
    """The objects of the kinds that policies look up, with their files.

    Args:
        objects: each object with its file, in the order of the files. Kustomizations are included.
        files: the files with objects. Files with only recorded reviews are left out.
        is_complete: whether all decoded texts could be read.
    """

    objects: list[tuple[str, JSON]] = field(default_factory=list)
    files: dict[str, None] = field(default_factory=dict)
    is_complete: bool = True

    def add(self, other: AuditIndex) -> None:
        """Add the index of a later part of the input."""
        self.objects += other.objects
        self.files.update(other.files)
        self.is_complete &= other.is_complete

    def files_of_kind(self, kind: tuple[str, str]) -> Iterator[str]:
        """Yield the file of each object of a group and kind."""
        return (file for file, each in self.objects if _group_kind_or_empty(each) == kind)


class Indexer(Struct, frozen=True):
    """Finds the objects that policies look up in parts of files. Can be sent to another process.

    Args:
        kinds: the groups and kinds that policies look up.
        is_whole: whether the files have all objects of the cluster. If so, all files are decoded, because an
            unreadable file may hide an object.
    """

    kinds: frozenset[tuple[str, str]]
    is_whole: bool

    def index_parts(self, parts: Iterable[SourcePart]) -> AuditIndex:
        looks = _pattern_for_kinds({kind for _, kind in (*self.kinds, *_APPLYING)})
        groups = frozenset(group for group, _, _ in read_removed_versions())
        kinds = self.kinds | {(CRD.group, CRD.kind), *_APPLYING}
        looked_up = AuditIndex()
        for part in parts:
            text = part.part.text
            is_kustomization = posixpath.basename(part.source) in kustomizations.FILES
            has_definition = CRD.kind in text and any(group in text for group in groups)
            is_read = self.is_whole or is_kustomization or has_definition or may_state_release(text)
            has_named_port = _NAMED_PORT.search(text) is not None
            has_gang = _GANG.search(text) is not None
            some = text if is_read else _documents_that_may_match(text, looks, with_workloads=has_named_port)
            if some != text:
                looked_up.files[yamlfile.shown(part.source)] = None
            if not some and part.problem is None:
                continue
            read = document_stream.read_documents_of_part(replace(part, part=replace(part.part, text=some)))
            looked_up.is_complete &= not read.problems and not read.templates
            for each in read.documents:
                if not fixtures.is_review_or_request(each.value):
                    looked_up.files[each.source] = None
                    kind = _group_kind_or_empty(each.value)
                    is_looked_up = is_kustomization or kind in kinds
                    is_looked_up |= kind in _FREQUENT and _runs_controller(each.value, text)
                    is_looked_up |= has_gang and _GANG.search(json.dumps(each.value, default=str)) is not None
                    looked_up.objects += _documents_of_patches(part.file, each.value) if is_kustomization else ()
                    if is_looked_up or next(find_releases_in_document(each.source, each.value), None) is not None:
                        looked_up.objects.append((each.source, each.value))
                    elif kind in _FREQUENT and (has_named_port or _DEVICE.search(text)):
                        looked_up.objects.append((each.source, _KEPT(each.value)))
        return looked_up


def _runs_controller(deployment: JSON, text: str) -> bool:
    """Return whether a Deployment of a text runs a controller."""
    if _CONTROLLER.search(text) is None:
        return False
    containers = Deployment.of(deployment).spec.template.spec.containers
    return any(_CONTROLLER.search(container.image) for container in containers)


def _documents_of_patches(file: InputFile, kustomization: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield the patches that a kustomization lists, if a folder with the kustomization is audited.

    A patch may set a field that an audited object lacks.
    """
    read = kustomizations.read_kustomization(file.name, kustomization)
    if read is not None and not file.is_named and "://" not in file.name:
        for path in read.patches:
            for document in yamlfile.read_parts(InputFile(path, file.root)).documents:
                yield path, document.value


def indexer_of(looked_up: frozenset[tuple[str, str]], *, is_whole: bool) -> Indexer:
    """Return the indexer for the kinds that policies look up."""
    return Indexer(looked_up - _FREQUENT | NAMELESS, is_whole)


def _documents_that_may_match(text: str, looks: re.Pattern[str], *, with_workloads: bool) -> str:
    """Return the documents that may have an object to keep. Return the whole text if only a parser can separate
    documents. `with_workloads` also keeps each Deployment and StatefulSet.
    """
    if not _may_have_object(text, looks, with_workloads=with_workloads):
        return ""
    documents = yamlfile.documents_of(text)
    some = (each for each in documents if _may_have_object(each, looks, with_workloads=with_workloads))
    return "".join(some) if documents else text


def _may_have_object(text: str, looks: re.Pattern[str], *, with_workloads: bool) -> bool:
    return (
        "operation" in text
        or looks.search(text) is not None
        or _GANG.search(text) is not None
        or (
            (with_workloads or (_DEVICE.search(text) or _CONTROLLER.search(text)) is not None)
            and _IS_SCALED.search(text) is not None
        )
        or (("\\" in text or "? " in text) and _HIDDEN.search(text) is not None)
    )


def _group_kind_or_empty(value: JSON) -> tuple[str, str]:
    return group_kind(value) if isinstance(value, dict) else ("", "")


def _pattern_for_kinds(kinds: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for objects of these kinds, lists of these kinds, and recorded reviews.

    A `kind` that does not begin with a letter also matches. An alias, a tag or an escape can mean any kind.
    """
    names = "|".join(map(re.escape, sorted((*kinds, "AdmissionReview"))))
    kind = rf"(?:{names})(?:List)?\b|[A-Za-z]*\\|[^\s\"'A-Za-z]"
    return re.compile(rf"""kind["']?\s*:\s*["']?(?:{kind})""")
