"""Reads the script that a shell runs, and splits the script into simple commands and words. A script is never run.

The reader understands quotes, comments, line continuations, here-documents, redirections, operators and reserved words.
Parts that only a shell could evaluate (`$(...)`, globs) stay unchanged in the word. One pass from left to right splits
a script into words and operators.

Source: POSIX.1-2024, Shell Command Language, 2.2 Quoting and 2.3 Token Recognition among others. The reader also
understands `function`, `select`, `&>` and `<<<` of bash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from webhook.deadline import Deadline
from webhook.text.caches import cache_for_short_texts

Operator: TypeAlias = str
"""An operator of the shell, such as `\\n`, `;`, `&&`, `<<` and `(`."""
_OPERATOR: Final = re.compile(r"&>>|<<<|<<-|;;&|&&|\|\||;;|;&|\|&|&>|>>|>\||>&|<&|<>|<<|[|&;()<>\n]")
_PLAIN: Final = re.compile(r"[^ \t\r\f\v\n\\'\"`$|&;()<>]+")
_ALONE: Final = re.compile(rf"(?!#){_PLAIN.pattern}(?=[ \t\n;])")
_BLANK: Final = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)+")
_QUOTED: Final = re.compile(r"[^\\\"`$]+")
_NAME: Final = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)[^\s{}$`'\"\\]*)?\}|([0-9@*#?$!-]))"
)
"""A variable without a default, or with a plain text as the default: `$NAME`, `${NAME}`, `${NAME:-4}`."""
_NESTED: Final = re.compile(r"[(){}'\"`\\]")
_PAIRS: Final = {"(": ")", "{": "}"}
_LOOKS: Final = 32
"""The number of occurrences of the first character to try before `str.find` searches for the whole text."""
_DEEPEST: Final = 40
"""The deepest nesting of quotes and parentheses that is read. People nest at most three levels."""
_OPENS = frozenset(("if", "while", "until", "case", "for", "select", "{"))
_CLOSES = frozenset(("fi", "done", "esac", "}"))
_AMONG = frozenset(("then", "else", "elif", "do", "!", "time", "function"))
_WHOLE = frozenset(("case", "for", "select"))
_REDIRECTIONS = frozenset(("<", ">", ">>", ">|", "<>", ">&", "<&", "&>", "&>>", "<<<", "<<", "<<-"))
_CONDITIONAL = frozenset(("&&", "||", "|", "|&"))
_APART = frozenset(("|", "|&", "&"))
_PLAIN_BYTES: Final = bytes(set(range(256)).difference(b"(){}'\"`\\"))
"""All bytes except the signs that open or close something inside parentheses. The signs are read one by one."""
_SIGN_S: Final = 3.5e-7
"""Seconds to read one of these signs: 60 KB of `$(` and `)` take 14 ms."""


_SHELLS: Final = frozenset(("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"))


class ShellCall(NamedTuple):
    """A command whose program is a shell.

    Attributes:
        beginning: the shell and its options.
        script: the script after the option `-c`, or the file of the script; "" if the shell reads its input.
        is_file: whether `script` is a file.
        rest: the words after the script. With `-c`, the first is the name `$0`, and the others are the parameters.
    """

    beginning: Sequence[str]
    script: str
    is_file: bool
    rest: Sequence[str]


def is_shell(program: str) -> bool:
    """Return whether a program is a shell, by its name."""
    return program.rpartition("/")[2] in _SHELLS


def read_shell_call(words: Sequence[str]) -> ShellCall | None:
    """Return the script that a command runs by a shell; None if the program of the command is not a shell."""
    if not words or not is_shell(words[0]):
        return None
    has_option_c = is_value = False
    for index, word in enumerate(words):
        if is_value or not index:
            is_value = False
        elif word.startswith(("-", "+")) and len(word) > 1:
            is_short = not word.startswith("--")
            has_option_c = has_option_c or (is_short and word[0] == "-" and "c" in word)
            is_value = (is_short and word[-1] in "oO") or word in ("--rcfile", "--init-file")
        else:
            return ShellCall(words[:index], word, not has_option_c, words[index + 1 :])
    return ShellCall(words, "", not has_option_c, ())


class WordPart(NamedTuple):
    """A part of a word: literal text, or a variable if `name` is set. The value of a variable is split into words
    unless the variable is quoted. `has_default`: the text has a default for an empty variable, as `${NAME:-4}` has.
    """

    text: str
    name: str = ""
    quoted: bool = False
    has_default: bool = False


class ShellWord(Struct, frozen=True):
    """One word of a command. `written`: the word without quotes, with variables unchanged. `literal`: the text of a
    word without quotes and variables, such as a reserved word; "" for other words.
    """

    parts: tuple[WordPart, ...]
    written: str
    literal: str

    def expand(self, value: Callable[[str], str | None], *, splits: bool = True) -> Sequence[str]:
        """Return the words after expansion; a variable without a known value stays unchanged."""
        if self.literal:
            return (self.literal,)
        fields: list[list[str]] = [[]]
        for part in self.parts:
            known = value(part.name) if part.name else None
            known = None if part.has_default and known in ("", "?") else known
            pieces = [part.text if known is None else known]
            if known is not None and splits and not part.quoted:
                pieces = known.split()
            for index, piece in enumerate(pieces):
                if index:
                    fields.append([])
                fields[-1].append(piece)
        return ["".join(field) for field in fields if field]


def join_word_parts(parts: Sequence[WordPart]) -> ShellWord:
    """Join the parts of a shell word into one word."""
    written = "".join([part.text for part in parts])
    is_literal = not any(part.quoted or part.name for part in parts)
    return ShellWord(tuple(parts), written, written if is_literal else "")


def _find_newline_and_sign(text: str, sign: str, start: int) -> int:
    """Return the next index of `sign` in a text, or -1. `sign` begins with a newline. For long scripts this is faster
    than `str.find(sign)`: CPython finds a single character fifty times as fast as several characters.
    """
    at, first = start + 1, sign[1:2]
    for _ in range(_LOOKS if first else 0):
        at = text.find(first, at)
        if at < 0 or text.startswith(sign, at - 1):
            return max(-1, at - 1)
        at += 1
    return text.find(sign, max(start, at - 1))


@cache_for_short_texts(1 << 20)
def _plain_word(text: str) -> ShellWord:
    """Return the word of a text without quotes and variables; cached, because scripts repeat words."""
    return join_word_parts([WordPart(text)])


def split_into_tokens(script: str) -> Iterator[ShellWord | Operator]:
    """Yield the words and operators of a script, without comments and the bodies of here-documents.

    Raises:
        ValueError: a quote or a parenthesis is not closed, or they are nested too deeply.
    """
    return _ShellTokenizer(script).tokens()


class _ShellTokenizer:
    def __init__(self, script: str) -> None:
        self.text = script
        self.at = 0
        self.depth = 0
        self.documents: list[tuple[str, bool]] = []  # delimiter, whether tabs before the delimiter are dropped

    def tokens(self) -> Iterator[ShellWord | Operator]:
        document: Operator = ""
        while self.at < len(self.text):
            if not document and (plain := _ALONE.match(self.text, self.at)):
                self.at = plain.end()
                yield _plain_word(plain[0])
                continue
            if self._take_match(_BLANK):
                continue
            if self.text[self.at] == "#":
                self.at = self._find_closing_text("\n", len(self.text))
            elif self.text.startswith(("<(", ">("), self.at):
                yield join_word_parts([WordPart(self.text[self.at] + self._read_until_closed(self.at + 1))])
            elif self.text.startswith("((", self.at):
                yield join_word_parts([WordPart(self._read_until_closed(self.at))])
            elif operator := self._take_match(_OPERATOR):
                if operator == "\n":
                    self._skip_here_documents()
                document = operator if operator in ("<<", "<<-") else ""
                yield operator
            elif read := self._read_word():
                if document:
                    self.documents.append((read.written, document == "<<-"))
                    document = ""
                yield read

    def _take_match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match[0] if match else ""

    def _find_closing_text(self, text: str, default: int = -1) -> int:
        at = self.text.find(text, self.at)
        if at < 0 and default < 0:
            raise ValueError(f"{text} is not closed")
        return default if at < 0 else at

    def _skip_here_documents(self) -> None:
        """Skip the here-documents of the last line. A here-document ends at a line with only its delimiter."""
        for delimiter, tabs in self.documents:
            self.at = self._end_of_here_document(delimiter, "\n" if tabs else f"\n{delimiter}", tabs=tabs)
        self.documents.clear()

    def _end_of_here_document(self, delimiter: str, sign: str, *, tabs: bool) -> int:
        """Return the index of the line after the delimiter. `sign` is a newline, followed by the beginning of the line
        with the delimiter.
        """
        start = self.at - 1
        while (start := _find_newline_and_sign(self.text, sign, start)) >= 0:
            end = self.text.find("\n", start + 1)
            line = self.text[start + 1 : end if end >= 0 else len(self.text)].rstrip("\r")
            if (line.lstrip("\t") if tabs else line) == delimiter:
                return end + 1 if end >= 0 else len(self.text)
            start += 1
        return len(self.text)

    def _read_word(self) -> ShellWord | None:
        """Read one word; None for a file descriptor before `<` or `>`."""
        parts: list[WordPart] = []
        while self.at < len(self.text):
            if plain := self._take_match(_PLAIN):
                parts.append(WordPart(plain))
                continue
            match self.text[self.at]:
                case "'":
                    parts.append(self._read_single_quoted())
                case '"':
                    parts.extend(self._read_double_quoted())
                case "\\":
                    parts.append(self._read_escaped())
                case "$" | "`":
                    parts.append(self._read_expansion(quoted=False))
                case "(" if parts and parts[-1].text.endswith("="):
                    parts.append(WordPart(self._read_until_closed(self.at)))
                case _:
                    break
        whole = join_word_parts(parts)
        is_file = whole.literal.isdigit() and self.text[self.at : self.at + 1] in ("<", ">")
        return None if is_file else whole

    def _read_single_quoted(self) -> WordPart:
        self.at += 1
        end = self._find_closing_text("'")
        text, self.at = self.text[self.at : end], end + 1
        return WordPart(text, quoted=True)

    def _read_double_quoted(self) -> Iterator[WordPart]:
        self.at += 1
        yield WordPart("", quoted=True)
        while self.at < len(self.text):
            if plain := self._take_match(_QUOTED):
                yield WordPart(plain, quoted=True)
                continue
            match self.text[self.at]:
                case '"':
                    self.at += 1
                    return
                case "\\":
                    kept = "" if self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n") else "\\"
                    yield WordPart(kept + self._read_escaped().text, quoted=True)
                case _:
                    yield self._read_expansion(quoted=True)
        raise ValueError('" is not closed')

    def _read_escaped(self) -> WordPart:
        """Read a backslash and the character that it quotes. Drop a backslash together with a newline after it."""
        sign, self.at = self.text[self.at + 1 : self.at + 2], self.at + 2
        return WordPart("" if sign == "\n" else sign, quoted=sign != "\n")

    def _read_expansion(self, *, quoted: bool) -> WordPart:
        """Read the text after a `$` or a backquote: a variable by its name, other text unchanged."""
        start = self.at
        if match := _NAME.match(self.text, start):
            self.at = match.end()
            return WordPart(match[0], match[1] or match[2] or "", quoted, bool(match[3]))
        if self.text[start] == "`":
            self.at += 1
            self.at = self._find_closing_text("`") + 1
            return WordPart(self.text[start : self.at], quoted=quoted)
        if self.text.startswith(("$(", "${"), start):
            return WordPart("$" + self._read_until_closed(start + 1), quoted=quoted)
        self.at += 1
        if not quoted and self.text[self.at : self.at + 1] == "'":
            return self._read_single_quoted()
        return WordPart("$", quoted=quoted)

    def _read_until_closed(self, start: int) -> str:
        """Read the text from an opening parenthesis or brace to its closing counterpart."""
        self.at, self.depth = start + 1, self.depth + 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        closers = [_PAIRS[self.text[start]]]
        while closers:
            match = _NESTED.search(self.text, self.at)
            if match is None:
                raise ValueError(f"{self.text[start]} is not closed")
            self.at = match.end()
            self._step_inside_nesting(match[0], closers)
        self.depth -= 1
        return self.text[start : self.at]

    def _step_inside_nesting(self, sign: str, closers: list[str]) -> None:
        match sign:
            case "\\":
                self.at += 1
            case "'":
                self.at = self._find_closing_text("'") + 1
            case '"':
                self.at -= 1
                for _ in self._read_double_quoted():
                    pass
            case _ if sign == closers[-1]:
                closers.pop()
            case "(" | "{":
                closers.append(_PAIRS[sign])
            case _:
                pass


_ENDS_PIPELINE: Final = frozenset((";", "&", "&&", "||", "\n"))


class ShellCommand(Struct, frozen=True):
    """The words of a command as written. `certain`: whether the command always runs, exactly once, in the shell of the
    script.
    """

    words: tuple[ShellWord, ...]
    certain: bool


def split_into_commands(script: str, deadline: Deadline | None = None) -> Iterator[ShellCommand]:
    """Yield the simple commands of a script, in order; assignments are commands too. The deadline is charged for every
    word.

    Raises:
        ValueError: a quote or a parenthesis is not closed.
    """
    nesting = _NestingOfCommand()
    words: list[ShellWord] = []
    target = False
    for token in (deadline or Deadline()).items_with_clock_checks(split_into_tokens(script)):
        if isinstance(token, ShellWord):
            if not target:
                words.append(token)
            target = False
        elif token in _REDIRECTIONS:
            target = True
        else:
            yield from nesting.finished_command(words, token)
            words, target = [], False
    yield from nesting.finished_command(words, "\n")


def word_after_first_command(script: str, deadline: Deadline) -> str:
    """Return the first word of the command that follows the first command of a script, or the first pipeline; "" if no
    command follows, or a quote or a parenthesis is not closed.
    """
    has_command = is_ended = False
    try:
        for token in deadline.items_with_clock_checks(split_into_tokens(script)):
            if not isinstance(token, ShellWord):
                is_ended |= has_command and token in _ENDS_PIPELINE
            elif is_ended:
                return token.written
            else:
                has_command = True
    except ValueError:
        return ""
    return ""


class _NestingOfCommand:
    """The context of a command: the compound commands and parentheses around it, and the operator before it."""

    def __init__(self) -> None:
        self.compounds = self.parentheses = 0
        self.before: Operator = "\n"

    def finished_command(self, words: list[ShellWord], operator: Operator) -> Iterator[ShellCommand]:
        """Yield the command of these words; `operator` ends the command."""
        rest = self._strip_reserved_words(words)
        if rest:
            alone = self.before not in _CONDITIONAL and operator not in _APART
            yield ShellCommand(tuple(rest), certain=alone and not self.compounds and not self.parentheses)
        if operator == "(":
            self.parentheses += 1
        elif operator == ")":
            self.parentheses = max(0, self.parentheses - 1)
        if words or operator != "\n":
            self.before = operator

    def _strip_reserved_words(self, words: list[ShellWord]) -> list[ShellWord]:
        """Return the words after the reserved words that open, close or divide compound commands."""
        index = 0
        while index < len(words):
            name = words[index].literal
            if name in _OPENS:
                self.compounds += 1
            elif name in _CLOSES:
                self.compounds = max(0, self.compounds - 1)
            elif name not in _AMONG:
                break
            if name in _WHOLE:
                break
            index += 2 if name == "function" else 1
        return words[index:]


_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")
_DECLARES = frozenset(("export", "declare", "typeset", "local", "readonly"))
_SETS = frozenset(("for", "select", "read", "unset", "mapfile", "readarray", "getopts", "let", "printf"))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPEN = re.compile(r"[$`?*(]")


class ReadingBudget:
    """How much text may still be read and expanded for one command line, and the deadline.

    A variable can double its length with every line, and scripts can run each other. So the reader stops at the length
    that Linux allows for a command.
    """

    MOST = 2 * 1024 * 1024
    """Linux's limit, in characters, for arguments and environment together (a quarter of the stack of 8 MiB)."""

    def __init__(self, deadline: Deadline | None = None) -> None:
        self.deadline = deadline or Deadline()
        self.left = self.MOST

    def take(self, length: int) -> None:
        """Count text before it is read or expanded.

        Raises:
            ValueError: there is too much text.
        """
        self.left -= length
        if self.left < 0:
            raise ValueError("more text than a process can be given")
        self.deadline.spend(1 + length // 10)

    def take_script(self, script: str) -> None:
        """Count a script before it is split into words, because nothing interrupts the split.

        Raises:
            ValueError: there is too much text.
        """
        self.take(len(script))
        signs = script.encode("utf-8", "surrogatepass").translate(None, _PLAIN_BYTES)
        self.deadline.check_clock_before_slow_call(len(signs) * _SIGN_S)


class ScriptVariables:
    """The known values of variables while the commands of a script are read; `?` is a value that the script computes.

    `computed` has the names of the variables with a computed value. `exported` has the names of variables that programs
    get. `of_command` has the variables that are set only for the last command, with their values.
    """

    def __init__(self, known: Mapping[str, str], reading: ReadingBudget | None = None) -> None:
        self.known = dict(known)
        self.computed: set[str] = set()
        self.exported = set(known)
        self.of_command: dict[str, str] = {}
        self.reading = reading or ReadingBudget()

    def value(self, name: str) -> str | None:
        """Return the value of a variable; None if the value is not known, for example because the image sets it."""
        return "?" if name in self.computed else self.known.get(name)

    def certain_values(self) -> dict[str, str]:
        """Return the known values of variables, for a script inside the script."""
        return {name: value for name, value in self.known.items() if name not in self.computed}

    def values_for_program(self, names: Collection[str]) -> dict[str, str]:
        """Return the values of some variables in the environment of the last command's program."""
        exported = {name: self.value(name) for name in names if name in self.exported}
        values = {**exported, **{name: self.of_command[name] for name in names if name in self.of_command}}
        return {name: value for name, value in values.items() if value is not None}

    def assign_and_expand_command(self, command: ShellCommand) -> tuple[str, ...]:
        """Note the assignments of a command, and return the words after them; () for a command that only assigns."""
        self.of_command = {}
        count = 0
        while count < len(command.words) and _ASSIGNMENT.match(command.words[count].written):
            count += 1
        rest = command.words[count:]
        if not rest:
            self._assign_values(command.words, certain=command.certain)
            return ()
        self.of_command = dict(filter(None, map(self._assigned_value, command.words[:count])))
        name = rest[0].literal
        if name in _DECLARES:
            if name == "export" or (len(rest) > 1 and rest[1].literal == "-x"):
                self.exported.update(word.written.partition("=")[0] for word in rest[1:])
            self._assign_values(rest[1:], certain=command.certain)
            return ()
        if name in _SETS or rest[0].written.startswith("(("):
            self.computed |= {each for word in rest for each in _IDENTIFIER.findall(word.written)}
            return ()
        words = tuple(each for word in rest for each in word.expand(self._value_for_expansion))
        if words and words[0] in ("source", "."):
            self.computed |= self.known.keys()
            self.known.clear()
        return words

    def _value_for_expansion(self, name: str) -> str | None:
        """Return the value of a variable for a word, and count the characters of the value."""
        value = self.value(name)
        self.reading.take(len(value or ""))
        return value

    def _assign_values(self, words: tuple[ShellWord, ...], *, certain: bool) -> None:
        for name, value in filter(None, map(self._assigned_value, words)):
            if certain and value != "?":
                self.known[name] = value
                self.computed.discard(name)
            else:
                self.computed.add(name)

    def _assigned_value(self, word: ShellWord) -> tuple[str, str] | None:
        """Return the name and the value of an assignment, `?` if only a shell knows the value; None for other words."""
        match = _ASSIGNMENT.match(word.written)
        if match is None:
            return None
        value = "".join(word.expand(self._value_for_expansion, splits=False))[match.end() :]
        is_known = not match[2] and not match[3] and not _OPEN.search(value)
        return match[1], value if is_known else "?"
