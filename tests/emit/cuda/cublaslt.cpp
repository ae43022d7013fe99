/* What opc/cuda/cublaslt.h declares, beside NVIDIA's own headers. */
#include <cublasLt.h>
#include <stdio.h>

#include <type_traits>

#include "opc/cuda/cublaslt.h"

using namespace opc::cublaslt;

#define SAME(own, theirs) static_assert(static_cast<long long>(own) == static_cast<long long>(theirs), #own)
SAME(succeeded, CUBLAS_STATUS_SUCCESS);
SAME(real_32f, CUDA_R_32F);
SAME(real_64f, CUDA_R_64F);
SAME(real_16f, CUDA_R_16F);
SAME(real_16bf, CUDA_R_16BF);
SAME(compute_32f, CUBLAS_COMPUTE_32F);
SAME(compute_64f, CUBLAS_COMPUTE_64F);
SAME(as_stored, CUBLAS_OP_N);
SAME(transposed, CUBLAS_OP_T);
SAME(layout_batches, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(layout_batch_step, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(matmul_transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(matmul_transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(matmul_epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(matmul_bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(epilogue_none, CUBLASLT_EPILOGUE_DEFAULT);
SAME(epilogue_bias, CUBLASLT_EPILOGUE_BIAS);
SAME(reduction_in_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(prefer_workspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(prefer_reduction, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(prefer_alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(prefer_alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(prefer_alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(prefer_alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(sizeof(algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(found_algorithm), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(found_algorithm, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(found_algorithm, state), offsetof(cublasLtMatmulHeuristicResult_t, state));

/* Each parameter has the size of the one in its place there, and is a pointer where that is one. */
template <typename Own, typename Theirs>
struct alike : std::false_type {};
template <typename... Own, typename... Theirs>
struct alike<int32_t (*)(Own...), cublasStatus_t (*)(Theirs...)> {
  template <typename A, typename B>
  static constexpr bool same = sizeof(A) == sizeof(B) && std::is_pointer<A>::value == std::is_pointer<B>::value;
  static constexpr bool value = (same<Own, Theirs> && ...);
};
#define ALIKE(name) static_assert(alike<decltype(functions::name), decltype(&cublasLt##name)>::value, #name)
ALIKE(Create);
ALIKE(MatmulDescCreate);
ALIKE(MatmulDescDestroy);
ALIKE(MatmulDescSetAttribute);
ALIKE(MatrixLayoutCreate);
ALIKE(MatrixLayoutDestroy);
ALIKE(MatrixLayoutSetAttribute);
ALIKE(MatmulPreferenceCreate);
ALIKE(MatmulPreferenceDestroy);
ALIKE(MatmulPreferenceSetAttribute);
ALIKE(MatmulAlgoGetHeuristic);
ALIKE(Matmul);

int main() { printf("%d\n", CUBLAS_VERSION); }
