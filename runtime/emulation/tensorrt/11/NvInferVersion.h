/* The version whose interfaces the declarations have; see README.md. */
#ifndef NV_INFER_VERSION_H
#define NV_INFER_VERSION_H

#define NV_TENSORRT_MAJOR 11
#define NV_TENSORRT_MINOR 4
#define NV_TENSORRT_PATCH 0

#endif  // NV_INFER_VERSION_H
