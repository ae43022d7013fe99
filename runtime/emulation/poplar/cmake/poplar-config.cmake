# `find_package(poplar)`: the target `poplar`.
if(NOT TARGET poplar)
  get_filename_component(_sdk "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(poplar SHARED IMPORTED)
  set_target_properties(poplar PROPERTIES
    IMPORTED_LOCATION "${_sdk}/lib/libpoplar.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_sdk}/include")
  unset(_sdk)
endif()
