/* The shapes of the tiles of weights, and what their kinds of multiplication share. */
#ifndef OPC_CUDA_WEIGH_TILES_H
#define OPC_CUDA_WEIGH_TILES_H

#include "opc/cuda/multiply_floats.h"
#include "opc/cuda/multiply_halves.h"

namespace opc {

/* Rows and columns of scores, terms of these that are in shared memory at once, elements across, and bytes of shared memory, for elements of
 * so many bytes. There are kinds of fewer and of more elements across. Float32 has a third one, which needs little shared memory; elements of
 * 16 bits have a first one for few columns or many terms, and two others for `many_columns` or more and as many terms as are in shared memory at
 * once: there the next tile of columns is on its way while one is multiplied. */
struct weight_shape {
  int32_t rows, columns, depth, across, bytes;
};
OPC_HOST_DEVICE constexpr weight_shape shape_of_halves(int32_t depth, int32_t across, int32_t buffers) {
  return {128, 64, depth, across, 2 * (128 * depth + buffers * 64 * (depth + across))};
}
OPC_HOST_DEVICE constexpr weight_shape shape_of_weights(int32_t kind, int32_t element) {
  return element == 2                ? (kind == 0   ? shape_of_halves(64, 64, 1)
                                        : kind == 1 ? shape_of_halves(64, 64, 2)
                                                    : shape_of_halves(128, 128, 2))
         : element == 4 && kind != 2 ? (kind == 0 ? weight_shape{64, 64, 64, 64, 4 * (3 * 64 * 64 + 8 * 576)}
                                                  : weight_shape{64, 64, 64, 128, 4 * (2 * 64 * 64 + 64 * 128 + 8 * 576)})
                                     : weight_shape{32, 32, 0, 64, element * 8 * 4 * (32 + 4 + 2)};
}
/* From so many terms on, rounding alone may move a sum of float32 by almost 2^-15 of the sum of their sizes, in an unlucky order: then the
 * weights of terms may err by two fifths of that. See docs/cuda.md. */
enum : int64_t { many_columns = 512 };
OPC_HOST_DEVICE constexpr bool has_many_columns(int32_t kind, int32_t element) { return element == 2 && kind > 0; }
/* What threads note of points that are no numbers: a bit each. */
OPC_HOST_DEVICE constexpr int32_t bytes_of_notes(int32_t kind, int32_t element) { return 256 * (element == 2 && kind == 2 ? 8 : 4); }

/* How many blocks of a kernel a multiprocessor is to have registers for at once. */
OPC_HOST_DEVICE constexpr int blocks_of_weights(int32_t kind, int bytes) { return kind == 2 && bytes == 2 ? 1 : 2; }

/* The shared memory of another pair of factors that scores are made of, and how many blocks of a kernel that weighs what is made of one or
 * two such pairs, or none. */
OPC_HOST_DEVICE constexpr int32_t bytes_of_factors(int32_t kind, int32_t element) {
  return element == 8 || (element == 4 && kind == 2)
             ? 0
             : element * shape_of_weights(kind, element).depth *
                   (shape_of_weights(kind, element).rows + (has_many_columns(kind, element) ? 2 : 1) * shape_of_weights(kind, element).columns);
}
OPC_HOST_DEVICE constexpr int blocks_of_factors(int32_t kind, int bytes, int pairs) {
  return pairs > 0 && ((bytes == 2 && kind != 1) || (pairs == 2 && bytes != 2 && kind > 0)) ? 1 : 2;
}

inline namespace OPC_VARIANT {

/* How much smaller factors are made whose products, of a sum that is divided, are no numbers. */
constexpr float shrunk_by = 5.9604644775390625e-8f, grown_by = 16777216.0f;

/* A factor so much smaller, which is not 0 unless it was: an infinity times it stays one. */
template <typename T>
OPC_DEVICE T shrunk(T value) {
  const T small = value * T(shrunk_by), least = from_bits<T>(1);
  return small == T(0) && value != T(0) ? (value < T(0) ? -least : least) : small;
}

/* A power of two with an error of about 2^-22, 0 where it would be a denormal: a GPU's own instruction. */
OPC_DEVICE float power_near(float exponent) {
#if defined(__CUDA_ARCH__)
  float found;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(exponent));
  return found;
#else
  return __builtin_exp2f(exponent);
#endif
}
/* 2^more exp(x) for what is added up with many others, with an error below 2^-17.8 for x from -104, where a float's begins to be 0, to 0. */
OPC_DEVICE float exp_near(float x, float more) { return power_near(multiply_add(x, 1.44269502162933349609375f, more)); }

/* The reduction of the values of so many lanes side by side, which each of them gets; all lanes of a warp take part. */
template <typename Joins, int lanes, typename T>
OPC_DEVICE T lanes_in_warp(T value) {
  OPC_UNROLLED
  for (int distance = lanes / 2; distance > 0; distance /= 2) value = Joins::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

/* Has `make(i, j, column)` find a thread's scores of its row i and column j, which is `column`, a few columns at a time: the others change
 * places with them, so that there is little code for what tiles seldom need. `how`, and what follows it, have the scores. */
template <typename How, typename Make, typename... Others>
OPC_DEVICE void in_turns(const Make &make, How &how, Others &...others) {
  constexpr int group = How::own_columns < 8 ? How::own_columns : 2;
  const auto turn = [](auto &of) {
    OPC_UNROLLED
    for (int i = 0; i < How::own_rows; ++i) {
      decltype(of.unscaled(0, 0)) kept[group];
      OPC_UNROLLED
      for (int j = 0; j < How::own_columns + group; ++j) {
        if (j < group) kept[j] = of.score(i, j);
        if (j >= group) of.score(i, j - group) = j < How::own_columns ? of.score(i, j) : kept[j - How::own_columns];
      }
    }
    return 0;
  };
  OPC_ROLLED
  for (int first = 0; first < How::own_columns; first += group) {
    OPC_UNROLLED
    for (int j = 0; j < group; ++j) {
      OPC_UNROLLED
      for (int i = 0; i < How::own_rows; ++i) make(i, j, how.column(first + j));
    }
    if constexpr (group < How::own_columns) {
      [[maybe_unused]] const int turned[] = {turn(how), turn(others)...};
    }
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_WEIGH_TILES_H
