// What an op writes of its attributes, into a text.
#ifndef POPART_OPSERIALISER_HPP
#define POPART_OPSERIALISER_HPP
#define POPART_OPSERIALISER_OPEN

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <popart/basicoptionals.hpp>
#include <popart/names.hpp>
#include <popart/scope.hpp>
#include <popart/vendored/optional.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Op;

/// As in PopART, a float is written with six digits after the point and those of a list with six digits in all, so that two ops whose
/// attributes differ in the seventh are taken as equal: an op that wants better writes text of its own.
class OpSerialiserBase {
 public:
  virtual ~OpSerialiserBase() = default;

  IN_LIBRARY void appendAttribute(const std::string &name, float value) { appendStrAttr(name, std::to_string(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, double value) { appendStrAttr(name, std::to_string(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, int value) { appendStrAttr(name, std::to_string(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, int64_t value) { appendStrAttr(name, std::to_string(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, uint32_t value) { appendStrAttr(name, std::to_string(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, uint64_t value) { appendStrAttr(name, std::to_string(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, const std::string &value) { appendStrAttr(name, value); }
  IN_LIBRARY void appendAttribute(const std::string &name, const std::vector<float> &value) { appendStrAttr(name, list(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, const std::vector<double> &value) { appendStrAttr(name, list(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, const std::vector<int64_t> &value) { appendStrAttr(name, list(value)); }
  IN_LIBRARY void appendAttribute(const std::string &name, const Scope &value) { appendStrAttr(name, value.str()); }
  IN_LIBRARY void appendAttribute(const std::string &name, bool value) { appendStrAttr(name, value ? "true" : "false"); }

  virtual void appendAttribute(const std::string &, nonstd::optional<int64_t>) = 0;
  virtual void appendAttribute(const std::string &, nonstd::optional<float>) = 0;
  virtual void appendAttribute(const std::string &, nonstd::optional<double>) = 0;
  virtual void appendAttribute(const std::string &, const std::map<TensorId, uint64_t>) = 0;

  template <typename T, uint32_t V>
  void appendAttribute(const std::string &name, const BasicOptional<T, V> &value) {
    appendStrAttr(name, logging::internal::text(value));
  }
  template <typename T>
  void appendAttribute(const std::string &name, const T &value) {
    appendStrAttr(name, logging::internal::text(value));
  }

  virtual void appendForwardOp(const Op *) = 0;

 private:
  virtual void appendStrAttr(const std::string &name, const std::string &value) = 0;

  template <typename T>
  static std::string list(const std::vector<T> &values) {
    return "[" + logging::join(values.begin(), values.end(), " ") + "]";
  }
};

namespace emulation {

/// Writes every attribute with `write`; an optional one that is absent as "?".
class TextSerialiser : public OpSerialiserBase {
 public:
  IN_LIBRARY void appendAttribute(const std::string &name, nonstd::optional<int64_t> value) override { appendOptional(name, value); }
  IN_LIBRARY void appendAttribute(const std::string &name, nonstd::optional<float> value) override { appendOptional(name, value); }
  IN_LIBRARY void appendAttribute(const std::string &name, nonstd::optional<double> value) override { appendOptional(name, value); }
  IN_LIBRARY void appendAttribute(const std::string &name, const std::map<TensorId, uint64_t> map) override {
    std::ostringstream stream;
    for (const auto &entry : map) stream << entry.second << " ";
    write(name, stream.str());
  }
  void appendForwardOp(const Op *op) override;

 protected:
  virtual void write(const std::string &name, const std::string &value) = 0;

 private:
  template <typename T>
  void appendOptional(const std::string &name, const nonstd::optional<T> &value) {
    write(name, value ? logging::internal::text(*value) : "?");
  }
  void appendStrAttr(const std::string &name, const std::string &value) final { write(name, value); }
};

}  // namespace emulation

/// The attributes of an op for a reader, with its inputs and outputs.
class OpSerialiser : public emulation::TextSerialiser {
 public:
  OpSerialiser(const Op *op, std::stringstream &stream);

 private:
  IN_LIBRARY void write(const std::string &name, const std::string &value) override { stream_ << "        " << name << ": " << value << "\n"; }

  std::stringstream &stream_;
};

/// The text by which ops are found equal: identifier, infos, and the values of attributes in order, without their names.
class OpEquivIdCreator : public emulation::TextSerialiser {
 public:
  explicit OpEquivIdCreator(const Op *op);
  IN_LIBRARY std::string str() const { return stream_.str(); }

 private:
  IN_LIBRARY void write(const std::string &, const std::string &value) override { stream_ << value << "_"; }

  std::ostringstream stream_;
};

}  // namespace popart
#pragma GCC visibility pop

#undef POPART_OPSERIALISER_OPEN
#include <popart/emulation/define.hpp>

#endif
