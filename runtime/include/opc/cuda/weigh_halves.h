/* Weighted sums by tensor cores: scores of elements of 16 bits, whose weights are taken apart into as many such elements as they need. */
#ifndef OPC_CUDA_WEIGH_HALVES_H
#define OPC_CUDA_WEIGH_HALVES_H

#include "opc/cuda/weigh_tiles.h"

namespace opc {
inline namespace OPC_VARIANT {

/* Elements of 8 digits hold the 24 of a float three at a time, and those of 11 two at a time; of many weights two do, with an error of
 * 2^-17. What is at most 1 is scaled so that what is left of a small one is no denormal, and a sum of products with what is large may be
 * none: then it is found again in a lower scale. */
template <typename Stored, bool many>
struct weight_parts {
  enum : int { count = Stored::bias == 127 && !many ? 3 : 2 };
  static constexpr int turns = Stored::bias == 127 ? 3 : 2;
  OPC_DEVICE_MEMBER static int exponent(int turn) { return Stored::bias == 127 ? (turn == 0 ? 24 : -2) : turn == 0 ? 15 : 13; }
  OPC_DEVICE_MEMBER static float scale(int turn) { return float_of(static_cast<uint32_t>(127 + exponent(turn)) << 23); }
  OPC_DEVICE_MEMBER static float unscale(int turn) { return float_of(static_cast<uint32_t>(127 - exponent(turn)) << 23); }
};

/* The elements of a pair. */
template <typename Stored>
OPC_DEVICE float lower_of(uint32_t pair) {
  if constexpr (Stored::bias == 127) return float_of(pair << 16);
  if constexpr (Stored::bias != 127) return device_widen(Stored{static_cast<uint16_t>(pair & 0xffffu)});
}
template <typename Stored>
OPC_DEVICE float upper_of(uint32_t pair) {
  if constexpr (Stored::bias == 127) return float_of(pair & 0xffff0000u);
  if constexpr (Stored::bias != 127) return device_widen(Stored{static_cast<uint16_t>(pair >> 16)});
}

/* Two weights as fragments of all their parts; or of the upper one alone, in place of the others too, where what is found is no number
 * anyway: then a part is not 0 unless the weight is, which is no less than `least_upper` then. That scale is a quarter, as all parts together are
 * more. */
template <typename Stored>
inline constexpr float least_upper = Stored::bias == 127 ? 7.8886090522101181e-31f : 6.103515625e-5f;
template <typename Stored, int count>
OPC_DEVICE void take_apart(float low, float high, bool upper, uint32_t (&parts)[count]) {
  parts[0] = narrow_pair<Stored>(low, high);
  OPC_UNROLLED
  for (int p = 1; p < count; ++p) {
    low -= lower_of<Stored>(parts[p - 1]);
    high -= upper_of<Stored>(parts[p - 1]);
    parts[p] = upper ? parts[0] : narrow_pair<Stored>(low, high);
  }
}

/* A pair of such elements. */
template <typename Stored>
OPC_DEVICE uint32_t shrunk_pair(uint32_t pair) {
  const float low = device_widen(Stored{static_cast<uint16_t>(pair & 0xffffu)}), high = device_widen(Stored{static_cast<uint16_t>(pair >> 16)});
  uint32_t found = narrow_pair<Stored>(low * shrunk_by, high * shrunk_by);
  if ((found & 0x7fffu) == 0 && low != 0) found |= 1;
  if ((found >> 16 & 0x7fffu) == 0 && high != 0) found |= 1u << 16;
  return found;
}

/* Eight warps with 16 rows each, and all columns, or those of one of so many strips at a time. Of what is brought for many columns there are
 * two of each tile, the one that is multiplied and the next one. */
template <typename Stored, int Kind, int Strips, typename LeftAlong, typename RightAlong, typename WeighedAlong, typename LeftAt,
          typename RightAt, typename WeighedAt>
struct weighs_halves {
  static constexpr weight_shape shape = shape_of_weights(Kind, 2);
  enum : int { rows = shape.rows, columns = shape.columns, depth = shape.depth, across = shape.across, lanes = 4 };
  enum : int { strips = Strips, own_rows = 2, own_columns = columns / 4 / Strips, own_across = across / 4 };
  static constexpr bool scales = Stored::bias != 127, shrinks = Stored::bias == 127;
  static constexpr bool many = has_many_columns(Kind, 2);
  typedef weight_parts<Stored, many> of;
  static constexpr int turns = of::turns;
  typedef half_part<LeftAlong, rows, false> left_part;
  typedef half_part<RightAlong, columns, true> right_part;
  typedef half_part<WeighedAlong, across, true> weighed_part;
  enum : int { score_parts = depth / 32, weighed_parts = columns / 32 };
  enum : int { buffers = many ? 2 : 1, right_bytes = score_parts * right_part::bytes, weighed_bytes = weighed_parts * weighed_part::bytes };
  enum : int { rights = score_parts * left_part::bytes, weigheds = rights + buffers * right_bytes };
  static_assert(columns / Strips % 32 == 0, "a strip has whole parts of what is weighed");
  static_assert(weigheds + buffers * weighed_bytes == shape.bytes, "what a launch asks for");
  const LeftAt &left_at;
  const RightAt &right_at;
  const WeighedAt &weighed_at;
  shared_place shared;
  float scores[own_columns / 2][4], totals[across / 8][4];
  int strip = 0, buffer = 0;
  const Stored *left_from, *right_from, *weighed_from;
  int rows_left, across_left;

  OPC_DEVICE_MEMBER weighs_halves(const LeftAt &left, const RightAt &right, const WeighedAt &weighed)
      : left_at(left), right_at(right), weighed_at(weighed) {
    OPC_DYNAMIC_SHARED(memory);
    shared = place_of_shared(memory);
  }
  OPC_DEVICE_MEMBER static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  OPC_DEVICE_MEMBER static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  OPC_DEVICE_MEMBER static int row(int i) { return 16 * warp() + lane() / 4 + 8 * i; }
  OPC_DEVICE_MEMBER static int element(int k) { return k / 2 * 8 + lane() % 4 * 2 + k % 2; }
  OPC_DEVICE_MEMBER int column(int j) const { return element(j) + (Strips > 1 ? strip * (columns / Strips) : 0); }
  OPC_DEVICE_MEMBER float &score(int i, int j) { return scores[j / 2][2 * i + j % 2]; }
  OPC_DEVICE_MEMBER float &total(int i, int k) { return totals[k / 2][2 * i + k % 2]; }
  OPC_DEVICE_MEMBER static float unscaled(float total, int turn) { return total * of::unscale(turn); }
  template <typename Nest>
  OPC_DEVICE_MEMBER void start(const Nest &n, int64_t batch, int64_t first_row, int64_t first_across) {
    left_from = left_at(batch) + first_row * n.left.point;
    right_from = right_at(batch);
    weighed_from = weighed_at(batch) + first_across * n.weighed.point;
    rows_left = at_most(rows, n.down - first_row);
    across_left = at_most(across, n.across - first_across);
  }

  /* Where a thread's first piece of a packed factor is, and bringing some parts of one, of 32 terms each. What a thread brings is found anew
   * each time: registers are for scores and points. */
  template <typename Part>
  OPC_DEVICE_MEMBER static const Stored *first_piece(const Stored *from, const factor_steps &steps) {
    const Part own(own_thread_now());
    const int row = own.row, piece = 8 * own.piece;
    return from + (row * (Part::by_terms ? steps.point : steps.term) + piece);
  }
  template <int parts, typename Part>
  OPC_DEVICE_MEMBER static void bring_pieces(shared_place to, const Stored *at, const factor_steps &steps, int points_left, int terms_left) {
    const Part own(own_thread_now());
    const int point = Part::by_terms ? own.row : 8 * own.piece, term = Part::by_terms ? 8 * own.piece : own.row;
    /* The other step is 1. */
    const int64_t step = Part::by_terms ? steps.point : steps.term;
    OPC_UNROLLED
    for (int p = 0; p < parts; ++p) {
      own.copy(to + p * Part::bytes, at, step, points_left - point, terms_left - term - 32 * p);
      at += Part::by_terms ? 32 : 32 * step;
    }
  }
  template <int parts, typename Part>
  OPC_DEVICE_MEMBER static void bring(shared_place to, const Stored *from, const factor_steps &steps, int points_left, int terms_left) {
    if (!many && steps.how != packed) {
      Part::template write_each<parts>(to, from, steps, points_left, terms_left);
    } else {
      bring_pieces<parts, Part>(to, first_piece<Part>(from, steps), steps, points_left, terms_left);
    }
  }
  OPC_DEVICE_MEMBER static int own_thread_now() {
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    return thread;
  }
  OPC_DEVICE_MEMBER int next_buffer() const { return many ? buffer ^ 1 : 0; }
  /* Of many columns the tiles come in order, from the one on that is brought with the factor of rows, or first. */
  template <typename Nest>
  OPC_DEVICE_MEMBER void bring_scores(const Nest &n, int64_t first_column, int64_t chunk, bool both) {
    const int terms_left = at_most(depth, n.terms - chunk * depth), columns_left = at_most(columns, n.columns - first_column);
    if (both) bring<score_parts, left_part>(shared, left_from + chunk * depth * n.left.term, n.left, rows_left, terms_left);
    const shared_place to = shared + rights + next_buffer() * right_bytes;
    if constexpr (many) {
      if (both) right_from = first_piece<right_part>(right_from + first_column * n.right.point, n.right);
      bring_pieces<score_parts, right_part>(to, right_from, n.right, columns_left, terms_left);
      right_from += columns * n.right.point;
    } else {
      bring<score_parts, right_part>(to, right_from + first_column * n.right.point + chunk * depth * n.right.term, n.right, columns_left, terms_left);
    }
  }
  template <typename Nest>
  OPC_DEVICE_MEMBER void bring_weighed(const Nest &n, int64_t first_column, bool first = false) {
    const int columns_left = at_most(columns, n.columns - first_column);
    const shared_place to = shared + weigheds + next_buffer() * weighed_bytes;
    if constexpr (many) {
      if (first) weighed_from = first_piece<weighed_part>(weighed_from + first_column * n.weighed.term, n.weighed);
      bring_pieces<weighed_parts, weighed_part>(to, weighed_from, n.weighed, across_left, columns_left);
      weighed_from += columns * n.weighed.term;
    } else {
      bring<weighed_parts, weighed_part>(to, weighed_from + first_column * n.weighed.term, n.weighed, across_left, columns_left);
    }
  }
  OPC_DEVICE_MEMBER void multiply_scores(int64_t, int terms, bool small = false) {
    int left_row = left_part::first_row(16 * warp()), right_row = right_part::first_row(0);
    if (many) {
      forget(left_row);
      forget(right_row);
    }
    const int first = Strips > 1 ? strip * (columns / 16 / Strips) : 0;
    const shared_place own_rights = shared + rights + (many ? buffer * right_bytes : 0);
    OPC_ROLLED
    for (int p = 0; 32 * p < terms; ++p) {
      const shared_place lefts = shared + p * left_part::bytes, rights_now = own_rights + p * right_part::bytes;
      OPC_UNROLLED
      for (int half = 0; half < 2; ++half) {
        uint32_t a[4];
        left_part::read(lefts, left_row, 0, half, a);
        if (small) {
          OPC_UNROLLED
          for (int r = 0; r < 4; ++r) a[r] = shrunk_pair<Stored>(a[r]);
        }
        OPC_UNROLLED
        for (int i = 0; i < own_columns / 4; ++i) {
          uint32_t b[4];
          right_part::read(rights_now, right_row, first + i, half, b);
          multiply_fragments<Stored>(scores[2 * i], a, b[0], b[1]);
          multiply_fragments<Stored>(scores[2 * i + 1], a, b[2], b[3]);
        }
      }
    }
  }
  /* Of the 16 columns of a step a lane has two pairs of scores in each of its rows, as a fragment has them; those of many columns are scaled
   * where they are weights. */
  OPC_DEVICE_MEMBER void multiply_weights(int64_t, int some, int turn, bool scaled = false) {
    const float scale = of::scale(turn);
    const bool upper = turn + 1 == turns;
    if (upper) {
      const float least = scaled ? least_upper<Stored> : least_upper<Stored> * of::unscale(turn);
      in_turns(
          [&](int i, int j, int) {
            float &now = score(i, j);
            if (now < least && now > -least && now != 0) now = now < 0 ? -least : least;
          },
          *this);
    }
    const int first_part = Strips > 1 ? strip * (columns / 32 / Strips) : 0;
    const shared_place own_weigheds = shared + weigheds + (many ? buffer * weighed_bytes : 0) + first_part * weighed_part::bytes;
    int weighed_row = weighed_part::first_row(0);
    forget(weighed_row);
    OPC_UNROLLED
    for (int s = 0; s < own_columns / 4; ++s) {
      if (!many) {
        if (16 * s >= some) continue;
        forget(weighed_row);
      }
      uint32_t a[of::count][4];
      OPC_UNROLLED
      for (int r = 0; r < 4; ++r) {
        uint32_t parts[of::count];
        const float low = scores[2 * s + r / 2][r % 2 * 2], high = scores[2 * s + r / 2][r % 2 * 2 + 1];
        take_apart<Stored, of::count>(scaled ? low : low * scale, scaled ? high : high * scale, upper, parts);
        OPC_UNROLLED
        for (int p = 0; p < of::count; ++p) a[p][r] = parts[p];
      }
      OPC_UNROLLED
      for (int i = 0; i < across / 16; ++i) {
        uint32_t b[4];
        weighed_part::read(own_weigheds + s / 2 * weighed_part::bytes, weighed_row, i, s % 2, b);
        OPC_UNROLLED
        for (int p = of::count - 1; p >= 0; --p) {
          multiply_fragments<Stored>(totals[2 * i], a[p], b[0], b[1]);
          multiply_fragments<Stored>(totals[2 * i + 1], a[p], b[2], b[3]);
        }
      }
    }
  }
};

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_WEIGH_HALVES_H
