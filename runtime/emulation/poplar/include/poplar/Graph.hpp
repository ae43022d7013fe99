#ifndef poplar_Graph_hpp
#define poplar_Graph_hpp

#include <iosfwd>
#include <memory>
#include <poplar/DebugContext.hpp>
#include <poplar/Device.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TypeTraits.hpp>
#include <sstream>

namespace poplar {

enum class CodeletFileType { PreprocessedAsmSource, AsmSource, CSource, CppSource, IrSource, Object, Auto };
enum class VariableMappingMethod { NONE, LINEAR };

struct replication_factor {
  unsigned value;
  explicit replication_factor(unsigned n) : value(n) {}
};

/// What addVertex connects to a field.
struct ConnectionDesc {
  std::string field;
  std::vector<Tensor> tensors;
  bool isRow;
  ConnectionDesc(StringRef name, Tensor tensor) : field(name), tensors{std::move(tensor)}, isRow(true) {}
  ConnectionDesc(StringRef name, std::vector<Tensor> list) : field(name), tensors(std::move(list)), isRow(false) {}
};

/// A graph of variables, constants and vertices. It isn't copied; programs and tensors refer to it.
class Graph {
  std::shared_ptr<detail::GraphState> state_;

  POPLAR_EMULATION_FUNCTION Tensor add(const Type &type, ArrayRef<std::size_t> shape, const std::string &name,
                                       bool constant);
  POPLAR_EMULATION_FUNCTION void initialise(const Tensor &t, const void *values, const TypeTraits &traits,
                                            std::size_t count);
  POPLAR_EMULATION_FUNCTION void initialise(const FieldRef &field, const void *values, const TypeTraits &traits,
                                            std::size_t count, bool vector);

public:
  using TileToTensorMapping = std::vector<std::vector<Interval>>;

  POPLAR_EMULATION_FUNCTION explicit Graph(const Target &target, replication_factor r = replication_factor(1));
  explicit Graph(const Device &device, replication_factor r = replication_factor(1)) : Graph(device.getTarget(), r) {}
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  Graph(Graph &&) = default;
  Graph &operator=(Graph &&) = default;

  /// For the emulation's own use.
  const std::shared_ptr<detail::GraphState> &state() const { return state_; }

  const Target &getTarget() const { return state_->target; }
  unsigned getReplicationFactor() const { return 1; }

  // Codelets: a compiled .gp file, or C++ source, which popc compiles first.
  POPLAR_EMULATION_FUNCTION bool addCodelets(StringRef src, CodeletFileType type = CodeletFileType::Auto,
                                             StringRef compileFlags = "", StringRef targetName = "");
  POPLAR_EMULATION_FUNCTION void addCodelets(std::stringstream &stream, StringRef compileFlags = "",
                                             CodeletFileType type = CodeletFileType::CppSource,
                                             StringRef targetName = "");

  // Vertices.
  POPLAR_EMULATION_FUNCTION ComputeSet addComputeSet(const DebugContext &debugContext = {});
  POPLAR_EMULATION_FUNCTION VertexRef addVertex(ComputeSet cs, StringRef vertexType);
  POPLAR_EMULATION_FUNCTION VertexRef addVertex(ComputeSet cs, StringRef vertexType,
                                                ArrayRef<ConnectionDesc> connections);
  POPLAR_EMULATION_FUNCTION void connect(FieldRef field, const Tensor &tensor);
  POPLAR_EMULATION_FUNCTION void connect(FieldRef field, ArrayRef<Tensor> tensors);
  POPLAR_EMULATION_FUNCTION void setFieldSize(FieldRef field, std::size_t size);
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  void setInitialValue(FieldRef field, T value) {
    initialise(field, &value, TypeTraits::make<T>(), 1, false);
  }
  template <class T> void setInitialValue(FieldRef field, ArrayRef<T> values) {
    initialise(field, values.data(), TypeTraits::make<T>(), values.size(), true);
  }
  void setInitialValueHalf(FieldRef field, std::uint16_t value) {
    const half_t h(detail::floatOfHalfBits(value));
    initialise(field, &h, TypeTraits::make<half_t>(), 1, false);
  }
  void setPerfEstimate(const VertexRef &, std::uint64_t, std::uint64_t = 0) {}

