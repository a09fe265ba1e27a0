#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds coroutines that g++ 12 miscompiles.

A coroutine crashes when it was compiled by g++ 12.2 (Debian 12) and
  - a condition of if, while, for or switch holds a co_await, and
  - no local variable is declared in the outermost block of its body.
There is no warning, and every optimisation level is affected. One variable in that block cures it;
so does awaiting into a variable and testing that. Reproduction: gcc_coroutine_condition.cc beside
this file; why we care although clang ships: docs/adr/0002-compiler.md.

This reads tokens, not C++: it knows blocks, lambdas and statements, and nothing of types. Where it
cannot tell it reports, because a false alarm costs one variable and a miss costs a crash.

usage: coroutine_condition.py FILE...     exit 1 and one line for each finding
"""

import re
import sys
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#(?:\\\n|[^\n])*)
      | (?P<text>R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:'?[\w.])*)
      | (?P<mark>::|->|&&|.)""",
    re.VERBOSE | re.DOTALL,
)
CONDITION_WORDS = {"if", "while", "for", "switch"}
# What may begin a statement that declares nothing.
NOT_A_DECLARATION = {
    "break", "case", "co_await", "co_return", "co_yield", "continue", "default", "delete", "do",
    "else", "for", "goto", "if", "namespace", "new", "public", "private", "protected", "return",
    "static_assert", "switch", "throw", "try", "catch", "typedef", "using", "while",
    # Types, not variables. (A variable declared in one statement with its type is not recognised.)
    "struct", "class", "union", "enum",
}
TYPE_MARKS = {"::", "&", "*", "&&", "<", ">", ","}


@dataclass
class Token:
    kind: str
    text: str
    line: int


@dataclass
class Block:
    """What stands between two braces."""

    kind: str  # "function" (also a lambda's body) or "other"
    start: int  # index of its first token
    has_local: bool = False
    awaits: list = field(default_factory=list)  # lines of conditions that await


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


def is_function_body(tokens, brace):
    """Is the brace at this index the start of the body of a function or a lambda?

    Walks back over what may stand between the parameters and the body (const, noexcept, a trailing
    return type, a constructor's initialisers) to the parameters' ")" or a lambda's "]".
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
            if before == "constexpr" and tokens[start - 2].text == "if":
                return False
            return before not in CONDITION_WORDS | {"catch"}
        if text == "]":
            return opener(tokens, index, "[", "]") > 0
        if text == ">":
            index = opener(tokens, index, "<", ">") - 1
            continue
        is_part_of_a_type = tokens[index].kind == "word" or text in ("::", "->", "&", "*", "&&")
        if not is_part_of_a_type or text in NOT_A_DECLARATION | {"do", "else", "extern"}:
            return False
        index -= 1
    return False


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
        text = token.text
        if depth == 0 and words >= 2 and text in ("=", "{", "(", "[", ";", ","):
            return statement[position - 1].kind == "word" or text == "["
        if text in ("<", ">"):
            depth += 1 if text == "<" else -1
            if depth == 0:
                words = 1  # what follows the arguments is the name
        elif depth == 0 and token.kind == "word":
            follows_scope = position > 0 and statement[position - 1].text in ("::", ".", "->")
            words += 0 if follows_scope else 1
        elif depth == 0 and text not in TYPE_MARKS:
            # "auto [a, b] = ..." is the one declaration whose name is no word.
            return text == "[" and statement[position - 1].text in ("auto", "&", "&&")
    return words >= 2 and depth == 0


def findings(source):
    """Yields the lines of the conditions that g++ 12 would miscompile."""
    tokens = list(tokenize(source))
    stack = []  # of Block
    statement = []  # tokens of the current statement of the innermost block
    saved = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == "{":
            function = is_function_body(tokens, index)
            if stack and stack[-1].kind == "function" and not function and declares(statement):
                stack[-1].has_local = True  # T name{...}
            stack.append(Block("function" if function else "other", index))
            saved.append(statement)
            statement = []
        elif token.text == "}":
            if stack:
                block = stack.pop()
                outer = saved.pop()
                if block.kind == "function":
                    if block.awaits and not block.has_local:
                        yield from block.awaits
                    # A lambda is a part of the statement that it stands in.
                    statement = outer + [token] if in_expression(outer) else []
                else:
                    statement = outer + [token] if in_expression(outer) else []
        elif token.text == ";":
            if stack and stack[-1].kind == "function" and declares(statement):
                stack[-1].has_local = True
            statement = []
        elif token.text in CONDITION_WORDS and token.kind == "word":
            start = index + 1
            if start < len(tokens) and tokens[start].text == "constexpr":
                start += 1
            if start < len(tokens) and tokens[start].text == "(":
                end = matching(tokens, start, "(", ")")
                function = innermost_function(stack)
                if function and awaits_itself(tokens, start, end):
                    function.awaits.append(token.line)
                # A loop's head may hold a ";" and a lambda's body: neither ends a statement here.
                if not any(t.text == "{" for t in tokens[start:end]):
                    index = end
            statement = []
        else:
            statement.append(token)
        index += 1


def in_expression(outer):
    """Does the statement go on after the brace that now closes?"""
    return any(token.text in ("=", "(", ",", "return", "co_return", "co_await") for token in outer)


def innermost_function(stack):
    for block in reversed(stack):
        if block.kind == "function":
            return block
    return None


def awaits_itself(tokens, start, end):
    """Is there a co_await between these indices that is not in a lambda of its own?"""
    index = start
    while index < end:
        if tokens[index].text == "co_await":
            return True
        if tokens[index].text == "{" and is_function_body(tokens, index):
            index = matching(tokens, index, "{", "}")
        index += 1
    return False


def main(paths):
    bad = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            source = file.read()
        if "co_await" not in source:
            continue
        for line in findings(source):
            bad += 1
            print(
                f"{path}:{line}: co_await in a condition of a coroutine without a local variable in"
                " its outermost block: g++ 12 miscompiles it"
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
