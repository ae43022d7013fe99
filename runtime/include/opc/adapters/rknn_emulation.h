/* RKNN's C runtime as far as a custom op sees it, for machines without one: it keeps the op that registers, and calls its callbacks.
 *
 * A source that defines OPC_REGISTER, the name of an op's register function, and includes this file becomes a program with the op and
 * its kernel. It reads calls from the file of its first argument and writes what came of them to that of its second. All numbers are
 * little-endian.
 *
 *   calls:   for each, a list of attributes, of inputs and of outputs; a list is its length (uint32) and its items
 *            attribute: name (256 bytes), rknn_tensor_type (uint32), number of elements (uint32), block of data
 *            tensor:    rknn_tensor_type (uint32), list of sizes (uint32), block of data (empty for an output)
 *            block:     its length (uint32) and its bytes
 *   answers: for each, what the callback returned (int32), and the bytes of each output, zeros where it refused
 */
#ifndef OPC_ADAPTERS_RKNN_EMULATION_H
#define OPC_ADAPTERS_RKNN_EMULATION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "opc/adapters/rknn_api.h"

namespace {

constexpr uint32_t most_attributes = 64;
constexpr uint32_t most_tensors = 32;
constexpr int32_t margin = 64; /* bytes before a tensor, which the op must skip */

rknn_custom_op *registered = nullptr;

struct Attributes {
  uint32_t count;
  rknn_custom_op_attr items[most_attributes];
};

[[noreturn]] void fail(const char *what) {
  fprintf(stderr, "rknn emulation: %s\n", what);
  exit(2);
}

void take(FILE *file, void *out, size_t bytes) {
  if (fread(out, 1, bytes, file) != bytes) fail("the calls end too early");
}

uint32_t number(FILE *file) {
  uint32_t value;
  take(file, &value, sizeof value);
  return value;
}

void *memory(size_t bytes) {
  void *found = calloc(bytes + 1, 1);
  if (found == nullptr) fail("no memory");
  return found;
}

uint32_t size_of(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_INT64: return 8;
    case RKNN_TENSOR_FLOAT32:
    case RKNN_TENSOR_INT32:
    case RKNN_TENSOR_UINT32: return 4;
    case RKNN_TENSOR_FLOAT16:
    case RKNN_TENSOR_INT16:
    case RKNN_TENSOR_UINT16: return 2;
    default: return 1;
  }
}

uint32_t read_tensors(FILE *file, rknn_custom_op_tensor *tensors) {
  const uint32_t count = number(file);
  if (count > most_tensors) fail("too many tensors");
  for (uint32_t i = 0; i < count; ++i) {
    rknn_custom_op_tensor &t = tensors[i];
    memset(&t, 0, sizeof t);
    t.attr.index = i;
    t.attr.type = static_cast<rknn_tensor_type>(number(file));
    t.attr.n_dims = number(file);
    if (t.attr.n_dims > RKNN_MAX_DIMS) fail("too many axes");
    t.attr.n_elems = 1;
    for (uint32_t d = 0; d < t.attr.n_dims; ++d) t.attr.n_elems *= t.attr.dims[d] = number(file);
    t.attr.fmt = t.attr.n_dims == 4 ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
    t.attr.size = t.attr.size_with_stride = t.attr.n_elems * size_of(t.attr.type);
    t.mem.virt_addr = memory(margin + t.attr.size);
    t.mem.offset = margin;
    t.mem.size = margin + t.attr.size;
    const uint32_t bytes = number(file);
    if (bytes != 0 && bytes != t.attr.size) fail("a tensor's data has another size");
    take(file, static_cast<char *>(t.mem.virt_addr) + margin, bytes);
  }
  return count;
}

Attributes read_attributes(FILE *file) {
  Attributes attributes = {};
  attributes.count = number(file);
  if (attributes.count > most_attributes) fail("too many attributes");
  for (uint32_t i = 0; i < attributes.count; ++i) {
    rknn_custom_op_attr &a = attributes.items[i];
    take(file, a.name, sizeof a.name);
    a.dtype = static_cast<rknn_tensor_type>(number(file));
    a.n_elems = number(file);
    const uint32_t bytes = number(file);
    a.data = memory(bytes);
    take(file, a.data, bytes);
  }
  return attributes;
}

void release(rknn_custom_op_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) free(tensors[i].mem.virt_addr);
}

void run(FILE *calls, FILE *answers) {
  Attributes attributes = read_attributes(calls);
  static rknn_custom_op_tensor inputs[most_tensors], outputs[most_tensors];
  const uint32_t n_inputs = read_tensors(calls, inputs), n_outputs = read_tensors(calls, outputs);

  rknn_custom_op_context context = {};
  context.target = RKNN_TARGET_TYPE_CPU;
  context.internal_ctx = reinterpret_cast<uintptr_t>(&attributes);
  int32_t code = RKNN_SUCC;
  for (const auto callback : {registered->init, registered->prepare, registered->compute})
    if (code == RKNN_SUCC && callback != nullptr) code = callback(&context, inputs, n_inputs, outputs, n_outputs);
  if (registered->destroy != nullptr) registered->destroy(&context);

  fwrite(&code, sizeof code, 1, answers);
  for (uint32_t i = 0; i < n_outputs; ++i)
    fwrite(static_cast<char *>(outputs[i].mem.virt_addr) + margin, 1, outputs[i].attr.size, answers);
  release(inputs, n_inputs);
  release(outputs, n_outputs);
  for (uint32_t i = 0; i < attributes.count; ++i) free(attributes.items[i].data);
}

}  // namespace

extern "C" {

int rknn_register_custom_ops(rknn_context, rknn_custom_op *ops, uint32_t count) {
  if (count != 1 || ops->version != 1 || ops->target != RKNN_TARGET_TYPE_CPU || ops->compute == nullptr) return RKNN_ERR_PARAM_INVALID;
  registered = ops;
  return RKNN_SUCC;
}

void rknn_custom_op_get_op_attr(rknn_custom_op_context *context, const char *name, rknn_custom_op_attr *attribute) {
  const Attributes &attributes = *reinterpret_cast<const Attributes *>(context->internal_ctx);
  for (uint32_t i = 0; i < attributes.count; ++i)
    if (strcmp(attributes.items[i].name, name) == 0) *attribute = attributes.items[i];
}

int OPC_REGISTER(rknn_context context);
rknn_custom_op *get_rknn_custom_op();

} /* extern "C" */

int main(int count, char **arguments) {
  if (count != 3) fail("give the file of calls, and that of answers");
  FILE *calls = fopen(arguments[1], "rb");
  FILE *answers = fopen(arguments[2], "wb");
  if (calls == nullptr || answers == nullptr) fail("can't open the files");
  if (OPC_REGISTER(1) != RKNN_SUCC) fail("the op could not be registered");
  if (get_rknn_custom_op() != registered) fail("the plugin's entry gives another op");
  for (int next; (next = fgetc(calls)) != EOF;) {
    ungetc(next, calls);
    run(calls, answers);
  }
  fclose(calls);
  return fclose(answers) == 0 ? 0 : 2;
}

#endif /* OPC_ADAPTERS_RKNN_EMULATION_H */
