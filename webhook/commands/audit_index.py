"""What audited files hold of the cluster: the objects that policies look up, found without decoding all others.

A first walk over the files looks for the kinds that policies look up in the text, and decodes the parts that may have
one. Memory grows with the objects of these kinds alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from webhook import document_stream, yamlfile
from webhook.admission import fixtures
from webhook.attributes import JSON
from webhook.cluster import kustomizations
from webhook.cluster.candidates import NAMELESS
from webhook.cluster.interest import Interest
from webhook.cluster.naming import group_kind
from webhook.document_stream import DocumentStream

_ESCAPED: Final = re.compile(r"\\(?:x|u00|U000000)(?:6[bBeE49])|\?\s+[\"']?kind")
"""A letter of `kind` as an escape, or an explicit key: nobody writes that, and it must not hide an object."""


@dataclass(slots=True)
class AuditIndex:
    """The objects of the looked up kinds, with their files.

    Args:
        objects: each with its file, in the order of the files; kustomizations are among them.
        files: the files that have objects, and not recorded reviews alone.
        is_complete: whether everything could be read; it counts only where everything was decoded.
    """

    objects: list[tuple[str, JSON]] = field(default_factory=list)
    files: dict[str, None] = field(default_factory=dict)
    is_complete: bool = True


def index(stream: DocumentStream, interests: Iterable[Interest], *, is_whole: bool) -> AuditIndex:
    """Walk the files once.

    Args:
        stream: the files.
        interests: what policies look up.
        is_whole: whether absence counts, so that every file has to be readable.
    """
    kinds = {interest.kind for interest in interests} | NAMELESS
    looks = _look({kind for _, kind in kinds})
    looked_up = AuditIndex(is_complete=not stream.problems)
    for part in stream.parts():
        text = part.part.text
        is_kustomization = posixpath.basename(part.source) in kustomizations.FILES
        if not (is_whole or is_kustomization or looks.search(text) or _ESCAPED.search(text)):
            looked_up.files[yamlfile.shown(part.source)] = None
            continue
        read = document_stream.read(part)
        looked_up.is_complete &= not read.problems and not read.templates
        for each in read.documents:
            if not fixtures.is_call(each.value):
                looked_up.files[each.source] = None
                if is_kustomization or _kind(each.value) in kinds:
                    looked_up.objects.append((each.source, each.value))
    return looked_up


def _kind(value: JSON) -> tuple[str, str]:
    return group_kind(value) if isinstance(value, dict) else ("", "")


def _look(kinds: Iterable[str]) -> re.Pattern[str]:
    """Finds a text that may have an object of these kinds, alone or in a list of its kind, or a recorded review.

    A value that does not begin with a letter may be anything: an alias, a tag, an escape.
    """
    names = "|".join(map(re.escape, sorted((*kinds, "AdmissionReview"))))
    kind = rf"(?:{names})(?:List)?\b|[A-Za-z]*\\|[^\s\"'A-Za-z]"
    return re.compile(rf"""\bkind["']?\s*:\s*["']?(?:{kind})|\boperation["']?\s*:""")
