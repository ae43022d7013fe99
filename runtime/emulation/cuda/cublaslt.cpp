/* In place of cuBLASLt, for kernels that the CPU runs: the functions that opc/cuda/cublaslt.h asks for, on the host's memory. A call that the
 * library would refuse or that would read what is not there ends the process with a message. With OPC_EMULATED_CUBLASLT it answers as the
 * library may: `lacks` finds no GPU, `refuses` knows no algorithm, `fails` starts nothing. Numbers are those of cublasLt.h and cublas_api.h, written down again:
 * what opc/cuda/cublaslt.h takes for them is not believed here. */
#define OPC_ON_GPU
#include "opc/abi.h"
#include "opc/cuda/memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#define OPC_LIBRARY extern "C" __attribute__((visibility("default")))

namespace {

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_64F = 70, OP_N = 0, OP_T = 1 };

void require(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "cuBLASLt's emulation: %s\n", what);
  abort();
}

bool answers(const char *how) {
  const char *const asked = getenv("OPC_EMULATED_CUBLASLT");
  return asked != nullptr && strcmp(asked, how) == 0;
}

/* Each begins with a number that tells what it is, and that it has not been destroyed. */
template <int32_t Kind>
struct known {
  int32_t kind = Kind;
  ~known() { kind = 0; }
};
struct context : known<1001> {};
struct operation : known<1002> {
  int32_t compute = 0, scale = 0, transpose_a = OP_N, transpose_b = OP_N;
  uint32_t epilogue = 1;
  const char *bias = nullptr;
};
struct layout : known<1003> {
  int32_t type = 0, batches = 1;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, step = 0;
};
struct preference : known<1004> {
  uint64_t workspace = 0;
  uint32_t reduction = 7, alignment[4] = {256, 256, 256, 256};
};
struct algorithm {
  uint64_t data[8];
};
struct heuristic_result {
  algorithm own;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(algorithm) == 64 && sizeof(heuristic_result) == 96, "as the library has them");

template <typename T>
T &as(void *what, const char *name) {
  require(what != nullptr && static_cast<T *>(what)->kind == T().kind, name);
  return *static_cast<T *>(what);
}

template <typename T>
void set(T &to, const void *value, size_t bytes) {
  require(value != nullptr && bytes == sizeof(T), "an attribute has another size");
  memcpy(&to, value, sizeof(T));
}

size_t size_of(int32_t type) { return type == R_64F ? 8 : type == R_32F ? 4 : 2; }

double read(const void *data, int64_t at, int32_t type) {
  const char *const place = static_cast<const char *>(data) + at * static_cast<int64_t>(size_of(type));
  switch (type) {
    case R_64F: return *reinterpret_cast<const double *>(place);
    case R_32F: return *reinterpret_cast<const float *>(place);
    case R_16F: return opc::load(reinterpret_cast<const opc::float16 *>(place));
    default: return opc::load(reinterpret_cast<const opc::bfloat16 *>(place));
  }
}

void write(void *data, int64_t at, int32_t type, double value) {
  char *const place = static_cast<char *>(data) + at * static_cast<int64_t>(size_of(type));
  switch (type) {
    case R_64F: *reinterpret_cast<double *>(place) = value; break;
    case R_32F: *reinterpret_cast<float *>(place) = static_cast<float>(value); break;
    case R_16F: opc::store(reinterpret_cast<opc::float16 *>(place), static_cast<float>(value)); break;
    default: opc::store(reinterpret_cast<opc::bfloat16 *>(place), static_cast<float>(value)); break;
  }
}

