/* The library with a family's kernels for GPUs, for libraries that load where there is no CUDA: `lib<op>_cuda.so` is looked for beside
 * them when it is needed. */
#ifndef OPC_ADAPTERS_CUDA_LIBRARY_H
#define OPC_ADAPTERS_CUDA_LIBRARY_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opc/core/first_glibc.h"

#if defined(OPC_FIRST_GLIBC)
__asm__(".symver dlopen, dlopen@" OPC_FIRST_GLIBC);
__asm__(".symver dlsym, dlsym@" OPC_FIRST_GLIBC);
__asm__(".symver dlerror, dlerror@" OPC_FIRST_GLIBC);
__asm__(".symver dlclose, dlclose@" OPC_FIRST_GLIBC);
__asm__(".symver dladdr, dladdr@" OPC_FIRST_GLIBC);
#endif

namespace opc {

/* Where the message of a call that is refused goes. */
struct Message {
  char *text;
  size_t size;

  template <class... Values>
  bool refuse(const char *format, Values... values) const {
    snprintf(text, size, format, values...);
    return false;
  }
};

class CudaLibrary {
 public:
  /* What it is found by: the family's name, which has to lie in the library of this code, and the spec that both are made from. */
  void name(const char *family, const char *source) {
    family_ = family;
    source_ = source;
  }

  /* Whether there is a file of its name. */
  bool is_there() const {
    char path[4096];
    return place(path, sizeof path) && access(path, F_OK) == 0;
  }

  bool is_loaded() const { return __atomic_load_n(&handle_, __ATOMIC_ACQUIRE) != nullptr; }

  /* Loads it where that has not been done; false, with the reason, where it can't be. `emulated` says that tensors of GPUs lie in the
   * host's memory. Threads that do so at once do the same. */
  bool load(const char *op, bool emulated, const Message &message) {
    if (is_loaded()) return true;
    char path[4096];
    if (!place(path, sizeof path)) return message.refuse("%s: the place of its library is not known", op);
    if (access(path, F_OK) != 0)
      return message.refuse("%s: built without CUDA: run `opc build --backend cuda` on its spec, where nvcc is, to make %s", op, path);
    void *kernels = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!kernels) return message.refuse("%s: its kernels can't be loaded: %s", op, dlerror());
    if (!fits(kernels, op, path, emulated, message)) {
      dlclose(kernels);  // another may be made at its place
      return false;
    }
    __atomic_store_n(&handle_, kernels, __ATOMIC_RELEASE);
    return true;
  }

  /* The address of `opc_<name><suffix>`, NULL where there is none. */
  void *function(const char *name, const char *suffix) const {
    char symbol[512];
    snprintf(symbol, sizeof symbol, "opc_%s%s", name, suffix);
    return dlsym(handle_, symbol);
  }

  const char *family() const { return family_; }

  template <class Function>
  static bool find(void *library, Function &function, const char *name) {
    void *found = dlsym(library, name);
    memcpy(&function, &found, sizeof found);
    return found != nullptr;
  }

 private:
  /* Whether kernels are of the same spec and compute where tensors are. */
  bool fits(void *kernels, const char *op, const char *path, bool emulated, const Message &message) {
    const char *(*source)(void) = nullptr;
    if (!find(kernels, source, "opc_array_source") || strcmp(source(), source_) != 0)
      return message.refuse("%s: its kernels are not made from the same spec: run `opc build --backend cuda` on it to make %s", op, path);
    /* Kernels that compute on the CPU can't read a GPU's memory; where that is emulated too, they can. */
    int32_t (*on_cpu)(void) = nullptr;
    if (!find(kernels, on_cpu, "opc_array_is_emulated") || (on_cpu() != 0) != emulated)
      return message.refuse("%s: its kernels are for this machine's CPU: run `opc build --backend cuda` where nvcc and a GPU are", op);
    return true;
  }

  bool place(char *path, size_t size) const {
    Dl_info own;
    if (!dladdr(family_, &own) || !own.dli_fname) return false;
    const char *slash = strrchr(own.dli_fname, '/');
    const int folder = slash ? static_cast<int>(slash + 1 - own.dli_fname) : 0;
    return snprintf(path, size, "%.*slib%s_cuda.so", folder, own.dli_fname, family_) < static_cast<int>(size);
  }

  const char *family_ = "";
  const char *source_ = "";
  void *handle_ = nullptr;
};

}  // namespace opc

#endif /* OPC_ADAPTERS_CUDA_LIBRARY_H */
