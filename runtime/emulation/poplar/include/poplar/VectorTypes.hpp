#ifndef poplar_VectorTypes_hpp
#define poplar_VectorTypes_hpp

namespace poplar {

/// How a codelet is told of a vector: where it begins, and how long it is where the layout has a size.
enum class VectorLayout {
  NOT_APPLICABLE,
  SPAN,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  SHORT_SPAN,
  COMPACT_PTR
};

enum class VectorListLayout {
  NOT_APPLICABLE,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  DELTAN,
  DELTANELEMENTS,
  COMPACT_DELTAN
};

} // namespace poplar

#endif
