# SPDX-License-Identifier: Apache-2.0
"""Tests of gcc_coroutines.py.

The cases of both rules were each compiled with g++ 12.2.0 and run: CRASHES and BRACES_CRASH did not
print what they should, FINE and BRACES_FINE did. CAUTION and BRACES_CAUTION are fine too, but the
rules are simpler without exceptions for them.
"""

from pathlib import Path

import gcc_coroutines
import pytest

CRASHES = {
    "if": "Task F() { if (co_await Yes()) co_return true; co_return false; }",
    "while": "Task F() { while (co_await Thrice()) {} co_return true; }",
    "for": "Task F() { for (; co_await Thrice();) {} co_return true; }",
    "switch": "Task F() { switch (int(co_await Yes())) { case 1: co_return true; } co_return 0; }",
    "not": "Task F() { if (!co_await Yes() || co_await No()) co_return false; co_return true; }",
    "do": "Task F() { do {} while (co_await Thrice()); co_return true; }",
    "parameter": "Task G(int p) { if (co_await Yes()) co_return p == 1; co_return false; }",
    "member": "Task Obj::M() { if (co_await Yes()) co_return x == 1; co_return false; }",
    "assignment": "Task F() { calls = 0; if (co_await Yes()) co_return true; co_return false; }",
    "cast": "Task F() { if (bool(co_await Yes())) co_return true; co_return false; }",
    "and": "Task F() { if (calls == 0 && co_await Yes()) co_return true; co_return false; }",
    "second":
    "Task F() { if (calls == 0) { calls = 5; } if (co_await Yes()) co_return 1; "
    "co_return 0; }",
    "constexpr":
    "Task F() { if constexpr (true) { if (co_await Yes()) co_return 1; } co_return 0; }",
    "template":
    "template <class T> Task G() { if (co_await Yes()) co_return T(1); co_return "
    "false; }",
    "twice": "Task F() { if (co_await Yes()) { if (co_await Yes()) co_return 1; } co_return 0; }",
}

FINE = {
    "local before": "Task F() { int a = 0; if (co_await Yes()) co_return true; co_return a == 1; }",
    "local after": "Task F() { if (co_await No()) co_return false; int a = 1; co_return a == 1; }",
    "ternary": "Task F() { co_return co_await Yes() ? true : false; }",
    "ternary statement": "Task F() { co_await No() ? (void)0 : (void)calls; co_return true; }",
    "awaited into a local":
    "Task F() { bool r = co_await Yes(); if (r) co_return 1; co_return 0; }",
    "binding":
    "Task F() { auto [a, b] = std::pair(1, 2); if (co_await Yes()) co_return a + b; "
    "co_return 0; }",
    "constexpr": "Task F() { constexpr int k = 1; if (co_await Yes()) co_return k; co_return 0; }",
    "static": "Task F() { static int k = 1; if (co_await Yes()) co_return k; co_return 0; }",
    "attribute":
    "Task F() { [[maybe_unused]] int k; if (co_await Yes()) co_return 1; co_return 0; }",
    "reference": "Task F() { int& k = calls; if (co_await Yes()) co_return k; co_return 0; }",
    "lambda":
    "Task F() { const auto k = [] { return 1; }; if (co_await Yes()) co_return k(); "
    "co_return 0; }",
    "braces": "Task F() { int k{1}; if (co_await Yes()) co_return k; co_return 0; }",
    "parentheses":
    "Task F() { std::pair<int, int> k(1, 2); if (co_await Yes()) co_return k.first; "
    "co_return 0; }",
    "array":
    "Task F() { int a[2] = {1, 2}; for (int i : a) { if (co_await Yes()) co_return i; "
    "} co_return 0; }",
    "no condition": "Task F() { (void)co_await Yes(); co_return true; }",
}

CAUTION = {
    "for with a variable":
    "Task F() { for (int i = 0; co_await Thrice(); ++i) {} co_return true; }",
    "inner block": "Task F() { { int a = 1; if (co_await Yes()) co_return a == 1; } co_return 0; }",
    "type only":
    "Task F() { struct S { int a = 1; }; if (co_await Yes()) co_return 1; co_return 0; "
    "}",
    "alias only": "Task F() { using X = int; if (co_await Yes()) co_return X(1); co_return 0; }",
    "lambda without": "auto l = []() -> Task { if (co_await Yes()) co_return 1; co_return 0; };",
}

