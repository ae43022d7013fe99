// Running a lowered Ir.
#ifndef POPART_EMULATION_DEVICE_IMPL_HPP
#define POPART_EMULATION_DEVICE_IMPL_HPP

#include <algorithm>
#include <cstring>

#pragma GCC visibility push(default)
namespace popart {
namespace emulation {

/// Raises popart::runtime_error where an array of the host is not one, or several, of the tensor's values.
inline void checkArray(const TensorInfo &given, const Tensor &tensor, DataType wanted) {
  if (given.dataType() != wanted) {
    throw runtime_error(
        "Type discrepancy for tensor {}. User provided : {} and expected : {}. Consider a custom copy here (as memcpy "
        "cannot be used)",
        tensor.id, given.data_type(), tensor.info.data_type());
  }
  if (tensor.info.nelms() && given.nelms() % tensor.info.nelms() != 0) {
    throw runtime_error("The array of {} has {} elements, not a multiple of {}", tensor.id, given.nelms(), tensor.info.nelms());
  }
}

/// Copies values of the host to a stream. As in PopART, INT64 is taken for INT32, and UINT8 for either FLOAT8.
inline void copyInput(const ConstVoidData &data, const Tensor &tensor, void *to) {
  const DataType type = tensor.info.dataType(), given = data.info.dataType();
  const bool bits = given == DataType::UINT8 && (type == DataType::FLOAT8_143 || type == DataType::FLOAT8_152);
  const bool narrowed = given == DataType::INT64 && type == DataType::INT32;
  checkArray(data.info, tensor, bits || narrowed ? given : type);
  if (!narrowed) {
    if (tensor.info.nelms()) std::memcpy(to, data.data, static_cast<std::size_t>(tensor.info.nbytes()));
    return;
  }
  const int64_t *const from = static_cast<const int64_t *>(data.data);
  std::transform(from, from + tensor.info.nelms(), static_cast<int32_t *>(to),
                 [](int64_t value) { return static_cast<int32_t>(value); });
}

template <typename T>
inline void addValues(std::vector<char> &sum, const std::vector<char> &values) {
  for (std::size_t at = 0; at < sum.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, &sum[at], sizeof(T));
    std::memcpy(&b, &values[at], sizeof(T));
    a = static_cast<T>(a + b);
    std::memcpy(&sum[at], &a, sizeof(T));
  }
}

}  // namespace emulation

namespace popx {

POPLAR_EMULATION_FUNCTION Devicex::Devicex(Ir &ir, std::shared_ptr<DeviceInfo> device)
    : ir_(ir), device_(std::move(device)), lowering_(new IrLowering(ir, device_->getTarget(), *this)) {}

POPLAR_EMULATION_FUNCTION void Devicex::prepare() {
  lowering_->prepareGraph();
  const std::vector<poplar::program::Program> programs{lowering_->program(), lowering_->weightsFromHostProgram(),
                                                       lowering_->weightsToHostProgram()};
  engine_.reset(new poplar::Engine(lowering_->graph(), programs));
  engine_->load(device_->device());
  connectStreams();
}

POPLAR_EMULATION_FUNCTION void Devicex::connectStreams() {
  for (Tensor *tensor : ir_.getMainGraph().getTensors().getAll()) {
    const bool used = !tensor->hasProducer() && lowering_->tensors().contains(tensor->id);
    if (used && tensor->tensorType() == TensorType::Stream) {
      engine_->connectStreamToCallback("h2d_" + tensor->id, [this, tensor](void *to) {
        const ConstVoidData data = io_->in(tensor->id, tensor->info.nelms(), false);
        emulation::copyInput(data, *tensor, to);
        io_->inComplete(tensor->id, tensor->info.nelms());
      });
    } else if (used && tensor->tensorType() == TensorType::Variable) {
      engine_->connectStreamToCallback("h2d_" + tensor->id, [tensor](void *to) {
        if (tensor->tensorData()->size()) std::memcpy(to, tensor->tensorData()->data(), tensor->tensorData()->size());
      });
      engine_->connectStreamToCallback("weight_" + tensor->id, [tensor](void *from) {
        if (tensor->tensorData()->size()) std::memcpy(tensor->tensorData()->data(), from, tensor->tensorData()->size());
      });
    }
  }
  for (const TensorId &anchor : ir_.getAnchors()) {
    const std::size_t bytes = static_cast<std::size_t>(ir_.getMainGraphTensors().get(anchor)->info.nbytes());
    std::vector<char> &buffer = buffers_[anchor];
    buffer.resize(bytes);
    engine_->connectStreamToCallback("d2h_" + anchor, [&buffer](void *from) {
      if (!buffer.empty()) std::memcpy(buffer.data(), from, buffer.size());
    });
  }
}

POPLAR_EMULATION_FUNCTION void Devicex::weightsFromHost() { engine_->run(1); }
POPLAR_EMULATION_FUNCTION void Devicex::weightsToHost() { engine_->run(2); }

POPLAR_EMULATION_FUNCTION void Devicex::run(IStepIO &io) {
  io_ = &io;
  // An Ir that was built without a data flow runs one batch.
  const int batches = std::max(1, ir_.getDataFlow().batchesPerStep());
  for (int batch = 0; batch < batches; ++batch) {
    engine_->run(0);
    for (const TensorId &anchor : ir_.getAnchors()) readAnchor(anchor, batch, batches);
  }
  io_ = nullptr;
}

POPLAR_EMULATION_FUNCTION void Devicex::readAnchor(const TensorId &id, int batch, int batches) {
  const Tensor &tensor = *ir_.getMainGraphTensors().get(id);
  const AnchorReturnType type = ir_.getDataFlow().isAnchored(id) ? ir_.getDataFlow().art(id) : AnchorReturnType("ALL");
  const std::vector<char> *values = &buffers_[id];
  const bool last = batch + 1 == batches;
  switch (type.id()) {
    case AnchorReturnTypeId::All: break;
    case AnchorReturnTypeId::Final:
      if (!last) return;
      break;
    case AnchorReturnTypeId::EveryN:
      if ((batch + 1) % type.rp() != 0) return;
      break;
    case AnchorReturnTypeId::Sum: {
      std::vector<char> &sum = sums_[id];
      if (batch == 0) sum.assign(values->size(), 0);
      switch (tensor.info.dataType()) {
        case DataType::FLOAT: emulation::addValues<float>(sum, *values); break;
        case DataType::FLOAT16: emulation::addValues<Half>(sum, *values); break;
        case DataType::INT32: emulation::addValues<int32_t>(sum, *values); break;
        case DataType::UINT32: emulation::addValues<uint32_t>(sum, *values); break;
        default: throw error("The anchor {} of type {} can't be returned as a sum", id, tensor.info.data_type());
      }
      if (!last) return;
      values = &sum;
      break;
    }
  }
  const MutableVoidData out = io_->out(id, tensor.info.nelms());
  emulation::checkArray(out.info, tensor, tensor.info.dataType());
  if (!values->empty()) std::memcpy(out.data, values->data(), values->size());
  io_->outComplete(id);
}

}  // namespace popx
}  // namespace popart
#pragma GCC visibility pop

#endif
