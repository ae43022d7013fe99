/* Runs the calls of a file on kernels that are compiled in with a sanitizer; no framework, no Python in the process.
 *
 * Every operand has a block of memory of exactly its size, so that what stands beside it is a sanitizer's guard. Before each call
 * its number is written to standard error, so that a report belongs to a call; the status of each call goes to standard output.
 * The work of a call is split as finely as it can be, on the threads of opc/core/threads.h. See opc/testing/sanitize.py for the file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "opc/abi.h"
#include "opc/core/threads.h"

typedef int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const void *, const opc_context *);

static FILE *calls;

static void fail(const char *what) {
  fprintf(stderr, "sanitize_driver: %s\n", what);
  exit(3);
}

static void take(void *to, size_t size) {
  if (size != 0 && fread(to, 1, size, calls) != size) fail("the file of calls ends early");
}

static int64_t take_number(void) {
  int64_t value;
  take(&value, sizeof value);
  return value;
}

static void *take_block(int64_t size) {
  void *block = malloc((size_t)size);
  if (block == NULL) fail("out of memory");
  take(block, (size_t)size);
  return block;
}

/* A tensor and the block its elements lie in; NULL for an operand that is not given. */
typedef struct operand {
  DLTensor tensor;
  void *block;
} operand;

static operand *take_operand(void) {
  if (take_number() == 0) return NULL;
  operand *result = calloc(1, sizeof *result);
  if (result == NULL) fail("out of memory");
  DLTensor *t = &result->tensor;
  t->device.device_type = kDLCPU;
  t->dtype.code = (uint8_t)take_number();
  t->dtype.bits = (uint8_t)take_number();
  t->dtype.lanes = 1;
  t->ndim = (int32_t)take_number();
  const int64_t bytes = t->ndim * (int64_t)sizeof(int64_t);
  t->shape = take_block(bytes);
  t->strides = take_block(bytes);
  const int64_t first = take_number();
  const int64_t size = take_number();
  result->block = take_block(size);
  t->data = (char *)result->block + first;
  return result;
}

static void drop(operand *o) {
  if (o == NULL) return;
  free(o->tensor.shape);
  free(o->tensor.strides);
  free(o->block);
  free(o);
}

static void split_finely(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  (void)grain;
  opc_parallel_for(pool, count, 1, body, argument);
}

static void run_call(int64_t number) {
  char name[512];
  const int64_t length = take_number();
  if (length < 0 || length >= (int64_t)sizeof name) fail("a name is too long");
  take(name, (size_t)length);
  name[length] = 0;
  const int64_t inputs = take_number(), outputs = take_number();
  enum { MOST = 256 };
  if (inputs > MOST || outputs > MOST) fail("too many operands");
  operand *in[MOST], *out[MOST];
  const DLTensor *given[MOST + 1];
  DLTensor *made[MOST + 1];
  for (int64_t i = 0; i < inputs; i++) given[i] = (in[i] = take_operand()) == NULL ? NULL : &in[i]->tensor;
  for (int64_t i = 0; i < outputs; i++) made[i] = (out[i] = take_operand()) == NULL ? NULL : &out[i]->tensor;
  char *attributes = take_block(take_number());
  /* Lists are blocks of their own, whose places stand in the attributes. */
  const int64_t lists = take_number();
  void *list[MOST];
  if (lists > MOST) fail("too many lists");
  for (int64_t i = 0; i < lists; i++) {
    const int64_t place = take_number();
    list[i] = take_block(take_number());
    memcpy(attributes + place, &list[i], sizeof list[i]);
  }
  void *found = dlsym(RTLD_DEFAULT, name);
  if (found == NULL) fail("there is no such kernel");
  kernel function;
  memcpy(&function, &found, sizeof function);
  char message[1024] = "";
  const opc_context context = {.parallel_for = split_finely, .message = message, .message_size = sizeof message};
  fprintf(stderr, "\n@@ %lld\n", (long long)number);
  fflush(stderr);
  const int32_t status = function(given, made, attributes, &context);
  printf("%lld %d\n", (long long)number, (int)status);
  fflush(stdout);
  for (int64_t i = 0; i < inputs; i++) drop(in[i]);
  for (int64_t i = 0; i < outputs; i++) drop(out[i]);
  for (int64_t i = 0; i < lists; i++) free(list[i]);
  free(attributes);
}

int main(int count, char **arguments) {
  if (count != 2 || (calls = fopen(arguments[1], "rb")) == NULL) fail("name the file of calls");
  const int64_t number = take_number();
  for (int64_t i = 0; i < number; i++) run_call(i);
  fclose(calls);
  fprintf(stderr, "\n@@ end\n");
  return 0;
}