BRACES_CRASH = {
    "named members": 'Task F() { bool r = co_await Take({.b = "bee"}); co_return r; }',
    "with the type": 'Task F() { bool r = co_await Take(Req{.b = "bee"}); co_return r; }',
    "without names": 'Task F() { bool r = co_await Take({"a", "bee"}); co_return r; }',
    "by reference": 'Task F() { bool r = co_await TakeRef({.b = "bee"}); co_return r; }',
    "returned": 'Task F() { co_return co_await Take({.b = "bee"}); }',
    "of a member": 'Task F() { Obj o; bool r = co_await o.M({.b = "bee"}); co_return r; }',
    "beside the await": 'Task F() { bool r = Both({.b = "bee"}, co_await Wait()); co_return r; }',
    "two calls deep": 'Task F() { bool r = co_await Take(Id({.b = "bee"})); co_return r; }',
    "in a lambda":
    "Task F() { auto l = []() -> Task { bool r = co_await Take({.b = B}); co_return r; "
    "}; bool r = co_await l(); co_return r; }",
    "empty": "Task F() { bool r = !co_await Take({}); co_return r; }",
    "empty with the type": "Task F() { bool r = !co_await Take(Req{}); co_return r; }",
    "whose method is awaited":
    "Task F() { bool r = co_await Tk{.r = {.b = B}}.Go(); co_return r; }",
    "around the await": 'Task F() { Resp x{co_await Wait(), "bee"}; co_return x.ok; }',
}

BRACES_FINE = {
    "made by a call": "Task F() { bool r = co_await Take(Make()); co_return r; }",
    "value in parentheses": "Task F() { bool r = !co_await Take(Req()); co_return r; }",
    "moved local":
    'Task F() { Req q{.b = "bee"}; bool r = co_await Take(std::move(q)); co_return r; }',
    "copied local": 'Task F() { Req q{.b = "bee"}; bool r = co_await Take(q); co_return r; }',
    "another statement":
    'Task F() { Req q = Id({.b = "b"}); bool r = co_await Wait(); co_return r; }',
}

BRACES_CAUTION = {
    "plain data": "Task F() { bool r = co_await TakePod({.b = 7}); co_return r; }",
    "a class with a constructor":
    'Task F() { bool r = co_await TakeS(std::string{"b"}); co_return r; }',
}

# How our own code is written.
HOUSE_STYLE_FINE = {
    "a local without await": "Task<void> F() { Transfer t(client, {.url = u}); co_await t.Go(); }",
    "lambda bodies":
    "Task<void> F() { co_await RunBoth([&] { return A({1}); }, [&]() -> Task<void> {\n  "
    "Req q{.b = x}; co_return; }); }",
    "block after a condition":
    "Task<void> F() { int n = co_await N(); if (n) { Use({n}); } else { n = 1; }\n  for "
    "(int i : a) { Use(i); } do { n--; } while (n); co_return; }",
    "result in braces": "Task<Resp> F() { auto b = co_await Wait(); co_return Resp{b, {}}; }",
    "a failure that is not awaited":
    'Task<void> F() { bool c = co_await Wait(); if (c) co_return MakeError(kReason, "x"); }',
    "case blocks":
    "Task<void> F() { int n = co_await N(); switch (n) { case 1: { Use({}); break; }\n  "
    "default: { co_await Wait(); } } }",
    "template type":
    "Task<void> F() { std::map<int, std::vector<int>>::iterator it;\n  while (co_await "
    "G()) it++; }",
    "pointer": "Task<bool> F() { const Entry* entry = nullptr; if (co_await G()) co_return 1; }",
    "qualified":
    "Task<bool> F() { absl::StatusOr<Head> head = co_await H(); if (co_await G()) "
    "co_return 1; }",
    "lambda inside a condition":
    "Task<void> F() { if (Any([&]() -> Task<bool> { bool b = 1;\n  while (co_await G()) "
    "b = 0; co_return b; })) co_return; }",
    "coroutine in an argument":
    "void T() { Run(loop, [&]() -> Task<void> { std::string chunk;\n  while (co_await "
    "t.Read(&chunk)) got += chunk; }); }",
    "comment and text":
    'Task<void> F() { /* if (co_await x) */ Log("if (co_await x)"); co_return; }  // '
    "while (co_await y)",
    "raw text": 'Task<void> F() { Log(R"(if (co_await x) {)"); co_return; }',
    "macro line": "#define G if (co_await x)\nTask<void> F() { co_return; }",
    "constructor with initialisers": "C::C(int a) : a_(a), b_{a} { if (a) return; }",
    "number with separators": "Task<void> F() { int n = 3'000'000; while (co_await G()) --n; }",
    "unnamed aggregate":
    "Task<void> F() { Transfer t(client, {.url = u, .body = b});\n  while (co_await "
    "t.Read(&c)) continue; }",
}

