// All definitions of the core.
#include <popart/emulation/tensor_impl.hpp>
#include <popart/emulation/op_impl.hpp>
#include <popart/emulation/graph_impl.hpp>
#include <popart/emulation/opmanager_impl.hpp>
#include <popart/emulation/builtin_impl.hpp>
#include <popart/emulation/autodiff_impl.hpp>
#include <popart/emulation/ir_impl.hpp>
#include <popart/emulation/inplace_impl.hpp>
