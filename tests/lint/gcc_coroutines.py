#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds coroutines that g++ 12 miscompiles, without a warning and at every optimisation level.

Condition: a condition of if, while, for or switch holds a co_await, and no local variable is
declared in the outermost block of the coroutine's body. One variable in that block cures it; so
does awaiting into a variable and testing that.

Braces: a statement holds a co_await and a value in braces (`co_await Get({.url = u})`). If that is
an aggregate with members that are not plain data, its bytes are copied instead of the value, and
freed twice. Make the value in a statement of its own; a call that makes it, or parentheses, are
fine. A default argument of the call counts as well: `co_await Explain(MakeError(reason, text))`.

Proof: gcc_coroutines_proof.cc beside this file. Why we care although clang ships:
docs/adr/0002-compiler.md.

This reads tokens, not C++: it knows blocks, lambdas and statements, and nothing of types. Where it
cannot tell it reports, because a false alarm costs one variable and a miss costs a crash.

usage: gcc_coroutines.py FILE...     exit 1 and one line for each finding
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#(?:\\\n|[^\n])*)
      | (?P<text>R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:'?[\w.])*)
      | (?P<mark>::|->|&&|.)""",
    re.VERBOSE | re.DOTALL,
)
CONDITION_WORDS = {"if", "while", "for", "switch"}
TYPE_WORDS = {"struct", "class", "union", "enum"}
# What may begin a statement that declares no variable. (One that is declared together with its type
# is not recognised.)
NOT_A_DECLARATION = TYPE_WORDS | {
    "break", "case", "catch", "co_await", "co_return", "co_yield", "continue", "default", "delete",
    "do", "else", "for", "goto", "if", "namespace", "new", "private", "protected", "public",
    "return", "static_assert", "switch", "throw", "try", "typedef", "using", "while",
}
# What may stand before the brace of a block, at the beginning of its statement.
BLOCK_WORDS = TYPE_WORDS | {
    "catch", "do", "else", "extern", "inline", "namespace", "template", "try", "typedef",
}
# What begins a label: the statement comes after the colon.
LABEL_WORDS = {"case", "default", "private", "protected", "public"}
TYPE_MARKS = {"::", "&", "*", "&&", "<", ">", ","}
# Functions of ours whose default argument is an aggregate.
WITH_DEFAULT_BRACES = {"MakeError"}
CONDITION = "co_await in a condition, and no local variable in the coroutine's outermost block"
BRACES = "co_await and a value in braces in one statement"


@dataclass
class Token:
    kind: str  # text, word, number, mark; "braces" and "lambda" for what was between two braces
    text: str
    line: int


@dataclass
class Block:
    """What stands between two braces."""

    kind: str  # "function" and "lambda" (their bodies), "value" (inside a statement), "other"
    outer: list  # the tokens of the statement in which it stands
    has_local: bool = False
    conditions: list = field(default_factory=list)  # lines of those that await


def tokenize(source):
    line = 1
    for match in TOKEN.finditer(source):
        kind = match.lastgroup if match.lastgroup != "d" else "text"
        if kind != "skip":
            yield Token(kind, match.group(), line)
        line += match.group().count("\n")


def matching(tokens, start, opening, closing):
    """The index of the mark that closes the one at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].text == opening) - (tokens[index].text == closing)
        if depth == 0:
            return index
    return len(tokens) - 1


def opener(tokens, end, opening, closing):
    """The index of the mark that the one at `end` closes."""
    depth = 0
    for index in range(end, -1, -1):
        depth += (tokens[index].text == closing) - (tokens[index].text == opening)
        if depth == 0:
            return index
    return 0


def body_kind(tokens, brace):
    """Is the brace at this index the start of the body of a function or a lambda, or neither?

    Walks back over what may stand between the parameters and the body (const, noexcept, a trailing
    return type) to the parameters' ")" or a lambda's "]".
    """
    index = brace - 1
    while index >= 0:
        text = tokens[index].text
        if text == ")":
            start = opener(tokens, index, "(", ")")
            before = tokens[start - 1].text if start > 0 else ""
            if before in ("noexcept", "requires", "decltype"):
                index = start - 2
                continue
            if before == ">":  # a lambda with template parameters
                before = tokens[opener(tokens, start - 1, "<", ">") - 1].text
            if before == "]":
                return "lambda"
            is_head = before in CONDITION_WORDS | {"catch", "constexpr"}
            return None if is_head else "function"
        if text == "]":
            return "lambda"
        if text == ">":
            index = opener(tokens, index, "<", ">") - 1
            continue
        is_part_of_a_type = tokens[index].kind == "word" or text in ("::", "->", "&", "*", "&&")
        if not is_part_of_a_type or text in NOT_A_DECLARATION | {"extern"}:
            return None
        index -= 1
    return None


