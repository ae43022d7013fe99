/* Sums of products along rows: for the files compiled once for each instruction-set variant. */
#ifndef OPC_NESTS_PRODUCTS_H
#define OPC_NESTS_PRODUCTS_H

#include "opc/nests/loops.h"

namespace opc {
inline namespace OPC_VARIANT {

/* The sum of products along many rows: partial sums in the lanes of vectors, which are added up at the end, and of what is left over. */
template <typename T>
struct product_sum {
  typedef T vector __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
  static constexpr int64_t lanes = vector_bytes / int64_t(sizeof(T));
  vector part[2];
  T rest;

  __attribute__((always_inline)) T total() const {
    const vector both = part[0] + part[1];
    T sum = rest;
    for (int64_t l = 0; l < lanes; ++l) sum += both[l];
    return sum;
  }
};

/* Adds the products of neighbouring elements at [low, high). */
template <typename T>
OPC_INLINE void add_products(product_sum<T> &s, const T *a, constant<1>, const T *b, constant<1>, int64_t low, int64_t high) {
  typedef typename product_sum<T>::vector vector;
  constexpr int64_t lanes = product_sum<T>::lanes;
  const auto product = [&](int64_t i) __attribute__((always_inline)) {
    return *reinterpret_cast<const vector *>(a + i) * *reinterpret_cast<const vector *>(b + i);
  };
  int64_t i = low;
  for (; i + 2 * lanes <= high; i += 2 * lanes) {
    s.part[0] += product(i);
    s.part[1] += product(i + lanes);
  }
  if (i + lanes <= high) {
    s.part[0] += product(i);
    i += lanes;
  }
  if (i < high && high - low >= lanes) {
    /* A vector that ends where the row does, without the lanes that are in the sum already. */
    decltype(vector() < vector()) number;
    typedef __typeof__(number[0]) lane;
    for (int64_t l = 0; l < lanes; ++l) number[l] = lane(l);
    s.part[1] += number >= lane(i - (high - lanes)) ? product(high - lanes) : vector{};
    return;
  }
  for (; i < high; ++i) s.rest += a[i] * b[i];
}

/* The same for elements that lie apart. */
template <typename T, typename A, typename B>
OPC_INLINE void add_products(product_sum<T> &s, const T *a, A a_step, const T *b, B b_step, int64_t low, int64_t high) {
  T part = 0;
  OPC_SIMD_REDUCTION(+ : part)
  for (int64_t i = low; i < high; ++i) part += a[i * a_step] * b[i * b_step];
  s.rest += part;
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_NESTS_PRODUCTS_H
