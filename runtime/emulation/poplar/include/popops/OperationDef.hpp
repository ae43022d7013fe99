#ifndef popops_OperationDef_hpp
#define popops_OperationDef_hpp

namespace popops {

enum class Operation { ADD, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, SQUARE_ADD, LOG_ADD };

} // namespace popops

#endif
