/* Sizes as expressions. */
#ifndef DECLARATIONS_EXPRESSIONS_H
#define DECLARATIONS_EXPRESSIONS_H

#include "declarations/base.h"

namespace nvinfer1 {

enum class DimensionOperation : int32_t {
  kSUM = 0,
  kPROD = 1,
  kMAX = 2,
  kMIN = 3,
  kSUB = 4,
  kEQUAL = 5,
  kLESS = 6,
  kFLOOR_DIV = 7,
  kCEIL_DIV = 8,
};

class INoCopy {
 protected:
  INoCopy() = default;
  virtual ~INoCopy() = default;
  INoCopy(INoCopy const &) = delete;
  INoCopy &operator=(INoCopy const &) = delete;
};

#if NV_TENSORRT_MAJOR >= 10
using ExprConstant = int64_t;
#else
using ExprConstant = int32_t;
#endif

class IDimensionExpr;

namespace apiv {
class VRoot {
 public:
  virtual ~VRoot() noexcept = default;
};
class VDimensionExpr : public VRoot {
 public:
  virtual bool isConstant() const = 0;
  virtual ExprConstant getConstantValue() const = 0;
#if NV_TENSORRT_MAJOR >= 10
  virtual bool isSizeTensor() const = 0;
#endif
};
class VExprBuilder : public VRoot {
 public:
  virtual IDimensionExpr const *constant(ExprConstant value) = 0;
  virtual IDimensionExpr const *operation(DimensionOperation op, IDimensionExpr const &first, IDimensionExpr const &second) = 0;
#if NV_TENSORRT_MAJOR >= 10
  virtual IDimensionExpr const *declareSizeTensor(int32_t outputIndex, IDimensionExpr const &opt, IDimensionExpr const &upper) = 0;
#endif
};
}  // namespace apiv

class IDimensionExpr : public INoCopy {
 public:
  bool isConstant() const noexcept { return mImpl->isConstant(); }
  ExprConstant getConstantValue() const noexcept { return mImpl->getConstantValue(); }

 protected:
  apiv::VDimensionExpr *mImpl;
  virtual ~IDimensionExpr() noexcept = default;
};

class IExprBuilder : public INoCopy {
 public:
  IDimensionExpr const *constant(ExprConstant value) noexcept { return mImpl->constant(value); }
  IDimensionExpr const *operation(DimensionOperation op, IDimensionExpr const &first, IDimensionExpr const &second) noexcept {
    return mImpl->operation(op, first, second);
  }

 protected:
  apiv::VExprBuilder *mImpl;
  virtual ~IExprBuilder() noexcept = default;
};

class DimsExprs {
 public:
  int32_t nbDims;
  IDimensionExpr const *d[Dims::MAX_DIMS];
};

}  // namespace nvinfer1

#endif  // DECLARATIONS_EXPRESSIONS_H