HOUSE_STYLE_FOUND = {
    "after a label": "Task<void> F() { int s = 1; switch (s) { case v1::A::kB:\n"
    "  s = co_await G({s}); break; } }",
    "after the default label": "Task<void> F() { int s = 1; switch (s) {\n"
    "  default: co_await G({s}); } }",
    "by a default argument":
    'Task F() { co_return co_await Explain(context, MakeError(kReason, "lost")); }',
    "in a condition":
    'Task F() { int a = 0; if (co_await Take({.b = "bee"})) co_return 1; co_return a; }',
    "in an argument of a function":
    "void T() { Run(loop, [&]() -> Task<void> { int n = 0;\n  x = co_await Get(client, "
    "{.url = u}, 100); }); }",
    "in an argument":
    "void T() { Run(loop, [&]() -> Task<void> {\n  while (co_await t.Read(&chunk)) got "
    "+= chunk; }); }",
    "trailing const":
    "Task<bool> C::F() const { if (co_await G()) co_return true; co_return false; }",
    "noexcept":
    "Task<bool> F() noexcept(true) { if (co_await G()) co_return true; co_return "
    "false; }",
    "local of a lambda":
    "Task<bool> F() { Do([] { int a = 0; return a; }); if (co_await G()) co_return 1; "
    "co_return 0; }",
    "call that looks like a declaration":
    "Task<bool> F() { a.b(c); d::e(f); g(h) = 1; i->j = k;\n  if (co_await G()) "
    "co_return 1; co_return 0; }",
    "method of a class":
    "class C { int x_ = 0; Task<bool> F() { if (co_await G()) co_return 1; co_return "
    "0; } };",
}

BAD = CRASHES | CAUTION | BRACES_CRASH | BRACES_CAUTION | HOUSE_STYLE_FOUND
GOOD = FINE | BRACES_FINE | HOUSE_STYLE_FINE


def test_no_name_hides_another() -> None:
    tables = (CRASHES, CAUTION, BRACES_CRASH, BRACES_CAUTION, HOUSE_STYLE_FOUND)
    assert len(BAD) == sum(map(len, tables))
    assert len(GOOD) == len(FINE) + len(BRACES_FINE) + len(HOUSE_STYLE_FINE)


@pytest.mark.parametrize("name", BAD)
def test_finds(name: str) -> None:
    assert gcc_coroutines.findings(BAD[name])


@pytest.mark.parametrize("name", GOOD)
def test_leaves_alone(name: str) -> None:
    assert gcc_coroutines.findings(GOOD[name]) == []


def test_tells_the_line() -> None:
    code = (
        "Task F() {\n  /* two\n lines */\n  if (co_await G()) {\n  }\n"
        "  while (co_await H()) {}\n}\n"
    )
    assert [line for line, _ in gcc_coroutines.findings(code)] == [4, 6]


def test_exit_code_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = tmp_path / "bad.cc", tmp_path / "good.cc"
    bad.write_text(CRASHES["if"], encoding="utf-8")
    good.write_text(FINE["local before"], encoding="utf-8")
    assert gcc_coroutines.main([str(good)]) == 0
    assert gcc_coroutines.main([str(good), str(bad)]) == 1
    report = capsys.readouterr().out
    assert "bad.cc:1: co_await" in report
    assert "good.cc" not in report
