/* What the plugins of an op have in common: attributes, types, checks, workspace, and the call of its kernels. */
#ifndef OPC_ADAPTERS_TENSORRT_CALL_H
#define OPC_ADAPTERS_TENSORRT_CALL_H

#include <algorithm>
#include <string>
#include <vector>

#include "opc/adapters/tensorrt_attributes.h"
#include "opc/adapters/tensorrt_messages.h"
#include "opc/adapters/tensorrt_op.h"
#include "opc/adapters/tensorrt_shapes.h"
#include "opc/adapters/tensorrt_tensor.h"

namespace opc {
namespace trt {

class Core {
 public:
  explicit Core(const Op &op) : op(op), attributes_(op.attributes_size) { op.defaults(attributes_.data()); }

  const Op &op;
  std::string name_space;

  /* ---- attributes ---- */

  void *attributes() { return attributes_.data(); }
  const void *attributes() const { return attributes_.data(); }

  /* Reads fields; those of a saved plugin say by which version they were written. */
  bool read(const nvinfer1::PluginFieldCollection *fields, bool saved) {
    const nvinfer1::PluginField *format = find(fields, format_field);
    int64_t version = 0;
    if (saved && (format == nullptr || format->length != 1 || !whole(*format, 0, version) || version != format_version)) {
      return refuse("%s: what was serialised has format %lld, but this library reads %d", op.name, static_cast<long long>(version),
                    format_version);
    }
    FieldReader reader(op, fields, memory_);
    op.visit(reader, attributes());
    return reader.ok && read_given(fields) && check_attributes();
  }

  void save(Writer &w) {
    const char magic[4] = {'O', 'P', 'C', 'T'};
    w.bytes(magic, sizeof magic);
    w.one(format_version);
    w.one(op.signature);
    w.one(said_ ? static_cast<int32_t>(given_.size()) : -1);
    for (int32_t i : given_) w.one(i);
    op.visit(w, attributes());
  }

  bool load(Loader &l) {
    char magic[4] = {};
    l.bytes(magic, sizeof magic);
    const int32_t version = l.one<int32_t>();
    if (!l.ok || memcmp(magic, "OPCT", sizeof magic) != 0)
      return refuse("%s: these %s bytes are no serialised plugin", op.name, l.ok ? "other" : "few");
    if (version != format_version) {
      return refuse("%s: what was serialised has format %d, but this library reads %d", op.name, static_cast<int>(version),
                    format_version);
    }
    if (l.one<uint64_t>() != op.signature) return refuse("%s: what was serialised has other attributes", op.name);
    const int32_t count = l.one<int32_t>();
    if (!l.ok || count < -1 || count > op.inputs) return refuse("%s: what was serialised is cut short", op.name);
    said_ = count >= 0;
    given_.resize(static_cast<size_t>(std::max(count, 0)));
    for (int32_t &i : given_) {
      i = l.one<int32_t>();
      l.ok = l.ok && 0 <= i && i < op.inputs;
    }
    op.visit(l, attributes());
    return (l.ok || refuse("%s: what was serialised is cut short", op.name)) && check_attributes();
  }

  /* Takes over the attributes of another plugin of the op. */
  void copy(Core &from) {
    Writer count(nullptr);
    from.save(count);
    std::vector<char> bytes(count.size);
    Writer w(bytes.data());
    from.save(w);
    Loader l(bytes.data(), bytes.size(), memory_);
    load(l);
    name_space = from.name_space;
  }

  /* The fields that a creator takes, with the attributes' defaults. */
  std::vector<nvinfer1::PluginField> fields_to_list() {
    FieldLister lister;
    op.visit(lister, attributes());
    const Operand *end = op.operands + op.inputs;
    if (std::any_of(op.operands, end, [](const Operand &o) { return o.optional; })) {
      lister.fields.emplace_back(given_field, nullptr, nvinfer1::PluginFieldType::kINT32, op.inputs);
    }
    return lister.fields;
  }

