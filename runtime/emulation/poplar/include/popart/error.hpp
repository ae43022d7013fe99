// Exceptions of PopART; the message is a format with `{}`.
#ifndef POPART_ERROR_HPP
#define POPART_ERROR_HPP

#include <memory>
#include <stdexcept>
#include <string>

#include <popart/erroruid.hpp>
#include <popart/logging.hpp>

#pragma GCC visibility push(default)
namespace popart {

class error : public std::runtime_error {
 public:
  template <typename... Args>
  explicit error(const char *s, const Args &...args) : std::runtime_error(message(s, args...)) {}
  template <typename... Args>
  explicit error(const std::string &s, const Args &...args) : std::runtime_error(message(s, args...)) {}
  template <typename... Args>
  explicit error(ErrorUid uid, const char *s, const Args &...args) : std::runtime_error(message(s, args...)), uid_(uid) {}

  ErrorUid uid() const { return uid_; }

 private:
  template <typename... Args>
  static std::string message(const std::string &s, const Args &...args) {
    const std::string texts[] = {logging::internal::text(args)..., std::string()};
    return formatted(s, texts, sizeof...(args));
  }
  IN_LIBRARY static std::string formatted(const std::string &s, const std::string *texts, std::size_t count) {
    try {
      return logging::internal::format(s, texts, count);
    } catch (const logging::FormatError &reason) {
      return std::string("Popart exception format error ") + reason.what();
    }
  }

  ErrorUid uid_ = ErrorUid::E0;
};

class internal_error : public error {
 public:
  using error::error;
};

class runtime_error : public error {
 public:
  using error::error;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