/* What the library asks of types, sizes and layouts. */
void check(const operation &o, const layout &a, const layout &b, const layout &c, const layout &d) {
  for (const layout *l : {&a, &b, &c, &d}) {
    require(l->rows > 0 && l->columns > 0, "a matrix is empty");
    require(l->rows <= INT32_MAX && l->columns <= INT32_MAX, "a matrix has more rows or columns than 32 bits number");
    require(l->leading >= static_cast<int64_t>(l->rows), "a leading dimension is less than the rows");
    require(l->batches == d.batches && l->batches > 0, "matrices have batches of different sizes");
    require(l->step >= 0, "batches lie backwards");
  }
  const uint64_t rows = o.transpose_a == OP_T ? a.columns : a.rows, terms = o.transpose_a == OP_T ? a.rows : a.columns;
  const uint64_t others = o.transpose_b == OP_T ? b.columns : b.rows, columns = o.transpose_b == OP_T ? b.rows : b.columns;
  require(rows == d.rows && columns == d.columns && terms == others && c.rows == d.rows && c.columns == d.columns, "matrices do not fit");
  require(a.type == b.type && c.type == d.type, "types differ");
  const bool wide = a.type == R_64F;
  require(o.compute == (wide ? COMPUTE_64F : COMPUTE_32F) && o.scale == (wide ? R_64F : R_32F), "elements are computed in another type");
  require(d.type == a.type || ((a.type == R_16F || a.type == R_16BF) && d.type == R_32F), "no such product of these types");
  require(o.epilogue == 1 || o.epilogue == 4, "an epilogue that is not known");
  require((o.epilogue == 4) == (o.bias != nullptr), "a bias that is not added, or one that is not there");
}

bool is_aligned(const void *place, uint64_t bytes) { return reinterpret_cast<uintptr_t>(place) % bytes == 0; }

}  // namespace

/* What tells kernels which run on the CPU from those of a GPU that this is the library for them. */
OPC_LIBRARY int emulates_cublaslt(void) { return 1; }

