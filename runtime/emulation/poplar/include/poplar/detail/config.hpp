#ifndef poplar_detail_config_hpp
#define poplar_detail_config_hpp

/// How the emulation is compiled. By default everything is defined in the headers. Where POPLAR_EMULATION_LIBRARIES is
/// defined, the larger functions are only declared; libpoplar, libpopops, libpoputil and libpoplin define them, so that
/// the many small files of a proof needn't compile them each.
#ifdef POPLAR_EMULATION_LIBRARIES
#define POPLAR_EMULATION_FUNCTION
#else
#define POPLAR_EMULATION_FUNCTION inline
#endif

/// What a function starts with that is defined where it is declared, in a class for instance, and that a library has. In the headers
/// of a built SDK it has no body: what includes them compiles none of these.
#ifdef POPLAR_EMULATION_LIBRARIES
#define IN_LIBRARY __attribute__((used)) inline
#else
#define IN_LIBRARY inline
#endif

/// What is shared by every module of a process keeps default visibility under -fvisibility=hidden.
#define POPLAR_EMULATION_SHARED __attribute__((visibility("default")))

#endif
