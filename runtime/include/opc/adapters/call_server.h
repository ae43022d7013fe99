/* Answers calls of kernels that come over a pipe, for machines that run under an emulator; no framework, no Python in the process. C11.
 *
 * A source that is compiled with -D_GNU_SOURCE defines `server_callables`, the ops and their number, and includes this file. A call comes
 * on standard input and is answered on standard output. All numbers are int64.
 *
 *   call:    text (the op's name), number of inputs, of outputs; the inputs, and for each output whether it is wanted; the attributes
 *   answer:  code, text (a message); for each output: 0, or 1, DLPack's type code, bits, number of axes, sizes, number of bytes, bytes
 *
 * opc/backends/call_bytes.py says how texts, operands and attributes are written. A call first infers its outputs, which are then
 * computed on the threads of opc/core/threads.h, in memory with marks before and behind.
 */
#ifndef OPC_ADAPTERS_CALL_SERVER_H
#define OPC_ADAPTERS_CALL_SERVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opc/abi.h"
#include "opc/core/threads.h"

/* An op: its name, and its two functions of opc/abi.h, whose attributes are of any family. */
typedef struct server_callable {
  const char *name;
  int32_t (*infer)(const DLTensor *const *, const void *, opc_tensor_type *, const opc_context *);
  int32_t (*run)(const DLTensor *const *, DLTensor *const *, const void *, const opc_context *);
} server_callable;

enum { OPC_SERVED_OPERANDS = 256, OPC_MARGIN = 64, OPC_MARK = 0xA5 };

static void server_stop(const char *what) {
  fprintf(stderr, "call_server: %s\n", what);
  exit(3);
}

static void server_take(void *to, int64_t size) {
  if (size != 0 && fread(to, 1, (size_t)size, stdin) != (size_t)size) server_stop("a call ends early");
}

static int64_t server_take_number(void) {
  int64_t value;
  server_take(&value, sizeof value);
  return value;
}

static void *server_new(int64_t size) {
  void *block = malloc(size > 0 ? (size_t)size : 1);
  if (block == NULL) server_stop("out of memory");
  return block;
}

static void *server_take_block(int64_t size) {
  void *block = server_new(size);
  server_take(block, size);
  return block;
}

static void server_give(const void *from, int64_t size) {
  if (size != 0 && fwrite(from, 1, (size_t)size, stdout) != (size_t)size) server_stop("nobody takes the answer");
}

static void server_give_number(int64_t value) { server_give(&value, sizeof value); }

/* A tensor and the block of memory that its elements lie in; `given` is false for an operand that is not there. */
typedef struct call_served {
  DLTensor tensor;
  void *block;
  int64_t size;
  int given;
} call_served;

static void server_take_operand(call_served *o) {
  memset(o, 0, sizeof *o);
  o->given = server_take_number() != 0;
  if (!o->given) return;
  DLTensor *t = &o->tensor;
  t->device.device_type = kDLCPU;
  t->dtype.code = (uint8_t)server_take_number();
  t->dtype.bits = (uint8_t)server_take_number();
  t->dtype.lanes = 1;
  t->ndim = (int32_t)server_take_number();
  t->shape = server_take_block(t->ndim * (int64_t)sizeof(int64_t));
  t->strides = server_take_block(t->ndim * (int64_t)sizeof(int64_t));
  const int64_t first = server_take_number();
  o->size = server_take_number();
  o->block = server_take_block(o->size);
  t->data = (char *)o->block + first;
}

/* Memory for an output of a type, with margins. */
static void server_make_output(call_served *o, const opc_tensor_type *type) {
  memset(o, 0, sizeof *o);
  o->given = 1;
  DLTensor *t = &o->tensor;
  t->device.device_type = kDLCPU;
  t->dtype = type->dtype;
  t->ndim = type->ndim;
  t->shape = server_new(type->ndim * (int64_t)sizeof(int64_t));
  o->size = (type->dtype.bits + 7) / 8;
  for (int32_t a = 0; a < type->ndim; a++) o->size *= t->shape[a] = type->shape[a];
  o->block = server_new(o->size + 2 * OPC_MARGIN);
  memset(o->block, OPC_MARK, (size_t)(o->size + 2 * OPC_MARGIN));
  t->data = (char *)o->block + OPC_MARGIN;
}

