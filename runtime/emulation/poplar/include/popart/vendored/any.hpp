// popart::any: a value of any copyable type.
#ifndef POPART_VENDORED_ANY_HPP
#define POPART_VENDORED_ANY_HPP

#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

#pragma GCC visibility push(default)
namespace popart {

struct bad_any_cast : public std::bad_cast {
  const char *what() const noexcept override { return "bad any cast"; }
};

class any {
 public:
  any() = default;
  any(const any &other) : held(other.held ? other.held->clone() : nullptr) {}
  any(any &&) = default;
  template <typename V, typename T = typename std::decay<V>::type,
            typename = typename std::enable_if<!std::is_same<T, any>::value>::type>
  any(V &&value) : held(new Value<T>(std::forward<V>(value))) {}

  any &operator=(const any &other) {
    held.reset(other.held ? other.held->clone() : nullptr);
    return *this;
  }
  any &operator=(any &&) = default;

  bool has_value() const noexcept { return held != nullptr; }
  void reset() noexcept { held.reset(); }
  const std::type_info &type() const noexcept { return held ? held->type() : typeid(void); }

  template <typename T>
  const T &get() const {
    // By name, so that a type is the same in every library of the process.
    if (!held || held->type() != typeid(T)) throw bad_any_cast();
    return static_cast<const Value<T> &>(*held).value;
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Base *clone() const = 0;
    virtual const std::type_info &type() const = 0;
  };
  template <typename T>
  struct Value : Base {
    template <typename V>
    explicit Value(V &&v) : value(std::forward<V>(v)) {}
    Base *clone() const override { return new Value(value); }
    const std::type_info &type() const override { return typeid(T); }
    T value;
  };

  std::unique_ptr<Base> held;
};

template <typename T>
T any_cast(const any &value) {
  return value.get<typename std::decay<T>::type>();
}

}  // namespace popart
#pragma GCC visibility pop

#endif
