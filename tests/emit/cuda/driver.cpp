/* Runs one kernel of a generated .cu on rows of float: `driver rows columns steps... < inputs > outputs`. Compiled by nvcc it runs on a GPU,
 * by a C++ compiler on the host.
 *
 * KERNEL is the launcher, ARGUMENTS the arguments' struct and VALUES its initialiser; OPERANDS, INPUTS and the operands' steps are those of
 * the stage: 0 for an operand that all rows share, 1 for one value a row, else the columns. */
#include SOURCE

#include <stdio.h>
#include <stdlib.h>

#if defined(__CUDACC__)
static void *reserve(size_t bytes) {
  void *memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) exit(2);
  return memory;
}
static void to_device(void *to, const void *from, size_t bytes) { cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice); }
static void to_host(void *to, const void *from, size_t bytes) {
  if (cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) exit(3);
}
#else
static void *reserve(size_t bytes) { return malloc(bytes); }
static void to_device(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static void to_host(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
#endif

int main(int count, char **words) {
  if (count != 3 + OPERANDS) return 1;
  opc::tile tile = {};
  tile.rows = tile.most_rows = atoll(words[1]);
  tile.columns = atoll(words[2]);
  size_t bytes[OPERANDS];
  for (int i = 0; i < OPERANDS; ++i) {
    tile.step[i] = atoll(words[3 + i]);
    const int64_t elements = tile.step[i] == 0 ? tile.columns : tile.rows * tile.step[i];
    bytes[i] = static_cast<size_t>(elements) * sizeof(float);
    tile.data[i] = reserve(bytes[i]);
    if (i >= INPUTS) continue;
    void *values = malloc(bytes[i]);
    if (fread(values, 1, bytes[i], stdin) != bytes[i]) return 4;
    to_device(tile.data[i], values, bytes[i]);
    free(values);
  }
  const ARGUMENTS arguments = VALUES;
  KERNEL(&tile, &arguments, tile.rows, nullptr);
  for (int i = INPUTS; i < OPERANDS; ++i) {
    void *values = malloc(bytes[i]);
    to_host(values, tile.data[i], bytes[i]);
    fwrite(values, 1, bytes[i], stdout);
    free(values);
  }
  return 0;
}
