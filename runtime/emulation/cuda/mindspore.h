/* Before an op's library for MindSpore on GPUs, where there is none: MindSpore's calls on the CPU, which have no stream, are taken for calls
 * on a GPU. A program that has a stream of its own to pass defines OPC_MINDSPORE_STREAM. */
#ifndef OPC_EMULATION_CUDA_MINDSPORE_H
#define OPC_EMULATION_CUDA_MINDSPORE_H

#include "counted.h"

#if !defined(OPC_MINDSPORE_STREAM)
#define OPC_MINDSPORE_STREAM(stream) (static_cast<void>(stream), &emulated_stream)
#endif

#endif /* OPC_EMULATION_CUDA_MINDSPORE_H */
