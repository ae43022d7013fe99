/* How the functions are declared that only the file of an op's entry functions calls, and that are the same for all ops.
 *
 * Each such file has its own. Where many ops are built for one machine, they are compiled once: with OPC_FUNCTIONS_ELSEWHERE a file
 * calls those of the object that functions_here.h becomes; not where it names element types of its own. */
#ifndef OPC_CORE_FUNCTIONS_H
#define OPC_CORE_FUNCTIONS_H

#if defined(OPC_FUNCTIONS_ELSEWHERE) && !defined(OPC_STORED_MINIFLOATS) && !defined(OPC_COMPUTED_TYPES)
#define OPC_ELSEWHERE 1
#else
#define OPC_ELSEWHERE 0
#endif

#if OPC_ELSEWHERE || defined(OPC_FUNCTIONS_HERE)
#define OPC_FUNCTION extern
#else
#define OPC_FUNCTION static
#endif

#endif  // OPC_CORE_FUNCTIONS_H
