/* Runs the calls of a file on kernels that are compiled in with a sanitizer; no framework, no Python in the process.
 *
 * Every operand has a block of memory of exactly its size, so that what stands beside it is a sanitizer's guard. Before each call
 * its number is written to standard error, so that a report belongs to a call; the status of each call goes to standard output.
 * The work of a call is split as finely as it can be, on the threads of opc/core/threads.h. See opc/testing/sanitize.py for the file.
 *
 * With OPC_ON_GPU the kernels are those for a GPU, which the CPU executes; the second argument is the name of the ops' family.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "opc/abi.h"
#include "opc/core/threads.h"
#if defined(OPC_ON_GPU)
#include "opc/cuda/abi.h"
typedef opc_cuda_context lent;
typedef int32_t (*reader)(const int64_t *, const lent *);
enum { DEVICE = kDLCUDA };
#define SUFFIX "_cuda"
#else
typedef opc_context lent;
enum { DEVICE = kDLCPU };
#define SUFFIX ""
#endif

typedef int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const void *, const lent *);

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
  t->device.device_type = DEVICE;
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

static void *function_named(const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  if (found == NULL) fail("there is no such kernel");
  return found;
}

#if defined(OPC_ON_GPU)
static const char *family;

static void *allocate(void *allocator, int64_t bytes, void *stream) {
  (void)allocator;
  (void)stream;
  void *block = NULL;
  return posix_memalign(&block, 256, (size_t)bytes) == 0 ? block : NULL;
}

static void release(void *allocator, void *block, int64_t bytes, void *stream) {
  (void)allocator;
  (void)bytes;
  (void)stream;
  free(block);
}

static int32_t call(kernel function, const DLTensor *const *given, DLTensor *const *made, const void *attributes) {
  char message[1024] = "", name[512];
  int64_t found[OPC_CUDA_STATUS_WORDS] = {0};
  const lent context = {.allocate = allocate, .release = release, .status = found, .message = message, .message_size = sizeof message};
  const int32_t status = function(given, made, attributes, &context);
  if (status != 0) return status;
  snprintf(name, sizeof name, "opc_%s_cuda_status", family);
  void *address = function_named(name);
  reader read_status;
  memcpy(&read_status, &address, sizeof read_status);
  return read_status(found, &context);
}
#else
static void split_finely(void *pool, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  (void)grain;
  opc_parallel_for(pool, count, 1, body, argument);
}

static int32_t call(kernel function, const DLTensor *const *given, DLTensor *const *made, const void *attributes) {
  char message[1024] = "";
  const lent context = {.parallel_for = split_finely, .message = message, .message_size = sizeof message};
  return function(given, made, attributes, &context);
}
#endif

static void run_call(int64_t number) {
  char name[512];
  const int64_t length = take_number();
  if (length < 0 || length + (int64_t)sizeof SUFFIX > (int64_t)sizeof name) fail("a name is too long");
  take(name, (size_t)length);
  memcpy(name + length, SUFFIX, sizeof SUFFIX);
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
  void *found = function_named(name);
  kernel function;
  memcpy(&function, &found, sizeof function);
  fprintf(stderr, "\n@@ %lld\n", (long long)number);
  fflush(stderr);
  const int32_t status = call(function, given, made, attributes);
  printf("%lld %d\n", (long long)number, (int)status);
  fflush(stdout);
  for (int64_t i = 0; i < inputs; i++) drop(in[i]);
  for (int64_t i = 0; i < outputs; i++) drop(out[i]);
  for (int64_t i = 0; i < lists; i++) free(list[i]);
  free(attributes);
}

int main(int count, char **arguments) {
#if defined(OPC_ON_GPU)
  family = count == 3 ? arguments[2] : "";
#endif
  if (count < 2 || (calls = fopen(arguments[1], "rb")) == NULL) fail("name the file of calls");
  const int64_t number = take_number();
  for (int64_t i = 0; i < number; i++) run_call(i);
  fclose(calls);
  fprintf(stderr, "\n@@ end\n");
  return 0;
}
