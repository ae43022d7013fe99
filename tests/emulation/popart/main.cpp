// Runs the case that is named on the command line; prints what it found, or the error it ended with and status 3.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <set>

#include <popart/builder.hpp>
#include <popart/ndarraywrapper.hpp>
#include <popart/op/call.hpp>
#include <popart/session.hpp>
#include <popart/stepio.hpp>
#include <popart/tensornames.hpp>
#include <popart/transforms/autodiff.hpp>

#include "opxs.hpp"

namespace {

using namespace popart;
using Values = std::vector<float>;
using Any = std::map<std::string, popart::any>;

std::shared_ptr<DeviceInfo> device() { return DeviceManager::createDeviceManager().createIpuModelDevice({{"tilesPerIPU", "16"}}); }

/// Arrays of floats by tensor, of which the outputs are as large as the session says.
struct Arrays {
  std::map<TensorId, Values> values;
  std::map<TensorId, NDArrayWrapper<float>> wrapped;
  std::map<TensorId, IArray &> inputs, outputs;

  void add(const TensorId &id, const Shape &shape, Values data, bool in) {
    values[id] = std::move(data);
    wrapped.emplace(id, NDArrayWrapper<float>(values[id].data(), shape));
    (in ? inputs : outputs).emplace(id, wrapped.at(id));
  }
};

void print(const Values &values) {
  for (const float value : values) std::printf(" %g", static_cast<double>(value));
}

void run(Session &session, const std::map<TensorId, Values> &inputs, const std::vector<TensorId> &anchors, int batches = 1) {
  session.prepareDevice();
  Arrays arrays;
  for (const auto &input : inputs) {
    Shape shape = session.getInfo(input.first).shape();
    if (batches > 1) shape.insert(shape.begin(), batches);
    arrays.add(input.first, shape, input.second, true);
  }
  for (const TensorId &anchor : anchors) {
    const TensorInfo info = session.getInfo(anchor);
    Shape shape = info.shape();
    shape.insert(shape.begin(), batches);
    arrays.add(anchor, shape, Values(static_cast<std::size_t>(info.nelms() * batches)), false);
  }
  StepIO io(arrays.inputs, arrays.outputs);
  session.run(io);
  for (const TensorId &anchor : anchors) {
    std::printf("%s:", anchor.c_str());
    print(arrays.values[anchor]);
    std::printf("\n");
  }
}

struct Built {
  std::unique_ptr<Builder> builder = Builder::create();
  std::vector<TensorId> custom(const OperatorIdentifier &id, const std::vector<TensorId> &inputs, const Any &attributes,
                               unsigned outputs = 1) {
    return builder->customOp(id, 1, inputs, outputs, attributes);
  }
  TensorId scale(const TensorId &x, float alpha, const std::string &fault = "") {
    return custom(tests::ScaleId, {x}, {{"alpha", alpha}, {"fault", fault}})[0];
  }
  AiOnnxOpset onnx() { return builder->aiOnnxOpset11(); }
};

void infer(Built &b, const std::map<TensorId, Values> &inputs, const std::vector<TensorId> &anchors, const SessionOptions &options = {},
           const Patterns &patterns = PatternsLevel::NoPatterns) {
  const auto session =
      InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, anchors), device(), {}, options, patterns);
  run(*session, inputs, anchors);
  for (const std::string &op : session->getDevice().lowering().grownOps()) {
    if (op.find("Inplace") != std::string::npos) std::printf("in place\n");
  }
}

/// One Scale between two tensors of the host, with a fault.
void faulty(const std::string &fault) {
  Built b;
  const TensorId x = b.builder->addInputTensor("FLOAT", {3});
  const TensorId y = b.scale(x, 2, fault);
  infer(b, {{x, {1, 2, 3}}}, {y});
}

/// Says where the elements of an input lie that an Opx creates, directly or through another that unwinds the layout.
void layout(bool unwinds) {
  Built b;
  const TensorId x = b.builder->addInputTensor("FLOAT", {3});
  const TensorId y = b.scale(unwinds ? b.scale(x, 1, "unwinds") : x, 1, "creates input");
  const auto session = InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, {y}), device());
  run(*session, {{x, {1, 2, 3}}}, {y});
  popx::IrLowering &lowering = session->getDevice().lowering();
  const poplar::Tensor made = lowering.tensors().get(x);
  std::printf("on tile 7: %zu, contiguous: %d\n", lowering.graph().getTileMapping(made)[7].size(), made.isContiguous());
}

