/* How rows are given to a GPU's threads: for each case the instance, threads of a row, and the arrays that rows keep in memory. */
#include <stdio.h>
#include <stdlib.h>

#include "opc/cuda/call.h"

static DLTensor tensor(void *data, int64_t *shape, int64_t *strides) {
  DLTensor found = {};
  found.data = data;
  found.ndim = 2;
  found.dtype = {kDLFloat, 32, 1};
  found.shape = shape;
  found.strides = strides;
  return found;
}

/* A row of `columns` is read, or the same element again and again where it does not vary, and another written. */
static void tell(int64_t rows, int64_t columns, bool varies, bool seldom) {
  static char *const memory = static_cast<char *>(aligned_alloc(16, 64));
  int64_t shape[] = {rows, columns}, steps[] = {columns, varies ? 1 : 0}, lies[] = {columns, 1};
  const DLTensor x = tensor(memory, shape, steps), y = tensor(memory, shape, lies);
  opc::operand operands[2];
  opc::stage stage;
  opc::start(stage, nullptr, operands);
  const opc::axes outer = opc::add_axis(stage, rows);
  opc::begin_row(stage, 0);
  const opc::axes along = opc::add_axis(stage, columns);
  opc::add_tensor(stage, opc::role_input, opc::in_rows, &x, outer, along);
  opc::add_tensor(stage, opc::role_output, opc::in_rows, &y, outer, along);
  opc::device_tile<2> described;
  opc::to_device(described, stage, 1, 2, seldom);
  printf("%d %d %d\n", static_cast<int>(described.general), static_cast<int>(described.team), static_cast<int>(described.buffers));
}

/* The emulation is there to start kernels. */
OPC_KERNEL(32) nothing(int32_t) {}

int main() {
  tell(100000, 4096, true, false);  /* one chunk: 512 threads with two packs of four elements */
  tell(100000, 64, true, false);    /* several rows a warp */
  tell(100, 64, true, false);       /* few rows have more threads */
  tell(100000, 4096, false, false); /* not plain: a pack a thread, so that there are two chunks */
  tell(100000, 4097, true, false);  /* no packs */
  tell(100000, 20000, true, false); /* too long for one chunk */
  tell(100000, 4096, true, true);   /* called seldom: there is no instance for plain rows */
  OPC_LAUNCH(nothing, false, 1, 32, 0, nullptr, 0);
  return 0;
}
