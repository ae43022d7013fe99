/// What the headers of popops only declare where POPLAR_EMULATION_LIBRARIES is defined.
#include <popops/detail/eval_impl.hpp>
#include <popops/detail/expr_impl.hpp>
#include <popops/detail/fill_impl.hpp>
#include <popops/detail/map_impl.hpp>
#include <popops/detail/reduce_impl.hpp>
#include <popops/detail/types_impl.hpp>
