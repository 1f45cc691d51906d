"""Parses tokens to a tree; types and functions are not checked.

The grammar is cel-go's CEL.g4 (v0.26). Open brackets are on an explicit stack, so no expression exhausts Python's
stack. The two limits on depth are cel-go's (parser/parser.go), both 250:
- during parsing, the number of nested `expr`, `relation` and `calc` rules. Brackets and ternaries nest `expr`, the
  right side of a comparison nests `relation`, and the right side of arithmetic nests `calc`;
- in the tree, the number of nested ternaries, comparisons, arithmetic, selections, method calls and indexes.

A syntax error ends the parsing. Its message is that of ANTLR 4, which generates cel-go's parser. Mistakes that the
grammar allows are collected: a reserved name, a number out of range, wrong arguments of a macro.
"""

from __future__ import annotations

from typing import Final, NoReturn

from webhook.cel.environment import Environment
from webhook.cel.syntax import lexer
from webhook.cel.syntax.frames import AND, BINARY, RELATION, UNARY, BracketFrame
from webhook.cel.syntax.issues import IssueList
from webhook.cel.syntax.lexer import END, LITERALS, RESERVED
from webhook.cel.syntax.macros import MacroError, expand_macro
from webhook.cel.syntax.tree import Call, Has, Ident, Literal, Macro, Node, Select, children
from webhook.errors import CompileError, CompileIssue

SIZE_LIMIT = 100_000
"""The limit of an expression in code points: cel-go's expressionSizeCodePointLimit, unchanged by Kubernetes."""
DEPTH_LIMIT = 250
"""cel-go's maxRecursionDepth, unchanged by Kubernetes."""


def parse(source: str, environment: Environment | None = None) -> Node:
    """Parse an expression to a tree.

    Args:
        source: the text of the expression.
        environment: decides which macros and syntax exist; None: the environment of the default version.

    Raises:
        CompileError: the expression has issues.
    """
    if not source.isascii():
        # Go reads a lone surrogate, which is not valid UTF-8, as U+FFFD
        source = source.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if len(source) > SIZE_LIMIT:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {SIZE_LIMIT}"
        raise CompileError(source, (CompileIssue(message, -1, -1),))
    return _Parser(source, environment or _DEFAULT).parse()


_DEFAULT = Environment()


class _SyntaxError(Exception):
    """Ends the parsing; its issue is already recorded."""


