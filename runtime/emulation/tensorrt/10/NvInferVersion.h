/* The version whose interfaces the declarations have; see README.md. */
#ifndef NV_INFER_VERSION_H
#define NV_INFER_VERSION_H

#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_MINOR 15
#define NV_TENSORRT_PATCH 1

#endif  // NV_INFER_VERSION_H
