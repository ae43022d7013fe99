"""Forward mode from reverse mode alone, for an op whose gradient is known and whose body is not.

The gradient d_x = J(x)^T d_y is linear in d_y, so that its own gradient with respect to d_y, in the direction t_x, is J(x) t_x:
the tangent of y.
"""

from __future__ import annotations

from opc.analysis.shapes.plan import undetermined
from opc.ir.expr import Present, reads, walk
from opc.ir.op import Derivation, Op, Role
from opc.records import replace
from opc.transform.autodiff import vjp
from opc.transform.indices import rename_operands
from opc.transform.normalize import prune


def jvp_of_vjp(forward: Op, backward: Op) -> Op | None:
    """Return the Jacobian-vector product of `forward`, named `<op>_jvp`, in the form of `opc.transform.jvp`.

    None when the gradient is not linear in what it is given, or needs a value that is not at hand in forward mode.
    """
    second = vjp(backward)
    if second is None or second.derivation is None or backward.derivation is None:
        return None
    roles = dict(zip((o.name for o in backward.inputs), backward.derivation.inputs, strict=True))
    primal = dict(zip((o.name for o in backward.outputs), backward.derivation.outputs, strict=True))
    results = {
        o.name: roles[of][1]
        for o, of in zip(second.outputs, second.derivation.outputs, strict=True)
        if roles[of][0] is Role.COTANGENT
    }
    pruned = prune(second, list(results))
    used = {r.operand for s in pruned.body for r in reads(s.value)}
    used |= {e.operand for s in pruned.body for e in walk(s.value) if isinstance(e, Present)}
    inputs, origins, names = [], [], {name: f"t_{of}" for name, of in results.items()}
    for operand, (role, of) in zip(second.inputs, second.derivation.inputs, strict=True):
        if role is Role.COTANGENT:
            names[operand.name] = f"t_{primal[of]}"
            origin = (Role.TANGENT, primal[of])
        elif role is Role.INPUT and roles[of][0] is not Role.COTANGENT:
            origin = roles[of]
        elif operand.name in used:
            return None
        else:
            continue
        if role is Role.COTANGENT or operand.name in used:
            inputs.append(operand)
            origins.append(origin)
    written = {s.target for s in pruned.body}
    op = replace(
        pruned,
        name=f"{forward.name}_jvp",
        doc=f"Tangent of {forward.name}.",
        inputs=tuple(inputs),
        outputs=tuple(replace(o, doc=f"Tangent of {results[o.name]}.") for o in pruned.outputs if o.name in results),
        temporaries=tuple(o for o in pruned.temporaries if o.name in written),
        derivation=Derivation("jvp", forward.name, tuple(origins), tuple(results.values())),
    )
    renamed = rename_operands(op, names)
    return None if undetermined(renamed) else renamed
