// The name of a graph; the main graph's is empty.
#ifndef POPART_GRAPHID_HPP
#define POPART_GRAPHID_HPP

#include <ostream>
#include <string>

#pragma GCC visibility push(default)
namespace popart {

class GraphId {
 public:
  GraphId() = delete;
  IN_LIBRARY GraphId(const std::string &name) : id(name) {}

  IN_LIBRARY bool operator<(const GraphId &other) const { return id < other.id; }
  IN_LIBRARY bool operator==(const GraphId &other) const { return id == other.id; }
  IN_LIBRARY bool operator!=(const GraphId &other) const { return id != other.id; }

  static const GraphId &root() {
    static const GraphId main("");
    return main;
  }
  IN_LIBRARY const std::string &str() const { return id; }

 private:
  std::string id;
};

IN_LIBRARY std::ostream &operator<<(std::ostream &stream, const GraphId &id) { return stream << id.str(); }

}  // namespace popart
#pragma GCC visibility pop

#endif
