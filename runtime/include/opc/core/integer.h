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

/* An integer of a shape rule. Sums and products of numbers of 64 bits are exact, also where a part of a rule has more, and only what
 * comes out in the end must fit into 64 bits. A part beyond 128 bits, or divided by zero, is marked and stays so; comparisons with
 * a marked integer are false. `//` and `%` round to minus infinity. */
struct integer {
  enum fault_kind : int8_t { none, overflow, division };
  __extension__ typedef __int128 wide;

  int64_t value; /* what it is where it fits, else its low bits */
  fault_kind fault;
  wide exact;

  integer(int64_t number) : value(number), fault(none), exact(number) {}
  integer(const dim &bound) : value(bound.size), fault(none), exact(bound.size) {}
  static integer of(wide number, fault_kind kind) {
    integer found(static_cast<int64_t>(number));
    found.exact = number;
    found.fault = kind;
    return found;
  }
  bool fits() const { return exact == value; }
};

static inline integer::fault_kind fault_of(integer a, integer b, bool overflows) {
  return a.fault != integer::none ? a.fault : b.fault != integer::none ? b.fault : overflows ? integer::overflow : integer::none;
}
static inline integer operator+(integer a, integer b) {
  integer::wide sum;
  const bool overflows = __builtin_add_overflow(a.exact, b.exact, &sum);
  return integer::of(sum, fault_of(a, b, overflows));
}
static inline integer operator-(integer a, integer b) {
  integer::wide difference;
  const bool overflows = __builtin_sub_overflow(a.exact, b.exact, &difference);
  return integer::of(difference, fault_of(a, b, overflows));
}
static inline integer operator*(integer a, integer b) {
  integer::wide product;
  const bool overflows = __builtin_mul_overflow(a.exact, b.exact, &product);
  return integer::of(product, fault_of(a, b, overflows));
}
static inline integer operator-(integer a) { return integer(0) - a; }
static inline integer floordiv(integer a, integer b) {
  if (b.exact == 0) return integer::of(0, a.fault != integer::none ? a.fault : integer::division);
  if (b.exact == -1) return integer::of(0, b.fault) - a;
  if (a.fits() && b.fits()) {
    const int64_t quotient = a.value / b.value;
    return integer::of(quotient - (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)), fault_of(a, b, false));
  }
  const integer::wide quotient = a.exact / b.exact;
  return integer::of(quotient - (a.exact % b.exact != 0 && (a.exact < 0) != (b.exact < 0)), fault_of(a, b, false));
}
static inline integer mod(integer a, integer b) {
  if (b.exact == -1) return integer::of(0, fault_of(a, b, false));
  return b.exact == 0 ? floordiv(a, b) : a - floordiv(a, b) * b;
}
static inline integer operator&(integer a, integer b) { return integer::of(a.exact & b.exact, fault_of(a, b, false)); }
static inline integer operator|(integer a, integer b) { return integer::of(a.exact | b.exact, fault_of(a, b, false)); }
static inline integer operator^(integer a, integer b) { return integer::of(a.exact ^ b.exact, fault_of(a, b, false)); }
static inline integer operator~(integer a) { return integer::of(~a.exact, a.fault); }
static inline integer shift_right(integer a, integer b) {
  const bool counted = b.exact >= 0 && b.exact < 64;
  return integer::of(a.exact >> (counted ? b.value : 127), fault_of(a, b, false));
}
static inline integer shift_left(integer a, integer b) {
  if (b.exact < 0 || b.exact >= 64) return integer::of(0, fault_of(a, b, false));
  return a * integer::of(static_cast<integer::wide>(1) << b.value, b.fault);
}
static inline bool sound(integer a, integer b) { return fault_of(a, b, false) == integer::none; }
static inline bool operator<(integer a, integer b) { return sound(a, b) && a.exact < b.exact; }
static inline bool operator<=(integer a, integer b) { return sound(a, b) && a.exact <= b.exact; }
static inline bool operator>(integer a, integer b) { return b < a; }
static inline bool operator>=(integer a, integer b) { return b <= a; }
static inline bool operator==(integer a, integer b) { return sound(a, b) && a.exact == b.exact; }
static inline bool operator!=(integer a, integer b) { return sound(a, b) && a.exact != b.exact; }
static inline integer maximum(integer a, integer b) { return integer::of(a.exact < b.exact ? b.exact : a.exact, fault_of(a, b, false)); }
static inline integer minimum(integer a, integer b) { return integer::of(b.exact < a.exact ? b.exact : a.exact, fault_of(a, b, false)); }
static inline integer abs(integer a) { return a.exact < 0 ? -a : a; }
static inline integer sign(integer a) { return integer::of((a.exact > 0) - (a.exact < 0), a.fault); }
static inline double real(integer a) { return static_cast<double>(a.exact); }

}  // namespace opc
#endif  // OPC_CORE_INTEGER_H
