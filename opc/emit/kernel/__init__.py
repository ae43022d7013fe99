"""The files of a kernel: entry functions of the C ABI, what they say of each stage, and native code of a spec."""
