/* Where the compiled codelets of an op are: beside the library that the op is in, or in the package's folder for what is built. */
#ifndef OPC_POPLAR_CODELETS_FILE_H
#define OPC_POPLAR_CODELETS_FILE_H

#include <dlfcn.h>

#include <fstream>
#include <string>

#include <poplar/Graph.hpp>
#include <poplar/exceptions.hpp>

namespace opc {
namespace ipu {

/* Adds the codelets in NAME.gp to a graph; to one that has them already that does nothing. `inside` is any function or variable of
 * the library. */
inline void add_codelets(poplar::Graph &graph, const std::string &name, const void *inside) {
  Dl_info found;
  std::string folder = ".";
  if (dladdr(inside, &found) != 0 && found.dli_fname != nullptr) {
    const std::string library = found.dli_fname;
    const std::size_t slash = library.rfind('/');
    if (slash != std::string::npos) folder = library.substr(0, slash);
  }
  for (const char *place : {"/", "/../", "/../build/"}) {
    const std::string path = folder + place + name + ".gp";
    if (std::ifstream(path).good()) {
      graph.addCodelets(path);
      return;
    }
  }
  throw poplar::poplar_error("there is no " + name + ".gp in " + folder + ", where popc writes the op's codelets");
}

}  // namespace ipu
}  // namespace opc

#endif /* OPC_POPLAR_CODELETS_FILE_H */
