// Optimizers. The emulation has plain gradient descent with a constant learning rate: var -= rate * gradient.
#ifndef POPART_OPTIMIZER_HPP
#define POPART_OPTIMIZER_HPP

#include <memory>

#include <popart/error.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::unique_ptr<Optimizer> clone() const = 0;
  virtual float learningRate() const = 0;
  IN_LIBRARY float getFinalLossScalingVal() const { return lossScaling_; }

 protected:
  IN_LIBRARY explicit Optimizer(float lossScaling) : lossScaling_(lossScaling) {}

 private:
  float lossScaling_;
};

class ConstSGD : public Optimizer {
 public:
  ConstSGD(float learningRate, float weightDecay = 0, float lossScaling = 1);
  IN_LIBRARY std::unique_ptr<Optimizer> clone() const override { return std::unique_ptr<Optimizer>(new ConstSGD(*this)); }
  IN_LIBRARY float learningRate() const override { return rate_; }

 private:
  float rate_;
};

inline ConstSGD::ConstSGD(float learningRate, float weightDecay, float lossScaling) : Optimizer(lossScaling), rate_(learningRate) {
  if (weightDecay != 0) throw error("The emulated ConstSGD has no weight decay");
}

}  // namespace popart
#pragma GCC visibility pop

#endif