  /* The fields that `read` reads, with the version. */
  const std::vector<nvinfer1::PluginField> &fields_to_save() {
    FieldLister lister;
    op.visit(lister, attributes());
    fields_ = lister.fields;
    fields_.emplace_back(format_field, &format_version, nvinfer1::PluginFieldType::kINT32, 1);
    if (said_ && op.inputs > 0) {
      mask_.assign(static_cast<size_t>(op.inputs), 0);
      for (int32_t i : given_) mask_[static_cast<size_t>(i)] = 1;
      fields_.emplace_back(given_field, mask_.data(), nvinfer1::PluginFieldType::kINT32, op.inputs);
    }
    return fields_;
  }

  /* ---- inputs ---- */

  /* How many are given. */
  int32_t count() const { return said_ ? static_cast<int32_t>(given_.size()) : op.inputs; }

  /* From here on so many are given. */
  bool settle(int32_t count) {
    int32_t where[max_operands];
    if (count > max_operands || !places(count, where)) return false;
    given_.assign(where, where + count);
    said_ = true;
    return true;
  }

  /* Finds which input each of so many is: those that the field of given inputs says, or else the first ones. */
  bool places(int32_t count, int32_t *where) const {
    if (said_) {
      if (static_cast<size_t>(count) != given_.size()) {
        return refuse("%s: %s says that %d inputs are given, but there are %d", op.name, given_field, static_cast<int>(given_.size()),
                      static_cast<int>(count));
      }
      std::copy(given_.begin(), given_.end(), where);
      return true;
    }
    if (count > op.inputs)
      return refuse("%s has %d inputs, but %d are given", op.name, static_cast<int>(op.inputs), static_cast<int>(count));
    for (int32_t i = 0; i < count; ++i) where[i] = i;
    for (int32_t i = count; i < op.inputs; ++i) {
      if (!op.operands[i].optional) return refuse("%s: the input %s must be given", op.name, op.operands[i].name);
    }
    return true;
  }

  /* ---- types ---- */

  /* Whether the operand at a position has a type that goes with those before it; `elements` are those of the inputs that are given,
   * then of the outputs. */
  bool supports(int32_t position, const dtype *elements, int32_t inputs) const {
    int32_t where[max_operands];
    if (inputs > max_operands || !places(inputs, where)) return false;
    dtype variables[max_variables];
    bind(variables);
    for (int32_t i = 0; i <= position; ++i) {
      const Operand &o = op.operands[i < inputs ? where[i] : op.inputs + i - inputs];
      if (!admits(o, elements[i], variables)) return false;
      if (!o.accumulated && o.variable >= 0) variables[o.variable] = elements[i];
    }
    return true;
  }

  /* The element types of the outputs for those of the inputs that are given. */
  bool output_types(const dtype *elements, int32_t inputs, dtype *outputs) const {
    int32_t where[max_operands];
    if (inputs > max_operands || !places(inputs, where)) return false;
    dtype variables[max_variables];
    bind(variables);
    for (int32_t i = 0; i < inputs; ++i) {
      const Operand &o = op.operands[where[i]];
      if (!o.accumulated && o.variable >= 0 && variables[o.variable] == dtype_unknown) variables[o.variable] = elements[i];
    }
    for (int32_t i = 0; i < op.outputs; ++i) outputs[i] = some_type(op.operands[op.inputs + i], variables);
    return true;
  }

  /* ---- shapes ---- */

  /* The sizes of the outputs for those of the inputs that are given. */
  bool output_sizes(const std::vector<Sizes> &inputs, nvinfer1::IExprBuilder *builder, std::vector<Sizes> &outputs) const {
    int32_t where[max_operands];
    const int32_t count = static_cast<int32_t>(inputs.size());
    if (count > max_operands || !places(count, where) || !check_numbers(inputs)) return false;
    const Sizes *known[max_operands] = {};
    for (int32_t i = 0; i < count; ++i) known[where[i]] = &inputs[static_cast<size_t>(i)];
    ShapeBuilder s(op.name, op.operands, known, builder);
    op.shapes(s, attributes());
    outputs = s.outputs;
    return s.ok;
  }

