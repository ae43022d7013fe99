// Defines what op.hpp, graph.hpp, tensor.hpp, ir.hpp and their like declare, once all of them are read: they depend on one another, so
// each includes this at its end, and it does its part at the last.
#include <popart/alias/aliasmodel.hpp>
#include <popart/graph.hpp>
#include <popart/ir.hpp>
#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/opserialiser.hpp>
#include <popart/tensor.hpp>
#include <popart/tensorindex.hpp>
#include <popart/tensors.hpp>

#if defined(POPART_ALIASMODEL_DECLARED) && defined(POPART_GRAPH_DECLARED) && defined(POPART_IR_DECLARED) && defined(POPART_OP_DECLARED) && \
    defined(POPART_OPMANAGER_DECLARED) && defined(POPART_OPSERIALISER_DECLARED) && defined(POPART_TENSOR_DECLARED) &&                   \
    defined(POPART_TENSORINDEX_DECLARED) && defined(POPART_TENSORS_DECLARED) && !defined(POPART_EMULATION_DEFINED)
#define POPART_EMULATION_DEFINED
#include <popart/emulation/tensor_impl.hpp>
#include <popart/emulation/op_impl.hpp>
#include <popart/emulation/graph_impl.hpp>
#include <popart/emulation/opmanager_impl.hpp>
#include <popart/emulation/builtin.hpp>
#include <popart/emulation/autodiff_impl.hpp>
#include <popart/emulation/ir_impl.hpp>
#endif
