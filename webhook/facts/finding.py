"""One thing that somebody will refuse or overlook, long after what says it was accepted, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook import shapes
from webhook.attributes import JSON
from webhook.cel.types import STRING
from webhook.facts.fact import structure
from webhook.paths import FieldPath, render

NOTE: Final = structure(
    "TrainerNote",
    what=(STRING, "what is wrong: `unknownContainer`"),
    path=(STRING, "where it is"),
    text=(STRING, "the name that it is about; of what JobSet refuses, why, and what to do"),
    job=(STRING, "the replicated job"),
    container=(STRING, "the container"),
    by=(STRING, 'who refuses it: `jobset`, or `pod` for the API server; `""` for what nobody refuses'),
    at=(STRING, "where it is in the spec of the JobSet"),
)
"""What `Finding.note` and `note` make, as policies see it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`text` is the name it is about, or for what JobSet refuses (`by`) why, and what to do.

    by: jobset, or pod for what the API server refuses of the pods; "" for what nobody refuses.
    """

    what: str
    at: FieldPath
    text: str
    job: str = ""
    container: str = ""
    by: str = ""

    def note(self, root: FieldPath) -> JSON:
        """As facts show it, below a path."""
        return {
            "what": self.what,
            "path": render((*root, *self.at)),
            "text": self.text,
            "job": self.job,
            "container": self.container,
            "by": self.by,
            "at": render(self.at),
        }


def note(what: str, path: str, text: str, job: str = "", container: str = "", *, by: str = "") -> JSON:
    """The same of something whose path is known as text."""
    return {"what": what, "path": path, "text": text, "job": job, "container": container, "by": by, "at": ""}


def odd(value: JSON, at: FieldPath, expected: str) -> JSON:
    """A value of another type than its field has."""
    found = "a map" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"`{shapes.shown(value)}`"
    return {"path": render(at), "found": found, "expected": expected}
