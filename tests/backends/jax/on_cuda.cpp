/* Calls the handlers for CUDA of a library as XLA does, with memory of the host in the place of a GPU's; run by test_cuda.py.
 *
 * The op is `y[n, d] = t[ids[n], d] * scale`, and total[d] the sum of y over n. Prints what came of each call. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "xla/ffi/api/c_api.h"

/* Tells libraries that kernels which compute on the CPU are right. */
extern "C" __attribute__((visibility("default"))) const int jax_cuda_is_emulated = 1;

using Handler = XLA_FFI_Error *(XLA_FFI_CallFrame *);

struct XLA_FFI_Error {
  int code;
  char message[512];
};
struct XLA_FFI_ExecutionContext {
  int device, taken, given_back;
};

static XLA_FFI_Error *create(XLA_FFI_Error_Create_Args *args) {
  XLA_FFI_Error *error = new XLA_FFI_Error{static_cast<int>(args->errc), {}};
  snprintf(error->message, sizeof error->message, "%s", args->message);
  return error;
}
static XLA_FFI_Error *stream(XLA_FFI_Stream_Get_Args *args) { return args->stream = nullptr, nullptr; }
static XLA_FFI_Error *ordinal(XLA_FFI_DeviceOrdinal_Get_Args *args) { return args->device_ordinal = args->ctx->device, nullptr; }
static XLA_FFI_Error *allocate(XLA_FFI_DeviceMemory_Allocate_Args *args) {
  ++args->ctx->taken;
  return args->data = aligned_alloc(args->alignment, (args->size + args->alignment - 1) / args->alignment * args->alignment), nullptr;
}
static XLA_FFI_Error *give_back(XLA_FFI_DeviceMemory_Free_Args *args) { return ++args->ctx->given_back, free(args->data), nullptr; }

struct Operand {
  XLA_FFI_DataType type;
  void *data;
  std::vector<int64_t> sizes;
};

static void call(Handler *handler, std::vector<Operand> inputs, std::vector<Operand> outputs, int64_t batch_axes, double scale) {
  XLA_FFI_Api api = {};
  api.struct_size = sizeof api;
  api.XLA_FFI_Error_Create = create;
  api.XLA_FFI_Stream_Get = stream;
  api.XLA_FFI_DeviceOrdinal_Get = ordinal;
  api.XLA_FFI_DeviceMemory_Allocate = allocate;
  api.XLA_FFI_DeviceMemory_Free = give_back;
  XLA_FFI_ExecutionContext context = {};
  std::vector<XLA_FFI_Buffer> buffers;
  for (std::vector<Operand> *side : {&inputs, &outputs})
    for (Operand &o : *side)
      buffers.push_back({sizeof(XLA_FFI_Buffer), nullptr, o.type, o.data, static_cast<int64_t>(o.sizes.size()), o.sizes.data()});
  std::vector<void *> pointers;
  for (XLA_FFI_Buffer &buffer : buffers) pointers.push_back(&buffer);
  int64_t list[] = {(1 << inputs.size()) - 1, (1 << outputs.size()) - 1, batch_axes, 0};
  memcpy(&list[3], &scale, sizeof scale);
  XLA_FFI_Array array = {XLA_FFI_DataType_S64, 4, list};
  XLA_FFI_ByteSpan name = {"opc", 3}, *names[] = {&name};
  XLA_FFI_AttrType kinds[] = {XLA_FFI_AttrType_ARRAY};
  void *attributes[] = {&array};
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = sizeof frame;
  frame.api = &api;
  frame.ctx = &context;
  frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args.size = static_cast<int64_t>(inputs.size());
  frame.args.args = pointers.data();
  frame.rets.size = static_cast<int64_t>(outputs.size());
  frame.rets.rets = pointers.data() + inputs.size();
  frame.attrs = {sizeof frame.attrs, nullptr, 1, kinds, names, attributes};
  XLA_FFI_Error *error = handler(&frame);
  if (error != nullptr) {
    printf("%d: %s\n", error->code, error->message);
    delete error;
  }
  if (context.taken != context.given_back) printf("memory was not given back\n");
}

static void show(const float *values, int count) {
  for (int i = 0; i < count; ++i) printf("%g%c", values[i], i + 1 < count ? ' ' : '\n');
}

int main(int, char **arguments) {
  void *library = dlopen(arguments[1], RTLD_NOW);
  Handler *handler = library == nullptr ? nullptr : reinterpret_cast<Handler *>(dlsym(library, "opc_jax_picked_cuda"));
  if (handler == nullptr) return puts(dlerror()), 1;
  float t[] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}, y[8] = {}, total[4] = {};
  int64_t ids[] = {2, 0, 1, 1};
  const XLA_FFI_DataType f32 = XLA_FFI_DataType_F32, s64 = XLA_FFI_DataType_S64;
  call(handler, {{f32, t, {3, 2}}, {s64, ids, {2}}}, {{f32, y, {2, 2}}, {f32, total, {2}}}, 0, 0.5);
  show(y, 4);
  show(total, 2);
  call(handler, {{f32, t, {2, 3, 2}}, {s64, ids, {2, 2}}}, {{f32, y, {2, 2, 2}}, {f32, total, {2, 2}}}, 1, 1);
  show(y, 8);
  show(total, 4);
  call(handler, {{f32, t, {3, 2}}, {s64, ids, {2}}}, {{f32, y, {2, 2}}, {f32, total, {2}}}, 0, -1);
  call(handler, {{f32, t, {3, 2}}, {f32, ids, {2}}}, {{f32, y, {2, 2}}, {f32, total, {2}}}, 0, 1);
  ids[1] = 3;
  call(handler, {{f32, t, {3, 2}}, {s64, ids, {2}}}, {{f32, y, {2, 2}}, {f32, total, {2}}}, 0, 1);
  call(handler, {{f32, t, {3, 2}}}, {{f32, y, {2, 2}}, {f32, total, {2}}}, 0, 1);
  return 0;
}