  // Variables and constants.
  Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &debugContext = {}) {
    return add(type, shape, debugContext.getPathName(), false);
  }
  POPLAR_EMULATION_FUNCTION Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape,
                                               VariableMappingMethod method, const DebugContext &debugContext = {});
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, T value,
                     const DebugContext &debugContext = {"<const>"}) {
    return addConstant(type, shape, static_cast<const void *>(&value), TypeTraits::make<T>(), true, debugContext);
  }
  template <class T>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext &debugContext = {"<const>"}) {
    if (values.size() != detail::product(shape))
      throw tensor_creation_error("addConstant: " + std::to_string(values.size()) + " values for shape " +
                                  detail::text(shape));
    return addConstant(type, shape, static_cast<const void *>(values.data()), TypeTraits::make<T>(), false,
                       debugContext);
  }
  template <class T>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, const T *values,
                     const DebugContext &debugContext = {"<const>"}) {
    return addConstant(type, shape, static_cast<const void *>(values), TypeTraits::make<T>(), false, debugContext);
  }
  POPLAR_EMULATION_FUNCTION Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, const void *values,
                                               const TypeTraits &traits, bool broadcast,
                                               const DebugContext &debugContext = {"<const>"});
  POPLAR_EMULATION_FUNCTION Tensor addConstantHalf(const Type &type, ArrayRef<std::size_t> shape,
                                                   std::uint16_t value,
                                                   const DebugContext &debugContext = {"<const>"});
  template <class T, class = typename std::enable_if<TypeTraits::isSimpleType<T>()>::type>
  void setInitialValue(const Tensor &t, T value) {
    const std::vector<T> values(t.numElements(), value);
    initialise(t, values.data(), TypeTraits::make<T>(), values.size());
  }
  template <class T> void setInitialValue(const Tensor &t, ArrayRef<T> values) {
    initialise(t, values.data(), TypeTraits::make<T>(), values.size());
  }
  Tensor clone(const Tensor &t, const DebugContext &debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES) {
    return clone(t.elementType(), t, debugContext, method);
  }
  POPLAR_EMULATION_FUNCTION Tensor
  clone(const Type &type, const Tensor &t, const DebugContext &debugContext = {},
        TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

  // Where things are.
  POPLAR_EMULATION_FUNCTION void setTileMapping(VertexRef v, unsigned tileNum);
  POPLAR_EMULATION_FUNCTION void setTileMapping(const Tensor &t, unsigned tileNum);
  POPLAR_EMULATION_FUNCTION void setTileMapping(const Tensor &t, const TileToTensorMapping &mapping);
  POPLAR_EMULATION_FUNCTION TileToTensorMapping getTileMapping(const Tensor &t, bool requireComplete = true) const;
  POPLAR_EMULATION_FUNCTION TileToTensorMapping getTileMapping(const Tensor &t, bool *isComplete) const;
  POPLAR_EMULATION_FUNCTION std::vector<std::vector<Interval>>
  getSortedContiguousRegions(const Tensor &t, ArrayRef<Interval> regions, bool removeAliasedIntervals = false,
                             std::vector<std::size_t> *aliases = nullptr) const;
  void reorderToSimplify(Tensor *, ArrayRef<Tensor *>, bool = true) const {}

  // The host's side.
  POPLAR_EMULATION_FUNCTION void createHostWrite(StringRef handle, const Tensor &t, bool rearrangeOnHost = false);
  POPLAR_EMULATION_FUNCTION void createHostRead(StringRef handle, const Tensor &t, bool rearrangeOnHost = false);
  POPLAR_EMULATION_FUNCTION DataStream
  addHostToDeviceFIFO(StringRef handle, const Type &elementType, std::size_t numElements,
                      ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE, const OptionFlags &options = {});
  POPLAR_EMULATION_FUNCTION DataStream addDeviceToHostFIFO(StringRef handle, const Type &elementType,
                                                           std::size_t numElements, const OptionFlags &options = {});
  POPLAR_EMULATION_FUNCTION Function addFunction(const program::Program &program);
};

} // namespace poplar

#ifndef POPLAR_EMULATION_LIBRARIES
#include <poplar/detail/codelets_impl.hpp>
#include <poplar/detail/graph_impl.hpp>
#endif
#endif
