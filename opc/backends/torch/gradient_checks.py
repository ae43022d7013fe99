"""What torch promises of an operator's gradients beyond their values: transforms of them, forward mode, second derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.checks import SEEDS, Sample, check, has_gradient
from opc.backends.derivatives import rules
from opc.backends.sessions import as_tuple
from opc.backends.torch.samples import TorchSamples, assert_equal, loop, rounding_bound

if TYPE_CHECKING:
    from torch import Tensor


ROUNDINGS = 8
"""In how many other ways the numbers of a sample are rounded, to see how much of a result is rounding."""


class GradientChecks(TorchSamples):
    """Those checks of one session's family that are of its gradients, but for what torch compiles."""

    @check("gradcheck", has_gradient)
    def gradcheck(self) -> None:
        """Gradients of first and second order, forward mode and batched gradients agree with differences."""
        import torch

        if self.session.family.surrogates:
            raise Unsupported("the gradient is a surrogate, and gradcheck compares with differences")
        given = self.differentiated_sample(times=2)
        function, tensors = self.on(given)
        moving = self.leaves(given)
        arguments = [t.clone().requires_grad_(i in moving) for i, t in enumerate(tensors)]
        wide = [o.dtype == torch.float64 for o in as_tuple(function(*tensors))]
        if not any(wide) or any(tensors[i].dtype != torch.float64 for i in moving):
            raise Unsupported("gradcheck compares with differences, for which it needs float64")

        def floating(*values: Tensor) -> Any:
            found = tuple(o for o, w in zip(as_tuple(function(*values)), wide, strict=True) if w)
            return found if len(found) > 1 else found[0]

        torch.autograd.gradcheck(floating, arguments, check_forward_ad=True, check_batched_grad=True)
        torch.autograd.gradgradcheck(floating, arguments, check_batched_grad=True)

    @check("vmap of grad", has_gradient)
    def vmap_grad(self) -> None:
        """vmap of a gradient gives a loop of gradients, and the gradient of a vmapped function is right."""
        import torch

        # Multiples of one sample would do where an op takes all numbers: indices may be among them.
        items = [self.differentiated_sample(seed, 2) for seed in range(3)]
        total, tensors = self.scalar(items[0])
        leaves = self.leaves(items[0])
        gradient = torch.func.grad(total, leaves)
        stacked = [torch.stack(column) for column in zip(*(self.on(s)[1] for s in items), strict=True)]
        for batched in ((True,) * len(tensors), *(tuple(i == j for j in range(len(tensors))) for i in range(len(tensors)))):
            dims = tuple(0 if b else None for b in batched)
            arguments = [s if b else t for s, t, b in zip(stacked, tensors, batched, strict=True)]
            assert_equal(torch.vmap(gradient, dims)(*arguments), loop(gradient, arguments, dims), f"vmap of grad over {dims}")
        inner = torch.func.grad(lambda *a: torch.vmap(total)(*a).sum(), leaves)
        assert_equal(inner(*stacked), loop(gradient, stacked, (0,) * len(stacked)), "grad of vmap")

    @check("jvp", has_gradient)
    def jvp(self) -> None:
        """Forward mode agrees with reverse mode: <c, J t> = <J^T c, t>."""
        import torch

        given = self.differentiated_sample(times=2)
        function, tensors = self.on(given)
        leaves = self.leaves(given)
        generator = torch.Generator().manual_seed(1)

        def moving(*values: Tensor) -> tuple[Tensor, ...]:
            arguments = list(tensors)
            for i, value in zip(leaves, values, strict=True):
                arguments[i] = value
            return tuple(o for o in as_tuple(function(*arguments)) if o.is_floating_point())

        primals = tuple(tensors[i] for i in leaves)
        tangents = tuple(torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in primals)
        results, pushed = torch.func.jvp(moving, primals, tangents)
        _, pull = torch.func.vjp(moving, *primals)
        cotangents = tuple(torch.randn(r.shape, generator=generator, dtype=r.dtype) for r in results)
        forward = sum(float((c * p).sum()) for c, p in zip(cotangents, pushed, strict=True))
        pulled = pull(cotangents)
        reverse = sum(float((g * t).sum()) for g, t in zip(pulled, tangents, strict=True))
        terms = sum(float((g * t).abs().sum()) for g, t in zip(pulled, tangents, strict=True))
        terms += sum(float((c * p).abs().sum()) for c, p in zip(cotangents, pushed, strict=True))
        unit = max(torch.finfo(t.dtype).eps for t in (*pulled, *pushed))
        bound = 64 * unit * max(terms, 1.0)
        assert abs(forward - reverse) <= bound, f"<c, J t> = {forward}, but <J^T c, t> = {reverse}"
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(p, t) for p, t in zip(primals, tangents, strict=True)]
            unpacked = [torch.autograd.forward_ad.unpack_dual(o).tangent for o in moving(*duals)]
        assert_equal(unpacked, list(pushed), "forward_ad")

    @check("hessian", has_gradient)
    def hessian(self) -> None:
        """Forward over reverse and reverse over reverse give one symmetric matrix; products with it are torch.autograd's too."""
        import torch

        samples = [self.differentiated_sample(seed) for seed in SEEDS]
        _, tensors = self.scalar(samples[0])
        if not any(tensors[i].numel() for i in self.leaves(samples[0])):
            raise Unsupported("torch.func takes a Hessian's columns one by one, and fails where there is none")
        given = next(filter(self._is_settled, samples), samples[0])
        total, tensors = self.scalar(given)
        leaves = self.leaves(given)
        mixed = torch.func.hessian(total, leaves)(*tensors)
        assert_equal(torch.func.jacrev(torch.func.jacrev(total, leaves), leaves)(*tensors), mixed, "jacrev of jacrev")
        sizes = [tensors[i].numel() for i in leaves]
        rows = [[mixed[i][j].reshape(m, n) for j, n in enumerate(sizes)] for i, m in enumerate(sizes)]
        matrix = torch.cat([torch.cat(row, 1) for row in rows], 0)
        assert_equal(matrix, matrix.mT.contiguous(), "the Hessian's transpose")
        by_cotangents = {rule.op.name for rule in rules(self.family) if rule.vjp}
        if self.family.backward_backward and self.family.backward_backward.name not in by_cotangents:
            return

        def of_leaves(*given: Tensor) -> Tensor:
            chosen = dict(zip(leaves, given, strict=True))
            return total(*(chosen.get(i, t) for i, t in enumerate(tensors)))

        generator = torch.Generator().manual_seed(4)
        along = tuple(torch.randn(tensors[i].shape, generator=generator, dtype=tensors[i].dtype) for i in leaves)
        _, found = torch.autograd.functional.hvp(of_leaves, tuple(tensors[i] for i in leaves), along)
        expected = matrix @ torch.cat([t.reshape(-1) for t in along])
        assert_equal(torch.cat([t.reshape(-1) for t in found]), expected, "torch.autograd.functional.hvp")

    def _is_settled(self, given: Sample) -> bool:
        """Whether a sample's Hessian moves by much less than comparisons allow where its numbers are rounded otherwise.

        Else it is what is left of larger terms, as that of a standard deviation of numbers near each other, and two ways to
        compute it differ by roundings of these.
        """
        import torch

        total, tensors = self.scalar(given)
        leaves = self.leaves(given)
        hessian = torch.func.hessian(total, leaves)
        generator = torch.Generator().manual_seed(3)

        def rounded(t: Tensor) -> Tensor:
            steps = torch.randint(-2, 3, t.shape, generator=generator).to(t.dtype)
            return t * (1 + steps * torch.finfo(t.dtype).eps)

        def blocks(operands: Sequence[Tensor]) -> list[Tensor]:
            return [block for row in hessian(*operands) for block in row]

        here = blocks(tensors)
        for _ in range(ROUNDINGS):
            try:
                there = blocks([rounded(t) if i in leaves else t for i, t in enumerate(tensors)])
            except RuntimeError:
                return False  # Numbers may be indices.
            if not all(((b - a).abs() <= rounding_bound(a) / 4).all() for a, b in zip(here, there, strict=True)):
                return False
        return True
