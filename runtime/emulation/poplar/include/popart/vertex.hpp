// What ops and tensors have in common: whether they lie on a path to the loss.
#ifndef POPART_VERTEX_HPP
#define POPART_VERTEX_HPP

#include <string>

#include <poplar/detail/config.hpp>

#pragma GCC visibility push(default)
namespace popart {

enum class PathToLoss { Yes, No, Undefined };
enum class PathFromLoss { Yes, No, Undefined };

class Vertex {
 public:
  Vertex() = default;
  virtual ~Vertex() = default;
  // A copy is not yet part of a graph, so nothing is known of its paths.
  IN_LIBRARY Vertex(const Vertex &) {}
  Vertex &operator=(const Vertex &) = delete;

  PathToLoss toLoss{PathToLoss::Undefined};
  PathFromLoss fromLoss{PathFromLoss::Undefined};

  virtual std::string str() const = 0;
};

}  // namespace popart
#pragma GCC visibility pop

#endif
