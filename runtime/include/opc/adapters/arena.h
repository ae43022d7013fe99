/* Memory for kernels on a device that a host gives to a call as a whole: it is lent piece by piece, in the order of a stream. */
#ifndef OPC_ADAPTERS_ARENA_H
#define OPC_ADAPTERS_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <vector>

namespace opc {

class Arena {
 public:
  explicit Arena(void *memory, int64_t size = INT64_MAX) : memory_(static_cast<char *>(memory)), size_(size) {}

  int64_t most = 0; /* the most bytes that were lent at once */

  static void *allocate(void *arena, int64_t bytes, void *) { return static_cast<Arena *>(arena)->lend(bytes); }
  static void release(void *arena, void *memory, int64_t, void *) { static_cast<Arena *>(arena)->take(memory); }

  /* A piece behind those that are lent; NULL where there is no room. */
  void *lend(int64_t bytes) {
    const int64_t begin = pieces_.empty() ? 0 : pieces_.back().end, end = begin + (bytes + 255) / 256 * 256;
    if (memory_ == nullptr || end > size_) return nullptr;
    pieces_.push_back({begin, end});
    most = std::max(most, end);
    return memory_ + begin;
  }

  /* Takes a piece back, which is then lent again; false for memory that is none. */
  bool take(const void *memory) {
    for (size_t i = pieces_.size(); i-- > 0;) {
      if (memory_ + pieces_[i].begin != memory) continue;
      pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  /* An address that is never read, far from those of other numbers: for calls that only measure. */
  static void *fake_address(int32_t i) { return reinterpret_cast<void *>(static_cast<uintptr_t>(i) << 40); }

 private:
  struct Piece {
    int64_t begin, end;
  };

  char *memory_;
  int64_t size_;
  std::vector<Piece> pieces_;
};

}  // namespace opc

#endif /* OPC_ADAPTERS_ARENA_H */