class _Parser:
    """Parses one source. `_expecting`: an operand must come next. `_plain`: the last operand is a name such as
    `a.b`.
    """

    def __init__(self, source: str, environment: Environment) -> None:
        self._source = source
        self._environment = environment
        tokens = lexer.tokenize(source)
        self._kinds, self._texts, self._offsets = tokens.kinds, tokens.texts, tokens.offsets
        self._issues = IssueList(source)
        for text, offset in tokens.unread:
            self._issues.report(f"Syntax error: token recognition error at: '{text}'", offset)
        self._next = 0
        self._depth = 1
        self._frame = BracketFrame("start", END, 0)
        self._outer: list[BracketFrame] = []
        self._expecting = True
        self._plain = False

    def parse(self) -> Node:
        node = None
        try:
            while node is None:
                if self._expecting:
                    self._read_operand()
                else:
                    node = self._read_operator()
            if len(self._kinds) > DEPTH_LIMIT and is_deeper_than(node, DEPTH_LIMIT):
                self._issues.report_of_all(CompileIssue("max recursion depth exceeded", -1, -1))
        except _SyntaxError:
            pass
        if self._issues or node is None:
            raise self._issues.as_error()
        return node

    # Operands

    def _read_operand(self) -> None:
        kind, offset, frame = self._kinds[self._next], self._offsets[self._next], self._frame
        if kind == "name":
            self._read_identifier("", offset)
        elif kind in LITERALS:
            self._read_literal("", offset)
        elif kind == "(":
            self._open_frame("group", ")", offset)
        elif kind == "[":
            self._open_frame("list", "]", offset)
        elif kind == "{":
            self._open_frame("map", "}", offset)
        elif kind in ("!", "-"):
            self._read_sign_run(kind, offset)
        elif kind == "." and self._kinds[self._next + 1] == "name":
            self._next += 1
            self._read_identifier(".", offset)
        elif kind == "?" and (frame.shape == "list" or frame.is_reading_key()) and self._may_read_optional_mark():
            self._next += 1
            frame.optional.add(len(frame.items))
        elif kind == frame.closing and frame.may_close_without_item():
            self._close_bracket()
        elif kind == "," and frame.shape in ("list", "map") and frame.is_empty():
            self._read_trailing_comma()
        else:
            self._fail_for_missing_operand()

    def _push_node(self, node: Node, *, plain: bool = False) -> None:
        self._frame.operands.append(node)
        self._expecting = False
        self._plain = plain

    def _read_identifier(self, dot: str, offset: int) -> None:
        text = self._texts[self._next]
        if text in RESERVED and not self._is_message_name():
            self._report_issue(f"reserved identifier: {text}", offset)
        self._next += 1
        if self._kinds[self._next] == "(":
            self._open_frame("call", ")", self._offsets[self._next], name=dot + text)
        else:
            self._push_node(Ident(self._offsets[self._next - 1], dot + text), plain=True)

    def _is_message_name(self) -> bool:
        index = self._next + 1
        while self._kinds[index] == "." and self._kinds[index + 1] == "name":
            index += 2
        return self._kinds[index] == "{"

    def _read_literal(self, sign: str, offset: int) -> None:
        value: object = None
        try:
            value = LITERALS[self._kinds[self._next]](sign + self._texts[self._next])
        except ValueError as error:
            self._report_issue(str(error), offset)
        self._next += 1
        self._push_node(Literal(offset, value))

    def _read_sign_run(self, sign: str, offset: int) -> None:
        # as in cel-go, two equal signs cancel out, and a single minus becomes part of a number
        count = 0
        while self._kinds[self._next] == sign:
            self._next += 1
            count += 1
        kind, minus = self._kinds[self._next], self._offsets[self._next]
        if sign == "-" and count == 1 and kind in ("int", "double"):
            self._read_literal("-", offset)
            return
        if count % 2:
            self._frame.operators.append((UNARY, f"{sign}_", offset))
        if kind == "-" and self._kinds[self._next + 1] in ("int", "double"):
            self._next += 1
            self._read_literal("-", minus)
        elif kind not in STARTING | {"."} or kind in ("!", "-"):
            self._fail_for_missing_operand()

    def _may_read_optional_mark(self) -> bool:
        self._require_optional_syntax("'?'", self._offsets[self._next])
        return self._frame.is_at_item_start() and len(self._frame.items) not in self._frame.optional

    # After an operand

    def _read_operator(self) -> Node | None:
        # returns the tree at the end of the expression
        kind, offset = self._kinds[self._next], self._offsets[self._next]
        binary = BINARY.get(kind)
        if kind == ".":
            self._read_member(offset)
        elif binary is not None:
            self._read_binary_operator(*binary, offset)
        elif kind == "[":
            self._open_index(offset)
        elif kind in (self._frame.closing, ","):
            return self._read_item_end(kind)
        elif kind == "?":
            self._read_question_mark(offset)
        elif kind == ":":
            self._read_colon(offset)
        elif kind == "{" and self._plain:
            self._open_message(offset)
        else:
            self._fail_for_unexpected_token()
        return None

    def _read_member(self, offset: int) -> None:
        self._next += 1
        optional = self._kinds[self._next] == "?"
        if optional:
            self._next += 1
            self._require_optional_syntax("'.?'", offset)
        kind, text = self._kinds[self._next], self._texts[self._next]
        if kind not in ("name", "escaped"):
            self._fail_for_missing_field(kind, text, offset)
        self._next += 1
        operand = self._frame.operands.pop()
        if kind == "name" and not optional and self._kinds[self._next] == "(":
            self._open_frame("call", ")", self._offsets[self._next], name=text, target=operand)
            return
        name = self._unescaped_field_name(text) if kind == "escaped" else text
        self._push_node(Select(offset, operand, name, optional), plain=self._plain and kind == "name" and not optional)

    def _unescaped_field_name(self, text: str) -> str:
        if not self._environment.escaped_fields:
            self._report_issue("unsupported syntax: '`'", self._offsets[self._next - 1])
        return text[1:-1]

    def _open_index(self, offset: int) -> None:
        optional = self._kinds[self._next + 1] == "?"
        self._open_frame("index", "]", offset, name="_[?_]" if optional else "_[_]", target=self._frame.operands.pop())
        if optional:
            self._next += 1
            self._require_optional_syntax("'[?'", offset)

    def _read_binary_operator(self, precedence: int, function: str, offset: int) -> None:
        # a chain of && or || is one call
        self._frame.reduce_operators(precedence + 1 if precedence <= AND else precedence)
        self._frame.operators.append((precedence, function, offset))
        self._next += 1
        self._expecting = True
        if precedence >= RELATION:
            self._check_nesting_depth()

    def _read_question_mark(self, offset: int) -> None:
        frame = self._frame
        if frame.is_reading_branch():
            self._fail_at_token("mismatched input '?' expecting ':'")
        frame.reduce_operators(0)
        frame.conditions.append((offset, frame.operands.pop(), None))
        self._next += 1
        self._expecting = True

    def _read_colon(self, offset: int) -> None:
        frame = self._frame
        if frame.is_reading_branch():
            frame.reduce_operators(0)
            question_offset, condition, _ = frame.conditions[-1]
            frame.conditions[-1] = (question_offset, condition, frame.operands.pop())
            self._depth += 1
            self._check_nesting_depth()
        elif frame.is_reading_key():
            self._depth -= frame.finish_item()
            frame.colons.append(offset)
        else:
            self._fail_for_unexpected_token()
        self._next += 1
        self._expecting = True

    def _read_item_end(self, kind: str) -> Node | None:
        frame = self._frame
        if (
            frame.is_reading_branch()
            or frame.is_reading_key()
            or (kind == "," and frame.shape in ("start", "group", "index"))
        ):
            self._fail_for_unexpected_token()
        self._depth -= frame.finish_item()
        if frame.shape == "start":
            return frame.items[0]
        if kind != ",":
            self._close_bracket()
            return None
        self._next += 1
        self._expecting = True
        if frame.shape == "struct":
            self._read_message_field()
        return None

    # Brackets

    def _open_frame(self, shape: str, closing: str, offset: int, *, name: str = "", target: Node | None = None) -> None:
        self._next += 1
        relations, calculations = self._frame.open_rule_counts()
        self._outer.append(self._frame)
        self._frame = BracketFrame(shape, closing, offset, name, target, nesting=(relations + 1, calculations + 1))
        self._expecting = True
        self._depth += 1
        if self._kinds[self._next] != closing:
            self._check_nesting_depth()

    def _close_bracket(self) -> None:
        frame = self._frame
        self._next += 1
        self._depth -= 1
        self._frame = self._outer.pop()
        self._push_node(self._call_node(frame) if frame.shape == "call" else frame.build_node())

    def _call_node(self, frame: BracketFrame) -> Node:
        if self._environment.is_macro_call(frame.name, len(frame.items), member=frame.target is not None):
            try:
                node = expand_macro(frame.offset, frame.name, frame.target, tuple(frame.items))
            except MacroError as error:
                self._report_issue(error.message, error.offset)
                node = Literal(frame.offset, None)
            if node is not None:
                return node
        return frame.build_node()

    def _open_message(self, offset: int) -> None:
        self._open_frame("struct", "}", offset, name=_qualified_name(self._frame.operands.pop()))
        if self._kinds[self._next] == ",":
            self._read_trailing_comma()
        else:
            self._read_message_field()

    def _read_message_field(self) -> None:
        # also reads the end of the message
        frame = self._frame
        if self._kinds[self._next] == "}":
            self._close_bracket()
            return
        if self._kinds[self._next] == "?":
            self._require_optional_syntax("'?'", self._offsets[self._next])
            frame.optional.add(len(frame.items))
            self._next += 1
        kind, text = self._kinds[self._next], self._texts[self._next]
        if kind not in ("name", "escaped"):
            self._fail_at_token(f"mismatched input '{text}' expecting {{'}}', '?', IDENTIFIER, ESC_IDENTIFIER}}")
        self._next += 1
        frame.fields.append(self._unescaped_field_name(text) if kind == "escaped" else text)
        if self._kinds[self._next] != ":":
            self._fail_for_missing_token("':'")
        frame.colons.append(self._offsets[self._next])
        self._next += 1

    def _read_trailing_comma(self) -> None:
        self._next += 1
        if self._kinds[self._next] != self._frame.closing:
            self._fail_for_unexpected_token()
        self._close_bracket()

    # Limits and errors

    def _check_nesting_depth(self) -> None:
        if self._depth > DEPTH_LIMIT or max(self._frame.open_rule_counts()) > DEPTH_LIMIT:
            self._issues.report_of_all(CompileIssue(f"expression recursion limit exceeded: {DEPTH_LIMIT}", -1, -1))
            raise _SyntaxError

    def _require_optional_syntax(self, syntax: str, offset: int) -> None:
        if not self._environment.has_optional_syntax:
            self._report_issue(f"unsupported syntax {syntax}", offset)

    def _report_issue(self, message: str, offset: int) -> None:
        self._issues.report(message, offset)

    def _fail_at_token(self, message: str, index: int | None = None) -> NoReturn:
        self._report_issue(f"Syntax error: {message}", self._offsets[self._next if index is None else index])
        raise _SyntaxError

    def _fail_for_missing_operand(self) -> NoReturn:
        kinds, at, frame = self._kinds, self._next, self._frame
        if kinds[at] == "." and kinds[at + 1] != END:
            self._fail_at_token(f"no viable alternative at input '.{self._texts[at + 1]}'", at + 1)
        follows = kinds[min(at + 1, len(kinds) - 1)]
        self._fail_at_token(operand_expected_error(frame, self._texts[at], follows, is_optional=kinds[at - 1] == "?"))

    def _fail_for_missing_field(self, kind: str, text: str, offset: int) -> NoReturn:
        if kind in lexer.KEYWORDS:
            self._fail_at_token(f"mismatched input '{text}' expecting IDENTIFIER")
        seen = "." if kind == END else self._source[offset : self._offsets[self._next] + len(text)]
        self._fail_at_token(f"no viable alternative at input '{seen}'")

    def _fail_for_missing_token(self, expected: str) -> NoReturn:
        self._fail_at_token(missing_token_error(expected, self._kinds[self._next], self._texts[self._next]))

    def _fail_for_unexpected_token(self) -> NoReturn:
        frame, kind = self._frame, self._kinds[self._next]
        if frame.is_reading_branch() or frame.is_reading_key():
            self._fail_for_missing_token("':'")
        closes = self._kinds[self._next + 1 : self._next + 2] == [frame.closing]
        self._fail_at_token(unexpected_token_error(frame, kind, self._texts[self._next], is_extraneous=closes))


