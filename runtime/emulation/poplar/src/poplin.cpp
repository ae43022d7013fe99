/// What the headers of poplin only declare where POPLAR_EMULATION_LIBRARIES is defined.
#include <poplin/detail/conv_params_impl.hpp>
#include <poplin/detail/convolution_impl.hpp>
#include <poplin/detail/matmul_impl.hpp>
#include <poplin/detail/products_impl.hpp>
