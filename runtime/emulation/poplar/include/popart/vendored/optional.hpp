// nonstd::optional: the part of std::optional that C++14 lacks and PopART's interfaces use.
#ifndef POPART_VENDORED_OPTIONAL_HPP
#define POPART_VENDORED_OPTIONAL_HPP

#include <memory>
#include <stdexcept>

#pragma GCC visibility push(default)
namespace nonstd {

struct nullopt_t {
  explicit constexpr nullopt_t(int) {}
};
constexpr nullopt_t nullopt{0};

template <typename T>
class optional {
 public:
  optional() = default;
  optional(nullopt_t) {}
  optional(const T &v) : held(new T(v)) {}
  optional(T &&v) : held(new T(std::move(v))) {}
  optional(const optional &other) : held(other.held ? new T(*other.held) : nullptr) {}
  optional(optional &&) = default;
  optional &operator=(const optional &other) {
    held.reset(other.held ? new T(*other.held) : nullptr);
    return *this;
  }
  optional &operator=(optional &&) = default;

  bool has_value() const { return held != nullptr; }
  explicit operator bool() const { return has_value(); }
  const T &value() const {
    if (!held) throw std::logic_error("bad optional access");
    return *held;
  }
  T &value() {
    if (!held) throw std::logic_error("bad optional access");
    return *held;
  }
  const T &operator*() const { return value(); }
  T &operator*() { return value(); }
  const T *operator->() const { return &value(); }
  T *operator->() { return &value(); }
  T value_or(const T &other) const { return held ? *held : other; }
  void reset() { held.reset(); }

 private:
  std::unique_ptr<T> held;
};

template <typename T>
bool operator==(const optional<T> &a, const optional<T> &b) {
  return a.has_value() == b.has_value() && (!a || *a == *b);
}

}  // namespace nonstd
#pragma GCC visibility pop

#endif
