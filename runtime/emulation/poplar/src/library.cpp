// A stub library, compiled once for each name of the SDK's libraries: all code is in the headers, and `-lpopart -lpoplar ...` must link.
// LIBRARY is its name in quotes.
extern "C" __attribute__((visibility("default"))) const char *opc_emulated_library() { return LIBRARY; }
