/* What a generated PyTorch library is made of: `opc::torch::Call`, which carries one operator call from torch's stack to a kernel and
 * back, and `opc::torch::Library`, which makes the operators known to torch. */
#ifndef OPC_ADAPTERS_TORCH_H
#define OPC_ADAPTERS_TORCH_H

#include "opc/adapters/torch_arguments.h"

namespace opc {
namespace torch {

/* The version of torch whose boxing this file follows: 2.10. */
constexpr uint64_t boxing_version = (uint64_t{2} << 56) | (uint64_t{10} << 48);

/* Runs a kernel's loop on torch's threads. */
inline void parallel_for(void *, int64_t count, int64_t grain, opc_range_body body, void *argument) {
  constexpr int64_t most_ranges = 64;
  struct Ranges {
    opc_range_body body;
    void *argument;
    int64_t count, length, next;
  } ranges = {body, argument, count, (count + most_ranges - 1) / most_ranges, 0};
  if (ranges.length < grain) ranges.length = grain;
  /* torch gives every thread an equal share. Taking small ranges in turn instead, a thread that was delayed delays no other. */
  torch_parallel_for(
      0, (count + ranges.length - 1) / ranges.length, 1,
      [](int64_t, int64_t, void *data) {
        Ranges *r = static_cast<Ranges *>(data);
        for (;;) {
          const int64_t begin = __atomic_fetch_add(&r->next, r->length, __ATOMIC_RELAXED);
          if (begin >= r->count) return;
          r->body(r->argument, begin, begin + r->length < r->count ? begin + r->length : r->count);
        }
      },
      &ranges);
}

/* What torch calls a function for: with results that go to tensors of the caller's, and for a GPU. */
struct Form {
  bool given;
  bool cuda;
};

/* One call of an operator with `InputCount` tensors in and `OutputCount` out.
 *
 * Take the arguments in the order of the schema: inputs, then what the operator has of attributes, `output_mask`, `batch_axes`
 * and given outputs; then `run`, then `give`. */
template <int InputCount, int OutputCount>
class Call : public Arguments {
 public:
  Call(const char *op, StableIValue *stack, Form form) : Arguments(op, stack), form_(form) {
    for (bool &wanted : wanted_) wanted = true;
  }

  void input() { tensor(inputs_[taken_++], false, form_.cuda); }
  void optional_input() { optional_tensor(inputs_[taken_++], form_.cuda); }

  /* Which outputs are wanted: the others are not computed. */
  void output_mask() { list<bool>("output_mask", wanted_, OutputCount); }

  /* How many leading axes of every tensor are batch axes, which the kernel knows nothing of and is called once for each point of. */
  void batch_axes() { batch_axes_ = static_cast<int32_t>(integer()); }

  /* The tensors to write to, instead of fresh ones. */
  void given_outputs() {
    for (Tensor &output : outputs_) tensor(output, true, form_.cuda);
  }

  /* Runs the function of the CPU, or what `on_gpu` finds in its place. */
  template <class Attributes>
  void run(int32_t (*infer)(const DLTensor *const *, const Attributes *, opc_tensor_type *, const opc_context *),
           int32_t (*kernel)(const DLTensor *const *, DLTensor *const *, const Attributes *, const opc_context *),
           const Attributes &attributes, CudaOp &on_gpu) {
    check();
    const opc_context context = {parallel_for, nullptr, message_, sizeof message_};
    CudaCall gpu;
    int32_t (*gpu_infer)(const DLTensor *const *, const Attributes *, opc_tensor_type *, const opc_cuda_context *) = nullptr;
    int32_t (*gpu_kernel)(const DLTensor *const *, DLTensor *const *, const Attributes *, const opc_cuda_context *) = nullptr;
    int32_t (*gpu_call)(decltype(gpu_kernel), const char *, const DLTensor *const *, DLTensor *const *, const Attributes *,
                        const opc_cuda_context *) = nullptr;
    DLDevice device = {kDLCPU, 0};
    if (form_.cuda) {
      device = one_device(on_gpu.operands);
      gpu.begin(on_gpu, op_, device.device_id, {message_, sizeof message_});
      check();
      memcpy(&gpu_infer, &on_gpu.infer, sizeof gpu_infer);
      memcpy(&gpu_kernel, &on_gpu.kernel, sizeof gpu_kernel);
      if (!gpu.context.status) memcpy(&gpu_call, &on_gpu.call, sizeof gpu_call);
    }
    DLTensor *views[InputCount + OutputCount];
    DLTensor **outputs = views + InputCount;
    for (int i = 0; i < InputCount; ++i) views[i] = inputs_[i].view();
    strip_batch_axes(views, InputCount);
    if (!form_.given) {
      opc_tensor_type types[OutputCount];
      if (form_.cuda)
        gpu_infer(views, &attributes, types, &gpu.context);
      else
        infer(views, &attributes, types, &context);
      check();
      for (int i = 0; i < OutputCount; ++i)
        if (wanted_[i] && !outputs_[i].allocate(device, batch_shape_, batch_axes_, types[i]))
          note("%s: torch has no memory for the outputs", op_);
      check();
    }
    for (int i = 0; i < OutputCount; ++i) outputs[i] = outputs_[i].view();
    strip_batch_axes(outputs, OutputCount);
    const int64_t points = batch_points();
    for (int64_t point = 0; point < points; ++point) {
      if (batch_axes_ > 0) move_to(point, views);
      if (form_.cuda) {
        if (gpu_call)
          gpu_call(gpu_kernel, op_, views, outputs, &attributes, &gpu.context);
        else
          gpu_kernel(views, outputs, &attributes, &gpu.context);
        gpu.release();
      } else {
        kernel(views, outputs, &attributes, &context);
      }
      check();
    }
  }

