// A step's inputs and anchors in arrays of the host.
#ifndef POPART_STEPIO_HPP
#define POPART_STEPIO_HPP

#include <cstdint>
#include <map>

#include <popart/error.hpp>
#include <popart/iarray.hpp>
#include <popart/istepio.hpp>
#include <popart/names.hpp>

#pragma GCC visibility push(default)
namespace popart {

class StepIO : public IStepIO {
 public:
  IN_LIBRARY StepIO(std::map<TensorId, IArray &> inputs, std::map<TensorId, IArray &> outputs) {
    for (const auto &entry : inputs) inputs_.emplace(entry.first, Place{&entry.second, 0});
    for (const auto &entry : outputs) outputs_.emplace(entry.first, Place{&entry.second, 0});
  }

  IN_LIBRARY ConstVoidData in(TensorId id, int64_t numElements, bool, const bool = false) override {
    const MutableVoidData data = next(inputs_, id, numElements, "inputs");
    return {data.data, data.info};
  }
  IN_LIBRARY void inComplete(TensorId, int64_t, const bool = false) override {}
  IN_LIBRARY MutableVoidData out(TensorId id, int64_t numElements) override { return next(outputs_, id, numElements, "outputs"); }

 private:
  struct Place {
    IArray *array;
    int64_t offset;  // bytes already passed
  };

  IN_LIBRARY static MutableVoidData next(std::map<TensorId, Place> &places, const TensorId &id, int64_t numElements, const char *what) {
    const auto found = places.find(id);
    if (found == places.end()) throw runtime_error("No tensor {} provided in PyStepIO's {}", id, what);
    Place &place = found->second;
    MutableVoidData out;
    out.info = TensorInfo(place.array->dataType(), place.array->shape());
    const int64_t bytes = numElements * out.info.getDataTypeInfo()->nbytes();
    if (place.offset + bytes > out.info.nbytes()) {
      throw runtime_error("The array of {} has {} elements, too few for this step", id, out.info.nelms());
    }
    out.data = static_cast<char *>(place.array->data()) + place.offset;
    place.offset = place.offset + bytes == out.info.nbytes() ? 0 : place.offset + bytes;
    return out;
  }

  std::map<TensorId, Place> inputs_;
  std::map<TensorId, Place> outputs_;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
