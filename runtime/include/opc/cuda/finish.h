/* What becomes of sums of products: points are stored, or what parts of their terms come to is kept and joined. */
#ifndef OPC_CUDA_FINISH_H
#define OPC_CUDA_FINISH_H

#include "opc/cuda/tiles.h"

namespace opc {
inline namespace OPC_VARIANT {

/* What stores points: `ends(across)` tells the places across, `finish(batch, down, places, total)` what is stored of a sum, and
 * `to(batch, down, places)` where. Where terms that do not count have been added as products with 0, `again(batch, down, places)` adds up
 * what counts, for a point whose total is no number or infinite. */
struct never_again {};
template <typename Ends, typename Finish, typename To, typename Again>
struct finishing {
  typedef std::remove_pointer_t<decltype(std::declval<const To &>()(int64_t(), int64_t(), std::declval<const digits &>()))> stored;
  const Ends &ends;
  const Finish &finish;
  const To &to;
  const Again &again;
  static constexpr bool is_exact = std::is_same<Again, never_again>::value;
  /* Whether four points may be stored at once. */
  static constexpr bool may_pack = is_for_tensors<stored> || std::is_same<stored, float>::value;
  OPC_DEVICE_MEMBER finishing(const Ends &ends_, const Finish &finish_, const To &to_, const Again &again_)
      : ends(ends_), finish(finish_), to(to_), again(again_) {}
  template <typename T>
  OPC_DEVICE_MEMBER void store_one(int64_t batch, int64_t down, const digits &places, T total) const {
    store(to(batch, down, places), finish(batch, down, places, total));
  }
  /* Of four neighbours across, from places[0] on. */
  OPC_DEVICE_MEMBER void store_four(int64_t batch, int64_t down, const digits (&places)[4], const float (&totals)[4]) const {
    stored *const at = to(batch, down, places[0]);
    float found[4];
    OPC_UNROLLED
    for (int e = 0; e < 4; ++e) found[e] = finish(batch, down, places[e], totals[e]);
    if constexpr (is_for_tensors<stored>) {
      store_8_bytes(at, narrow_pair<stored>(found[0], found[1]), narrow_pair<stored>(found[2], found[3]));
    } else {
      store_16_bytes(at, {bits_of(found[0]), bits_of(found[1]), bits_of(found[2]), bits_of(found[3])});
    }
  }
};
template <typename T>
OPC_DEVICE bool is_doubtful(T total) {
  return !(total - total == T(0));
}

/* Which of its points a thread has found doubtful: of some groups of so many each, up to 128. Few have any. */
template <int groups, int each>
struct doubts {
  static_assert(groups * each <= 128, "two words");
  uint64_t first = 0, second = 0;
  OPC_DEVICE_MEMBER void add(int group, int place, bool doubtful) {
    const int at = group * each + place;
    if (at < 64) {
      first |= static_cast<uint64_t>(doubtful) << at;
    } else {
      second |= static_cast<uint64_t>(doubtful) << (at - 64);
    }
  }
  /* Adds up again what `point(group, place, down, across)` says where it is. */
  template <typename T, typename Nest, typename Finishing, typename Point>
  OPC_DEVICE_MEMBER void settle(const Nest &n, const tile_start &start, const Finishing &f, const Point &point) const {
    if ((first | second) == 0 || n.parts > 1) return;
    OPC_ROLLED
    for (int at = 0; at < groups * each; ++at) {
      if (((at < 64 ? first >> at : second >> (at - 64)) & 1) == 0) continue;
      int64_t down, across;
      point(at / each, at % each, down, across);
      if (down >= n.down || across >= n.across) continue;
      const digits places = f.ends(across);
      f.store_one(start.batch, down, places, T(f.again(start.batch, down, places)));
    }
  }
};

/* Stores a point whose terms have been added up, or keeps what a part of them comes to. */
template <typename T, typename Nest, typename Finishing>
OPC_DEVICE void finish_point(const Nest &n, const tile_start &start, int64_t down, int64_t across, const digits &places, T total,
                             const Finishing &f) {
  if (down >= n.down || across >= n.across) return;
  if (n.parts == 1) {
    f.store_one(start.batch, down, places, total);
  } else {
    reinterpret_cast<T *>(n.kept)[start.part * n.points + (start.batch * n.down + down) * n.across + across] = total;
  }
}

/* Rows of points that a warp has in shared memory, to be stored: lanes have neighbours, of which each stores four at once where these lie
 * together. */
template <int rows, int columns, bool finds_anew>
struct finished_rows {
  enum : int { pitch = columns + 8, bytes = rows * pitch * 4, each = rows * columns / 32 }; /* points of a lane */
  enum : int { lanes = columns < 32 ? columns : 32, turns = rows * lanes / 32, pack_lanes = columns / 4, pack_turns = each / 4 };

  bool packs;
  int lane;
  int64_t batch, across; /* the first point */
  digits places[4];      /* of the lane's four neighbours, where they are not found anew for each group of rows */

  template <typename Nest, typename Finishing>
  OPC_DEVICE_MEMBER finished_rows(const Nest &n, const Finishing &f, int lane_, int64_t batch_, int64_t across_)
      : packs(Finishing::may_pack && n.stores_packs && n.parts == 1), lane(lane_), batch(batch_), across(across_) {
    if constexpr (Finishing::may_pack && !finds_anew) {
      if (packs) set_places(places, f, across + lane % pack_lanes * 4);
    }
  }
  template <typename Finishing>
  OPC_DEVICE_MEMBER static void set_places(digits (&found)[4], const Finishing &f, int64_t first) {
    OPC_UNROLLED
    for (int e = 0; e < 4; ++e) found[e] = f.ends(first + e);
  }
  /* Which point of the rows the lane's point number `at` is. */
  OPC_DEVICE_MEMBER void place(int at, int &row, int &column) const {
    row = packs ? lane / pack_lanes + at / 4 * (32 / pack_lanes) : lane / lanes + at % turns * (32 / lanes);
    column = packs ? lane % pack_lanes * 4 + at % 4 : lane % lanes + at / turns * lanes;
  }
  /* Stores the rows whose first point is at `down`, which are group number `group` of those that `doubtful` knows. */
  template <typename Nest, typename Finishing, typename Doubts>
  OPC_DEVICE_MEMBER void finish(const Nest &n, const tile_start &tile, const Finishing &f, shared_place shared, int64_t down, int group,
                                Doubts &doubtful) const {
    if constexpr (Finishing::may_pack) {
      if (packs) {
        int own = lane % pack_lanes * 4;
        /* Registers are for the points that wait. */
        if constexpr (finds_anew) forget(own);
        const int own_row = lane / pack_lanes;
        if (across + own >= n.across) return;
        [[maybe_unused]] digits own_places[4];
        if constexpr (finds_anew) set_places(own_places, f, across + own);
        OPC_UNROLLED_2
        for (int t = 0; t < pack_turns; ++t) {
          const int row = own_row + t * (32 / pack_lanes);
          if (down + row >= n.down) continue;
          float totals[4];
          read_shared(shared + (row * pitch + own) * 4, totals);
          if constexpr (finds_anew) {
            f.store_four(batch, down + row, own_places, totals);
          } else {
            f.store_four(batch, down + row, places, totals);
          }
          if constexpr (!Finishing::is_exact) {
            if (is_doubtful((totals[0] + totals[1]) + (totals[2] + totals[3]))) {
              OPC_UNROLLED
              for (int e = 0; e < 4; ++e) doubtful.add(group, t * 4 + e, is_doubtful(totals[e]));
            }
          }
        }
        return;
      }
    }
    OPC_ROLLED
    for (int c = 0; c < columns / lanes; ++c) {
      const int own = lane % lanes + c * lanes;
      const digits ends = f.ends(across + own);
      OPC_ROLLED
      for (int t = 0; t < turns; ++t) {
        const int row = lane / lanes + t * (32 / lanes);
        float total;
        read_shared(shared + (row * pitch + own) * 4, total);
        finish_point(n, tile, down + row, across + own, ends, total, f);
        if constexpr (!Finishing::is_exact) doubtful.add(group, c * turns + t, is_doubtful(total));
      }
    }
  }
};

/* Adds up what the parts of all points have come to, in their order. */
template <typename T, typename Nest, typename Finishing>
OPC_DEVICE void join_tiles(const Nest &n, const Finishing &f) {
  const T *const kept = reinterpret_cast<const T *>(n.kept);
  for (int64_t point = own_thread(); point < n.points; point += all_threads()) {
    T total = 0;
    for (int64_t part = 0; part < n.parts; ++part) total += kept[part * n.points + point];
    int64_t across, down;
    const int64_t batch = without_last(without_last(point, n.across, across), n.down, down);
    const digits places = f.ends(across);
    if constexpr (!Finishing::is_exact) {
      if (is_doubtful(total)) total = T(f.again(batch, down, places));
    }
    f.store_one(batch, down, places, total);
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_FINISH_H
