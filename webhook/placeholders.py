"""Texts that are filled in later, by a shell, a template engine or a controller: `${NAME}`, `$NAME`, `{{ .name }}`.

The one home of what counts as such a text. Nobody can judge it before it is filled in: a rule about names or amounts
leaves it out, and where a value of another type belongs it may still become one.
"""

from __future__ import annotations

import re
from typing import Final

_VARIABLE: Final = re.compile(r"\$[A-Za-z_{(]|\{\{")


def is_placeholder(text: str) -> bool:
    """Whether a text is still to be filled in, wholly or in part.

    Neither sign may stand in a name or an amount that Kubernetes takes, so that no finished text is taken for one:
    `gpu-${N}` is a placeholder, `gpu-1` is not.
    """
    return "$" in text or "{{" in text


def names_variable(text: str) -> bool:
    """Whether a text names what is filled in, for texts in which a `$` alone is a mistake, or ends a pattern.

    `g-$N`, `${N}`, `$(N)` and `{{ .n }}` do, `*$@` does not.
    """
    return _VARIABLE.search(text) is not None
