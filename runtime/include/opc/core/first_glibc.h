/* The version of glibc's first functions. Since 2.34 it has some of them under a newer one too, which would keep a library off older
 * systems; they are what they were. A static library of glibc has no versions: what is linked with it is compiled with -DOPC_STATIC. */
#ifndef OPC_CORE_FIRST_GLIBC_H
#define OPC_CORE_FIRST_GLIBC_H

#include <stdlib.h> /* defines __GLIBC__ */

#if defined(OPC_STATIC)
#elif defined(__GLIBC__) && defined(__x86_64__)
#define OPC_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OPC_FIRST_GLIBC "GLIBC_2.17"
#endif

#endif  // OPC_CORE_FIRST_GLIBC_H
