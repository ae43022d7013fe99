#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

/* A comment with class Ghost : public Vertex { }; in it. */
template <typename T>
class Scale : public poplar::Vertex {
public:
  poplar::Input<poplar::Vector<T>> x;
  poplar::Output<poplar::Vector<T, poplar::VectorLayout::ONE_PTR, 8>> y;
  float factor;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      y[i] = static_cast<float>(x[i]) * factor;
    return true;
  }
};
template class Scale<float>;
template class Scale<half>;

namespace sums {

class Rows : public Vertex {
public:
  Vector<Input<Vector<float>>> rows;
  Input<VectorList<int, VectorListLayout::DELTAN>> more;
  InOut<float> total;
  Vector<unsigned short> table;
  bool flag;
  bool compute() {
    for (unsigned i = 0; i < rows.size(); ++i)
      for (unsigned j = 0; j < rows[i].size(); ++j)
        *total += rows[i][j];
    for (unsigned i = 0; i < more.size(); ++i)
      for (const int x : more[i])
        *total += static_cast<float>(x);
    for (const unsigned short x : table)
      *total += static_cast<float>(x);
    *total += flag ? 1000.0f : 0.0f;
    return true;
  }
};

template <class T, unsigned Step, bool Down> struct Next : Vertex {
  Input<T> x;
  Output<T> y;
  static constexpr unsigned unused = 3;
  bool compute() {
    *y = Down ? *x - Step : *x + Step;
    return true;
  }
};
template struct Next<unsigned, 3, false>;
template struct Next<std::int32_t, 1, true>;

} // namespace sums

class Workers : public MultiVertex {
public:
  Output<Vector<int>> who;
  void compute(unsigned workerId) {
    for (unsigned i = workerId; i < who.size(); i += numWorkers())
      who[i] = static_cast<int>(workerId);
  }
};

class Beyond : public Vertex {
public:
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  unsigned index;
  bool raw;
  void compute() {
    y[0] = raw ? (&x[0])[index] : x[index];
  }
};

class Careless : public Vertex {
public:
  Output<Vector<float>> y;
  void compute() {
    y[0] = y[1]; // Nobody has written it.
  }
};