def declares(statement):
    """Does this statement (its tokens without the end) declare a variable?

    A type, then a name, then the end, an initialiser or another name. Attributes are skipped.
    """
    index = 0
    while index + 1 < len(statement) and statement[index].text == "[" == statement[index + 1].text:
        index = matching(statement, index, "[", "]") + 1
    if index >= len(statement) or statement[index].kind != "word":
        return False
    if statement[index].text in NOT_A_DECLARATION:
        return False
    words = 0
    depth = 0
    for position in range(index, len(statement)):
        token = statement[position]
        before = statement[position - 1]
        if depth == 0 and words >= 2 and (token.kind == "braces" or token.text in "=([,"):
            return before.kind == "word"
        if token.text in ("<", ">"):
            depth += 1 if token.text == "<" else -1
            if depth == 0:
                words = 1  # what follows the arguments is the name
        elif depth == 0 and token.kind == "word":
            words += 0 if position > 0 and before.text in ("::", ".", "->") else 1
        elif depth == 0 and token.text not in TYPE_MARKS:
            # "auto [a, b] = ..." is the one declaration whose name is no word.
            return token.text == "[" and before.text in ("auto", "&", "&&")
    return words >= 2 and depth == 0


def awaits(statement):
    return any(token.text == "co_await" for token in statement)


class Reader:
    """Goes over the tokens once; the findings are (line, what) pairs."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.stack = []
        self.statement = []
        self.findings = []

    def read(self):
        index = 0
        while index < len(self.tokens):
            token = self.tokens[index]
            if token.text == "{":
                self.open_brace(index)
            elif token.text == "}":
                self.close_brace(token)
            elif token.text == ";":
                self.end_statement()
            elif token.text == ":" and self.statement and self.statement[0].text in LABEL_WORDS:
                self.statement = []
            elif token.kind == "word" and token.text in CONDITION_WORDS:
                index = self.condition(index)
            else:
                self.statement.append(token)
            index += 1
        return self.findings

    def open_brace(self, index):
        kind = body_kind(self.tokens, index)
        if kind is None:
            words = {token.text for token in self.statement[:1]}
            is_block = not self.statement or words & BLOCK_WORDS
            kind = "other" if is_block else "value"
        self.stack.append(Block(kind, self.statement))
        self.statement = []

    def close_brace(self, token):
        if not self.stack:
            self.statement = []
            return
        block = self.stack.pop()
        if block.kind in ("function", "lambda") and not block.has_local:
            self.findings += [(line, CONDITION) for line in block.conditions]
        inner = self.statement
        self.statement = []
        if block.kind == "lambda":
            self.statement = [*block.outer, Token("lambda", "", token.line)]
        elif block.kind == "value":
            self.statement = [*block.outer, Token("braces", "", token.line)]
            self.statement += [t for t in inner if t.text == "co_await" or t.kind == "braces"]

    def end_statement(self):
        if self.stack and self.stack[-1].kind in ("function", "lambda"):
            self.stack[-1].has_local |= declares(self.statement)
        self.check_braces(self.statement)
        self.statement = []

    def check_braces(self, tokens):
        def in_braces(token):
            return token.kind == "braces" or token.text in WITH_DEFAULT_BRACES

        if awaits(tokens) and any(in_braces(token) for token in tokens):
            line = next(token.line for token in tokens if token.text == "co_await")
            self.findings.append((line, BRACES))

    def condition(self, index):
        """Reads the head of an if, while, for or switch; the index of its last token."""
        line = self.tokens[index].line
        if index + 1 < len(self.tokens) and self.tokens[index + 1].text == "constexpr":
            index += 1
        self.statement = []
        if index + 1 >= len(self.tokens) or self.tokens[index + 1].text != "(":
            return index
        end = matching(self.tokens, index + 1, "(", ")")
        head = Reader(self.tokens[index + 2 : end])
        head.read()
        head.check_braces(head.statement)
        self.findings += head.findings
        head_awaits = awaits_outside_lambdas(self.tokens, index + 2, end)
        for block in reversed(self.stack):
            if block.kind in ("function", "lambda"):
                if head_awaits:
                    block.conditions.append(line)
                break
        return end


def awaits_outside_lambdas(tokens, start, end):
    index = start
    while index < end:
        if tokens[index].text == "co_await":
            return True
        if tokens[index].text == "{" and body_kind(tokens, index) is not None:
            index = matching(tokens, index, "{", "}")
        index += 1
    return False


def findings(source):
    return sorted(Reader(list(tokenize(source))).read())


def main(paths):
    bad = 0
    for path in paths:
        source = Path(path).read_text(encoding="utf-8")
        if "co_await" not in source:
            continue
        for line, what in findings(source):
            bad += 1
            print(f"{path}:{line}: {what}: g++ 12 miscompiles it")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
