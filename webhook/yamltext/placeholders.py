"""Recognizes placeholders: texts that a shell, a template engine, a controller or a person replaces later.

This is the only definition of placeholders. A placeholder cannot be checked before it is replaced. So a rule about
names or amounts skips it, and it may stand in place of a value of another type.
"""

from __future__ import annotations

import re
from typing import Final

from webhook.apimachinery.attributes import JSON

_VARIABLE: Final = re.compile(r"\$[A-Za-z_{(]|\{\{")
_BLANKS: Final = (
    ("<", re.compile(r"<[A-Za-z_%][^<>\n]*>")),
    ("__", re.compile(r"__[A-Z][A-Z0-9_]*__")),
    ("[[", re.compile(r"\[\[(?!\[) ?[\w.-]+ ?\]\]")),
    ("((", re.compile(r"\(\((?!\() ?[\w.-]+ ?\)\)")),
    ("@", re.compile(r"@[A-Z][A-Z0-9_]*@")),
    ("%", re.compile(r"%[A-Z][A-Z0-9_]*%")),
)
"""The signs with which blanks begin, each with its pattern. For a text of 100,000 such signs, each pattern takes 2
milliseconds, and one pattern for all of them would take 10.
"""
_SIGN_OF_BLANK: Final = re.compile(r"[<@%]|__|\[\[|\(\(")
_WORD_IN_BRACKETS: Final = re.compile(r"[A-Za-z_][\w. -]*")
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
_CAPITALS: Final = re.compile(r"(?!(?:TRUE|FALSE|NULL|NONE|AUTO|FOUR|FIVE|NINE|ZERO)$)[A-Z]{4,}")
"""Matches a word of capital letters that is never the final value of a number or boolean."""
_IN_PARENTHESES: Final = re.compile(r"\([A-Za-z_]\w*\)")
"""A word in single parentheses, which is never a final number, truth value or amount."""
_OF_VALS: Final = "ref+"
"""The beginning of a reference that vals replaces by a secret: `ref+vault://...`."""
_WORDS: Final = ("PLACEHOLDER", "REPLACEME", "CHANGEME")
_DOTS: Final = frozenset(("...", "…"))
_SIGN: Final = re.compile("|".join(map(re.escape, ("$", "{{", *(sign for sign, _ in _BLANKS), *_WORDS, *_DOTS))))
"""Matches a part that every placeholder has. Few texts have one."""


def is_placeholder(text: str) -> bool:
    """Return whether a text is a placeholder, or contains one.

    Names and amounts that Kubernetes accepts have none of these signs, so no finished text counts as a placeholder:
    `gpu-${N}`, `<queue>`, `[[queue]]`, `__NUM_NODES__`, `@NODES@`, `PLACEHOLDER_QUEUE` and `...` are placeholders,
    `gpu-1` is not.
    """
    return _SIGN.search(text) is not None and ("$" in text or "{{" in text or _is_blank_to_fill_in(text))


def is_placeholder_for_non_text(text: str) -> bool:
    """Return whether a text instead of a number or another value that is not text is a placeholder: also `NUM_NODES`,
    `PORT` and `(port)`, as sed finds them, and `ref+vault://a` of vals.

    As a string, such a word may be a final value.
    """
    is_capitals = _CONSTANT.fullmatch(text) is not None or _CAPITALS.fullmatch(text) is not None
    is_word = is_capitals or _IN_PARENTHESES.fullmatch(text) is not None
    return is_word or text.startswith(_OF_VALS) or is_placeholder(text)


def is_placeholder_for_name(text: str) -> bool:
    """Return whether a text instead of a name of an object is a placeholder: also `QUEUE_NAME`.

    Such a name has no capital letters and no `_`, so no final name looks like a constant. `GPU` alone may be
    an intended name.
    """
    return is_placeholder(text) or _CONSTANT.fullmatch(text) is not None


def is_unquoted_bracket_placeholder(value: JSON) -> bool:
    """Return whether YAML read lists or a mapping from a placeholder without quotes: `[[name]]`, `{name}`.

    For a number, a text or a truth value, a list of one list of one word, or a mapping of one word to nothing, is never
    intended.
    """
    if isinstance(value, dict):
        return len(value) == 1 and next(iter(value.values())) is None and _is_word_in_brackets(next(iter(value)))
    is_nested = isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) and len(value[0]) == 1
    return is_nested and _is_word_in_brackets(value[0][0])


def _is_word_in_brackets(text: JSON) -> bool:
    return isinstance(text, str) and _WORD_IN_BRACKETS.fullmatch(text) is not None


def has_placeholder_variable(text: str) -> bool:
    """Return whether a text has a named placeholder. Use it for texts in which a single `$` is a mistake, or ends a
    pattern.

    `g-$N`, `${N}`, `$(N)`, `{{ .n }}` and `<n>` have one; `*$@` has none.
    """
    return _VARIABLE.search(text) is not None or _is_blank_to_fill_in(text)


def _is_blank_to_fill_in(text: str) -> bool:
    """Return whether the text has a blank that a person fills in."""
    if text in _DOTS or any(word in text for word in _WORDS):
        return True
    if _SIGN_OF_BLANK.search(text) is None:
        return False
    return any(sign in text and blank.search(text) is not None for sign, blank in _BLANKS)