void anchored(const AnchorReturnType &type, std::size_t returned) {
  Built b;
  const TensorId x = b.builder->addInputTensor("FLOAT", {1});
  const TensorId y = b.scale(x, 2);
  const auto session =
      InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(4, AnchorReturnTypeMap{{y, type}}), device());
  session->prepareDevice();
  Arrays arrays;
  arrays.add(x, {4, 1}, {1, 2, 3, 4}, true);
  arrays.add(y, {static_cast<int64_t>(returned), 1}, Values(returned), false);
  StepIO io(arrays.inputs, arrays.outputs);
  session->run(io);
  print(arrays.values[y]);
  std::printf("\n");
}

void train(Built &b, const TensorId &y, const std::map<TensorId, Values> &inputs, const std::vector<TensorId> &wanted) {
  const TensorId loss = b.builder->aiGraphcoreOpset1().identityloss({y}, ReductionType::Sum);
  std::vector<TensorId> anchors;
  for (const TensorId &id : wanted) anchors.push_back(reservedGradientPrefix() + id);
  const auto session =
      TrainingSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, anchors), loss, ConstSGD(0.1f), device());
  run(*session, inputs, anchors);
}

void outline(const std::string &fault, float other) {
  Built b;
  const TensorId x = b.builder->addInputTensor("FLOAT", {2}), z = b.builder->addInputTensor("FLOAT", {2});
  const TensorId first = b.scale(x, 2, fault), second = b.scale(z, other, fault);
  infer(b, {{x, {1, 2}}, {z, {10, 20}}}, {first, second});
}

void split(bool strict, bool third, bool both) {
  Built b;
  const TensorId x = b.builder->addInputTensor("FLOAT", {2}), y = b.builder->addInputTensor("FLOAT", {2}),
                 z = b.builder->addInputTensor("FLOAT", {2});
  const auto outputs = b.custom(tests::SplitId, {x, y, third ? z : TensorId()}, {{"strict", static_cast<int64_t>(strict)}}, 2);
  const TensorId sum = both ? b.onnx().add({outputs[0], outputs[1]}) : outputs[0];
  std::vector<TensorId> wanted{x, y};
  if (third) wanted.push_back(z);
  train(b, sum, {{x, {1, 2}}, {y, {3, 4}}, {z, {5, 6}}}, wanted);
}

void inplace(const std::string &how) {
  Built b;
  const TensorId x = b.builder->addInputTensor("FLOAT", {2});
  const TensorId t = b.onnx().identity({x});
  std::vector<TensorId> anchors;
  if (how == "read before") anchors.push_back(b.onnx().add({t, t}));
  const TensorId y = b.scale(t, 3);
  if (how == "excluded") b.builder->excludePatterns(y, {"InPlace"});
  anchors.push_back(how == "read after" ? b.onnx().add({t, y}) : y);
  if (how == "anchored") anchors.push_back(t);
  if (how == "twice") anchors.push_back(b.scale(t, 5));
  infer(b, {{x, {1, 2}}}, anchors, {}, PatternsLevel::Default);
}

