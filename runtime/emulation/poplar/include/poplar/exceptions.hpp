#ifndef poplar_exceptions_hpp
#define poplar_exceptions_hpp

#include <poplar/detail/config.hpp>
#include <stdexcept>
#include <string>

namespace poplar {

/// Base of every error that Poplar reports.
struct POPLAR_EMULATION_SHARED poplar_error : public std::runtime_error {
  std::string type;
  explicit poplar_error(const std::string &message, const char *kind = "poplar_error")
      : std::runtime_error(message), type(kind) {}
};

#define POPLAR_EMULATION_ERROR(name, base)                                                                             \
  struct POPLAR_EMULATION_SHARED name : public base {                                                                  \
    explicit name(const std::string &message, const char *kind = #name) : base(message, kind) {}                       \
  };

POPLAR_EMULATION_ERROR(index_error, poplar_error)
POPLAR_EMULATION_ERROR(type_error, poplar_error)
POPLAR_EMULATION_ERROR(overflow_error, poplar_error)
POPLAR_EMULATION_ERROR(unknown_field, poplar_error)
POPLAR_EMULATION_ERROR(unknown_vertex_type, poplar_error)
POPLAR_EMULATION_ERROR(graph_connection_error, poplar_error)
POPLAR_EMULATION_ERROR(graph_object_load_error, poplar_error)
POPLAR_EMULATION_ERROR(graph_program_compilation_error, poplar_error)
POPLAR_EMULATION_ERROR(graph_memory_allocation_error, poplar_error)
POPLAR_EMULATION_ERROR(graph_recursion_error, poplar_error)
POPLAR_EMULATION_ERROR(tensor_creation_error, poplar_error)
POPLAR_EMULATION_ERROR(tensor_io_state_error, poplar_error)
POPLAR_EMULATION_ERROR(control_program_error, poplar_error)
POPLAR_EMULATION_ERROR(invalid_tile_mapping, poplar_error)
POPLAR_EMULATION_ERROR(invalid_machine_model, poplar_error)
POPLAR_EMULATION_ERROR(invalid_option, poplar_error)
POPLAR_EMULATION_ERROR(stream_connection_error, poplar_error)
POPLAR_EMULATION_ERROR(file_load_error, poplar_error)
POPLAR_EMULATION_ERROR(runtime_error, poplar_error)
POPLAR_EMULATION_ERROR(application_runtime_error, runtime_error)
POPLAR_EMULATION_ERROR(system_runtime_error, runtime_error)

#undef POPLAR_EMULATION_ERROR

} // namespace poplar

#endif
