/* Sums of products in float32: a thread adds up 8 x 8 points, or 4 x 4, in registers. */
#ifndef OPC_CUDA_MULTIPLY_FLOATS_H
#define OPC_CUDA_MULTIPLY_FLOATS_H

#include "opc/cuda/gather.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A part of a factor in shared memory, 16 terms of `points` points each. Of term t, point p is at p ^ 4 (t % 8), so that neither those that
 * bring elements along terms nor those that read 4 points meet in a bank. */
template <typename Along, int points>
struct float_part {
  enum : int { terms = 16, bytes = points * terms * 4, words = points * terms / threads_a_block };
  static constexpr bool by_terms = std::is_same<Along, along_terms>::value;
  /* Of places in tables: elements that an offset counts by, and terms that have one. */
  enum : int { all_points = points, unit = by_terms ? 1 : 4, terms_each = 1 };

  /* A thread's word number `i`. Along terms 8 lanes have neighbours, along points all. */
  OPC_DEVICE_MEMBER static int term_of(int thread, int i) {
    return by_terms ? thread % 8 + i % 2 * 8 : thread / points + i * (threads_a_block / points);
  }
  OPC_DEVICE_MEMBER static int point_of(int thread, int i) {
    return by_terms ? thread / 8 + i / 2 * (threads_a_block / 8) : thread % points;
  }
  OPC_DEVICE_MEMBER static int place(int term, int point) { return (term * points + (point ^ term % 8 * 4)) * 4; }
  /* Where `lanes` lanes with 4 points each find group number `i` of theirs, the first of which is at `point`: what does not depend on the
   * lane is a constant. */
  template <int lanes, int groups>
  OPC_DEVICE_MEMBER static int place_of_group(int term, int point, int i) {
    if constexpr (groups == 1) return place(term, point);
    constexpr int own = 4 * lanes - 4;
    const int moved = term % 8 * 4;
    return (point ^ (moved & own)) * 4 + (term * points + (i * 4 * lanes ^ (moved & ~own))) * 4;
  }

  /* Copies what lies in steps, from the first point and term of the part on; what is stored narrow is widened. */
  template <typename Stored>
  OPC_DEVICE_MEMBER static void copy(shared_place part, const Stored *from, const factor_steps &steps, int points_left, int terms_left) {
    /* Places are found anew each time: registers are for points. */
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    if constexpr (by_terms) {
      const Stored *own = from + point_of(thread, 0) * steps.point + term_of(thread, 0) * steps.term;
      OPC_UNROLLED
      for (int i = 0; i < words; ++i) {
        const bool some = point_of(thread, i) < points_left && term_of(thread, i) < terms_left;
        copy_one(part + place(term_of(thread, i), point_of(thread, i)), i % 2 == 1 ? own + 8 * steps.term : own, some);
        if (i % 2 == 1) own += threads_a_block / 8 * steps.point;
      }
    } else {
      const int row = thread / pieces_a_row, point = thread % pieces_a_row * 4;
      const Stored *own = from + row * steps.term + point * steps.point;
      OPC_UNROLLED
      for (int i = 0; i < terms / rows_at_once; ++i) {
        const int term = row + i * rows_at_once;
        const shared_place to = part + place(term, point);
        if (std::is_same<Stored, float>::value && steps.how == packed) {
          copy_16_bytes(to, own, point < points_left && term < terms_left ? 16 : 0);
        } else {
          OPC_UNROLLED
          for (int e = 0; e < 4; ++e) copy_one(to + 4 * e, own + e * steps.point, point + e < points_left && term < terms_left);
        }
        own += rows_at_once * steps.term;
      }
    }
  }
  template <typename Stored>
  OPC_DEVICE_MEMBER static void copy_one(shared_place to, const Stored *from, bool some) {
    if constexpr (std::is_same<Stored, float>::value) {
      copy_4_bytes(to, from, some ? 4 : 0);
    } else {
      write_shared(to, some ? load(from) : 0.0f);
    }
  }

