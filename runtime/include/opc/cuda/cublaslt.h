/* cuBLASLt, NVIDIA's library of products of matrices, where a process has it or can load it: it is not linked, and none of its headers is
 * read. What is declared here has the values and sizes that cublasLt.h, cublas_api.h and library_types.h of cuBLAS 12.9.3 and 13.10.0 have;
 * tests/emit/cuda/cublaslt.cpp compares them where such headers are. */
#ifndef OPC_CUDA_CUBLASLT_H
#define OPC_CUDA_CUBLASLT_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

/* The environment variable that says where the library is; by default it is looked for as the loader does, and where a toolkit has it. */
#define OPC_CUBLASLT_LIBRARY "OPC_CUBLASLT_LIBRARY"

/* What the emulation has beside the library's functions: kernels that the CPU runs call it alone, and those of a GPU never do. */
#define OPC_CUBLASLT_EMULATION "emulates_cublaslt"

namespace opc {
namespace cublaslt {

enum : int32_t { succeeded = 0 };                                                        /* cublasStatus_t */
enum : int32_t { real_32f = 0, real_64f = 1, real_16f = 2, real_16bf = 14 };             /* cudaDataType */
enum : int32_t { compute_32f = 68, compute_64f = 70 };                                   /* cublasComputeType_t */
enum : int32_t { as_stored = 0, transposed = 1 };                                        /* cublasOperation_t */
enum : int32_t { layout_batches = 5, layout_batch_step = 6 };                            /* cublasLtMatrixLayoutAttribute_t */
enum : int32_t { matmul_transpose_a = 3, matmul_transpose_b = 4, matmul_epilogue = 7, matmul_bias = 8 }; /* cublasLtMatmulDescAttributes_t */
enum : uint32_t { epilogue_none = 1, epilogue_bias = 4 };                                /* cublasLtEpilogue_t */
enum : uint32_t { reduction_in_compute_type = 2 };                                       /* cublasLtReductionScheme_t */
enum : int32_t { prefer_workspace = 1, prefer_reduction = 3, prefer_alignment_a = 5, prefer_alignment_b = 6, prefer_alignment_c = 7,
                 prefer_alignment_d = 8 };                                               /* cublasLtMatmulPreferenceAttributes_t */

/* cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t. */
struct algorithm {
  uint64_t data[8];
};
struct found_algorithm {
  algorithm own;
  size_t workspace;
  int32_t state;
  float waves;
  int32_t reserved[4];
};

/* The library's functions, by their names without the prefix; what it makes of its own is known by its address alone. */
struct functions {
  int32_t (*Create)(void **handle);
  int32_t (*MatmulDescCreate)(void **operation, int32_t compute, int32_t scale);
  int32_t (*MatmulDescDestroy)(void *operation);
  int32_t (*MatmulDescSetAttribute)(void *operation, int32_t attribute, const void *value, size_t bytes);
  int32_t (*MatrixLayoutCreate)(void **layout, int32_t type, uint64_t rows, uint64_t columns, int64_t leading);
  int32_t (*MatrixLayoutDestroy)(void *layout);
  int32_t (*MatrixLayoutSetAttribute)(void *layout, int32_t attribute, const void *value, size_t bytes);
  int32_t (*MatmulPreferenceCreate)(void **preference);
  int32_t (*MatmulPreferenceDestroy)(void *preference);
  int32_t (*MatmulPreferenceSetAttribute)(void *preference, int32_t attribute, const void *value, size_t bytes);
  int32_t (*MatmulAlgoGetHeuristic)(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int32_t most,
                                    found_algorithm *found, int32_t *count);
  int32_t (*Matmul)(void *handle, void *operation, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b,
                    const void *beta, const void *c, void *layout_c, void *d, void *layout_d, const algorithm *own, void *workspace,
                    size_t workspace_bytes, void *stream);
};

template <typename Function>
static inline bool find(void *library, Function &function, const char *name) {
  void *const found = dlsym(library, name);
  memcpy(&function, &found, sizeof found);
  return found != nullptr;
}

static inline bool find_all(void *library, functions &f) {
  return find(library, f.Create, "cublasLtCreate") && find(library, f.MatmulDescCreate, "cublasLtMatmulDescCreate") &&
         find(library, f.MatmulDescDestroy, "cublasLtMatmulDescDestroy") &&
         find(library, f.MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute") &&
         find(library, f.MatrixLayoutCreate, "cublasLtMatrixLayoutCreate") &&
         find(library, f.MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy") &&
         find(library, f.MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute") &&
         find(library, f.MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate") &&
         find(library, f.MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy") &&
         find(library, f.MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute") &&
         find(library, f.MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic") && find(library, f.Matmul, "cublasLtMatmul");
}

/* Loads the library: that of a file, or one that the process has already, as a framework does, or one that the loader or a toolkit has.
 * Of several that of the CUDA which compiled the kernels comes first, since the driver runs that. */
static inline void *load() {
  const char *const path = getenv(OPC_CUBLASLT_LIBRARY);
  if (path != nullptr && *path != 0) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#if defined(__CUDACC__)
#if CUDART_VERSION >= 13000
  static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
#else
  static const char *const names[] = {"libcublasLt.so.12", "libcublasLt.so.13"};
#endif
  for (const char *name : names) {
    if (void *const found = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return found;
  }
  const char *const home = getenv("CUDA_HOME");
  for (const char *name : names) {
    if (void *const found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
    for (const char *folder : {home, "/usr/local/cuda"}) {
      char place[4096];
      if (folder == nullptr || strlen(folder) + strlen(name) + 8 > sizeof place) continue;
      strcat(strcat(strcpy(place, folder), "/lib64/"), name);
      if (void *const found = dlopen(place, RTLD_NOW | RTLD_LOCAL)) return found;
    }
  }
#endif
  return nullptr;
}

/* The library's functions, NULL where there is no library. It is looked for once, by the first call that wants it. */
static inline const functions *library() {
  static functions found;
  static int32_t state = 0; /* 1: found, 2: there is none */
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#if !defined(__CUDACC__)
  if (getenv(OPC_CUBLASLT_LIBRARY) == nullptr) return nullptr; /* it may be named later */
#endif
  const int32_t known = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (known != 0) return known == 1 ? &found : nullptr;
  pthread_mutex_lock(&lock);
  if (state == 0) {
    void *const handle = load();
#if defined(__CUDACC__)
    const bool emulated = false;
#else
    const bool emulated = true;
#endif
    const bool fits = handle != nullptr && find_all(handle, found) && (dlsym(handle, OPC_CUBLASLT_EMULATION) != nullptr) == emulated;
    __atomic_store_n(&state, fits ? 1 : 2, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return state == 1 ? &found : nullptr;
}

}  // namespace cublaslt
}  // namespace opc
#endif  // OPC_CUDA_CUBLASLT_H