  /* Checks a call whose sizes are known as the kernel does, with its messages. */
  bool check(const Tensor *inputs, int32_t count, Tensor *outputs = nullptr) const {
    Call call(*this, inputs, count);
    opc_tensor_type types[max_operands];
    if (!call.ok || !call.answer(op.infer(call.inputs, attributes(), types, &call.context))) return false;
    for (int32_t i = 0; outputs != nullptr && i < op.outputs; ++i) {
      if (types[i].ndim > max_rank) return refuse("%s: an output would have more axes than TensorRT's tensors", op.name);
      outputs[i] = Tensor{opc::dtype_of(types[i].dtype), types[i].ndim, {}};
      std::copy(types[i].shape, types[i].shape + std::max<int32_t>(types[i].ndim, 0), outputs[i].sizes);
    }
    return true;
  }

  /* ---- calls ---- */

  /* The workspace of a call, in bytes. */
  int64_t workspace(const Tensor *inputs, int32_t count, const Tensor *outputs) const {
    Arena arena(Arena::fake_address(2 * max_operands));
    Call call(*this, inputs, count);
    if (!call.ok) return 0;
    for (int32_t i = 0; i < count; ++i) call.given[i].data = Arena::fake_address(i + 1);
    for (int32_t i = 0; i < op.outputs; ++i) call.output(i, outputs[i], Arena::fake_address(max_operands + i));
    call.lend(arena, OPC_CUDA_MEASURE);
    return call.answer(op.run(call.inputs, call.outputs, attributes(), &call.context)) ? arena.most : 0;
  }

  /* Starts the kernels on a stream; not 0 where they can't be. `offset` is of a sample of a batch. */
  int32_t run(const Tensor *inputs, int32_t count, const Tensor *outputs, const void *const *from, void *const *to, void *workspace,
              cudaStream_t stream, int64_t sample = 0) const {
    Arena arena(workspace);
    Call call(*this, inputs, count);
    if (!call.ok) return 1;
    for (int32_t i = 0; i < count; ++i) {
      call.given[i].data = const_cast<char *>(static_cast<const char *>(from[i]) + sample * inputs[i].bytes());
    }
    for (int32_t i = 0; i < op.outputs; ++i) call.output(i, outputs[i], static_cast<char *>(to[i]) + sample * outputs[i].bytes());
    call.lend(arena, stream);
    call.context.status = op.status();
    return call.answer(op.run(call.inputs, call.outputs, attributes(), &call.context)) ? 0 : 1;
  }

 private:
  /* The tensors of a call as the C ABI has them. */
  struct Call {
    DLTensor given[max_operands], made[max_operands];
    const DLTensor *inputs[max_operands] = {};
    DLTensor *outputs[max_operands] = {};
    char message[1024] = "";
    opc_cuda_context context = {nullptr, current_device(), nullptr, nullptr, nullptr, nullptr, message, sizeof message};
    bool ok;

    Call(const Core &core, const Tensor *of, int32_t count) {
      int32_t where[max_operands];
      ok = count <= max_operands && core.places(count, where);
      for (int32_t i = 0; ok && i < count; ++i) {
        ok = describe(given[i], of[i]);
        inputs[where[i]] = &given[i];
      }
    }
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    void output(int32_t i, const Tensor &of, void *data) {
      describe(made[i], of);
      made[i].data = data;
      outputs[i] = &made[i];
    }
    void lend(Arena &arena, void *stream) {
      context.stream = stream;
      context.allocate = Arena::allocate;
      context.release = Arena::release;
      context.allocator = &arena;
    }
    bool answer(int32_t code) const { return code == OPC_OK || refuse("%s", message); }

   private:
    bool describe(DLTensor &t, const Tensor &of) {
      if (of.element == dtype_unknown) return refuse("%s", "an operand has a dtype that no kernel has");
      t = DLTensor{nullptr, {kDLCUDA, context.device}, of.rank, row_of(of.element).dlpack, const_cast<int64_t *>(of.sizes), nullptr, 0};
      return true;
    }
  };

