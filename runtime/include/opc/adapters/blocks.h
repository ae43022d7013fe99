/* Memory that is given back together: what lists and texts among a call's arguments point to. */
#ifndef OPC_ADAPTERS_BLOCKS_H
#define OPC_ADAPTERS_BLOCKS_H

#include <stdlib.h>

namespace opc {

class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks &) = delete;
  Blocks &operator=(const Blocks &) = delete;
  ~Blocks() {
    while (last_ != nullptr) {
      Block *previous = last_->previous;
      free(last_);
      last_ = previous;
    }
  }

  /* Zeros for `count` elements and one more, which ends a text; NULL when there is no memory. */
  template <class T>
  T *take(size_t count) {
    Block *block = static_cast<Block *>(calloc(sizeof(Block) + sizeof(T) * (count + 1), 1));
    if (block == nullptr) return nullptr;
    block->previous = last_;
    last_ = block;
    return reinterpret_cast<T *>(block + 1);
  }

 private:
  struct alignas(16) Block {
    Block *previous;
  };
  Block *last_ = nullptr;
};

}  // namespace opc

#endif /* OPC_ADAPTERS_BLOCKS_H */
