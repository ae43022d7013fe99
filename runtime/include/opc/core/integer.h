/* Dimensions, and the integers of shape rules over them. */
#ifndef OPC_CORE_INTEGER_H
#define OPC_CORE_INTEGER_H

#include <stdint.h>

namespace opc {

/* A named dimension and the operand that bound it; size -1 until then. */
struct dim {
  int64_t size = -1;
  const char *origin = "";
};

/* An integer of a shape rule. A result that overflows 64 bits or divides by zero is marked and stays so; comparisons with a marked
 * integer are false. `//` and `%` round to minus infinity. */
struct integer {
  enum fault_kind : int8_t { none, overflow, division };

  int64_t value;
  fault_kind fault;

  integer(int64_t number, fault_kind kind = none) : value(number), fault(kind) {}
  integer(const dim &bound) : value(bound.size), fault(none) {}
};

static inline integer::fault_kind fault_of(integer a, integer b, bool overflows) {
  return a.fault != integer::none ? a.fault : b.fault != integer::none ? b.fault : overflows ? integer::overflow : integer::none;
}
static inline integer operator+(integer a, integer b) {
  int64_t sum;
  const bool overflows = __builtin_add_overflow(a.value, b.value, &sum);
  return {sum, fault_of(a, b, overflows)};
}
static inline integer operator-(integer a, integer b) {
  int64_t difference;
  const bool overflows = __builtin_sub_overflow(a.value, b.value, &difference);
  return {difference, fault_of(a, b, overflows)};
}
static inline integer operator*(integer a, integer b) {
  int64_t product;
  const bool overflows = __builtin_mul_overflow(a.value, b.value, &product);
  return {product, fault_of(a, b, overflows)};
}
static inline integer operator-(integer a) { return integer(0) - a; }
static inline integer floordiv(integer a, integer b) {
  if (b.value == 0) return {0, a.fault != integer::none ? a.fault : integer::division};
  if (b.value == -1) return integer(0, b.fault) - a;
  const int64_t quotient = a.value / b.value;
  return {quotient - (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)), fault_of(a, b, false)};
}
static inline integer mod(integer a, integer b) {
  if (b.value == -1) return {0, fault_of(a, b, false)};
  return b.value == 0 ? floordiv(a, b) : a - floordiv(a, b) * b;
}
static inline integer operator&(integer a, integer b) { return {a.value & b.value, fault_of(a, b, false)}; }
static inline integer operator|(integer a, integer b) { return {a.value | b.value, fault_of(a, b, false)}; }
static inline integer operator^(integer a, integer b) { return {a.value ^ b.value, fault_of(a, b, false)}; }
static inline integer operator~(integer a) { return {~a.value, a.fault}; }
static inline integer shift_right(integer a, integer b) {
  const bool counted = b.value >= 0 && b.value < 64;
  return {a.value >> (counted ? b.value : 63), fault_of(a, b, false)};
}
static inline integer shift_left(integer a, integer b) {
  if (b.value < 0 || b.value >= 64) return {0, fault_of(a, b, false)};
  const int64_t moved = static_cast<int64_t>(static_cast<uint64_t>(a.value) << b.value);
  return {moved, fault_of(a, b, moved >> b.value != a.value)};
}
static inline bool sound(integer a, integer b) { return fault_of(a, b, false) == integer::none; }
static inline bool operator<(integer a, integer b) { return sound(a, b) && a.value < b.value; }
static inline bool operator<=(integer a, integer b) { return sound(a, b) && a.value <= b.value; }
static inline bool operator>(integer a, integer b) { return b < a; }
static inline bool operator>=(integer a, integer b) { return b <= a; }
static inline bool operator==(integer a, integer b) { return sound(a, b) && a.value == b.value; }
static inline bool operator!=(integer a, integer b) { return sound(a, b) && a.value != b.value; }
static inline integer maximum(integer a, integer b) { return a < b ? b : a; }
static inline integer minimum(integer a, integer b) { return b < a ? b : a; }
static inline integer abs(integer a) { return a.value < 0 ? -a : a; }
static inline integer sign(integer a) { return {(a.value > 0) - (a.value < 0), a.fault}; }
static inline double real(integer a) { return static_cast<double>(a.value); }

}  // namespace opc
#endif  // OPC_CORE_INTEGER_H