OPC_LIBRARY int cublasLtCreate(void **handle) {
  if (answers("lacks")) return NOT_INITIALIZED;
  *handle = new context;
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatmulDescCreate(void **made, int compute, int scale) {
  operation *const o = new operation;
  o->compute = compute;
  o->scale = scale;
  *made = o;
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatmulDescDestroy(void *what) {
  delete &as<operation>(what, "no description of a product");
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatmulDescSetAttribute(void *what, int attribute, const void *value, size_t bytes) {
  operation &o = as<operation>(what, "no description of a product");
  switch (attribute) {
    case 3: set(o.transpose_a, value, bytes); break;
    case 4: set(o.transpose_b, value, bytes); break;
    case 7: set(o.epilogue, value, bytes); break;
    case 8: set(o.bias, value, bytes); break;
    default: require(false, "an attribute of products that is not known");
  }
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  layout *const l = new layout;
  l->type = type;
  l->rows = rows;
  l->columns = columns;
  l->leading = leading;
  *made = l;
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatrixLayoutDestroy(void *what) {
  delete &as<layout>(what, "no layout");
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatrixLayoutSetAttribute(void *what, int attribute, const void *value, size_t bytes) {
  layout &l = as<layout>(what, "no layout");
  switch (attribute) {
    case 5: set(l.batches, value, bytes); break;
    case 6: set(l.step, value, bytes); break;
    default: require(false, "an attribute of layouts that is not known");
  }
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatmulPreferenceCreate(void **made) {
  *made = new preference;
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatmulPreferenceDestroy(void *what) {
  delete &as<preference>(what, "no preference");
  return SUCCESS;
}

OPC_LIBRARY int cublasLtMatmulPreferenceSetAttribute(void *what, int attribute, const void *value, size_t bytes) {
  preference &p = as<preference>(what, "no preference");
  switch (attribute) {
    case 1: set(p.workspace, value, bytes); break;
    case 3: set(p.reduction, value, bytes); break;
    case 5: case 6: case 7: case 8: set(p.alignment[attribute - 5], value, bytes); break;
    default: require(false, "an attribute of preferences that is not known");
  }
  return SUCCESS;
}

/* The first answer is one that can't be had; the second adds up terms in two parts, where it may have workspace for them. An algorithm knows
 * how matrices have to be aligned. */
OPC_LIBRARY int cublasLtMatmulAlgoGetHeuristic(void *handle, void *of, void *a, void *b, void *c, void *d, void *preferred, int most,
                                               heuristic_result *found, int *count) {
  as<context>(handle, "no handle");
  const operation &o = as<operation>(of, "no description of a product");
  const layout &to = as<layout>(d, "no layout");
  check(o, as<layout>(a, "no layout"), as<layout>(b, "no layout"), as<layout>(c, "no layout"), to);
  const preference &p = as<preference>(preferred, "no preference");
  /* Parts in the type of an output of 16 bits would be rounded to it. */
  require((p.reduction & ~2u) == 0, "sums of parts may be rounded");
  *count = 0;
  if (answers("refuses")) return NOT_SUPPORTED;
  require(most >= 2, "nobody asks for two answers");
  found[0] = heuristic_result{{{}}, 0, NOT_SUPPORTED, 0, {}};
  found[1] = heuristic_result{{{}}, 0, SUCCESS, 1, {}};
  const uint64_t bytes = to.rows * to.columns * static_cast<uint64_t>(to.batches) * (o.compute == COMPUTE_64F ? 8 : 4);
  if (bytes <= p.workspace) found[1].workspace = bytes;
  for (int i = 0; i < 4; ++i) found[1].own.data[i] = p.alignment[i];
  found[1].own.data[4] = found[1].workspace;
  found[1].own.data[5] = 0xb1a5;
  *count = 2;
  return SUCCESS;
}

template <typename T>
static void multiply(const operation &o, const void *a, const layout &la, const void *b, const layout &lb, void *d, const layout &ld, T *parts) {
  const int64_t terms = static_cast<int64_t>(o.transpose_a == OP_T ? la.rows : la.columns);
  const int64_t rows = static_cast<int64_t>(ld.rows), columns = static_cast<int64_t>(ld.columns);
  for (int64_t batch = 0; batch < ld.batches; ++batch) {
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        T sums[2] = {0, 0};
        for (int64_t term = 0; term < terms; ++term) {
          const int64_t at_a = batch * la.step + (o.transpose_a == OP_T ? row * la.leading + term : term * la.leading + row);
          const int64_t at_b = batch * lb.step + (o.transpose_b == OP_T ? term * lb.leading + column : column * lb.leading + term);
          sums[parts != nullptr && term >= terms / 2] += static_cast<T>(read(a, at_a, la.type)) * static_cast<T>(read(b, at_b, lb.type));
        }
        if (parts != nullptr) parts[(batch * columns + column) * rows + row] = sums[1];
        T sum = parts != nullptr ? sums[0] + parts[(batch * columns + column) * rows + row] : sums[0];
        if (o.bias != nullptr) sum += static_cast<T>(read(o.bias, row, ld.type));
        write(d, batch * ld.step + column * ld.leading + row, ld.type, sum);
      }
    }
  }
}

OPC_LIBRARY int cublasLtMatmul(void *handle, void *of, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b,
                               const void *beta, const void *c, void *layout_c, void *d, void *layout_d, const algorithm *own, void *workspace,
                               size_t workspace_bytes, void *) {
  as<context>(handle, "no handle");
  const operation &o = as<operation>(of, "no description of a product");
  const layout &la = as<layout>(layout_a, "no layout"), &lb = as<layout>(layout_b, "no layout"), &ld = as<layout>(layout_d, "no layout");
  check(o, la, lb, as<layout>(layout_c, "no layout"), ld);
  require(a != nullptr && b != nullptr && d != nullptr && c == d, "a matrix is not there");
  require(own != nullptr && own->data[5] == 0xb1a5, "no algorithm");
  require(is_aligned(a, own->data[0]) && is_aligned(b, own->data[1]) && is_aligned(c, own->data[2]) && is_aligned(d, own->data[3]),
          "a matrix is aligned otherwise than was told");
  require(own->data[4] == 0 || (workspace != nullptr && workspace_bytes >= own->data[4] && is_aligned(workspace, 16)), "no workspace");
  const bool wide = o.compute == COMPUTE_64F;
  require(read(alpha, 0, o.scale) == 1 && read(beta, 0, o.scale) == 0, "the product is scaled");
  if (answers("fails")) return EXECUTION_FAILED;
  if (wide) {
    multiply(o, a, la, b, lb, d, ld, own->data[4] > 0 ? static_cast<double *>(workspace) : nullptr);
  } else {
    multiply(o, a, la, b, lb, d, ld, own->data[4] > 0 ? static_cast<float *>(workspace) : nullptr);
  }
  return SUCCESS;
}
