/* Reductions along rows of values that are made anew of one or two sums of products at a row and a column, tile by tile, none of which is
 * stored: their greatest or their sum, or the sum of their products with what is weighed. */
#ifndef OPC_CUDA_REMATERIALISE_H
#define OPC_CUDA_REMATERIALISE_H

#include "opc/cuda/weigh.h"

namespace opc {
inline namespace OPC_VARIANT {

/* An exponential that is a factor of values, of which many are added up where there are many columns: then it is a square, with an error
 * below 2^-17.8, of a denormal below 2^-17. */
template <typename Stored, int Tiles, typename T>
OPC_DEVICE T exp_in_sum(T x) {
  if constexpr (is_for_tensors<Stored> && has_many_columns(Tiles, 2)) {
    const float root = power_near(x * 0.721347510814666748046875f);
    return root * root;
  } else {
    return exp(x);
  }
}

/* What tells of an element, or of where elements lie, at a term along other axes of the sum. */
template <typename Value>
struct value_along {
  const Value &value;
  int64_t along;
  OPC_DEVICE_MEMBER auto operator()(int64_t batch, int64_t point, int64_t term) const { return value(batch, along, point, term); }
};
template <typename At>
struct place_along {
  const At &at;
  int64_t along;
  OPC_DEVICE_MEMBER auto operator()(int64_t batch) const { return at(batch, along); }
};

/* What is weighed, and the two factors of a sum of products. */
template <typename Along, typename Value, typename At>
struct weighed_elements {
  typedef Along along_type;
  value_along<Value> value;
  place_along<At> at;
  OPC_DEVICE_MEMBER void go_to(int64_t along) { value.along = at.along = along; }
};
template <typename Along, typename Value, typename At>
OPC_DEVICE weighed_elements<Along, Value, At> weighed(const Value &value, const At &at) {
  return {{value, 0}, {at, 0}};
}
template <typename Left, typename Right>
struct factor_pair {
  Left left;
  Right right;
  OPC_DEVICE_MEMBER void go_to(int64_t along) {
    left.go_to(along);
    right.go_to(along);
  }
};
template <typename LeftAlong, typename RightAlong, typename Left, typename LeftAt, typename Right, typename RightAt>
OPC_DEVICE auto factors(const Left &left, const LeftAt &left_at, const Right &right, const RightAt &right_at) {
  return factor_pair<weighed_elements<LeftAlong, Left, LeftAt>, weighed_elements<RightAlong, Right, RightAt>>{
      {{left, 0}, {left_at, 0}}, {{right, 0}, {right_at, 0}}};
}

/* Where there is no second sum of products. */
struct no_factors {
  static constexpr bool is_there = false;
  OPC_DEVICE_MEMBER void go_to(int64_t) {}
};

/* What multiplies such factors in tiles, in the ways of opc/cuda/weigh.h. */
template <typename T, typename Stored, int Kind, bool weighs, typename Left, typename Right, typename Weighed>
struct multiplier_of {
  typedef decltype(std::declval<Left>().at) left_at;
  typedef decltype(std::declval<Right>().at) right_at;
  typedef decltype(std::declval<Weighed>().at) weighed_at;
  /* Values that are weighed are made of half of the columns of a tile at a time: then there are registers for more warps. */
  static constexpr int strips = weighs && has_many_columns(Kind, 2) ? 2 : 1;
  typedef weighs_halves<Stored, Kind, strips, typename Left::along_type, typename Right::along_type, typename Weighed::along_type, left_at,
                        right_at, weighed_at>
      halves;
  typedef weighs_floats<Kind, typename Left::along_type, typename Right::along_type, typename Weighed::along_type, left_at, right_at,
                        weighed_at>
      floats;
  typedef weighs_values<T, decltype(std::declval<Left>().value), decltype(std::declval<Right>().value), decltype(std::declval<Weighed>().value)>
      values;
  static constexpr bool in_shared = is_for_tensors<Stored> || (sizeof(T) == 4 && Kind != 2);
  typedef std::conditional_t<is_for_tensors<Stored>, halves, std::conditional_t<in_shared, floats, values>> type;
};
template <typename T, typename Stored, int Kind, bool weighs, typename Left, typename Right, typename Weighed>
struct multiplies : multiplier_of<T, Stored, Kind, weighs, Left, Right, Weighed>::type {
  typedef multiplier_of<T, Stored, Kind, weighs, Left, Right, Weighed> kind;
  typedef typename kind::type base;
  static constexpr bool is_there = true;
  template <typename Pair>
  OPC_DEVICE_MEMBER static base made(const Pair &pair, const Weighed &weighed) {
    if constexpr (kind::in_shared) return base(pair.left.at, pair.right.at, weighed.at);
    if constexpr (!kind::in_shared) return base(pair.left.value, pair.right.value, weighed.value);
  }
  /* The shared memory of factors is behind so many bytes. */
  template <typename Pair>
  OPC_DEVICE_MEMBER multiplies(const Pair &pair, const Weighed &weighed, bool further) : base(made(pair, weighed)) {
    if constexpr (kind::in_shared) {
      if (further) this->shared = this->shared + (weighs ? int(base::shape.bytes) : int(base::weigheds));
    }
  }
};

template <typename T, typename Stored, int Kind, bool weighs, typename Pair, typename Weighed>
OPC_DEVICE auto multiplier_for(const Pair &pair, const Weighed &weighed, bool further) {
  if constexpr (std::is_same<Pair, no_factors>::value) {
    return no_factors();
  } else {
    return multiplies<T, Stored, Kind, weighs, decltype(pair.left), decltype(pair.right), Weighed>(pair, weighed, further);
  }
}

/* A nest by the second of its sums of products. */
struct second_nest {
  const factor_steps &left, &right, &weighed;
  int64_t terms, columns, down, across;
};
template <typename Nest>
OPC_DEVICE second_nest second_of(const Nest &n) {
  return {n.more_left, n.more_right, n.weighed, n.more_terms, n.columns, n.down, n.across};
}

/* The power of two with an exponent of at least -149, and the exponent of a number as its bits have it, which is at least 1. */
OPC_DEVICE float power_from(int exponent) {
  return float_of(exponent >= -126 ? static_cast<uint32_t>(exponent + 127) << 23 : 1u << (exponent + 149));
}
OPC_DEVICE int exponent_bits(float value) {
  const int found = static_cast<int>(bits_of(value) >> 23 & 255u);
  return found < 1 ? 1 : found > 254 ? 254 : found;
}

/* A tile of rows, and the tiles of columns that it needs. */
struct rows_in_columns {
  weights_start start;
  int rows, tile, end;
};
template <typename How, typename Nest, typename Begin, typename End>
OPC_DEVICE rows_in_columns rows_of(const Nest &n, int turn, const Begin &begin, const End &end) {
  const weights_start start = start_of_weights<How>(n, tile_at(turn));
  const int rows = at_most(How::rows, n.down - start.row);
  int64_t first = 0, last = n.columns;
  if (n.leaves && (n.infinite == nullptr || *n.infinite == 0)) {
    const int64_t low = begin(start.row, rows), high = end(start.row, rows);
    last = high < 0 ? 0 : high < last ? high : last;
    first = low < 0 ? 0 : low < last ? low : last;
  }
  return {start, rows, static_cast<int>(first / How::columns), static_cast<int>((last + How::columns - 1) / How::columns)};
}

/* Brings the first terms of a sum of products. */
template <typename How, typename Nest>
OPC_DEVICE void bring_first(How &how, const Nest &n, const rows_in_columns &r) {
  if constexpr (How::many) how.buffer = ~r.tile & 1;
  if (n.terms > 0 && r.tile < r.end) how.bring_scores(n, int64_t(r.tile) * How::columns, 0, true);
  end_copies();
}
/* Goes through the columns that a tile of rows needs, and has `use(first_column)` what is made of each tile of them; scores are `lowest`
 * where there is no row or column. */
template <bool weighs, int Shrinks, typename How, typename Second, typename Nest, typename Ahead, typename Value, typename Inner, typename Inside,
          typename Use>
OPC_DEVICE void go_through(How &how, Second &second, const Nest &n, const rows_in_columns &r, int64_t along, bool small, const Ahead &ahead,
                           const Value &value, const Inner &inner, const Inside &inside, decltype(how.unscaled(0, 0)) nothing,
                           const Use &use) {
  typedef decltype(how.unscaled(0, 0)) number;
  const number unit = small ? number(grown_by) : number(1);
  const auto places = ahead(r.start.batch, along);
  how.start(n, r.start.batch, r.start.row, r.start.across);
  bring_first(how, n, r);
  if constexpr (Second::is_there) {
    const second_nest more = second_of(n);
    second.start(more, r.start.batch, r.start.row, r.start.across);
    bring_first(second, more, r);
  }
  const auto use_tile = [&](int64_t first_column) {
    const int columns_left = at_most(How::columns, n.columns - first_column);
    /* Where elements are read is found anew for each tile: registers are for scores and points. */
    int64_t row = r.start.row + how.row(0), column = first_column + how.column(0);
    forget(row);
    forget(column);
    const auto made = [&](const auto &of, int i, int j, int64_t over, number in) {
      const int64_t down = row + (how.row(i) - how.row(0));
      if constexpr (Second::is_there) {
        return of(r.start.batch, along, places, down, over, in, how.score(i, j), second.score(i, j));
      } else {
        return of(r.start.batch, along, places, down, over, in, how.score(i, j));
      }
    };
    if (!small && r.rows == How::rows && columns_left == How::columns && inside(r.start.row, How::rows, first_column, How::columns)) {
      OPC_UNROLLED
      for (int j = 0; j < How::own_columns; ++j) {
        OPC_UNROLLED
        for (int i = 0; i < How::own_rows; ++i) how.score(i, j) = made(inner, i, j, column + (how.column(j) - how.column(0)), number(1));
      }
    } else {
      const auto make = [&](int i, int j, int at) {
        const bool counts = how.row(i) < r.rows && at < columns_left;
        how.score(i, j) = counts ? made(value, i, j, first_column + at, unit) : nothing;
      };
      if constexpr (Second::is_there) in_turns(make, how, second);
      if constexpr (!Second::is_there) in_turns(make, how);
    }
    use(first_column, columns_left);
  };
  if constexpr (How::many) {
    if (weighs && r.tile < r.end) how.bring_weighed(n, int64_t(r.tile) * How::columns, true);
    end_copies();
  }
  OPC_ROLLED
  for (int tile = r.tile; tile < r.end; ++tile) {
    const int64_t first_column = int64_t(tile) * How::columns;
    if constexpr (How::many) {
      wait_for_copies<0>();
      __syncthreads();
      go_on<weighs>(how, n, tile, r.end);
      if constexpr (Second::is_there) go_on<false>(second, second_of(n), tile, r.end);
      end_copies();
      OPC_ROLLED
      for (int strip = 0; strip < How::strips; ++strip) {
        how.strip = strip;
        add_scores(how, n, small && (Shrinks & 1) != 0);
        if constexpr (Second::is_there) {
          second.strip = strip;
          add_scores(second, second_of(n), small && (Shrinks & 2) != 0);
        }
        use_tile(first_column);
      }
    } else {
      if (weighs) how.bring_weighed(n, first_column);
      end_copies();
      make_scores(how, n, tile, r.end, small && (Shrinks & 1) != 0);
      if constexpr (Second::is_there) make_scores(second, second_of(n), tile, r.end, small && (Shrinks & 2) != 0);
      use_tile(first_column);
    }
  }
  if constexpr (How::many) __syncthreads();
}

/* The rows of a nest in tiles, a block each. `left(batch, along, row, term)` and `right(batch, along, column, term)` are the factors of
 * sums of products and `over(batch, along, across, column)` what is weighed, with what tells where the first elements of these lie;
 * `along` is a term along other axes of the sum. `ahead(batch, along)` are places that
 * `value(batch, along, places, row, column, unit, total, another)` reads at, and `inner`, which is the same where
 * `inside(first_row, rows, first_column, columns)` says so of some rows and columns; sums of products that `Shrinks` has a bit for are in
 * `unit`; `begin(first_row, rows)` and `end(first_row, rows)` tell which columns
 * some of these rows need if what is weighed is finite, and `finish(batch, row, across, total)` stores a point. Where tensor cores multiply,
 * values are the sums of as many elements of 16 bits as hold their digits, of a narrow range by the greatest of a row. */
template <typename T, typename Stored, int Tiles, int Shrinks, typename Nest, typename First, typename Second, typename Over,
          typename Ahead, typename Value, typename Inner, typename Inside, typename Begin, typename End, typename Finish>
OPC_DEVICE void multiply_rematerialised(const Nest &n, First first, Second second, Over over, const Ahead &ahead, const Value &value,
                                        const Inner &inner, const Inside &inside, const Begin &begin, const End &end, const Finish &finish) {
  auto how = multiplier_for<T, Stored, Tiles, true>(first, over, false);
  auto other = multiplier_for<T, Stored, Tiles, true>(second, over, true);
  typedef decltype(how) how_type;
  constexpr bool shrinks = how_type::shrinks && Shrinks != 0;
  constexpr int turns = how_type::turns == 1 && shrinks ? 2 : how_type::turns;
  for (int turn = 0; tile_at(turn) < n.work; ++turn) {
    const rows_in_columns r = rows_of<how_type>(n, turn, begin, end);
    OPC_ROLLED
    for (int again = 0; again < turns; ++again) {
      T unit[how_type::own_rows];
      [[maybe_unused]] int levels[how_type::own_rows];
      OPC_UNROLLED
      for (int i = 0; i < how_type::own_rows; ++i) {
        levels[i] = 1;
        unit[i] = 1;
        OPC_UNROLLED
        for (int k = 0; k < how_type::own_across; ++k) how.total(i, k) = 0;
      }
      OPC_ROLLED
      for (int64_t along = 0; along < n.repeats; ++along) {
        first.go_to(along);
        second.go_to(along);
        over.go_to(along);
        const bool small = shrinks && again > 0;
        go_through<true, Shrinks>(how, other, n, r, along, small, ahead, value, inner, inside, T(0), [&](int64_t first_column, int columns_left) {
          if constexpr (how_type::scales) {
            OPC_UNROLLED
            for (int i = 0; i < how_type::own_rows; ++i) {
              T most = 0;
              OPC_UNROLLED
              for (int j = 0; j < how_type::own_columns; ++j) most = maximum(most, how.score(i, j) < 0 ? -how.score(i, j) : how.score(i, j));
              const int level = exponent_bits(lanes_in_warp<joins_max, how_type::lanes>(most));
              if (level > levels[i]) {
                const T factor = level - levels[i] < 127 ? power_from(levels[i] - level) : 0.0f;
                OPC_UNROLLED
                for (int k = 0; k < how_type::own_across; ++k) how.total(i, k) *= factor;
                levels[i] = level;
              }
              const T scale = power_from(126 - levels[i]);
              OPC_UNROLLED
              for (int j = 0; j < how_type::own_columns; ++j) how.score(i, j) *= scale;
            }
          }
          if constexpr (!how_type::many) {
            wait_for_copies<1 + decltype(other)::is_there>();
            __syncthreads();
          }
          how.multiply_weights(first_column, columns_left, again);
          if constexpr (!how_type::many) __syncthreads();
        });
        wait_for_copies<0>();
      }
      if constexpr (how_type::scales) {
        OPC_UNROLLED
        for (int i = 0; i < how_type::own_rows; ++i) {
          OPC_UNROLLED
          for (int k = 0; k < how_type::own_across; ++k) how.total(i, k) *= power_from(levels[i] - 126);
        }
      }
      const auto store = [&](int64_t batch, int64_t row, int64_t across, T total, T, T) { finish(batch, row, across, total); };
      forget(turn);
      const bool wrong = finish_rows(how, n, start_of_weights<how_type>(n, tile_at(turn)), r.rows, again, unit, unit, store);
      /* As weights are; and sums of products that are divided are found again of smaller factors. */
      if (again + 1 == turns || !block_reduce<joins_any>(wrong)) break;
    }
    __syncthreads();
  }
}

template <typename T, typename Stored, int Tiles, int Shrinks, typename Nest, typename First, typename Over, typename Ahead,
          typename Value, typename Inner, typename Inside, typename Begin, typename End, typename Finish>
OPC_DEVICE void multiply_rematerialised(const Nest &n, const First &first, const Over &over, const Ahead &ahead, const Value &value,
                                        const Inner &inner, const Inside &inside, const Begin &begin, const End &end, const Finish &finish) {
  multiply_rematerialised<T, Stored, Tiles, Shrinks>(n, first, no_factors(), over, ahead, value, inner, inside, begin, end, finish);
}

/* The same for a reduction of values alone: `finish(batch, row, value)` stores a row's. */
template <typename T, typename Stored, int Tiles, typename Joins, typename Nest, typename First, typename Second, typename Ahead,
          typename Value, typename Inner, typename Inside, typename Begin, typename End, typename Finish>
OPC_DEVICE void reduce_rematerialised(const Nest &n, First first, Second second, const Ahead &ahead, const Value &value, const Inner &inner,
                                      const Inside &inside, const Begin &begin, const End &end, const Finish &finish) {
  auto how = multiplier_for<T, Stored, Tiles, false>(first, first.right, false);
  auto other = multiplier_for<T, Stored, Tiles, false>(second, first.right, true);
  typedef decltype(how) how_type;
  const T nothing = std::is_same<Joins, joins_max>::value ? limits<T>::lowest : T(0);
  for (int turn = 0; tile_at(turn) < n.work; ++turn) {
    const rows_in_columns r = rows_of<how_type>(n, turn, begin, end);
    T found[how_type::own_rows];
    OPC_UNROLLED
    for (int i = 0; i < how_type::own_rows; ++i) found[i] = nothing;
    go_through<false, 0>(how, other, n, r, 0, false, ahead, value, inner, inside, nothing, [&](int64_t, int) {
      OPC_UNROLLED
      for (int j = 0; j < how_type::own_columns; ++j) {
        OPC_UNROLLED
        for (int i = 0; i < how_type::own_rows; ++i) {
          if constexpr (std::is_same<Joins, joins_max>::value) found[i] = larger(found[i], how.score(i, j));
          if constexpr (!std::is_same<Joins, joins_max>::value) found[i] = Joins::join(found[i], how.score(i, j));
        }
      }
    });
    wait_for_copies<0>();
    OPC_UNROLLED
    for (int i = 0; i < how_type::own_rows; ++i) {
      const T value_of_row = lanes_in_warp<Joins, how_type::lanes>(found[i]);
      if (static_cast<int>(threadIdx.x) % how_type::lanes == 0 && how.row(i) < r.rows) finish(r.start.batch, r.start.row + how.row(i), value_of_row);
    }
    __syncthreads();
  }
}
template <typename T, typename Stored, int Tiles, typename Joins, typename Nest, typename First, typename Ahead, typename Value, typename Inner,
          typename Inside, typename Begin, typename End, typename Finish>
OPC_DEVICE void reduce_rematerialised(const Nest &n, const First &first, const Ahead &ahead, const Value &value, const Inner &inner,
                                      const Inside &inside, const Begin &begin, const End &end, const Finish &finish) {
  reduce_rematerialised<T, Stored, Tiles, Joins>(n, first, no_factors(), ahead, value, inner, inside, begin, end, finish);
}

}  // namespace OPC_VARIANT

/* How rows of such values are given to blocks: with so many further pairs of factors beside the first. */
template <typename Nest>
static inline void set_terms(Nest &d, int64_t more, int64_t repeats) {
  d.more_terms = more;
  d.repeats = repeats;
  d.more_left = d.more_right = {0, 0, in_steps, 0};
}

}  // namespace opc
#endif  // OPC_CUDA_REMATERIALISE_H
