// Containers that every op uses: where libraries are used they are compiled into libpopart alone.
#ifndef POPART_EMULATION_INSTANCES_HPP
#define POPART_EMULATION_INSTANCES_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include <popart/attributes.hpp>
#include <popart/op.hpp>
#include <popart/opmanager.hpp>
#include <popart/popx/opxmanager.hpp>
#include <popart/shapeinference.hpp>

#ifdef POPART_EMULATION_INSTANCES
#define POPART_INSTANCE POPART_EMULATION_INSTANCES
#else
#define POPART_INSTANCE extern template
#endif

#pragma GCC visibility push(default)
POPART_INSTANCE class std::vector<bool>;
POPART_INSTANCE class std::vector<float>;
POPART_INSTANCE class std::vector<int64_t>;
POPART_INSTANCE class std::vector<std::size_t>;
POPART_INSTANCE class std::vector<std::string>;
POPART_INSTANCE class std::vector<unsigned>;
POPART_INSTANCE class std::vector<poplar::Tensor>;
POPART_INSTANCE class std::vector<popart::DataType>;
POPART_INSTANCE class std::map<int, int>;
POPART_INSTANCE class std::map<int, std::string>;
POPART_INSTANCE class std::map<int, popart::TensorInfo>;
POPART_INSTANCE class std::map<popart::OperatorIdentifier, popart::OpDefinition, popart::OperatorIdentifierLess>;
POPART_INSTANCE class std::function<void(popart::ShapeInferenceContext &)>;
POPART_INSTANCE class std::function<std::unique_ptr<popart::Op>(const popart::OpCreatorInfo &)>;
POPART_INSTANCE class std::function<std::unique_ptr<popart::popx::Opx>(popart::Op *, popart::popx::Devicex *)>;
POPART_INSTANCE class std::unique_ptr<popart::Op>;
POPART_INSTANCE class std::unique_ptr<popart::popx::Opx>;

// Of types without a default, what can be compiled of a vector.
#define POPART_VECTOR(T)                                                                                  \
  POPART_INSTANCE std::vector<T>::vector(std::initializer_list<T>, const std::vector<T>::allocator_type &); \
  POPART_INSTANCE std::vector<T>::vector(const std::vector<T> &);                                         \
  POPART_INSTANCE std::vector<T>::~vector();                                                              \
  POPART_INSTANCE std::vector<T> &std::vector<T>::operator=(const std::vector<T> &);                      \
  POPART_INSTANCE void std::vector<T>::push_back(const T &);
POPART_VECTOR(popart::GradInOutMapper)
POPART_VECTOR(popart::OperatorIdentifier)
POPART_VECTOR(popart::view::Region)
POPART_VECTOR(popart::OpDefinition::Input)
POPART_VECTOR(popart::OpDefinition::Output)
POPART_INSTANCE std::vector<std::unique_ptr<popart::Op>>::~vector();
POPART_INSTANCE void std::vector<std::unique_ptr<popart::Op>>::push_back(std::unique_ptr<popart::Op> &&);
#undef POPART_VECTOR
#pragma GCC visibility pop
#undef POPART_INSTANCE

#endif
