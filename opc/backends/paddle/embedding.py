"""Files for those who build a package's operators with their own tools: `setup.py` of Paddle's kind, and `CMakeLists.txt`."""

from __future__ import annotations

from opc.backends.kernel.backend import COMMON_FLAGS, ENTRY_FLAGS, LOOP_FLAGS, VARIANTS
from opc.backends.paddle.library import templates
from opc.emit.python.text import Bracket, quoted
from opc.ir.op import Family


def embedding_files(family: Family) -> dict[str, str]:
    """Return `paddle/setup.py` and `paddle/CMakeLists.txt`; none for native code, whose libraries are the machine's."""
    if family.native_for("cpp") is not None:
        return {}
    variants = [(name, flags) for name, flags in VARIANTS.items() if flags]
    setup = templates.render(
        "setup.py.j2",
        family,
        kernel_flags=_list(COMMON_FLAGS, len("KERNEL = ")),
        entry_flags=_list(ENTRY_FLAGS),
        loop_flags=_list(LOOP_FLAGS),
        variants=[(name, _list(flags)) for name, flags in variants],
    )
    flags = {"kernel_flags": COMMON_FLAGS, "entry_flags": ENTRY_FLAGS, "loop_flags": LOOP_FLAGS}
    cmake = templates.render("CMakeLists.txt.j2", family, **flags, variants=variants)
    return {"paddle/setup.py": setup, "paddle/CMakeLists.txt": cmake}


def _list(flags: tuple[str, ...], before: int = 0) -> str:
    return Bracket("[", [quoted(f) for f in flags], "]").render(before=before)
