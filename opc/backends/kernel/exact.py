"""Flags that keep arithmetic what the source says, whoever calls the compiler."""

from __future__ import annotations

EXACT_FLAGS = (
    *("-fno-fast-math", "-fno-unsafe-math-optimizations", "-fno-finite-math-only", "-fno-associative-math"),
    *("-fno-reciprocal-math", "-fsigned-zeros", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off"),
)
"""What keeps operations what the source says, also behind flags of a user that relax them: with `-ffast-math` there would be no
NaN and no rounded rest of a sum. By default GCC keeps the exact trap behaviour of a comparison and then does not vectorise it: a
leaky_relu runs twenty times slower. Contraction is off so that every backend and the oracle round alike. The last three stand
behind the first, which set them anew."""

EXACT_LINK_FLAGS = EXACT_FLAGS[:2]
"""The same for a linker: a library that is linked with relaxed arithmetic has all of the process take small numbers for 0, as
soon as it is loaded."""
