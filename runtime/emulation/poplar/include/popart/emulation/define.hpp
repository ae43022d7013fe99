// Defines what op.hpp, graph.hpp, tensor.hpp, ir.hpp and their like declare, unless the library does. They depend on one another, so each
// includes this at its end; it does nothing while one of them is still open, that is, being read.
#if !defined(POPLAR_EMULATION_LIBRARIES) && !defined(POPART_EMULATION_DEFINED) && !defined(POPART_ALIASMODEL_OPEN) &&         \
    !defined(POPART_GRAPH_OPEN) && !defined(POPART_IR_OPEN) && !defined(POPART_OP_OPEN) && !defined(POPART_OPMANAGER_OPEN) && \
    !defined(POPART_OPSERIALISER_OPEN) && !defined(POPART_SESSIONOPTIONS_OPEN) && !defined(POPART_TENSOR_OPEN) &&             \
    !defined(POPART_TENSORINDEX_OPEN) && !defined(POPART_TENSORS_OPEN) && !defined(POPART_AUTODIFF_OPEN)
#include <popart/alias/aliasmodel.hpp>
#include <popart/graph.hpp>
#include <popart/ir.hpp>
#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/tensor.hpp>
#include <popart/tensorindex.hpp>
#include <popart/tensors.hpp>
#include <popart/transforms/autodiff.hpp>
#ifndef POPART_EMULATION_DEFINED
#define POPART_EMULATION_DEFINED
#include <popart/emulation/builtin.hpp>

#include <popart/emulation/core_impl.hpp>
#endif
#endif