  /* Copies what lies at places of a table: where neighbours lie on end, by short places, along points four at once. */
  enum : int { pieces_a_row = points / 4, rows_at_once = threads_a_block / pieces_a_row };
  template <typename Table>
  OPC_DEVICE_MEMBER static void keep(const Table &table, int step, int points_left) {
    /* Registers are for points: what is kept of a point, or of four, is in shared memory. */
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    kept_places<1> own;
    table.keep(own, step, by_terms ? thread : 4 * thread, 0, points_left);
    if (table.packs && thread < (by_terms ? points : int(pieces_a_row))) table.kept(thread) = own.at[0].word();
  }
  template <typename Table>
  OPC_DEVICE_MEMBER static void gather_packs(shared_place part, const Table &table, int step) {
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    const uint64_t *const places = table.first(step);
    if constexpr (by_terms) {
      const short_place now[2] = {short_place::of(places[term_of(thread, 0)]), short_place::of(places[term_of(thread, 1)])};
      OPC_UNROLLED
      for (int i = 0; i < words; ++i) {
        const short_place point = short_place::of(table.kept(point_of(thread, i))), &term = now[i % 2];
        copy_one(part + place(term_of(thread, i), point_of(thread, i)), table.find(point, term), table.holds(point, term));
      }
    } else {
      const int row = thread / pieces_a_row, point = thread % pieces_a_row;
      const short_place own = short_place::of(table.kept(point));
      OPC_UNROLLED
      for (int i = 0; i < terms / rows_at_once; ++i) {
        const int term = row + i * rows_at_once;
        const short_place now = short_place::of(places[term]);
        copy_16_bytes(part + place(term, 4 * point), table.find(own, now), table.holds(own, now) ? 16 : 0);
      }
    }
  }
  /* Or an element after the other. */
  template <typename Table>
  OPC_DEVICE_MEMBER static void gather_each(shared_place part, const Table &table, int step, int points_left, int terms_left) {
    typedef stored_at<std::remove_const_t<std::remove_reference_t<decltype(table.at)>>> stored;
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    /* A thread has two terms with some points each, or a point with some terms. */
    OPC_ROLLED
    for (int i = 0; i < words; ++i) {
      const int term = term_of(thread, i), point = point_of(thread, i);
      const stored *from = nullptr;
      if (point < points_left && term < terms_left) from = table.find(table.point(point), table.term(step, term));
      copy_one(part + place(term, point), from == nullptr ? table.at.data : from, from != nullptr);
    }
  }

  /* Writes the values of a function; of one that is computed, `own` are the places of the one point that a thread has along points. */
  template <typename At, typename Value, typename Table>
  OPC_DEVICE_MEMBER static void write(shared_place part, const At &at, const Value &value, const Table &table, const digits &own, int64_t batch,
                                      int64_t first_point, int64_t first_term, int step, int points_left, int terms_left) {
    const int thread = static_cast<int>(threadIdx.x);
    OPC_ROLLED
    for (int i = 0; i < words; ++i) {
      const int term = term_of(thread, i), point = point_of(thread, i);
      const bool some = point < points_left && term < terms_left;
      float found = 0;
      if constexpr (!is_computed<At>) {
        if (some) found = value(batch, first_point + point, first_term + term);
      } else if constexpr (by_terms) {
        if (some) found = value(batch, at.points(first_point + point), table.of(step, term));
      } else {
        if (some) found = value(batch, own, table.of(step, term));
      }
      write_shared(part + place(term, point), found);
    }
  }
};

/* Eight warps, each with its part of the points of the tile; lanes take every fourth point, 4 at a time. Only small tiles have functions
 * that compute factors. */
template <int Kind, typename LeftAlong, typename RightAlong, typename Nest, typename Left, typename LeftAt, typename Right,
          typename RightAt, typename Finishing>
