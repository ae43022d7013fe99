/* How the points of a tensor are cut into boxes, one for each tile. */
#ifndef OPC_POPLAR_CUTS_H
#define OPC_POPLAR_CUTS_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "opc/poplar/intervals.h"

namespace opc {
namespace ipu {

/* What a box needs: bytes of its tile beside what lives there already, and steps. */
struct needs {
  int64_t bytes, steps;
};

/* Tiles, of each the workers and the bytes. */
struct tiles {
  int64_t count, workers, room;
};

/* The index along which workers share a box: the first of its target's that has several points, if possible none that is serial. */
inline std::size_t shared_index(const box &at, std::size_t rank, const std::set<std::size_t> &serial) {
  std::size_t last = 0;
  for (std::size_t n = rank; n-- > 0;) {
    if (at[n].size() > 1 && (serial.count(n) == 0 || at[last].size() <= 1 || serial.count(last) != 0)) last = n;
  }
  return last;
}

/* The sizes of boxes along each dimension. The first `rank` are the target's; what is cut along the others gives partial results. */
class cuts {
 public:
  cuts(const std::vector<int64_t> &extents, std::size_t rank, const std::set<std::size_t> &serial, const tiles &on,
       const std::function<needs(const box &)> &of)
      : extents_(extents), rank_(rank), serial_(serial), on_(on), of_(of) {}

  /* Chooses the sizes, false where nothing fits. One cut after the other is made where that gains most; of all, the one is best that
   * takes the least time and fits. */
  bool choose() {
    const int64_t steps = of_(everything()).steps;
    /* Fewer steps than these aren't worth a tile of their own; but what fits on no tile may fit where more tiles share it. */
    const int64_t enough = std::min(on_.count, std::max<int64_t>(1, steps / 64));
    std::vector<way> found;
    way at = way_of(extents_);
    fewest_bytes_ = at.bytes;
    for (bool more = true; more;) {
      if (at.bytes <= on_.room) found.push_back(at);
      std::vector<way> next;
      for (std::size_t n = 0; n < extents_.size(); ++n) {
        std::vector<int64_t> chunks = at.chunks;
        chunks[n] = (chunks[n] + 1) / 2;
        if (at.chunks[n] > 1 && count_of(chunks, 0) <= (found.empty() ? on_.count : enough)) next.push_back(way_of(chunks));
      }
      more = !next.empty();
      if (more) at = *std::min_element(next.begin(), next.end(), [this](const way &a, const way &b) { return is_better(a, b); });
      fewest_bytes_ = std::min(fewest_bytes_, at.bytes);
    }
    std::stable_sort(found.begin(), found.end(), [](const way &a, const way &b) { return a.time < b.time; });
    for (const way &w : found) {
      chunks_ = w.chunks;
      if (fits()) return true;
    }
    return false;
  }

  /* What a tile needs at least. */
  int64_t fewest_bytes() const { return fewest_bytes_; }
  /* The number of partial results. */
  int64_t parts() const { return count_of(chunks_, rank_); }

  /* The whole of all dimensions. */
  box everything() const {
    box all;
    for (const int64_t extent : extents_) all.push_back(whole(extent));
    return all;
  }

  /* Calls a function with each box, those of one part of the target after each other. */
  template <typename Do>
  void each(const Do &act) const {
    box at(extents_.size());
    each_from(0, at, act);
  }

 private:
  /* A way to cut: the bytes that the fullest tile needs, and how long the busiest takes: steps, and words that it is sent. */
  struct way {
    std::vector<int64_t> chunks;
    int64_t bytes, time;
  };

  std::vector<int64_t> extents_;
  std::size_t rank_;
  std::set<std::size_t> serial_;
  tiles on_;
  std::function<needs(const box &)> of_;
  std::vector<int64_t> chunks_;
  int64_t fewest_bytes_ = 0;

  int64_t cuts_of(std::size_t n, int64_t chunk) const { return chunk > 0 ? (extents_[n] + chunk - 1) / chunk : 1; }
  int64_t count_of(const std::vector<int64_t> &chunks, std::size_t from) const {
    int64_t count = 1;
    for (std::size_t n = from; n < chunks.size(); ++n) count *= cuts_of(n, chunks[n]);
    return count;
  }

  way way_of(const std::vector<int64_t> &chunks) const {
    const needs most = largest(chunks);
    int64_t time = sum(most.steps / std::min(on_.workers, longest(chunks)), most.bytes / 4);
    const int64_t parts = count_of(chunks, rank_);
    if (parts > 1) {
      int64_t points = 1;
      for (std::size_t n = 0; n < rank_; ++n) points *= extents_[n];
      time = sum(time, 256 + points / on_.count * parts);
    }
    return {chunks, most.bytes, time};
  }

  bool is_better(const way &a, const way &b) const {
    const bool fits = a.bytes <= on_.room, other = b.bytes <= on_.room;
    return fits != other ? fits : fits ? a.time < b.time : a.bytes < b.bytes;
  }

  bool fits() const {
    bool all = true;
    each([&](const box &at) { all = all && of_(at).bytes <= on_.room; });
    return all;
  }

  /* How many workers have a part of a box at most. */
  int64_t longest(const std::vector<int64_t> &chunks) const {
    if (rank_ == 0) return 1;
    box first;
    for (std::size_t n = 0; n < rank_; ++n) first.push_back(whole(chunks[n]));
    const std::size_t along = shared_index(first, rank_, serial_);
    return serial_.count(along) == 0 ? chunks[along] : 1;
  }

  /* The needs of the largest of some boxes: the first, one in the middle and the last. */
  needs largest(const std::vector<int64_t> &chunks) const {
    box first, middle, last;
    for (std::size_t n = 0; n < chunks.size(); ++n) {
      const int64_t count = cuts_of(n, chunks[n]);
      first.push_back(chunk_at(n, chunks[n], 0));
      middle.push_back(chunk_at(n, chunks[n], count / 2));
      last.push_back(chunk_at(n, chunks[n], count - 1));
    }
    needs most = of_(first);
    for (const needs &other : {of_(middle), of_(last)}) {
      most = {std::max(most.bytes, other.bytes), std::max(most.steps, other.steps)};
    }
    return most;
  }

  interval chunk_at(std::size_t n, int64_t chunk, int64_t place) const {
    return interval(place * chunk, std::min((place + 1) * chunk, extents_[n]) - 1);
  }

  template <typename Do>
  void each_from(std::size_t n, box &at, const Do &act) const {
    if (n == chunks_.size()) return act(at);
    for (int64_t place = 0; place < cuts_of(n, chunks_[n]); ++place) {
      at[n] = chunk_at(n, chunks_[n], place);
      each_from(n + 1, at, act);
    }
  }
};

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_CUTS_H
