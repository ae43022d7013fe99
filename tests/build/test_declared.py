"""Headers whose functions are only declared: what is left, which lines it is on, and that a compiler takes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opc.backends.poplar.sdk import runtime
from opc.build.declared import NotUnderstood, declared


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("inline int f(int x) { return x; }", "int f(int x);"),
        ("inline int f(int x = g(1)) noexcept {\n  return x;\n}\nint g(int);", "int f(int x = g(1)) noexcept;\n\n\nint g(int);"),
        ("struct A {\n int f() const { return n; }\n int n{1};\n};", "struct A {\n int f() const;\n int n{1};\n};"),
        ("struct A {\n explicit A(int x) : n(x), m{x} {}\n int n, m;\n};", "struct A {\n explicit A(int x);\n int n, m;\n};"),
        ("struct A { virtual ~A() {} };", "struct A { virtual ~A(); };"),
        ("struct A { bool operator()(int x) const { return x; } };", "struct A { bool operator()(int x) const; };"),
        ("inline A operator+(A a, A b) { return {a, b}; }", "A operator+(A a, A b);"),
        ("struct A { friend bool operator==(A a, A b) { return true; } };", "struct A { friend bool operator==(A a, A b); };"),
        ("__attribute__((noinline)) inline void f() {}", "__attribute__((noinline)) void f();"),
        ("X_NOINLINE void f() {}", "void f();"),
        # What was declared in its class is left out.
        ("inline int A::f() const {\n  return 1;\n}\n", "\n\n\n"),
        ("inline A::~A() {}\ninline bool A::operator<(A b) { return true; }\n", "\n\n"),
        ("inline n::A f(n::B b) { return b; }", "n::A f(n::B b);"),
    ],
)
def test_bodies_are_left_out(text: str, left: str) -> None:
    assert declared(text) == left
    assert declared(f"namespace n {{\n{text}\n}}  // namespace n\n") == f"namespace n {{\n{left}\n}}  // namespace n\n"


@pytest.mark.parametrize(
    "text",
    [
        "template <typename T>\nT f(T x) { return x; }",
        "template <typename T>\nstruct A {\n  T f() { return n; }\n  T n;\n};",
        "inline auto f(int x) { return x; }",
        "constexpr int f(int x) { return x; }",
        "__attribute__((unused)) static int f(int x) { return x; }",
        "namespace {\ninline int f() { return 1; }\n}",
        "enum class A { a, b };",
        "const int a[] = {f(1), 2};\nconst std::function<int()> g = []() { return 1; };",
        "#define F(x) { x }\n// { not a brace\nconst char *s = \"{\", c = '{'; /* { */",
        "struct A { enum class k { a }; union { int x; float y; }; };",
    ],
)
def test_what_a_source_needs_is_left(text: str) -> None:
    assert declared(text) == text


@pytest.mark.parametrize("text", ["inline void f() {", "}", "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}"])
def test_what_does_not_close_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        declared(text)


def test_all_headers_of_the_runtime_are_understood(tmp_path: Path) -> None:
    include = runtime() / "include"
    changed = 0
    for path in sorted((include / "opc").rglob("*.h")):
        text = path.read_text()
        left = declared(text)
        assert left.count("\n") == text.count("\n"), path
        changed += left != text
        (tmp_path / path.relative_to(include)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(include)).write_text(left)
    assert changed > 10
    # What only declares functions is C++ still: of the rules of calls, which include no framework.
    source = tmp_path / "source.cpp"
    source.write_text('#include "opc/core/shape.h"\n')
    done = subprocess.run(["g++", "-std=c++14", "-w", "-fsyntax-only", f"-I{tmp_path}", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