def _qualified_name(node: Node) -> str:
    parts = []
    while isinstance(node, Select):
        parts.append(node.field)
        node = node.operand
    assert isinstance(node, Ident)
    return ".".join([node.name, *reversed(parts)])


# ---- the texts of syntax errors


STARTING: Final = frozenset({"name", "(", "[", "{", "!", "-", *LITERALS})
"""The kinds of tokens that begin an operand."""
_STARTS: Final = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)
_AFTER: Final = {"start": END, "list": "{']', ','}", "map": "{'}', ','}"}
"""The tokens that may follow an operand, by the shape of the frame. In other shapes, only the closing bracket may."""
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
        follows: the kind of the next token. If the next token begins an operand, the current token is superfluous.
        is_optional: a `?` is before the token.
    """
    expected = _STARTS
    if frame.shape == "call" and frame.is_empty():
        expected = _STARTS.replace("'.'", "')', '.'")
    elif frame.shape == "index" and frame.is_empty() and not is_optional:
        expected = _STARTS.replace("'!'", "'!', '?'")
    return f"{_token_fault_word(is_extraneous=follows in STARTING)} input '{text}' expecting {{{expected}}}"


def missing_token_error(expected: str, kind: str, text: str) -> str:
    """Return the error for a token in place of the expected token."""
    return f"missing {expected} at '{text}'" if kind in STARTING else f"mismatched input '{text}' expecting {expected}"


def unexpected_token_error(frame: BracketFrame, kind: str, text: str, *, is_extraneous: bool) -> str:
    """Return the error for a token that cannot follow an operand."""
    if kind == END and frame.shape in ("group", "index", "call"):
        return f"missing '{frame.closing}' at '{END}'"
    expected = _AFTER.get(frame.shape, f"'{frame.closing}'")
    return f"{_token_fault_word(is_extraneous=is_extraneous)} input '{text}' expecting {expected}"


def _token_fault_word(*, is_extraneous: bool) -> str:
    return "extraneous" if is_extraneous else "mismatched"


# ---- depth, as in cel-go v0.26 parser/parser.go, checkAndIncrementRecursionDepth


def is_deeper_than(node: Node, limit: int) -> bool:
    """Return whether ternaries, comparisons, arithmetic, selections, methods and indexes nest deeper than `limit`."""
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
