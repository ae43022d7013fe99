/* The part of libtorch's stable C shim that opc's PyTorch libraries call, declared here so that they build in no time and without
 * torch.
 *
 * The functions are declared in torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h and keep their ABI from version
 * to version; the newest ones here came with torch 2.10. Those that return int32_t return 0 when all went well. How torch boxes a
 * value into 64 bits is described in torch/csrc/stable/stableivalue_conversions.h: a tensor, string or list is an owning handle; an optional
 * value is 0 or a pointer to a boxed value on the heap. */
#ifndef OPC_ADAPTERS_TORCH_SHIM_H
#define OPC_ADAPTERS_TORCH_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "opc/core/dtypes.h"

extern "C" {

typedef uint64_t StableIValue;
typedef struct AtenTensorOpaque *AtenTensorHandle;
typedef struct StringOpaque *StringHandle;
typedef struct StableListOpaque *StableListHandle;
typedef struct TorchLibraryOpaque *TorchLibraryHandle;
typedef void (*opc_torch_function)(StableIValue *stack, uint64_t argument_count, uint64_t return_count);

int32_t aoti_torch_library_init_fragment(const char *name_space, const char *file, uint32_t line, TorchLibraryHandle *library);
int32_t aoti_torch_library_init_impl(const char *name_space, const char *key, const char *file, uint32_t line,
                                     TorchLibraryHandle *library);
int32_t aoti_torch_library_def(TorchLibraryHandle library, const char *schema);
int32_t torch_library_impl(TorchLibraryHandle library, const char *name, opc_torch_function function, uint64_t version);

int32_t aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
int32_t aoti_torch_new_uninitialized_tensor(AtenTensorHandle *tensor);
int32_t aoti_torch_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device_type,
                                 int32_t device_index, AtenTensorHandle *tensor);
int32_t aoti_torch_get_dim(AtenTensorHandle tensor, int64_t *dim);
int32_t aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t **sizes);
int32_t aoti_torch_get_strides(AtenTensorHandle tensor, int64_t **strides);
int32_t aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t *dtype);
int32_t aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t *device_type);
int32_t aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t *device_index);
int32_t aoti_torch_is_defined(AtenTensorHandle tensor, bool *is_defined);
int32_t torch_get_const_data_ptr(AtenTensorHandle tensor, const void **data);
int32_t torch_get_mutable_data_ptr(AtenTensorHandle tensor, void **data);

int32_t torch_string_c_str(StringHandle string, const char **text);
int32_t torch_string_length(StringHandle string, size_t *length);
int32_t torch_delete_string(StringHandle string);
int32_t torch_list_size(StableListHandle list, size_t *size);
int32_t torch_list_get_item(StableListHandle list, size_t index, StableIValue *item);
int32_t torch_delete_list(StableListHandle list);

int32_t torch_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void *), void *argument);
void aoti_torch_check(bool condition, const char *function, const char *file, uint32_t line, const char *message);

int32_t aoti_torch_device_type_cpu();
int32_t aoti_torch_device_type_cuda();
#define OPC_DECLARE(name, c, cpp) int32_t aoti_torch_dtype_##c();
OPC_TORCH_DTYPES(OPC_DECLARE)
#undef OPC_DECLARE
int32_t aoti_torch_dtype_complex64();
int32_t aoti_torch_dtype_complex128();

}  // extern "C"

#endif /* OPC_ADAPTERS_TORCH_SHIM_H */
