/* A builder of sizes that computes: what a plugin makes of it are numbers, which it does not see. */
#ifndef EMULATION_SIZES_H
#define EMULATION_SIZES_H

#include <algorithm>
#include <memory>
#include <vector>

#include "NvInferRuntime.h"

namespace emulation {

class Expr : public nvinfer1::IDimensionExpr {
 public:
  Expr(int64_t value, bool constant) : value(value), own_(constant, value) { mImpl = &own_; }
  ~Expr() noexcept override = default;

  int64_t value;

 private:
  class Own : public nvinfer1::apiv::VDimensionExpr {
   public:
    Own(bool constant, int64_t value) : constant_(constant), value_(value) {}
    bool isConstant() const override { return constant_; }
    nvinfer1::ExprConstant getConstantValue() const override { return static_cast<nvinfer1::ExprConstant>(value_); }
#if NV_TENSORRT_MAJOR >= 10
    bool isSizeTensor() const override { return false; }
#endif

   private:
    bool constant_;
    int64_t value_;
  } own_;
};

class Builder : public nvinfer1::IExprBuilder {
 public:
  Builder() : own_(*this) { mImpl = &own_; }
  ~Builder() noexcept override = default;

  int32_t operations = 0;

  /* A size that the plugin is not told. */
  const Expr *unknown(int64_t value) { return keep(value, false); }

 private:
  const Expr *keep(int64_t value, bool constant) {
    kept_.push_back(std::make_unique<Expr>(value, constant));
    return kept_.back().get();
  }
  const Expr *computed(nvinfer1::DimensionOperation operation, const Expr &first, const Expr &second) {
    const int64_t a = first.value, b = second.value;
    ++operations;
    int64_t made = 0;
    switch (operation) {
      case nvinfer1::DimensionOperation::kSUM: made = a + b; break;
      case nvinfer1::DimensionOperation::kPROD: made = a * b; break;
      case nvinfer1::DimensionOperation::kMAX: made = std::max(a, b); break;
      case nvinfer1::DimensionOperation::kMIN: made = std::min(a, b); break;
      case nvinfer1::DimensionOperation::kSUB: made = a - b; break;
      case nvinfer1::DimensionOperation::kEQUAL: made = a == b; break;
      case nvinfer1::DimensionOperation::kLESS: made = a < b; break;
      case nvinfer1::DimensionOperation::kFLOOR_DIV:
      case nvinfer1::DimensionOperation::kCEIL_DIV: {
        if (b == 0) return keep(0, false);
        const bool exact = a % b == 0, negative = (a < 0) != (b < 0);
        made = a / b + (operation == nvinfer1::DimensionOperation::kCEIL_DIV ? !exact && !negative : -(!exact && negative));
        break;
      }
    }
    return keep(made, first.isConstant() && second.isConstant());
  }

  class Own : public nvinfer1::apiv::VExprBuilder {
   public:
    explicit Own(Builder &of) : of_(of) {}
    const nvinfer1::IDimensionExpr *constant(nvinfer1::ExprConstant value) override { return of_.keep(value, true); }
    const nvinfer1::IDimensionExpr *operation(nvinfer1::DimensionOperation operation, const nvinfer1::IDimensionExpr &first,
                                              const nvinfer1::IDimensionExpr &second) override {
      return of_.computed(operation, static_cast<const Expr &>(first), static_cast<const Expr &>(second));
    }
#if NV_TENSORRT_MAJOR >= 10
    const nvinfer1::IDimensionExpr *declareSizeTensor(int32_t, const nvinfer1::IDimensionExpr &opt,
                                                      const nvinfer1::IDimensionExpr &) override {
      return &opt;
    }
#endif

   private:
    Builder &of_;
  } own_;

  std::vector<std::unique_ptr<Expr>> kept_;
};

}  // namespace emulation

#endif  // EMULATION_SIZES_H
