"""Finds the objects in audited files that policies look up, without decoding all others.

A first walk over the files looks for the kinds that policies look up in the text, and decodes the parts that may have
one. Memory grows only with the objects of these kinds. Definitions of kinds are long, so it reads only definitions that
may serve a version which current releases no longer serve. It reads only Deployments and charts that state the release
of a controller. Deployments and StatefulSets that name a device are also kept, with only the fields that budgets and
autoscalers are compared with.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission import fixtures
from webhook.apimachinery.attributes import CRD, JSON
from webhook.cluster import kustomizations
from webhook.cluster.controllers import find_releases_in_document, may_state_release
from webhook.cluster.naming import NAMELESS, group_kind
from webhook.cluster.packed import projection_of_fields
from webhook.facts.removed_versions import read_removed_versions
from webhook.input import document_stream
from webhook.input.document_stream import SourcePart
from webhook.yamltext import yamlfile

_SCALED: Final = frozenset((("apps", "Deployment"), ("apps", "StatefulSet")))
"""Kinds that are reduced to a few fields: a tree has thousands of them."""
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
                for field in ("name", "resources", "restartPolicy")
            ),
        )
    )
)
_IS_SCALED: Final = re.compile(r"""kind["']?\s*:\s*["']?(?:Deployment|StatefulSet)\b""")
_DEVICE: Final = re.compile("gpu|tpu|neuron|gaudi|[Aa]scend|mlu|dcu|gcu|xpu|iluvatar|vastai|claims")
"""A text that contains the name of a device, or a container with claims."""
_HIDDEN: Final = re.compile(r"""\\(?:x|u00|U000000)6[bBeE49]|\?\s+["']?kind""")
"""Matches a letter of `kind` written as an escape, or an explicit key, so that neither hides an object."""


class AuditIndex(Struct):
    """The objects of the looked up kinds, with their files.

    Args:
        objects: each with its file, in the order of the files; kustomizations are among them.
        files: the files that have objects, and not only recorded reviews.
        is_complete: whether everything could be read; it has a meaning only if everything was decoded.
    """

    objects: list[tuple[str, JSON]] = field(default_factory=list)
    files: dict[str, None] = field(default_factory=dict)
    is_complete: bool = True

    def add(self, other: AuditIndex) -> None:
        """Add the index of a later part of the input."""
        self.objects += other.objects
        self.files.update(other.files)
        self.is_complete &= other.is_complete


class Indexer(Struct, frozen=True):
    """Finds the objects that policies look up in one part after the other. It can be sent to another process.

    Args:
        kinds: the groups and kinds that policies look up.
        is_whole: whether absence counts, so that every file has to be readable.
    """

    kinds: frozenset[tuple[str, str]]
    is_whole: bool

    def index_parts(self, parts: Iterable[SourcePart]) -> AuditIndex:
        """Return the index of parts."""
        looks = _pattern_for_kinds({kind for _, kind in (*self.kinds, kustomizations.FLUX)})
        groups = frozenset(group for group, _, _ in read_removed_versions())
        kinds = self.kinds | {(CRD.group, CRD.kind), kustomizations.FLUX}
        looked_up = AuditIndex()
        for part in parts:
            text = part.part.text
            is_kustomization = posixpath.basename(part.source) in kustomizations.FILES
            has_definition = CRD.kind in text and any(group in text for group in groups)
            is_read = self.is_whole or is_kustomization or has_definition or may_state_release(text)
            some = text if is_read else _documents_that_may_match(text, looks)
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
                    if is_looked_up or next(find_releases_in_document(each.source, each.value), None) is not None:
                        looked_up.objects.append((each.source, each.value))
                    elif kind in _SCALED and _DEVICE.search(text):
                        looked_up.objects.append((each.source, _KEPT(each.value)))
        return looked_up


def indexer_of(looked_up: frozenset[tuple[str, str]], *, is_whole: bool) -> Indexer:
    """Return the indexer for the kinds that policies look up."""
    return Indexer(looked_up - _SCALED | NAMELESS, is_whole)


def _documents_that_may_match(text: str, looks: re.Pattern[str]) -> str:
    """Return the documents of a text that may have such an object; the whole text if only a parser can separate
    them.
    """
    if not _may_have_object(text, looks):
        return ""
    documents = yamlfile.documents_of(text)
    return "".join(each for each in documents if _may_have_object(each, looks)) if documents else text


def _may_have_object(text: str, looks: re.Pattern[str]) -> bool:
    """Return whether a text may have such an object or a recorded review."""
    return (
        "operation" in text
        or looks.search(text) is not None
        or (_DEVICE.search(text) is not None and _IS_SCALED.search(text) is not None)
        or (("\\" in text or "? " in text) and _HIDDEN.search(text) is not None)
    )


def _group_kind_or_empty(value: JSON) -> tuple[str, str]:
    return group_kind(value) if isinstance(value, dict) else ("", "")


def _pattern_for_kinds(kinds: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for texts with an object of these kinds, alone or in a list of its kind, or a recorded review.

    A value that does not begin with a letter may be anything: an alias, a tag, an escape.
    """
    names = "|".join(map(re.escape, sorted((*kinds, "AdmissionReview"))))
    kind = rf"(?:{names})(?:List)?\b|[A-Za-z]*\\|[^\s\"'A-Za-z]"
    return re.compile(rf"""kind["']?\s*:\s*["']?(?:{kind})""")
