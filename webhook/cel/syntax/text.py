"""Writes a tree as source text, which the parser reads back as the same tree with other offsets.

The text is one line with the fewest brackets, so its brackets are not nested deeper than in the original. An explicit
list replaces Python's stack.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from webhook.cel.syntax import lexer
from webhook.cel.syntax.frames import AND, BINARY, CALC, OR
from webhook.cel.syntax.tree import Call, Has, Ident, ListNode, Literal, Macro, MapNode, Node, Select, StructNode
from webhook.cel.values import UInt

_ANY, _SIGN, _MEMBER = 0, CALC + 2, CALC + 3
_SIGNS = {function: sign for sign, (_, function) in BINARY.items()}
_TIGHTNESS = {function: tightness for tightness, function in BINARY.values()}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_Piece: TypeAlias = str | tuple[Node, int]
"""Text, or a node and a precedence. A node with a lower precedence gets brackets."""


def source_text(node: Node) -> str:
    """Return the source text of a tree."""
    text: list[str] = []
    pending: list[_Piece] = [(node, _ANY)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            text.append(piece)
            continue
        written, needed = piece
        pieces = _source_pieces(written)
        pending.extend(reversed(pieces if _precedence(written) >= needed else ["(", *pieces, ")"]))
    return "".join(text)


def _precedence(node: Node) -> int:
    # a number needs brackets before a dot or after a sign
    if isinstance(node, Literal):
        return _SIGN if isinstance(node.value, int | float) and not isinstance(node.value, bool) else _MEMBER
    if not isinstance(node, Call):
        return _MEMBER
    if node.function == "_?_:_":
        return _ANY
    if node.function in ("!_", "-_"):
        return _SIGN
    return _TIGHTNESS.get(node.function, _MEMBER)


def _source_pieces(node: Node) -> list[_Piece]:
    match node:
        case Literal():
            return [_literal_text(node.value)]
        case Ident():
            return [node.name]
        case Select():
            return [(node.operand, _MEMBER), ".?" if node.optional else ".", _field_name_in_source(node.field)]
        case Has():
            return ["has(", (node.operand, _MEMBER), ".", _field_name_in_source(node.field), ")"]
        case Call():
            return _call_pieces(node)
        case ListNode():
            marked: list[list[_Piece]] = [
                ["?" * (index in node.optional), (each, _ANY)] for index, each in enumerate(node.elements)
            ]
            return ["[", *_joined_pieces(marked), "]"]
        case MapNode():
            entries: list[list[_Piece]] = [
                ["?" * each.optional, (each.key, OR), ": ", (each.value, _ANY)] for each in node.entries
            ]
            return ["{", *_joined_pieces(entries), "}"]
        case StructNode():
            named: list[list[_Piece]] = [
                ["?" * each.optional, _field_name_in_source(each.field), ": ", (each.value, _ANY)]
                for each in node.entries
            ]
            return [f"{node.name}{{", *_joined_pieces(named), "}"]
        case Macro():
            return _macro_pieces(node)


def _call_pieces(node: Call) -> list[_Piece]:
    function, arguments = node.function, node.arguments
    if function in ("_&&_", "_||_"):
        # a chain in brackets stays a separate chain, so the brackets are written again
        tight = (AND if function == "_&&_" else OR) + 1
        return _joined_pieces([[(each, tight)] for each in arguments], f" {_SIGNS[function]} ")
    if function in _SIGNS:
        tightness = _TIGHTNESS[function]
        left, right = arguments
        return [(left, tightness), f" {_SIGNS[function]} ", (right, tightness + 1)]
    if function == "_?_:_":
        condition, yes, no = arguments
        return [(condition, OR), " ? ", (yes, OR), " : ", (no, _ANY)]
    if function in ("!_", "-_"):
        return [function[0], (arguments[0], _MEMBER)]
    if function in ("_[_]", "_[?_]"):
        return [(arguments[0], _MEMBER), function[1:-2], (arguments[1], _ANY), "]"]
    target: list[_Piece] = [] if node.target is None else [(node.target, _MEMBER), "."]
    return [*target, f"{function}(", *_joined_pieces([[(each, _ANY)] for each in arguments]), ")"]


def _macro_pieces(node: Macro) -> list[_Piece]:
    arguments = _joined_pieces([[(each, _ANY)] for each in node.arguments])
    if node.name == "bind":
        return [f"cel.bind({node.variables[0]}, ", (node.operand, _ANY), ", ", *arguments, ")"]
    return [(node.operand, _MEMBER), f".{node.name}({', '.join(node.variables)}, ", *arguments, ")"]


def _joined_pieces(parts: list[list[_Piece]], separator: str = ", ") -> list[_Piece]:
    return [piece for index, part in enumerate(parts) for piece in ([separator, *part] if index else part)]


def _field_name_in_source(name: str) -> str:
    return name if _WORD.fullmatch(name) and name not in lexer.KEYWORDS else f"`{name}`"


def _literal_text(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_literal(value)
    if isinstance(value, bytes):
        return 'b"' + "".join(_escaped_byte(each) for each in value) + '"'
    return f"{int(value)}u" if isinstance(value, UInt) else repr(value)


def string_literal(value: str) -> str:
    """Return a string literal for a text."""
    return (
        '"'
        + "".join(_ESCAPES.get(each) or (each if each.isprintable() else _escaped_character(each)) for each in value)
        + '"'
    )


def _escaped_character(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped_byte(value: int) -> str:
    character = chr(value)
    return _ESCAPES.get(character) or (character if 0x20 <= value < 0x7F else f"\\x{value:02x}")