/// The gradient of the gradient: autodiff of a graph that autodiff made.
void secondOrder(AutodiffStitchStrategy strategy) {
  const auto ir = std::make_shared<Ir>();
  const TensorInfo info(DataType::FLOAT, {2});
  Graph &forward = ir->createGraph(GraphId("forward"));
  forward.addInput("forward/x", info);
  const auto cube = [&](const TensorId &in, const TensorId &out) {
    forward.createConnectedOp<tests::CubeOp>({{0, in}}, {{0, out}}, tests::CubeId, Op::Settings(forward, "cube"));
  };
  cube("forward/x", "forward/h");
  cube("forward/h", "forward/y");
  forward.markAsOutput("forward/y");
  const auto differentiate = [&](const GraphId &id) {
    return Autodiff().apply(*ir, id, nonstd::nullopt, nonstd::nullopt, {}, strategy).at(id);
  };
  const BwdGraphInfo first = differentiate(forward.id);
  const BwdGraphInfo second = differentiate(first.bwdGraphId);

  Graph &main = ir->getMainGraph();
  const std::map<std::string, Values> given{{"x", {1, 2}}, {"g", {1, 10}}, {"u", {1, 1}}};
  for (const auto &entry : given) main.addStream(entry.first, info, {});
  std::map<TensorId, TensorId> known{{"forward/x", "x"}};  // of a graph's tensor, the main graph's
  const auto call = [&](Graph &graph, const ExpectedConnections &wanted, const TensorId &cotangent) {
    std::map<InIndex, TensorId> inputs;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const bool grad = wanted[i].type == ExpectedConnectionType::FwdGrad;
      inputs[static_cast<InIndex>(i)] = grad ? cotangent : known.at(wanted[i].fwdId);
    }
    for (const auto &entry : inputs) known[graph.getInputId(entry.first)] = entry.second;
    std::map<OutIndex, TensorId> outputs;
    for (std::size_t i = 0; i < graph.getOutputIds().size(); ++i) {
      const TensorId id = graph.getOutputIds()[i];
      known[id] = outputs[static_cast<OutIndex>(i)] = "called_" + id;
    }
    main.createConnectedOp<CallOp>(inputs, outputs, OperatorIdentifier("ai.graphcore", "Call", 1), graph, Op::Settings(main, "call"));
    return outputs;
  };
  call(forward, {{"forward/x", ExpectedConnectionType::Fwd}}, "");
  const auto grads = call(ir->getGraph(first.bwdGraphId), first.expectedInputs, "g");
  const auto twice = call(ir->getGraph(second.bwdGraphId), second.expectedInputs, "u");
  std::vector<TensorId> anchors{grads.at(0)};
  for (const auto &entry : twice) anchors.push_back(entry.second);
  for (const auto &entry : second.expectedOutputs) std::printf("of %s\n", known.at(entry.fwdId).c_str());
  ir->setDataFlow(DataFlow(1, anchors));
  run(*InferenceSession::createFromIr(ir, device()), given, anchors);
}

void typed(DataType type) {
  Built b;
  const TensorId x = b.builder->addInputTensor(TensorInfo(type, {2}));
  const TensorId y = b.scale(x, 2);
  const auto session = InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, {y}), device());
  session->prepareDevice();
  std::printf("lowered\n");
}

