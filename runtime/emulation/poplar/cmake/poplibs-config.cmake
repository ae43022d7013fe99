# `find_package(poplibs)`: a target for each library over Poplar.
include(CMakeFindDependencyMacro)
find_dependency(poplar)

get_filename_component(_sdk "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_library poputil popops poprand poplin popnn)
  if(NOT TARGET ${_library})
    add_library(${_library} SHARED IMPORTED)
    set_target_properties(${_library} PROPERTIES
      IMPORTED_LOCATION "${_sdk}/lib/lib${_library}.so"
      INTERFACE_LINK_LIBRARIES poplar
      INTERFACE_INCLUDE_DIRECTORIES "${_sdk}/include")
  endif()
endforeach()
unset(_library)
unset(_sdk)
