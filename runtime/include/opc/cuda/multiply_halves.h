/* Sums of products of elements of 16 bits by tensor cores. */
#ifndef OPC_CUDA_MULTIPLY_HALVES_H
#define OPC_CUDA_MULTIPLY_HALVES_H

#include "opc/cuda/gather.h"

namespace opc {
inline namespace OPC_VARIANT {

/* A part of a factor in shared memory, `points` by 32 terms. Along terms a point has 4 pieces of 16 bytes, along points a term has
 * `points` / 8; pieces change places with others of their row, so that no two of the 8 that are read at once lie in the same banks. */
template <typename Along, int points, bool right>
struct half_part {
  enum : int { terms = 32, bytes = points * terms * 2, pieces = bytes / 16 / threads_a_block };
  static constexpr bool by_terms = std::is_same<Along, along_terms>::value;
  /* Of places in tables: elements that an offset counts by, and terms that have one. */
  enum : int { all_points = points, unit = 8, terms_each = by_terms ? 8 : 1, kept = by_terms ? int(pieces) : 1 };
  enum : int { pieces_a_row = by_terms ? terms / 8 : points / 8, rows_at_once = threads_a_block / pieces_a_row };

  /* A thread's pieces lie in column `piece` of rows `row`, `row` + rows_at_once and so on. */
  int row, piece, to;

  OPC_DEVICE_MEMBER half_part() : half_part(static_cast<int>(threadIdx.x)) {}
  OPC_DEVICE_MEMBER explicit half_part(int thread) {
    row = thread / pieces_a_row;
    piece = thread % pieces_a_row;
    to = row * pieces_a_row * 16 + ((piece ^ (by_terms ? row >> 1 & 3 : row & 7)) << 4);
  }

  /* Copies what lies packed; `from` is the thread's first piece, and the factor has so many points and terms from there on. */
  template <typename Stored>
  OPC_DEVICE_MEMBER void copy(shared_place part, const Stored *from, int64_t step, int points_left, int terms_left) const {
    const int rows_left = by_terms ? points_left : terms_left, left = by_terms ? terms_left : points_left;
    OPC_UNROLLED
    for (int i = 0; i < pieces; ++i) {
      const bool some = left > 0 && rows_left > i * rows_at_once;
      copy_16_bytes(part + to + i * rows_at_once * pieces_a_row * 16, from + i * rows_at_once * step, some ? 16 : 0);
    }
  }

  /* Brings what lies in other steps, an element after the other. */
  template <typename Stored>
  OPC_DEVICE_MEMBER void write_steps(shared_place part, const Stored *from, const factor_steps &steps, int points_left, int terms_left) const {
    const int64_t step = by_terms ? steps.point : steps.term, next = by_terms ? steps.term : steps.point;
    OPC_UNROLLED
    for (int i = 0; i < pieces; ++i) {
      const Stored *const own = from + i * rows_at_once * step;
      const int left = (by_terms ? points_left : terms_left) <= i * rows_at_once ? 0 : by_terms ? terms_left : points_left;
      uint32_t words[4] = {0, 0, 0, 0};
      OPC_UNROLLED
      for (int e = 0; e < 8; ++e) {
        if (e < left) words[e / 2] |= static_cast<uint32_t>(own[e * next].bits) << (16 * (e % 2));
      }
      write_shared(part + to + i * rows_at_once * pieces_a_row * 16, words);
    }
  }

  /* The same for some parts behind each other, with few instructions and registers: lanes have neighbours along the part's rows. */
  template <int parts, typename Stored>
  OPC_DEVICE_MEMBER static void write_each(shared_place part, const Stored *from, const factor_steps &steps, int points_left, int terms_left) {
    OPC_ROLLED
    for (int e = static_cast<int>(threadIdx.x); e < parts * points * terms; e += threads_a_block) {
      const int in_part = e % (points * terms), point = by_terms ? in_part / terms : in_part % points;
      const int own_term = by_terms ? in_part % terms : in_part / points, term = e / (points * terms) * terms + own_term;
      const int row = by_terms ? point : own_term, in_row = by_terms ? own_term : point;
      const bool some = point < points_left && term < terms_left;
      const uint16_t bits = some ? from[point * steps.point + term * steps.term].bits : uint16_t(0);
      const int to = row * pieces_a_row * 16 + ((in_row / 8 ^ (by_terms ? row >> 1 & 3 : row & 7)) << 4) + in_row % 8 * 2;
      write_shared(part + e / (points * terms) * bytes + to, bits);
    }
  }

  /* Brings what lies at places of a table, whole pieces where they are packed. */
  typedef kept_places<kept> own_places;
  template <typename Table>
  OPC_DEVICE_MEMBER void keep(const Table &table, own_places &own, int step, int points_left) const {
    table.keep(own, step, by_terms ? row : 8 * piece, rows_at_once, points_left);
  }
  template <typename Table>
  OPC_DEVICE_MEMBER void gather_packs(shared_place part, const Table &table, const own_places &own, int step) const {
    const uint64_t *const places = table.first(step) + (by_terms ? piece : row);
    constexpr int several = by_terms ? 1 : int(pieces);
    short_place found[several];
    OPC_UNROLLED
    for (int i = 0; i < several; ++i) found[i] = short_place::of(places[i * rows_at_once]);
    OPC_UNROLLED
    for (int i = 0; i < pieces; ++i) {
      const short_place &point = own.at[by_terms ? i : 0], &term = found[by_terms ? 0 : i];
      copy_16_bytes(part + to + i * rows_at_once * pieces_a_row * 16, table.find(point, term), table.holds(point, term) ? 16 : 0);
    }
  }
  /* Or an element after the other. */
  template <typename Table>
  OPC_DEVICE_MEMBER void gather_each(shared_place part, const Table &table, int step, int points_left, int terms_left) const {
    const int own = 8 * piece;
    OPC_ROLLED
    for (int i = 0; i < pieces; ++i) {
      const int on = row + i * rows_at_once;
      uint32_t words[4] = {0, 0, 0, 0};
      OPC_UNROLLED
      for (int e = 0; e < 8; ++e) {
        const int point = by_terms ? on : own + e, term = by_terms ? own + e : on;
        const bool some = point < points_left && term < terms_left;
        const auto *const from = some ? table.find(table.point(point), table.term(step, term)) : nullptr;
        if (from != nullptr) words[e / 2] |= static_cast<uint32_t>(from->bits) << (16 * (e % 2));
      }
      write_shared(part + to + i * rows_at_once * pieces_a_row * 16, words);
    }
  }

  /* Writes the values of a function. */
  template <typename Stored, typename Value>
  OPC_DEVICE_MEMBER void write(shared_place part, const Value &value, int64_t batch, int64_t point, int64_t term, int points_left,
                               int terms_left) const {
    OPC_ROLLED
    for (int i = 0; i < 8 * pieces; ++i) {
      const int row_on = i / 8 * rows_at_once, on = i % 8, points_on = by_terms ? row_on : on, terms_on = by_terms ? on : row_on;
      const bool some = points_on < points_left && terms_on < terms_left;
      const uint16_t bits = some ? bits_of_exact<Stored>(value(batch, point + points_on, term + terms_on)) : uint16_t(0);
      write_shared(part + to + row_on * pieces_a_row * 16 + 2 * on, bits);
    }
  }

  /* Writes the values of one that is computed from the places of terms in a table, and of points: a thread has one point, `own`, or along
   * terms one term. */
  OPC_DEVICE_MEMBER static int own_point() { return static_cast<int>(threadIdx.x) % points; }
  template <typename Stored, typename At, typename Value, typename Table>
  OPC_DEVICE_MEMBER static void compute(shared_place part, const At &at, const Value &value, const Table &table, const digits &own,
                                        int64_t batch, int64_t first_point, int step, int points_left, int terms_left) {
    const int thread = static_cast<int>(threadIdx.x);
    constexpr int lanes = by_terms ? int(terms) : points, others = by_terms ? points : int(terms), at_once = threads_a_block / lanes;
    OPC_UNROLLED_4
    for (int other = thread / lanes; other < others; other += at_once) {
      const int point = by_terms ? other : thread % lanes, term = by_terms ? thread % lanes : other;
      uint16_t bits = 0;
      if (point < points_left && term < terms_left) {
        if constexpr (by_terms) bits = bits_of_exact<Stored>(value(batch, at.points(first_point + point), table.of(step, term)));
        if constexpr (!by_terms) bits = bits_of_exact<Stored>(value(batch, own, table.of(step, term)));
      }
      const int row = by_terms ? point : term, in_row = by_terms ? term : point;
      write_shared(part + row * pieces_a_row * 16 + ((in_row / 8 ^ (by_terms ? row >> 1 & 3 : row & 7)) << 4) + in_row % 8 * 2, bits);
    }
  }

  /* Where a lane's row is of the fragment of 16 points from `first` on, and of as many terms. Its matrices are those of points and terms
   * below 8; of points beyond; of terms beyond; and of both: as a register of the left factor each. Of the right one the second and the
   * third have changed places, so that two registers on end are 8 points. */
  OPC_DEVICE_MEMBER static int first_row(int first) { return first_row(first, static_cast<int>(threadIdx.x) % 32); }
  OPC_DEVICE_MEMBER static int first_row(int first, int lane) {
    const int one = lane / 8 % 2, two = lane / 16;
    const int points_on = right ? two : one, terms_on = right ? one : two;
    if constexpr (by_terms) {
      const int point = lane % 8 + 8 * points_on;
      return (first + point) * 64 + ((terms_on ^ (point >> 1 & 3)) << 4);
    } else {
      const int term = lane % 8 + 8 * terms_on;
      return term * points * 2 + ((first / 8 ^ points_on ^ lane % 8) << 4);
    }
  }

  /* Brings the fragment number `i` behind that, of terms 16 `half` and on. */
  OPC_DEVICE_MEMBER static void read(shared_place part, int first_row, int i, int half, uint32_t (&words)[4]) {
    if constexpr (by_terms) {
      read_matrices<false>(part + (first_row ^ half << 5) + i * 16 * 64, words);
    } else {
      read_matrices<true>(part + (first_row ^ i << 5) + half * 16 * points * 2, words);
    }
  }
};

/* Eight warps, in two rows of four, each with its part of the points of the tile. While they multiply one stage of shared memory, the next
 * ones are on their way. */
template <typename Stored, int Kind, typename LeftAlong, typename RightAlong, typename Nest, typename Left, typename LeftAt,
          typename Right, typename RightAt, typename Finishing>
OPC_DEVICE void multiply_halves(const Nest &n, const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at,
                                const Finishing &f) {
  constexpr tile_shape shape = shape_of_tiles(Kind);
  constexpr int stages = shape.half_stages, terms = shape.halves;
  constexpr int warp_down = shape.down / 2, warp_across = shape.across / 4, downs = warp_down / 16, acrosses = warp_across / 8;
  typedef half_part<LeftAlong, shape.down, false> left_part;
  typedef half_part<RightAlong, shape.across, true> right_part;
  constexpr int stage_bytes = left_part::bytes + right_part::bytes;
  typedef stored_at<LeftAt> left_stored;
  typedef stored_at<RightAt> right_stored;
  constexpr bool left_lies = lies_in_steps<LeftAt>, right_lies = lies_in_steps<RightAt>;
  OPC_DYNAMIC_SHARED(memory);
  const shared_place shared = place_of_shared(memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const left_part left_own;
  const right_part right_own;
  const int left_row = left_part::first_row(warp / 4 * warp_down), right_row = right_part::first_row(warp % 4 * warp_across);
  typedef factor_table<left_part, stages, LeftAt> left_places_table;
  typedef factor_table<right_part, stages, RightAt> right_places_table;
  const bool left_packs = Kind == large_tiles || n.left.how == packed, right_packs = Kind == large_tiles || n.right.how == packed;
  left_places_table left_table(memory + stages * stage_bytes, left_at, n.left_together, left_packs);
  right_places_table right_table(memory + stages * stage_bytes + left_places_table::bytes, right_at, n.right_together, right_packs);
  constexpr bool fills = is_computed<LeftAt> || is_computed<RightAt>, gathers = is_gathered<LeftAt> || is_gathered<RightAt>;
  for (int turn = 0; tile_at(turn) < n.work; ++turn) {
    const tile_start start = start_of_tile<Kind>(n, tile_at(turn));
    const int steps = static_cast<int>((start.terms + terms - 1) / terms);
    /* How many points there are each way, and terms in the last step, in one register. */
    const int counts = at_most(shape.down, n.down - start.down) | at_most(shape.across, n.across - start.across) << 10 |
                       static_cast<int>(start.terms - int64_t(steps - 1) * terms) << 20;
    /* The first point and term of a thread's pieces, and where they lie. */
    const int left_point = left_part::by_terms ? left_own.row : 8 * left_own.piece;
    const int left_term = left_part::by_terms ? 8 * left_own.piece : left_own.row;
    const int right_point = right_part::by_terms ? right_own.row : 8 * right_own.piece;
    const int right_term = right_part::by_terms ? 8 * right_own.piece : right_own.row;
    /* Without terms there may be no place. */
    const left_stored *left_from = nullptr;
    const right_stored *right_from = nullptr;
    if (steps > 0) {
      left_from = first_element(left_at, n.left, start.batch, start.down + left_point, start.first_term + left_term);
      right_from = first_element(right_at, n.right, start.batch, start.across + right_point, start.first_term + right_term);
    }
    const int64_t left_step = left_part::by_terms ? n.left.point : n.left.term;
    const int64_t right_step = right_part::by_terms ? n.right.point : n.right.term;
    digits left_places, right_places;
    if constexpr (is_computed<LeftAt>) left_places = left_at.points(start.down + at_most(left_part::own_point(), n.down - start.down - 1));
    if constexpr (is_computed<RightAt>) right_places = right_at.points(start.across + at_most(right_part::own_point(), n.across - start.across - 1));
    /* These two are in shared memory where both factors have tables: registers are for points. */
    const auto number = [&](int which) {
      if constexpr (is_gathered<LeftAt> && is_gathered<RightAt>) return left_table.number(which);
      int found = which == 0 ? counts : steps;
      forget(found);
      return found;
    };
    const auto fill = [&](int step) {
      const int terms_left = step + 1 == steps ? counts >> 20 : step < steps ? terms : 0;
      if constexpr (is_computed<LeftAt>) left_table.fill(step, terms_left);
      if constexpr (is_computed<RightAt>) right_table.fill(step, terms_left);
    };
    [[maybe_unused]] typename left_part::own_places left_kept;
    [[maybe_unused]] typename right_part::own_places right_kept;
    int round = 0;
    /* Brings the terms of a step to a stage; steps follow each other. */
    const auto bring = [&](int step, int stage) {
      const shared_place part = shared + stage * stage_bytes;
      const int now = number(0);
      const int left_points = (now & 1023) - left_point, right_points = (now >> 10 & 1023) - right_point;
      const int terms_left = step + 1 == number(1) ? now >> 20 : terms;
      const int64_t first_term = start.first_term + static_cast<int64_t>(step) * terms;
      if constexpr (left_lies) {
        if (left_packs) {
          left_own.copy(part, left_from, left_step, left_points, terms_left - left_term);
        } else if (Kind != small_tiles || n.left.how == in_steps) {
          left_own.write_steps(part, left_from, n.left, left_points, terms_left - left_term);
        }
        left_from += terms * n.left.term;
      }
      if constexpr (is_gathered<LeftAt>) {
        if (left_packs) {
          left_own.gather_packs(part, left_table, left_kept, step - round);
        } else {
          left_own.gather_each(part, left_table, step - round, left_points + left_point, terms_left);
        }
      } else if constexpr (!left_lies) {
        left_part::template compute<Stored>(part, left_at, left, left_table, left_places, start.batch, start.down, step,
                                           left_points + left_point, terms_left);
      } else if (Kind == small_tiles && n.left.how == by_value) {
        left_own.template write<Stored>(part, left, start.batch, start.down + left_point, first_term + left_term,
                                        left_points, terms_left - left_term);
      }
      if constexpr (right_lies) {
        if (right_packs) {
          right_own.copy(part + left_part::bytes, right_from, right_step, right_points, terms_left - right_term);
        } else if (Kind != small_tiles || n.right.how == in_steps) {
          right_own.write_steps(part + left_part::bytes, right_from, n.right, right_points, terms_left - right_term);
        }
        right_from += terms * n.right.term;
      }
      if constexpr (is_gathered<RightAt>) {
        if (right_packs) {
          right_own.gather_packs(part + left_part::bytes, right_table, right_kept, step - round);
        } else {
          right_own.gather_each(part + left_part::bytes, right_table, step - round, right_points + right_point, terms_left);
        }
      } else if constexpr (!right_lies) {
        right_part::template compute<Stored>(part + left_part::bytes, right_at, right, right_table, right_places, start.batch, start.across, step,
                                           right_points + right_point, terms_left);
      } else if (Kind == small_tiles && n.right.how == by_value) {
        right_own.template write<Stored>(part + left_part::bytes, right, start.batch, start.across + right_point, first_term + right_term,
                                        right_points, terms_left - right_term);
      }
    };
    float totals[downs][acrosses][4] = {};
    uint32_t lefts[2][downs][4], rights[2][acrosses / 2][4];
    const auto read = [&](shared_place part, int half) {
      OPC_UNROLLED
      for (int i = 0; i < downs; ++i) left_part::read(part, left_row, i, half, lefts[half][i]);
      OPC_UNROLLED
      for (int i = 0; i < acrosses / 2; ++i) right_part::read(part + left_part::bytes, right_row, i, half, rights[half][i]);
    };
    const auto multiply = [&](int half) {
      OPC_UNROLLED
      for (int i = 0; i < downs; ++i) {
        OPC_UNROLLED
        for (int j = 0; j < acrosses; ++j) {
          multiply_fragments<Stored>(totals[i][j], lefts[half][i], rights[half][j / 2][j % 2 * 2], rights[half][j / 2][j % 2 * 2 + 1]);
        }
      }
    };
    if constexpr (fills || gathers) {
      left_table.begin(start.batch, start.down, counts & 1023, start.first_term, start.terms);
      right_table.begin(start.batch, start.across, counts >> 10 & 1023, start.first_term, start.terms);
      if constexpr (is_gathered<LeftAt> && is_gathered<RightAt>) left_table.set_numbers(counts, steps);
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
      if constexpr (is_gathered<LeftAt>) left_own.keep(left_table, left_kept, round, number(0) & 1023);
      if constexpr (is_gathered<RightAt>) right_own.keep(right_table, right_kept, round, number(0) >> 10 & 1023);
      if constexpr (fills || gathers) __syncthreads();
      int stage = 0;
      /* The first steps, which are ahead of the sum, only bring what the next ones add up: the code that brings terms stands here once. */
      OPC_ROLLED
      for (int step = round + 1 - stages; step < end_of_round; ++step) {
        if (step == round) {
          wait_for_copies<stages - 2>();
          __syncthreads();
          read(shared, 0);
        }
        if (step >= round) read(shared + stage_after<stages>(stage) * stage_bytes, 1);
        /* Behind the last barrier nobody reads the stage before this one. */
        const int next = step + stages - 1;
        if (next < end_of_round) bring(next, stage);
        if constexpr (fills) {
          if (step >= round) fill(step + stages);
        }
        end_copies();
        stage = stage_after<stages>(stage);
        if (step < round) continue;
        multiply(0);
        wait_for_copies<stages - 2>();
        __syncthreads();
        read(shared + stage_after<stages>(stage) * stage_bytes, 0);
        multiply(1);
      }
      wait_for_copies<0>();
      __syncthreads();
    }
    forget(turn);
    const tile_start end = start_of_tile<Kind>(n, tile_at(turn));
    /* A warp's rows of points, 16 at a time, go through shared memory, so that lanes store neighbours. */
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    const int lane = thread % 32, own_rows = thread / 128 * warp_down, own_columns = thread / 32 % 4 * warp_across;
    typedef finished_rows<16, warp_across, Kind == large_tiles> warp_rows;
    const shared_place rows = shared + thread / 32 * warp_rows::bytes;
    const warp_rows finished(n, f, lane, end.batch, end.across + own_columns);
    [[maybe_unused]] doubts<downs, warp_rows::each> doubtful;
    OPC_ROLLED
    for (int i = 0; i < downs; ++i) {
      OPC_UNROLLED
      for (int of = 0; of < downs; ++of) {
        if (of != i) continue;
        OPC_UNROLLED
        for (int j = 0; j < acrosses; ++j) {
          OPC_UNROLLED
          for (int e = 0; e < 4; e += 2) {
            write_shared(rows + ((lane / 4 + e / 2 * 8) * warp_rows::pitch + 8 * j + lane % 4 * 2) * 4, totals[of][j][e], totals[of][j][e + 1]);
          }
        }
      }
      __syncwarp();
      finished.finish(n, end, f, rows, end.down + own_rows + 16 * i, i, doubtful);
      __syncwarp();
    }
    if constexpr (!Finishing::is_exact) {
      doubtful.template settle<float>(n, end, f, [&](int i, int at, int64_t &down, int64_t &across) {
        int row, column;
        finished.place(at, row, column);
        down = end.down + own_rows + 16 * i + row;
        across = end.across + own_columns + column;
      });
    }
    __syncthreads();
  }
}

}  // namespace OPC_VARIANT
}  // namespace opc
#endif  // OPC_CUDA_MULTIPLY_HALVES_H
