"""The texts of syntax errors, and the limit on the depth of an expression.

The texts are those of ANTLR 4, which generates cel-go's parser. Knows tokens and the bracket around them; the parser
knows when it cannot continue.

Source: cel-go v0.26 parser/parser.go, checkAndIncrementRecursionDepth, for the depth.
"""

from __future__ import annotations

from typing import Final

from webhook.cel.syntax.constants import LITERALS
from webhook.cel.syntax.frames import BracketFrame
from webhook.cel.syntax.lexer import END
from webhook.cel.syntax.tree import Call, Has, Macro, Node, Select, children

STARTING: Final = frozenset({"name", "(", "[", "{", "!", "-", *LITERALS})
"""The kinds of tokens that may begin an operand."""
_STARTS: Final = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)
_AFTER: Final = {"start": END, "list": "{']', ','}", "map": "{'}', ','}"}
"""The tokens that may follow an operand, by the shape of the frame; for other shapes, the closing bracket."""
_OPERATORS = frozenset(
    {
        "_?_:_", "_[_]", "_[?_]", "@in", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_",
        "_%_",
    }
)  # fmt: skip


def operand_expected_error(frame: BracketFrame, text: str, follows: str, *, is_optional: bool) -> str:
    """Return the error for a token where an operand is expected.

    Args:
        frame: the bracket around the token.
        text: the token.
        follows: the kind of the next token. If an operand may begin with it, the current token is superfluous.
        is_optional: whether a `?` is before it.
    """
    expected = _STARTS
    if frame.shape == "call" and frame.is_empty():
        expected = _STARTS.replace("'.'", "')', '.'")
    elif frame.shape == "index" and frame.is_empty() and not is_optional:
        expected = _STARTS.replace("'!'", "'!', '?'")
    return f"{_token_fault_word(is_extraneous=follows in STARTING)} input '{text}' expecting {{{expected}}}"


def missing_token_error(what: str, kind: str, text: str) -> str:
    """Return the error for a token where `what` is expected."""
    return f"missing {what} at '{text}'" if kind in STARTING else f"mismatched input '{text}' expecting {what}"


def unexpected_token_error(frame: BracketFrame, kind: str, text: str, *, is_extraneous: bool) -> str:
    """Return the error for a token that cannot follow an operand."""
    if kind == END and frame.shape in ("group", "index", "call"):
        return f"missing '{frame.closing}' at '{END}'"
    expected = _AFTER.get(frame.shape, f"'{frame.closing}'")
    return f"{_token_fault_word(is_extraneous=is_extraneous)} input '{text}' expecting {expected}"


def _token_fault_word(*, is_extraneous: bool) -> str:
    return "extraneous" if is_extraneous else "mismatched"


def is_deeper_than(node: Node, limit: int) -> bool:
    """Return whether more than `limit` ternaries, comparisons, arithmetic, selections, methods, indexes are nested."""
    pending = [(node, 0)]
    while pending:
        current, depth = pending.pop()
        if _counts_as_level(current):
            depth += 1
            if depth > limit:
                return True
        pending.extend((child, depth) for child in children(current))
    return False


def _counts_as_level(node: Node) -> bool:
    if isinstance(node, Call):
        return node.target is not None or node.function in _OPERATORS
    return isinstance(node, Select | Has | Macro)
