/* Memory that calls work in: temporaries, partial sums, what is packed.
 *
 * Blocks that a call gives back stay for the next one. An allocator gives large blocks back to the system, and takes their pages anew for
 * each call: that takes longer than most kernels take to fill them. Compare the scratchpads of oneDNN and the workspace pool of TVM.
 */
#ifndef OPC_CORE_WORKSPACE_H
#define OPC_CORE_WORKSPACE_H

#include <stdint.h>
#include <stdlib.h>

#include "opc/core/aligned.h"

/* Checks of addresses see no more in a block that is kept. */
#if defined(__has_feature)
#define OPC_HAS_FEATURE(name) __has_feature(name)
#else
#define OPC_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || OPC_HAS_FEATURE(address_sanitizer)
#define OPC_KEEPS_WORKSPACE false
#else
#define OPC_KEEPS_WORKSPACE true
#endif

namespace opc {

enum : int64_t {
  workspace_page = 4096,
  least_workspace = 1 << 16, /* bytes of a block; what is smaller stays with an allocator anyway */
  most_workspace = 1 << 26   /* bytes of all blocks that are kept */
};

/* What stands before the memory of a block. */
struct alignas(cache_line) workspace_head {
  void *block;
  int64_t bytes; /* of all of it; 0 where it is not kept */
};

/* The blocks that are kept, of one library. */
struct workspace_cache {
  enum { most = 64 };
  bool locked;
  int64_t bytes, turn;
  struct {
    workspace_head *head;
    int64_t turn; /* in which it was given back */
  } kept[most];
};

inline workspace_cache kept_workspace = {};

/* Whoever finds the cache taken for long goes to the allocator. */
static inline bool lock(workspace_cache &cache) {
  for (int32_t tries = 0; tries < 256; ++tries) {
    if (!__atomic_test_and_set(&cache.locked, __ATOMIC_ACQUIRE)) return true;
  }
  return false;
}

static inline void unlock(workspace_cache &cache) { __atomic_clear(&cache.locked, __ATOMIC_RELEASE); }

/* Takes a block of `bytes` or not many more out of the cache; NULL where it has none. */
static inline workspace_head *take_kept(workspace_cache &cache, int64_t bytes) {
  if (!lock(cache)) return nullptr;
  int32_t best = -1;
  for (int32_t n = 0; n < workspace_cache::most; ++n) {
    const workspace_head *const head = cache.kept[n].head;
    if (head == nullptr || head->bytes < bytes || head->bytes > 2 * bytes) continue;
    if (best < 0 || head->bytes < cache.kept[best].head->bytes) best = n;
  }
  workspace_head *const found = best < 0 ? nullptr : cache.kept[best].head;
  if (found != nullptr) {
    cache.bytes -= found->bytes;
    cache.kept[best].head = nullptr;
  }
  unlock(cache);
  return found;
}

/* Puts a block into the cache; returns one that has to be freed instead, the block itself or the one that has been there longest, or NULL. */
static inline workspace_head *keep(workspace_cache &cache, workspace_head *head) {
  if (head->bytes > most_workspace || !lock(cache)) return head;
  int32_t room = -1, oldest = -1;
  for (int32_t n = 0; n < workspace_cache::most; ++n) {
    if (cache.kept[n].head == nullptr) {
      room = n;
    } else if (oldest < 0 || cache.kept[n].turn < cache.kept[oldest].turn) {
      oldest = n;
    }
  }
  workspace_head *dropped = nullptr;
  if (room < 0 || cache.bytes + head->bytes > most_workspace) {
    dropped = cache.kept[oldest].head;
    cache.bytes -= dropped->bytes;
    cache.kept[oldest].head = nullptr;
    room = oldest;
  }
  if (cache.bytes + head->bytes <= most_workspace) {
    cache.kept[room] = {head, ++cache.turn};
    cache.bytes += head->bytes;
    head = nullptr;
  }
  unlock(cache);
  if (head != nullptr && dropped != nullptr) free_aligned(head->block);
  return dropped != nullptr ? dropped : head;
}

/* Returns uninitialised memory for `bytes`, of which the large begins at a page and the other at a line of the cache; NULL where there is
 * none. */
static inline void *take_memory(int64_t bytes) {
  if (bytes > INT64_MAX - 2 * least_workspace) return nullptr;
  const bool large = OPC_KEEPS_WORKSPACE && bytes >= least_workspace;
  const int64_t whole = large ? round_up(workspace_page + bytes, least_workspace) : bytes + 2 * int64_t(sizeof(workspace_head));
  workspace_head *const found = large ? take_kept(kept_workspace, whole) : nullptr;
  if (found != nullptr) return found + 1;
  void *const block = large ? allocate_aligned(workspace_page, whole) : malloc(static_cast<size_t>(whole));
  if (block == nullptr) return nullptr;
  char *memory = static_cast<char *>(block) + (large ? int64_t(workspace_page) : int64_t(sizeof(workspace_head)));
  memory += (cache_line - reinterpret_cast<uintptr_t>(memory) % cache_line) % cache_line;
  workspace_head *const head = reinterpret_cast<workspace_head *>(memory) - 1;
  head->block = block;
  head->bytes = large ? whole : 0;
  return memory;
}

/* Takes back what `take_memory` has returned. */
static inline void give_memory(void *memory) {
  if (memory == nullptr) return;
  workspace_head *const head = static_cast<workspace_head *>(memory) - 1;
  if (head->bytes == 0) return free(head->block);
  workspace_head *const dropped = keep(kept_workspace, head);
  if (dropped != nullptr) free_aligned(dropped->block);
}

/* Frees what is kept. */
static inline void empty(workspace_cache &cache) {
  if (!lock(cache)) return;
  for (auto &place : cache.kept) {
    if (place.head != nullptr) free_aligned(place.head->block);
    place.head = nullptr;
  }
  cache.bytes = 0;
  unlock(cache);
}

}  // namespace opc
#endif  // OPC_CORE_WORKSPACE_H