static int server_is_unmarked(const call_served *o) {
  const unsigned char *before = o->block, *behind = before + OPC_MARGIN + o->size;
  for (int64_t i = 0; i < OPC_MARGIN; i++)
    if (before[i] != OPC_MARK || behind[i] != OPC_MARK) return 1;
  return 0;
}

static void server_give_output(const call_served *o) {
  server_give_number(o->given);
  if (!o->given) return;
  server_give_number(o->tensor.dtype.code);
  server_give_number(o->tensor.dtype.bits);
  server_give_number(o->tensor.ndim);
  for (int32_t a = 0; a < o->tensor.ndim; a++) server_give_number(o->tensor.shape[a]);
  server_give_number(o->size);
  server_give(o->tensor.data, o->size);
}

static void server_drop(call_served *o) {
  free(o->tensor.shape);
  free(o->tensor.strides);
  free(o->block);
}

/* Takes a call whose name has `length` bytes, and answers it. */
static void call_serve(const server_callable *callables, int64_t count, int64_t length) {
  static call_served in[OPC_SERVED_OPERANDS], out[OPC_SERVED_OPERANDS];
  static opc_tensor_type types[OPC_SERVED_OPERANDS];
  const DLTensor *given[OPC_SERVED_OPERANDS];
  DLTensor *made[OPC_SERVED_OPERANDS];
  int wanted[OPC_SERVED_OPERANDS];
  void *list[OPC_SERVED_OPERANDS];
  char name[512] = "", message[1024] = "";
  if (length < 0 || length >= (int64_t)sizeof name) server_stop("a name is too long");
  server_take(name, length);
  const server_callable *op = NULL;
  for (int64_t i = 0; i < count; i++)
    if (strcmp(callables[i].name, name) == 0) op = &callables[i];
  if (op == NULL) server_stop("there is no such op");
  const int64_t inputs = server_take_number(), outputs = server_take_number();
  if (inputs >= OPC_SERVED_OPERANDS || outputs >= OPC_SERVED_OPERANDS) server_stop("too many operands");
  for (int64_t i = 0; i < inputs; i++) {
    server_take_operand(&in[i]);
    given[i] = in[i].given ? &in[i].tensor : NULL;
  }
  for (int64_t i = 0; i < outputs; i++) {
    wanted[i] = server_take_number() != 0;
    memset(&out[i], 0, sizeof out[i]);
    made[i] = NULL;
  }
  char *attributes = server_take_block(server_take_number());
  /* Lists are blocks of their own, whose places stand in the attributes. */
  const int64_t lists = server_take_number();
  if (lists > OPC_SERVED_OPERANDS) server_stop("too many lists");
  for (int64_t i = 0; i < lists; i++) {
    const int64_t place = server_take_number();
    list[i] = server_take_block(server_take_number());
    memcpy(attributes + place, &list[i], sizeof list[i]);
  }

  const opc_context context = {.parallel_for = opc_parallel_for, .message = message, .message_size = sizeof message};
  int32_t code = op->infer(given, attributes, types, &context);
  if (code == OPC_OK) {
    for (int64_t i = 0; i < outputs; i++) {
      if (!wanted[i] || types[i].ndim < 0) continue;
      server_make_output(&out[i], &types[i]);
      made[i] = &out[i].tensor;
    }
    code = op->run(given, made, attributes, &context);
  }
  for (int64_t i = 0; i < outputs; i++)
    if (out[i].given && server_is_unmarked(&out[i])) server_stop("a kernel has written beside an output");
  server_give_number(code);
  server_give_number((int64_t)strlen(message));
  server_give(message, (int64_t)strlen(message));
  for (int64_t i = 0; i < outputs && code == OPC_OK; i++) server_give_output(&out[i]);
  fflush(stdout);
  for (int64_t i = 0; i < inputs; i++) server_drop(&in[i]);
  for (int64_t i = 0; i < outputs; i++) server_drop(&out[i]);
  for (int64_t i = 0; i < lists; i++) free(list[i]);
  free(attributes);
}

/* Serves calls until standard input ends. */
static int call_serve_all(const server_callable *callables, int64_t count) {
  int64_t length;
  while (fread(&length, sizeof length, 1, stdin) == 1) call_serve(callables, count, length);
  return 0;
}

#endif /* OPC_ADAPTERS_CALL_SERVER_H */
