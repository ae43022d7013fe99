/* Attributes that Python has packed into one list of integers, for frameworks whose own attributes can't say all that opc's can. */
#ifndef OPC_ADAPTERS_PACKED_H
#define OPC_ADAPTERS_PACKED_H

#include <stdint.h>
#include <string.h>

#include "opc/adapters/blocks.h"

namespace opc {

/* Reads them in order. What lists and texts point to lives as long as this object. */
class Packed {
 public:
  explicit Packed(const int64_t *first) : next_(first) {}
  Packed(const Packed &) = delete;
  Packed &operator=(const Packed &) = delete;

  int64_t integer() { return *next_++; }
  int32_t boolean() { return static_cast<int32_t>(*next_++); }

  /* A float64, by its bits. */
  double number() {
    double value;
    memcpy(&value, next_++, sizeof value);
    return value;
  }

  /* The bytes of a text, behind their number. */
  const char *text() {
    const int64_t length = integer();
    char *characters = kept_.take<char>(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) characters[i] = static_cast<char>(integer());
    return characters;
  }

  /* The elements of a list, behind their number, which goes to `length`. */
  template <class T>
  const T *list(int64_t *length) {
    *length = integer();
    T *elements = kept_.take<T>(static_cast<size_t>(*length));
    list(elements, *length);
    return elements;
  }

  /* The elements of a list of `length`. */
  template <class T>
  void list(T *elements, int64_t length) {
    for (int64_t i = 0; i < length; ++i) next(elements[i]);
  }

 private:
  void next(double &value) { value = number(); }
  void next(int64_t &value) { value = integer(); }
  void next(int32_t &value) { value = boolean(); }
  void next(const char *&value) { value = text(); }

  const int64_t *next_;
  Blocks kept_;
};

}  // namespace opc

#endif /* OPC_ADAPTERS_PACKED_H */