  /* Puts the outputs on the stack. */
  void give(StableIValue *stack) {
    for (int i = 0; i < OutputCount; ++i) stack[i] = outputs_[i].release();
  }

 private:
  /* The device that all tensors are on; refuses those on several, by their names. */
  DLDevice one_device(const char *names) {
    int first = -1;
    DLDevice device = {kDLCPU, 0};
    for (int i = 0; i < InputCount + OutputCount; ++i) {
      const DLTensor *view = i < InputCount ? inputs_[i].view() : outputs_[i - InputCount].view();
      if (!view) continue;
      if (first < 0) {
        first = i;
        device = view->device;
      } else if (view->device.device_type != device.device_type || view->device.device_id != device.device_id) {
        note("%s: %s is on %s, but %s is on %s", op_, OperandText(names, first).text, DeviceText(device).text,
             OperandText(names, i).text, DeviceText(view->device).text);
      }
    }
    check();
    return device;
  }

  /* Takes the batch axes off the views and checks that all have the same ones. */
  void strip_batch_axes(DLTensor **views, int count) {
    if (batch_axes_ == 0) return;
    for (int i = 0; i < count; ++i) {
      DLTensor *view = views[i];
      if (!view) continue;
      if (!batch_shape_) batch_shape_ = view->shape;
      if (view->ndim < batch_axes_ || memcmp(view->shape, batch_shape_, sizeof(int64_t) * batch_axes_) != 0)
        note("%s: every tensor must have the same %d batch axes in front", op_, batch_axes_);
      view->ndim -= batch_axes_;
      view->shape += batch_axes_;
      view->strides += batch_axes_;
    }
    check();
  }

  int64_t batch_points() const {
    int64_t points = 1;
    for (int axis = 0; axis < batch_axes_; ++axis) points *= batch_shape_[axis];
    return points;
  }

  /* Moves the data pointers of the views to one point of the batch axes. */
  void move_to(int64_t point, DLTensor **views) {
    for (int i = 0; i < InputCount + OutputCount; ++i) {
      DLTensor *view = views[i];
      if (!view) continue;
      int64_t elements = 0;
      int64_t rest = point;
      for (int axis = batch_axes_ - 1; axis >= 0; --axis) {
        elements += rest % batch_shape_[axis] * view->strides[axis - batch_axes_];
        rest /= batch_shape_[axis];
      }
      view->byte_offset = static_cast<uint64_t>(elements * itemsize(view->dtype));
    }
  }

  Tensor inputs_[InputCount];
  Tensor outputs_[OutputCount];
  bool wanted_[OutputCount];
  const Form form_;
  int taken_ = 0;
  int32_t batch_axes_ = 0;
  const int64_t *batch_shape_ = nullptr;
};

/* The functions that torch calls for an operator, by whether results go to given tensors, and whether they are on a GPU. */
struct Functions {
  opc_torch_function call[2], write[2];
};

template <void (*function)(StableIValue *, Form), bool given, bool cuda>
void boxed(StableIValue *stack, uint64_t, uint64_t) {
  function(stack, {given, cuda});
}

template <void (*function)(StableIValue *, Form)>
constexpr Functions functions = {{boxed<function, false, false>, boxed<function, false, true>},
                                 {boxed<function, true, false>, boxed<function, true, true>}};

/* One operator: the schemas that return fresh tensors and that write to given ones, and its functions. */
struct Registration {
  const char *schema;
  const char *out_schema;
  const Functions *functions;
};

/* Makes a family's operators known to torch: `name`, to which Python adds kernels for autograd and vmap, `_name`, which has none but
 * the CPU's and those of GPUs, and `name.out`. torch keeps the library for the rest of the process, as these functions stay loaded. */
class Library {
 public:
  template <int Count>
  Library(const char *name_space, const char *family, const char *source, const char *file, const Registration (&operators)[Count]) {
    cuda_library.name(family, source);
    bool ok = aoti_torch_library_init_fragment(name_space, file, 0, &schemas_) == 0 &&
              aoti_torch_library_init_impl(name_space, "CPU", file, 0, &kernels_[0]) == 0 &&
              aoti_torch_library_init_impl(name_space, "CUDA", file, 0, &kernels_[1]) == 0;
    for (const Registration &op : operators) {
      char raw[4096];
      snprintf(raw, sizeof raw, "_%s", op.schema);
      const Functions &own = *op.functions;
      ok = ok && add(op.schema, own.call) && add(raw, own.call) && add(op.out_schema, own.write);
    }
  }

 private:
  /* Says whether torch took the operator; if not, it has said why on stderr, and loading the package fails for lack of it. */
  bool add(const char *schema, const opc_torch_function (&functions)[2]) {
    char name[512];
    snprintf(name, sizeof name, "%.*s", static_cast<int>(strcspn(schema, "(")), schema);
    return aoti_torch_library_def(schemas_, schema) == 0 &&
           torch_library_impl(kernels_[0], name, functions[0], boxing_version) == 0 &&
           torch_library_impl(kernels_[1], name, functions[1], boxing_version) == 0;
  }

  TorchLibraryHandle schemas_ = nullptr;
  TorchLibraryHandle kernels_[2] = {};
};

}  // namespace torch
}  // namespace opc

#endif /* OPC_ADAPTERS_TORCH_H */
