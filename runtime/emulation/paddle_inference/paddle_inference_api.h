/* What a package's program declares of Paddle Inference's C++ API, for a build against the library in Paddle's wheel, which has the functions
 * but not this header. Where there is an unpacked inference library, its own header is read and this one is not.
 *
 * Classes have the functions alone that the program calls, and none of their fields: what the library makes is not taken apart here. */
#ifndef OPC_EMULATION_PADDLE_INFERENCE_API_H
#define OPC_EMULATION_PADDLE_INFERENCE_API_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace paddle {
struct AnalysisConfig {
  enum class Precision { kFloat32 = 0, kInt8, kHalf, kBf16 };
  AnalysisConfig(const std::string &model, const std::string &parameters);
  AnalysisConfig(const AnalysisConfig &) = delete;
  AnalysisConfig &operator=(const AnalysisConfig &) = delete;
  void DisableGpu();
  void DisableGlogInfo();
  void EnableUseGpu(uint64_t megabytes, int device = 0, Precision precision = Precision::kFloat32);
  void EnableNewIR(bool on = true);
  void EnableNewExecutor(bool on = true);
  void EnableTensorRtEngine(int64_t workspace, int most_in_a_batch, int least_in_a_graph, Precision precision, bool is_static,
                            bool calibrates, bool captures);
  typedef std::map<std::string, std::vector<int>> Sizes;
  void SetTRTDynamicShapeInfo(Sizes least, Sizes most, Sizes best, bool only_float32 = false);

 private:
  alignas(16) char held_[16384]; /* room for its fields, which the constructor of the library sets */
};
}  // namespace paddle

namespace paddle_infer {
using Config = paddle::AnalysisConfig;
using PrecisionType = paddle::AnalysisConfig::Precision;

class Tensor {
 public:
  void Reshape(const std::vector<int> &sizes);
  std::vector<int> shape() const;
  template <typename T>
  void CopyFromCpu(const T *data);
  template <typename T>
  void CopyToCpu(T *data) const;
};

class Predictor {
 public:
  std::vector<std::string> GetInputNames();
  std::vector<std::string> GetOutputNames();
  std::unique_ptr<Tensor> GetInputHandle(const std::string &name);
  std::unique_ptr<Tensor> GetOutputHandle(const std::string &name);
  bool Run();
};

std::shared_ptr<Predictor> CreatePredictor(const Config &config);
}  // namespace paddle_infer
#endif  // OPC_EMULATION_PADDLE_INFERENCE_API_H