std::map<std::string, std::function<void()>> cases() {
  std::map<std::string, std::function<void()>> all;
  for (const char *fault : {"right", "seed", "clone loses", "clone info", "setup changes", "no info", "refuses", "attributes change",
                            "writes input", "no output", "two outputs", "other output", "output shape", "output type",
                            "output unmapped", "output is input", "output unwritten", "writes constant"}) {
    all[std::string("scale ") + fault] = [fault] { faulty(fault); };
  }
  all["outline equal"] = [] { outline("", 2); };
  all["outline different"] = [] { outline("", 3); };
  all["outline forgets"] = [] { outline("outline forgets", 3); };
  all["outline seventh digit"] = [] { outline("", 2.0000002f); };
  all["train"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("FLOAT", {2}), g = b.builder->addInputTensor("FLOAT", {2});
    const TensorId y = b.custom(tests::CubeId, {x}, {})[0];
    train(b, b.onnx().mul({b.onnx().add({y, b.scale(x, 4)}), g}), {{x, {1, 2}}, {g, {1, 100}}}, {x, g});
  };
  all["split both"] = [] { split(true, true, true); };
  all["split third absent"] = [] { split(true, false, true); };
  all["split one gradient"] = [] { split(false, true, false); };
  all["split one gradient strict"] = [] { split(true, true, false); };
  for (const char *how : {"alone", "read before", "read after", "excluded", "anchored", "twice"}) {
    all[std::string("inplace ") + how] = [how] { inplace(how); };
  }
  all["second order recompute"] = [] { secondOrder(AutodiffStitchStrategy::RecomputeAllNonInputs); };
  all["second order outputs"] = [] { secondOrder(AutodiffStitchStrategy::SafeAddFwdOutputs); };
  for (const auto &type : getDataTypeInfoMap()) {
    const DataType data = type.first;
    all["type " + type.second.name()] = [data] { typed(data); };
  }
  all["number of inputs"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("FLOAT", {2});
    b.custom(tests::SplitId, {x}, {}, 2);
  };
  all["absent input with inference"] = [] {
    Built b;
    b.custom({"tests", "Scale", 1}, {""}, {});
  };
  all["inference"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("FLOAT", {2, 3});
    const TensorInfo info = b.builder->getTensorInfo(b.scale(x, 1));
    std::cout << info << "\n";
  };
  all["inference of unknown"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("FLOAT", {2, 3});
    const TensorId y = b.custom(tests::CubeId, {x}, {})[0];
    std::cout << b.builder->getTensorInfo(y) << "\n" << b.builder->getTensorInfo(b.scale(y, 1)) << "\n";
  };
  all["batches"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("FLOAT", {2});
    const TensorId y = b.scale(x, 2);
    const auto session = InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(3, {y}), device());
    run(*session, {{x, {1, 2, 3, 4, 5, 6}}}, {y}, 3);
  };
  all["array of INT64"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("INT32", {3});
    const TensorId y = b.onnx().identity({x});
    const auto session = InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, {y}), device());
    session->prepareDevice();
    std::vector<int64_t> given{1, -2, 3};
    std::vector<int32_t> back(3);
    NDArrayWrapper<int64_t> in(given.data(), Shape{3});
    NDArrayWrapper<int32_t> out(back.data(), Shape{3});
    StepIO io({{x, in}}, {{y, out}});
    session->run(io);
    std::printf("%d %d %d\n", back[0], back[1], back[2]);
    NDArrayWrapper<int64_t> wrong(given.data(), Shape{3});
    StepIO refused({{x, in}}, {{y, wrong}});
    session->run(refused);
  };
  all["anchor all"] = [] { anchored(AnchorReturnType("ALL"), 4); };
  all["anchor final"] = [] { anchored(AnchorReturnType("FINAL"), 1); };
  all["anchor everyn"] = [] { anchored(AnchorReturnType("EVERYN", 2), 2); };
  all["anchor sum"] = [] { anchored(AnchorReturnType("SUM"), 1); };
  all["anchor unknown"] = [] { anchored(AnchorReturnType("SOME"), 1); };
  all["layout created"] = [] { layout(false); };
  all["layout unwound"] = [] { layout(true); };
  all["npOut"] = [] { std::cout << TensorInfo(DataType::FLOAT, npOut(Shape{2, 1, 3}, Shape{4, 1}, "x")) << "\n"; };
  all["npOut of size 0"] = [] { npOut(Shape{2, 0}, Shape{1, 0}, "x"); };
  all["npReductionAxis"] = [] {
    for (const int64_t axis : npReductionAxis({4, 1}, {2, 4, 3})) std::printf("%d ", static_cast<int>(axis));
    std::printf("\n");
  };
  all["empty"] = [] {
    Built b;
    const TensorId x = b.builder->addInputTensor("FLOAT", {2, 0}), g = b.builder->addInputTensor("FLOAT", {2, 0});
    train(b, b.onnx().mul({b.scale(x, 2), g}), {{x, {}}, {g, {}}}, {x, g});
  };
  all["variable"] = [] {
    Built b;
    const Values initial{1, 2};
    const TensorId x = b.builder->addInputTensor("FLOAT", {2});
    const TensorId w = b.builder->addInitializedInputTensor({initial.data(), TensorInfo(DataType::FLOAT, {2})});
    const TensorId loss = b.builder->aiGraphcoreOpset1().identityloss({b.onnx().mul({w, x})}, ReductionType::Sum);
    const auto session =
        TrainingSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, {loss}), loss, ConstSGD(0.5f), device());
    run(*session, {{x, {10, 20}}}, {loss});
    session->weightsToHost();
    Values trained(2);
    std::map<TensorId, MutableVoidData> weights;
    weights[w].data = trained.data();
    weights[w].info = TensorInfo(DataType::FLOAT, {2});
    session->readWeights(weights);
    print(trained);
    std::printf("\n");
  };
  all["many"] = [] {
    for (int i = 0; i < 100; ++i) {
      Built b;
      const TensorId x = b.builder->addInputTensor("FLOAT", {4, 8});
      const TensorId y = b.scale(x, 2);
      const auto session = InferenceSession::createFromOnnxModel(b.builder->getModelProto(), DataFlow(1, {y}),
                                                                 DeviceManager::createDeviceManager().createIpuModelDevice({}));
      session->prepareDevice();
    }
    std::printf("100 sessions\n");
  };
  return all;
}

}  // namespace

int main(int argc, char **argv) {
  const auto all = cases();
  if (argc < 2) {
    for (const auto &entry : all) std::printf("%s\n", entry.first.c_str());
    return 0;
  }
  try {
    all.at(argv[1])();
  } catch (const std::exception &raised) {
    std::printf("%s\n", raised.what());
    return 3;
  }
  return 0;
}
