/* What native code of a spec is written with: views of operands, lists, errors, the host's threads.
 *
 * Unlike the kernels' own headers this one uses the C++ standard library and exceptions, which end at `guarded`.
 */
#ifndef OPC_ADAPTERS_NATIVE_H
#define OPC_ADAPTERS_NATIVE_H

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "opc/core/minifloat.h"
#include "opc/core/tensor.h"

namespace opc {

/* An error of the op: its message reaches the framework as the framework's own error. */
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/* Throws `error` with a printf-style message. */
[[noreturn]] __attribute__((cold, format(printf, 1, 2))) inline void raise(const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  throw error(message);
}

/* Raises unless the condition holds; what follows it is a printf-style message. */
#define OPC_CHECK(condition, ...) ((condition) ? static_cast<void>(0) : ::opc::raise(__VA_ARGS__))

/* A minifloat in memory, a float in every expression. */
template <typename Format>
struct minifloat {
  Format element;
  minifloat() = default;
  minifloat(float value) : element(narrow<Format>(value)) {}
  operator float() const { return widen(element); }
};

namespace native {

template <typename T>
struct traits {
  using compute = T;
  using accumulator = std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<std::is_same_v<T, uint64_t>, T, int64_t>>;
};
template <typename Format>
struct traits<minifloat<Format>> {
  using compute = float;
  using accumulator = float;
};

}  // namespace native

/* The type values of an element type are computed in: float for minifloats, else itself. */
template <typename T>
using compute_t = typename native::traits<std::remove_const_t<T>>::compute;

/* The type acc(T). */
template <typename T>
using accumulator_t = typename native::traits<std::remove_const_t<T>>::accumulator;

/* The elements of a tensor in row-major order in one piece: the tensor's own memory where that is so, else a copy. */
template <typename T>
class contiguous_elements {
 public:
  contiguous_elements(const T *own, std::vector<std::remove_const_t<T>> copy) : own_(own), copy_(std::move(copy)) {}
  contiguous_elements(const contiguous_elements &) = delete;
  contiguous_elements &operator=(const contiguous_elements &) = delete;
  const T *data() const { return own_ != nullptr ? own_ : copy_.data(); }
  const T &operator[](int64_t position) const { return data()[position]; }

 private:
  const T *own_;
  std::vector<std::remove_const_t<T>> copy_;
};

/* An operand of a call: memory, sizes and strides (in elements). Inputs are views of const elements; outputs are contiguous. */
template <typename T>
class view {
 public:
  /* A view of a tensor; NULL is an optional operand that was not given. */
  explicit view(const DLTensor *tensor) {
    if (tensor == nullptr) return;
    data_ = reinterpret_cast<T *>(data_of(*tensor));
    rank_ = tensor->ndim;
    int64_t contiguous = 1;
    for (int32_t i = rank_ - 1; i >= 0; --i) {
      shape_[i] = tensor->shape[i];
      strides_[i] = tensor->strides != nullptr ? tensor->strides[i] : contiguous;
      contiguous_ = contiguous_ && (shape_[i] == 1 || strides_[i] == contiguous);
      contiguous *= shape_[i];
    }
    count_ = contiguous;
    given_ = true;
  }

  /* Whether an optional operand was given. */
  explicit operator bool() const { return given_; }

  T *data() const { return data_; }
  int32_t rank() const { return rank_; }
  /* The number of elements. */
  int64_t count() const { return count_; }
  /* The size and the stride of an axis; a negative axis counts from the last. */
  int64_t size(int32_t axis) const { return shape_[axis < 0 ? axis + rank_ : axis]; }
  int64_t stride(int32_t axis) const { return strides_[axis < 0 ? axis + rank_ : axis]; }
  const int64_t *shape() const { return shape_; }
  const int64_t *strides() const { return strides_; }
  bool is_contiguous() const { return contiguous_; }

  /* The element at these indices, one for each axis. */
  template <typename... Indices>
  T &operator()(Indices... indices) const {
    int32_t axis = 0;
    int64_t offset = 0;
    ((offset += static_cast<int64_t>(indices) * strides_[axis++]), ...);
    return data_[offset];
  }

  /* The element at a position in row-major order. */
  T &operator[](int64_t position) const {
    if (contiguous_) return data_[position];
    int64_t offset = 0;
    for (int32_t axis = rank_ - 1; axis >= 0; --axis) {
      offset += position % shape_[axis] * strides_[axis];
      position /= shape_[axis];
    }
    return data_[offset];
  }

  /* The elements in row-major order in one piece, for libraries that want that. */
  contiguous_elements<T> contiguous() const {
    if (contiguous_) return {data_, {}};
    std::vector<std::remove_const_t<T>> copy(static_cast<size_t>(count_));
    for (int64_t i = 0; i < count_; ++i) copy[static_cast<size_t>(i)] = (*this)[i];
    return {nullptr, std::move(copy)};
  }

 private:
  T *data_ = nullptr;
  int32_t rank_ = 0;
  int64_t count_ = 0;
  bool contiguous_ = true;
  bool given_ = false;
  int64_t shape_[OPC_MAX_RANK] = {};
  int64_t strides_[OPC_MAX_RANK] = {};
};

/* The value of a list attribute. */
template <typename T>
class list {
 public:
  list(const T *elements, int64_t length) : elements_(elements), length_(length) {}
  const T *begin() const { return elements_; }
  const T *end() const { return elements_ + length_; }
  int64_t size() const { return length_; }
  const T &operator[](int64_t position) const { return elements_[position]; }

 private:
  const T *elements_;
  int64_t length_;
};

/* What the host lends to the code. */
class host {
 public:
  explicit host(const opc_context *context) : context_(context) {}

  /* Calls body(begin, end) on ranges of about `grain` or more that cover [0, count), on the host's threads, and returns when all
   * are done. An exception of the body is thrown here. */
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, Body body) const {
    if (context_ == nullptr || context_->parallel_for == nullptr || count <= grain) {
      if (count > 0) body(int64_t{0}, count);
      return;
    }
    struct run {
      Body &body;
      std::mutex lock;
      std::exception_ptr thrown;
    } shared{body, {}, nullptr};
    const opc_range_body call = [](void *argument, int64_t begin, int64_t end) {
      run &r = *static_cast<run *>(argument);
      try {
        r.body(begin, end);
      } catch (...) {
        const std::lock_guard<std::mutex> hold(r.lock);
        if (!r.thrown) r.thrown = std::current_exception();
      }
    };
    context_->parallel_for(context_->pool, count, grain, call, &shared);
    if (shared.thrown) std::rethrow_exception(shared.thrown);
  }

 private:
  const opc_context *context_;
};

/* Runs native code of `op`, and returns what it throws as a code and message. */
template <typename Code>
int32_t guarded(const char *op, const opc_context *context, Code code) {
  try {
    code();
    return OPC_OK;
  } catch (const std::bad_alloc &) {
    return fail(context, OPC_OUT_OF_MEMORY, "%s: no memory", op);
  } catch (const std::exception &thrown) {
    return fail(context, OPC_INVALID_ARGUMENT, "%s: %s", op, thrown.what());
  } catch (...) {
    return fail(context, OPC_INVALID_ARGUMENT, "%s: the native code threw something that is no std::exception", op);
  }
}

}  // namespace opc
#endif  // OPC_ADAPTERS_NATIVE_H