OPC_DEVICE void multiply_floats(const Nest &n, const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at,
                                const Finishing &f) {
  constexpr tile_shape shape = shape_of_tiles(Kind);
  constexpr int stages = shape.float_stages, terms = shape.floats;
  /* Of 64 x 64 points two rows of four warps have 32 x 16 each, and a thread 4 x 4; of 128 x 128 four rows of two have 32 x 64, and 8 x 8. */
  constexpr int own = shape.down == 64 ? 4 : 8, fours = own / 4, warps_across = shape.down == 64 ? 4 : 2;
  constexpr int lanes_down = shape.down == 64 ? 8 : 4, lanes_across = 32 / lanes_down;
  constexpr int warp_down = lanes_down * own, warp_across = lanes_across * own;
  typedef float_part<LeftAlong, shape.down> left_part;
  typedef float_part<RightAlong, shape.across> right_part;
  constexpr int stage_bytes = left_part::bytes + right_part::bytes;
  typedef stored_at<LeftAt> left_stored;
  typedef stored_at<RightAt> right_stored;
  constexpr bool left_lies = lies_in_steps<LeftAt>, right_lies = lies_in_steps<RightAt>;
  OPC_DYNAMIC_SHARED(memory);
  const shared_place shared = place_of_shared(memory);
  typedef factor_table<left_part, stages, LeftAt> left_places;
  typedef factor_table<right_part, stages, RightAt> right_places;
  const bool left_packs = std::is_same<left_stored, float>::value && n.left.how == packed;
  const bool right_packs = std::is_same<right_stored, float>::value && n.right.how == packed;
  left_places left_table(memory + stages * stage_bytes, left_at, n.left_together, left_packs);
  right_places right_table(memory + stages * stage_bytes + left_places::bytes, right_at, n.right_together, right_packs);
  constexpr bool fills = is_computed<LeftAt> || is_computed<RightAt>, gathers = is_gathered<LeftAt> || is_gathered<RightAt>;
  for (int turn = 0; tile_at(turn) < n.work; ++turn) {
    const tile_start start = start_of_tile<Kind>(n, tile_at(turn));
    const int steps = static_cast<int>((start.terms + terms - 1) / terms);
    /* How many points there are each way, and terms in the last step, in one register. */
    const int counts = at_most(shape.down, n.down - start.down) | at_most(shape.across, n.across - start.across) << 10 |
                       static_cast<int>(start.terms - int64_t(steps - 1) * terms) << 20;
    /* Without terms there may be no place. */
    const left_stored *left_from = nullptr;
    const right_stored *right_from = nullptr;
    if (steps > 0) {
      left_from = first_element(left_at, n.left, start.batch, start.down, start.first_term);
      right_from = first_element(right_at, n.right, start.batch, start.across, start.first_term);
    }
    digits left_own, right_own;
    [[maybe_unused]] const int thread_now = static_cast<int>(threadIdx.x);
    if constexpr (is_computed<LeftAt>) left_own = left_at.points(start.down + at_most(left_part::point_of(thread_now, 0), n.down - start.down - 1));
    if constexpr (is_computed<RightAt>) {
      right_own = right_at.points(start.across + at_most(right_part::point_of(thread_now, 0), n.across - start.across - 1));
    }
    /* These two are in shared memory where there are tables: registers are for points. */
    const auto number = [&](int which) {
      if constexpr (is_gathered<LeftAt>) return left_table.number(which);
      if constexpr (is_gathered<RightAt>) return right_table.number(which);
      int found = which == 0 ? counts : steps;
      forget(found);
      return found;
    };
    const auto fill = [&](int step) {
      const int terms_left = step + 1 == steps ? counts >> 20 : step < steps ? terms : 0;
      if constexpr (is_computed<LeftAt>) left_table.fill(step, terms_left);
      if constexpr (is_computed<RightAt>) right_table.fill(step, terms_left);
    };
    int round = 0;
    /* Brings the terms of a step to a stage; steps follow each other. */
    const auto bring = [&](int step, int stage) {
      const shared_place part = shared + stage * stage_bytes;
      int now = counts;
      forget(now);
      const int left_points = now & 1023, right_points = now >> 10 & 1023, terms_left = step + 1 == number(1) ? now >> 20 : terms;
      const int64_t first_term = start.first_term + static_cast<int64_t>(step) * terms;
      if constexpr (left_lies) {
        if (Kind != small_tiles || n.left.how != by_value) left_part::copy(part, left_from, n.left, left_points, terms_left);
        left_from += terms * n.left.term;
      }
      if constexpr (is_gathered<LeftAt>) {
        if (left_packs) {
          left_part::gather_packs(part, left_table, step - round);
        } else {
          left_part::gather_each(part, left_table, step - round, left_points, terms_left);
        }
      } else if (!left_lies || (Kind == small_tiles && n.left.how == by_value)) {
        left_part::write(part, left_at, left, left_table, left_own, start.batch, start.down, first_term, step, left_points, terms_left);
      }
      if constexpr (right_lies) {
        if (Kind != small_tiles || n.right.how != by_value) {
          right_part::copy(part + left_part::bytes, right_from, n.right, right_points, terms_left);
        }
        right_from += terms * n.right.term;
      }
      if constexpr (is_gathered<RightAt>) {
        if (right_packs) {
          right_part::gather_packs(part + left_part::bytes, right_table, step - round);
        } else {
          right_part::gather_each(part + left_part::bytes, right_table, step - round, right_points, terms_left);
        }
      } else if (!right_lies || (Kind == small_tiles && n.right.how == by_value)) {
        right_part::write(part + left_part::bytes, right_at, right, right_table, right_own, start.batch, start.across, first_term, step,
                          right_points, terms_left);
      }
    };
    float totals[own][own] = {};
    if constexpr (fills || gathers) {
      left_table.begin(start.batch, start.down, counts & 1023, start.first_term, start.terms);
      right_table.begin(start.batch, start.across, counts >> 10 & 1023, start.first_term, start.terms);
      if constexpr (is_gathered<LeftAt>) left_table.set_numbers(counts, steps);
      if constexpr (!is_gathered<LeftAt> && is_gathered<RightAt>) right_table.set_numbers(counts, steps);
      if constexpr (gathers) __syncthreads();
    }
    /* Rounds of steps for which tables have room. */
    OPC_ROLLED
    for (int end_of_round = 0; round < number(1); round = end_of_round) {
      end_of_round = number(1);
      if constexpr (is_gathered<LeftAt>) end_of_round = at_most(end_of_round, left_table.end_of(round));
      if constexpr (is_gathered<RightAt>) end_of_round = at_most(end_of_round, right_table.end_of(round));
      if constexpr (is_gathered<LeftAt>) left_table.fill(round, end_of_round);
      if constexpr (is_gathered<RightAt>) right_table.fill(round, end_of_round);
      if constexpr (fills) {
        OPC_ROLLED
        for (int stage = 0; stage < stages; ++stage) fill(round + stage);
      }
      if constexpr (is_gathered<LeftAt>) left_part::keep(left_table, round, number(0) & 1023);
      if constexpr (is_gathered<RightAt>) right_part::keep(right_table, round, number(0) >> 10 & 1023);
      if constexpr (fills || gathers) __syncthreads();
      int stage = 0;
      /* The first steps, which are ahead of the sum, only bring what the next ones add up: the code that brings terms stands here once. */
      OPC_ROLLED
      for (int step = round + 1 - stages; step < end_of_round; ++step) {
        if (step >= round) {
          wait_for_copies<stages - 2>();
          __syncthreads();
        }
        /* Behind the barrier nobody reads the stage before this one. */
        const int next = step + stages - 1;
        if (next < end_of_round) bring(next, stage);
        if constexpr (fills) {
          if (step >= round) fill(step + stages);
        }
        end_copies();
        stage = stage_after<stages>(stage);
        if (step < round) continue;
        int own_thread = static_cast<int>(threadIdx.x);
        forget(own_thread);
        const int warp = own_thread / 32, lane = own_thread % 32;
        const int own_down = warp / warps_across * warp_down + lane / lanes_across * 4;
        const int own_across = warp % warps_across * warp_across + lane % lanes_across * 4;
        const shared_place part = shared + stage * stage_bytes;
        OPC_ROLLED
        for (int first = 0; first < terms; first += 8) {
          int down = own_down, across = own_across;
          forget(down);
          forget(across);
          OPC_UNROLLED
          for (int term = 0; term < 8; ++term) {
            float a[fours][4], b[fours][4];
            OPC_UNROLLED
            for (int i = 0; i < fours; ++i) {
              read_shared(part + first * shape.down * 4 + left_part::template place_of_group<lanes_down, fours>(term, down, i), a[i]);
              read_shared(part + left_part::bytes + first * shape.across * 4 +
                              right_part::template place_of_group<lanes_across, fours>(term, across, i),
                          b[i]);
            }
            OPC_UNROLLED
            for (int i = 0; i < own; ++i) {
              OPC_UNROLLED
              for (int j = 0; j < own; ++j) totals[i][j] += a[i / 4][i % 4] * b[j / 4][j % 4];
            }
          }
        }
      }
      wait_for_copies<0>();
      __syncthreads();
    }
    forget(turn);
    const tile_start end = start_of_tile<Kind>(n, tile_at(turn));
    /* A group of a warp's rows at a time goes through shared memory, so that lanes store neighbours. */
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    const int own_warp = thread / 32, own_lane = thread % 32;
    constexpr int rows = 4 * lanes_down;
    typedef finished_rows<rows, warp_across, true> warp_rows;
    const shared_place own_rows = shared + own_warp * warp_rows::bytes;
    const shared_place place = own_rows + (own_lane / lanes_across * 4 * warp_rows::pitch + own_lane % lanes_across * 4) * 4;
    const int64_t first_down = end.down + own_warp / warps_across * warp_down, first_across = end.across + own_warp % warps_across * warp_across;
    const warp_rows finished(n, f, own_lane, end.batch, first_across);
    [[maybe_unused]] doubts<fours, warp_rows::each> doubtful;
    OPC_ROLLED
    for (int i = 0; i < fours; ++i) {
      OPC_UNROLLED
      for (int of = 0; of < fours; ++of) {
        if (of != i) continue;
        OPC_UNROLLED
        for (int e = 0; e < 4; ++e) {
          OPC_UNROLLED
          for (int j = 0; j < fours; ++j) {
            const float(&own_totals)[own] = totals[4 * of + e];
            write_shared(place + (e * warp_rows::pitch + j * 4 * lanes_across) * 4,
                         {own_totals[4 * j], own_totals[4 * j + 1], own_totals[4 * j + 2], own_totals[4 * j + 3]});
          }
        }
      }
      __syncwarp();
      finished.finish(n, end, f, own_rows, first_down + rows * i, i, doubtful);
      __syncwarp();
    }
    if constexpr (!Finishing::is_exact) {
      doubtful.template settle<float>(n, end, f, [&](int i, int at, int64_t &down, int64_t &across) {
        int row, column;
        finished.place(at, row, column);
        down = first_down + rows * i + row;
        across = first_across + column;
      });
    }
    __syncthreads();
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MULTIPLY_FLOATS_H
