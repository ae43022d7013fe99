"""The tvm-ffi backend."""
