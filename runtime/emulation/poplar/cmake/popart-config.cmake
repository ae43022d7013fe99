# `find_package(popart)`: the component `popart-only` is the library and what it is built on; the component `popart`, which is
# taken where none is named, asks for Protobuf and ONNX too, which no SDK brings.
include(CMakeFindDependencyMacro)
find_dependency(poplar)
find_dependency(poplibs)

if(NOT TARGET popart-only)
  get_filename_component(_sdk "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(popart-only SHARED IMPORTED)
  set_target_properties(popart-only PROPERTIES
    IMPORTED_LOCATION "${_sdk}/lib/libpopart.so"
    INTERFACE_COMPILE_DEFINITIONS ONNX_NAMESPACE=onnx
    INTERFACE_LINK_LIBRARIES "poplar;poplin;popnn;popops;poprand;poputil"
    INTERFACE_INCLUDE_DIRECTORIES "${_sdk}/include")
  unset(_sdk)
endif()

set(popart_popart-only_FOUND TRUE)
if(NOT popart_FIND_COMPONENTS OR "popart" IN_LIST popart_FIND_COMPONENTS)
  find_dependency(Protobuf 3.6)
  find_dependency(ONNX 1.6)
  if(NOT TARGET popart)
    add_library(popart INTERFACE IMPORTED)
    set_target_properties(popart PROPERTIES INTERFACE_LINK_LIBRARIES popart-only)
  endif()
  set(popart_popart_FOUND TRUE)
endif()

foreach(_component ${popart_FIND_COMPONENTS})
  if(NOT popart_${_component}_FOUND)
    set(popart_FOUND FALSE)
    set(popart_NOT_FOUND_MESSAGE "Unsupported component: ${_component}")
  endif()
endforeach()
unset(_component)
