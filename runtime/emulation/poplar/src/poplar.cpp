/// What the headers of poplar only declare where POPLAR_EMULATION_LIBRARIES is defined.
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>

#include <poplar/detail/codelets_impl.hpp>
#include <poplar/detail/engine_impl.hpp>
#include <poplar/detail/execute_impl.hpp>
#include <poplar/detail/graph_impl.hpp>
#include <poplar/detail/program_impl.hpp>
#include <poplar/detail/tensor_impl.hpp>
#include <poplar/detail/view_impl.hpp>
