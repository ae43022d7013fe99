/* What a Paddle operator's attributes hold, and the dtypes that Paddle and kernels share. */
#ifndef OPC_ADAPTERS_PADDLE_ARGUMENTS_H
#define OPC_ADAPTERS_PADDLE_ARGUMENTS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <charconv>
#include <forward_list>
#include <string>
#include <vector>

#include "opc/abi.h"
#include "opc/core/tensor.h"
#include "paddle/common/enforce.h"
#include "paddle/common/errors.h"
#include "paddle/phi/api/ext/op_meta_info.h"

namespace opc {
namespace pd {

using ::paddle::CustomOpKernelContext;
using ::paddle::Tensor;
using phi::DataType;
using Values = std::vector<::paddle::any>;
using Shapes = std::vector<std::vector<int64_t>>;
using DTypes = std::vector<DataType>;

constexpr dtype_number<DataType> dtype_numbers[] = {
#define OPC_ROW(name, paddle) {dtype_##name, DataType::paddle},
    OPC_PADDLE_DTYPES(OPC_ROW)
#undef OPC_ROW
};

/* Paddle's name of an element type; UNDEFINED where it has none. */
inline DataType to_paddle(opc::dtype element) { return number_of(dtype_numbers, element, DataType::UNDEFINED); }

inline DLDataType to_dlpack(DataType type) { return dlpack_of(element_of(dtype_numbers, type)); }

inline DataType to_paddle(DLDataType type) { return to_paddle(dtype_of(type)); }

/* Raises Paddle's own error, a ValueError in Python: of another one, its executors lose the message, or end the process. */
template <class... Parts>
[[noreturn]] void refuse(const char *format, Parts... parts) {
  char message[1024];
  snprintf(message, sizeof message, format, parts...);
  throw ::common::enforce::EnforceNotMet(::common::errors::InvalidArgument("%s", message), __FILE__, __LINE__);
}

/* The attributes of a call, read one after the other in the order they are declared; what lists and texts point to lives as long as
 * this object. */
class Arguments {
 public:
  Arguments(const char *op, const Values &values) : op_(op), values_(values) {}
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  double number(const char *name) { return parsed(name, value<std::string>(name)); }
  int64_t integer(const char *name) { return value<int64_t>(name); }
  int32_t boolean(const char *name) { return value<bool>(name); }
  const char *text(const char *name) { return value<std::string>(name).c_str(); }

  /* The position of a string among the `count` values an attribute admits; `admitted` names them for the message. */
  int64_t choice(const char *name, const char *const *values, int64_t count, const char *admitted) {
    const char *given = text(name);
    for (int64_t i = 0; i < count; ++i)
      if (strcmp(values[i], given) == 0) return i;
    refuse("%s: %s = '%s' is not one of %s", op_, name, given, admitted);
  }

  /* An element type, which Paddle carries by its name. */
  int64_t dtype(const char *name) {
    const char *given = text(name);
    for (int i = 0; i < dtype_count; ++i) {
      if (strcmp(dtype_name(static_cast<opc::dtype>(i)), given) != 0) continue;
      if (to_paddle(static_cast<opc::dtype>(i)) != DataType::UNDEFINED) return i;
      refuse("%s: %s is %s, which Paddle has no tensors of", op_, name, given);
    }
    refuse("%s: %s must be a dtype that opc knows, not '%s'", op_, name, given);
  }

  /* The elements of a list, whose length goes to `length`. */
  template <class T>
  const T *list(const char *name, int64_t *length) {
    const std::vector<T> &kept = elements(name, static_cast<T *>(nullptr));
    *length = static_cast<int64_t>(kept.size());
    return kept.data();
  }

  /* The elements of a list that must have `length` of them. */
  template <class T>
  void list(const char *name, T *target, int64_t length) {
    int64_t given = 0;
    const T *source = list<T>(name, &given);
    if (given != length)
      refuse("%s: %s must have %lld elements, but has %lld", op_, name, static_cast<long long>(length),
             static_cast<long long>(given));
    for (int64_t i = 0; i < length; ++i) target[i] = source[i];
  }

  /* Whether the caller wants output `index`: the mask is the last attribute, and empty where all are wanted. */
  static bool wanted(const Values &values, int index) {
    const auto *mask = ::paddle::any_cast<std::vector<int64_t>>(&values.back());
    return mask == nullptr || static_cast<size_t>(index) >= mask->size() || (*mask)[index] != 0;
  }

 private:
  template <class T>
  const T &value(const char *name) {
    const T *found = next_ < values_.size() ? ::paddle::any_cast<T>(&values_[next_]) : nullptr;
    if (found == nullptr) refuse("%s: the attribute %s is missing or has another type", op_, name);
    ++next_;
    return *found;
  }

  /* Paddle's graphs know no float64, so numbers are carried as texts, with all of their digits. */
  double parsed(const char *name, const std::string &given) {
    double number = 0;
    const char *end = given.data() + given.size();
    const std::from_chars_result found = std::from_chars(given.data(), end, number);
    if (found.ec == std::errc::invalid_argument || found.ptr != end) refuse("%s: %s = '%s' is no number", op_, name, given.c_str());
    return number;
  }

  const std::vector<int64_t> &elements(const char *name, int64_t *) { return value<std::vector<int64_t>>(name); }

  const std::vector<int32_t> &elements(const char *name, int32_t *) {
    const std::vector<int64_t> &given = value<std::vector<int64_t>>(name);
    booleans_.emplace_front(given.begin(), given.end());
    return booleans_.front();
  }

  const std::vector<double> &elements(const char *name, double *) {
    numbers_.emplace_front();
    for (const std::string &given : value<std::vector<std::string>>(name)) numbers_.front().push_back(parsed(name, given));
    return numbers_.front();
  }

  const std::vector<const char *> &elements(const char *name, const char **) {
    texts_.emplace_front();
    for (const std::string &given : value<std::vector<std::string>>(name)) texts_.front().push_back(given.c_str());
    return texts_.front();
  }

  const char *op_;
  const Values &values_;
  size_t next_ = 0;
  std::forward_list<std::vector<int32_t>> booleans_;
  std::forward_list<std::vector<double>> numbers_;
  std::forward_list<std::vector<const char *>> texts_;
};

}  // namespace pd
}  // namespace opc

#endif /* OPC_ADAPTERS_PADDLE_ARGUMENTS_H */