  bool read_given(const nvinfer1::PluginFieldCollection *fields) {
    const nvinfer1::PluginField *field = find(fields, given_field);
    if (field == nullptr) return true;
    said_ = true;
    if (field->length != op.inputs)
      return refuse("%s: the field %s has %d values, but must have %d", op.name, given_field, static_cast<int>(field->length),
                    static_cast<int>(op.inputs));
    for (int32_t i = 0; i < op.inputs; ++i) {
      int64_t given = 0;
      if (!whole(*field, i, given)) return refuse("%s: the field %s must be a whole number", op.name, given_field);
      if (given == 0 && !op.operands[i].optional) return refuse("%s: the input %s must be given", op.name, op.operands[i].name);
      if (given != 0) given_.push_back(i);
    }
    return true;
  }

  bool check_attributes() const {
    char message[1024];
    message[0] = '\0'; /* the rest is not worth a call's time */
    opc_cuda_context context = {nullptr, 0, nullptr, nullptr, nullptr, nullptr, message, sizeof message};
    return op.infer(nullptr, attributes(), nullptr, &context) == OPC_OK || refuse("%s", message);
  }

  /* Where all sizes are numbers, the kernel's own check says what is wrong with them; shapes don't depend on types. */
  bool check_numbers(const std::vector<Sizes> &inputs) const {
    int32_t where[max_operands];
    const int32_t count = static_cast<int32_t>(inputs.size());
    if (!places(count, where)) return false;
    dtype variables[max_variables];
    bind(variables);
    std::vector<Tensor> tensors;
    for (int32_t i = 0; i < count; ++i) {
      const Operand &o = op.operands[where[i]];
      const dtype element = some_type(o, variables);
      if (!o.accumulated && o.variable >= 0) variables[o.variable] = element;
      const Sizes &sizes = inputs[static_cast<size_t>(i)];
      Tensor t{element, static_cast<int32_t>(sizes.size()), {}};
      for (size_t k = 0; k < sizes.size(); ++k) {
        if (!sizes[k].known()) return true;
        t.sizes[k] = sizes[k].number;
      }
      tensors.push_back(t);
    }
    return check(tensors.data(), count);
  }

  void bind(dtype *variables) const {
    std::fill(variables, variables + max_variables, dtype_unknown);
    op.bind(attributes(), variables);
  }

  static dtype first_of(uint32_t dtypes) {
    for (int32_t i = 0; i < dtype_count; ++i) {
      nvinfer1::DataType type;
      if (dtypes >> i & 1 && to_tensorrt(static_cast<dtype>(i), type)) return static_cast<dtype>(i);
    }
    return dtype_unknown;
  }

  /* The type of an operand, where it is not known one that it may have. */
  static dtype some_type(const Operand &o, const dtype *variables) {
    if (o.variable < 0) return first_of(o.dtypes);
    const dtype bound = variables[o.variable];
    if (bound == dtype_unknown) return first_of(o.dtypes);
    return o.accumulated ? accumulator_dtype(bound) : bound;
  }

  static bool admits(const Operand &o, dtype element, const dtype *variables) {
    if (element == dtype_unknown || (o.dtypes >> element & 1) == 0) return false;
    const dtype bound = o.variable < 0 ? dtype_unknown : variables[o.variable];
    return bound == dtype_unknown || element == (o.accumulated ? accumulator_dtype(bound) : bound);
  }

  std::vector<char> attributes_;
  Blocks memory_;
  bool said_ = false;           /* whether it is known which inputs are given, */
  std::vector<int32_t> given_; /* namely these */
  std::vector<nvinfer1::PluginField> fields_;
  std::vector<int32_t> mask_;
};

}  // namespace trt
}  // namespace opc

#endif /* OPC_ADAPTERS_TENSORRT_CALL_H */
