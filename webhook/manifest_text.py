"""Whether a text that cannot be read could be a Kubernetes manifest: by the keys that every manifest has.

Repositories hold much YAML and JSON that is none: a `tsconfig.json` with comments, fixtures that are broken on purpose.
When in doubt, it is one.
"""

from __future__ import annotations

import re
from typing import Final

_KEYS: Final = re.compile(
    rb"""^(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf)?[ \t]*(?:- +)*(?:\{ *)?["']?(?:apiVersion|kind)["']?[ \t]*:""",
    re.MULTILINE,
)
"""At the beginning of a line or after a byte order mark, however deep: the indentation may be what is wrong."""
_JSON: Final = re.compile(rb'"(?:apiVersion|kind)"\s*:')
"""Anywhere in a line, as JSON has it."""
_FLOW: Final = re.compile(rb"[{,][ \t]*(?:apiVersion|kind)[ \t]*:")
"""Within braces, as YAML has it too."""


def looks_like_manifest(data: bytes) -> bool:
    """Return whether a file has a key `apiVersion` or `kind`, in whatever encoding of ASCII, UTF-16 included."""
    text = data.replace(b"\0", b"").replace(b"\r", b"\n")
    return any(pattern.search(text) for pattern in (_KEYS, _JSON, _FLOW))
