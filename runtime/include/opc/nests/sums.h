/* Loop nests whose results are added up: each unit of work gives one sum. Which these are, sizes alone decide, so that results do not
 * depend on the threads.
 */
#ifndef OPC_NESTS_SUMS_H
#define OPC_NESTS_SUMS_H

#include "opc/core/workspace.h"
#include "opc/nests/rows.h"

namespace opc {

enum : int64_t { joined_sums = 1024 /* added up in one go: of more, sums of so many are */ };

/* Returns the sum of some sums, in whose memory those of the first ones are kept. */
template <typename T>
static T sum_of_sums(T *sums, int64_t count, T (*sum_row)(const void *, int64_t)) {
  if (count <= 1) return count == 1 ? *sums : T(0);
  while (count > joined_sums) {
    int64_t joined = 0;
    for (int64_t i = 0; i < count; i += joined_sums) {
      sums[joined++] = sum_row(sums + i, count - i < joined_sums ? count - i : int64_t(joined_sums));
    }
    count = joined;
  }
  return sum_row(sums, count);
}

/* Runs a nest as run() does, and puts the sum of all its results into `sum`, unless that is NULL. */
static int32_t run_sums(row_nest &n, row_nest_function function, const void *arguments, int64_t steps, void *sum) {
  if (sum == nullptr) return run(n, function, arguments, steps);
  int64_t units = n.pieces;
  for (int32_t a = 0; a < n.outer; ++a) units *= n.size[a];
  double few[64];
  const int64_t bytes = units * itemsize(n.stored);
  void *allocated = nullptr;
  n.sums = few;
  if (bytes > int64_t(sizeof few)) {
    n.sums = allocated = take_memory(bytes);
    if (allocated == nullptr) return fail(n.context, OPC_OUT_OF_MEMORY, "no memory for %lld bytes of sums", (long long)bytes);
  }
  const int32_t code = run(n, function, arguments, steps);
  if (code == OPC_OK && n.stored == dtype_float32) {
    *static_cast<float *>(sum) = sum_of_sums(static_cast<float *>(n.sums), units, n.rows->sum_float);
  } else if (code == OPC_OK) {
    *static_cast<double *>(sum) = sum_of_sums(static_cast<double *>(n.sums), units, n.rows->sum_double);
  }
  give_memory(allocated);
  return code;
}

}  // namespace opc
#endif  // OPC_NESTS_SUMS_H
