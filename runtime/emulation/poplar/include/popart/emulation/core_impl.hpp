// All definitions of the core.
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

#include <popart/emulation/builtin.hpp>

#include <popart/emulation/tensor_impl.hpp>
#include <popart/emulation/op_impl.hpp>
#include <popart/emulation/graph_impl.hpp>
#include <popart/emulation/opmanager_impl.hpp>
#include <popart/emulation/builtin_impl.hpp>
#include <popart/emulation/autodiff_impl.hpp>
#include <popart/emulation/ir_impl.hpp>
#include <popart/emulation/inplace_impl.hpp>
