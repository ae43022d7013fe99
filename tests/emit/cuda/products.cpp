/* Sums of products in tiles of every shape, from factors that lie and are brought in every way, beside plain sums; and fragments of tensor
 * cores beside a plain product. */
#define OPC_ON_GPU
#include "opc/abi.h"
#include "opc/core/call.h"
#include "opc/cuda/call.h"

#include <math.h>

#include <vector>

namespace {

typedef opc::device_nest<1> sizes;

template <typename T>
T element_of(int value) {
  if constexpr (sizeof(T) == 2) return opc::narrow<T>(static_cast<float>(value));
  if constexpr (sizeof(T) != 2) return static_cast<T>(value);
}

/* A factor: its elements are small integers, so that sums are exact in any order. */
template <typename T, typename Along>
struct factor {
  static constexpr bool by_terms = std::is_same<Along, opc::along_terms>::value;
  int64_t points, terms, pitch;
  std::vector<T> all;
  const T *data;
  factor(int64_t points_, int64_t terms_, int seed) : points(points_), terms(terms_), pitch(((by_terms ? terms_ : points_) + 7) / 8 * 8) {
    all.resize(static_cast<size_t>(pitch * (by_terms ? points : terms) + 16), element_of<T>(1000));
    T *own = all.data();
    while (reinterpret_cast<uintptr_t>(own) % 16 != 0) ++own;
    data = own;
    for (int64_t p = 0; p < points; ++p) {
      for (int64_t t = 0; t < terms; ++t) own[at(p, t)] = element_of<T>(static_cast<int>((p * 5 + t * 3 + seed + p * t) % 7) - 3);
    }
  }
  int64_t at(int64_t p, int64_t t) const { return by_terms ? p * pitch + t : t * pitch + p; }
  double value(int64_t p, int64_t t) const { return opc::load(data + at(p, t)); }
  opc::factor_steps steps(opc::bringing how) const { return {by_terms ? pitch : 1, by_terms ? 1 : pitch, how, 0}; }
};

template <typename T, typename U, int Kind, bool computed, typename LeftAlong, typename RightAlong, typename Left, typename Right>
void kernel(const sizes &n, const Left &left, const Right &right, float *to) {
  [[maybe_unused]] const auto left_value = [&](int64_t, int64_t p, int64_t t) { return opc::load(left.data + left.at(p, t)); };
  const auto right_value = [&](int64_t, int64_t p, int64_t t) { return opc::load(right.data + right.at(p, t)); };
  [[maybe_unused]] const auto left_at = [&](int64_t) { return left.data; };
  const auto right_at = [&](int64_t) { return right.data; };
  const auto ends = [](int64_t across) { return opc::digits(across); };
  const auto at = [&](int64_t, int64_t down, const opc::digits &across) { return to + down * n.across + across.at[0]; };
  const auto finish = [&](int64_t batch, int64_t down, const opc::digits &across, float total) { return *at(batch, down, across) + total; };
  typedef std::conditional_t<std::is_same<T, U>::value, T, void> stored;
  if constexpr (computed) {
    const auto value = [&](int64_t, const opc::digits &p, const opc::digits &t) {
      return opc::load(left.data + left.at(p.at[0] * 4 + p.at[1], t.at[0] * 3 + t.at[1]));
    };
    const auto points = [&](int64_t point) { return opc::digits(point / 4, point % 4); };
    const auto term_places = [&](int64_t term) { return opc::digits(term / 3, term % 3); };
    const opc::computed_places places(points, term_places);
    opc::multiply_tiles<float, stored, Kind, LeftAlong, RightAlong>(n, value, places, right_value, right_at, ends, finish, at);
  } else {
    opc::multiply_tiles<float, stored, Kind, LeftAlong, RightAlong>(n, left_value, left_at, right_value, right_at, ends, finish, at);
  }
}

template <typename T, typename U, int Kind, typename LeftAlong, typename RightAlong, bool computed = false>
void check(const char *name, int64_t down, int64_t across, int64_t terms, opc::bringing left_how, opc::bringing right_how,
           int64_t parts = 1) {
  const factor<T, LeftAlong> left(down, terms, 1);
  const factor<U, RightAlong> right(across, terms, 2);
  constexpr opc::tile_shape shape = opc::shape_of_tiles(Kind);
  sizes n = {};
  n.down = down;
  n.across = across;
  n.points = down * across;
  n.terms = n.part_terms = terms;
  n.parts = parts;
  if (parts > 1) n.part_terms = (terms / parts + 31) / 32 * 32;
  n.work = ((down + shape.down - 1) / shape.down) * ((across + shape.across - 1) / shape.across) * parts;
  n.left = left.steps(left_how);
  n.right = right.steps(right_how);
  std::vector<float> kept(static_cast<size_t>(n.points * parts));
  n.kept = reinterpret_cast<char *>(kept.data());
  std::vector<float> all(static_cast<size_t>(down * across) + 4);
  float *found = all.data();
  while (reinterpret_cast<uintptr_t>(found) % 16 != 0) ++found;
  n.stores_packs = across % 4 == 0;
  const bool halves = opc::is_for_tensors<T> && std::is_same<T, U>::value;
  const int64_t bytes = halves ? (shape.down + shape.across) * shape.halves * 2 * shape.half_stages
                               : (shape.down + shape.across) * shape.floats * 4 * shape.float_stages;
  const int64_t all_bytes = bytes + (computed ? 8192 : 0);
  typedef factor<T, LeftAlong> left_type;
  typedef factor<U, RightAlong> right_type;
  /* Fewer blocks than tiles: a block takes several. */
  OPC_LAUNCH((kernel<T, U, Kind, computed, LeftAlong, RightAlong, left_type, right_type>), true, n.work < 2 ? n.work : 2, opc::threads_a_block,
             all_bytes, nullptr, n, left, right, found);
  if (parts > 1) {
    n.of = opc::all_parts;
    OPC_LAUNCH((kernel<T, U, Kind, computed, LeftAlong, RightAlong, left_type, right_type>), true, 2, opc::threads_a_block, 0, nullptr, n,
               left, right, found);
  }
  for (int64_t d = 0; d < down; ++d) {
    for (int64_t a = 0; a < across; ++a) {
      double total = 0;
      for (int64_t t = 0; t < terms; ++t) total += left.value(d, t) * right.value(a, t);
      if (found[d * across + a] == total) continue;
      printf("%s: %g and not %g at %d, %d\n", name, static_cast<double>(found[d * across + a]), total,
             static_cast<int>(d), static_cast<int>(a));
      return;
    }
  }
}

template <typename T, typename U, int Kind>
void check_ways(const char *name, int64_t down, int64_t across, int64_t terms, opc::bringing left, opc::bringing right) {
  check<T, U, Kind, opc::along_terms, opc::along_terms>(name, down, across, terms, left, right);
  check<T, U, Kind, opc::along_terms, opc::along_points>(name, down, across, terms, left, right);
  check<T, U, Kind, opc::along_points, opc::along_terms>(name, down, across, terms, left, right);
  check<T, U, Kind, opc::along_points, opc::along_points>(name, down, across, terms, left, right);
}

/* A factor that is a window turned round: point i and term k read at (i + 3 - k) / 2, where that is whole and inside; `inner` neighbours lie
 * on end, and go along terms or along points. */
template <typename T, typename Along>
struct window {
  typedef opc::placed<2> placed;
  static constexpr bool by_terms = std::is_same<Along, opc::along_terms>::value;
  int64_t size, inner;
  std::vector<T> all;
  const T *data;
  window(int64_t size_, int64_t inner_) : size(size_), inner(inner_), all(static_cast<size_t>(size_ * inner_ + 16)) {
    T *own = all.data();
    while (reinterpret_cast<uintptr_t>(own) % 16 != 0) ++own;
    data = own;
    for (int64_t i = 0; i < size * inner; ++i) own[i] = element_of<T>(static_cast<int>(i * 5 % 7) - 3);
  }
  placed at_point(int64_t p) const {
    const int64_t i = (by_terms ? p : p / inner) + 3;
    return placed((i + 1) / 2 * inner + (by_terms ? 0 : p % inner), i, i % 2);
  }
  placed at_term(int64_t t) const {
    const int64_t k = by_terms ? t / inner : t;
    return placed(-((k + 1) / 2) * inner + (by_terms ? t % inner : 0), -k, k % 2);
  }
  bool holds(int64_t p, int64_t t) const {
    const int64_t position = (by_terms ? p : p / inner) + 3 - (by_terms ? t / inner : t);
    return position % 2 == 0 && position >= 0 && position < 2 * size;
  }
  double value(int64_t p, int64_t t) const {
    const int64_t position = (by_terms ? p : p / inner) + 3 - (by_terms ? t / inner : t);
    return holds(p, t) ? static_cast<double>(opc::load(data + position / 2 * inner + (by_terms ? t : p) % inner)) : 0.0;
  }
};

template <typename T, int Kind, typename Along, typename Right>
void gathering(const sizes &n, const window<T, Along> &left, const Right &right, float *to) {
  const auto points = [&](int64_t, int64_t point) { return left.at_point(point); };
  const auto terms = [&](int64_t term) { return left.at_term(term); };
  const auto right_value = [&](int64_t, int64_t p, int64_t t) { return opc::load(right.data + right.at(p, t)); };
  const auto right_at = [&](int64_t) { return right.data; };
  const auto ends = [](int64_t across) { return opc::digits(across); };
  const auto at = [&](int64_t, int64_t down, const opc::digits &across) { return to + down * n.across + across.at[0]; };
  const auto finish = [](int64_t, int64_t, const opc::digits &, float total) { return total; };
  const auto again = [&](int64_t, int64_t down, const opc::digits &across) {
    float total = 0;
    for (int64_t t = 0; t < n.terms; ++t) {
      if (left.holds(down, t)) total += static_cast<float>(left.value(down, t)) * opc::load(right.data + right.at(across.at[0], t));
    }
    return total;
  };
  const auto places = opc::gathered_places<1, 1>(left.data, points, terms, 2 * left.size);
  opc::multiply_tiles<float, std::conditional_t<sizeof(T) == 2, T, void>, Kind, Along, opc::along_terms>(n, points, places, right_value,
                                                                                                       right_at, ends, finish, at, again);
}

/* What is not inside does not count, even where the other factor is infinite there. */
template <typename T, int Kind, typename Along>
void check_window(const char *name, int64_t down, int64_t across, int64_t terms, int64_t inner, opc::bringing how, int64_t parts = 1) {
  const window<T, Along> left(9, inner);
  factor<T, opc::along_terms> right(across, terms, 2);
  const int64_t infinite = terms - 1;
  opc::store(&right.all[static_cast<size_t>(right.data - right.all.data() + right.at(1, infinite))], INFINITY);
  constexpr opc::tile_shape shape = opc::shape_of_tiles(Kind);
  sizes n = {};
  n.down = down;
  n.across = across;
  n.points = down * across;
  n.terms = n.part_terms = terms;
  n.parts = parts;
  if (parts > 1) n.part_terms = (terms / parts + 31) / 32 * 32;
  n.work = ((down + shape.down - 1) / shape.down) * ((across + shape.across - 1) / shape.across) * parts;
  n.left = {0, 0, how, int32_t(sizeof(opc::placed<2>))};
  n.right = right.steps(opc::packed);
  n.left_together = opc::divisor_of(inner);
  std::vector<float> kept(static_cast<size_t>(n.points * parts)), all(static_cast<size_t>(down * across) + 4);
  float *found = all.data();
  while (reinterpret_cast<uintptr_t>(found) % 16 != 0) ++found;
  n.stores_packs = across % 4 == 0;
  n.kept = reinterpret_cast<char *>(kept.data());
  const int64_t bytes = sizeof(T) == 2 ? (shape.down + shape.across) * shape.halves * 2 * shape.half_stages
                                       : (shape.down + shape.across) * shape.floats * 4 * shape.float_stages;
  const int64_t all_bytes = bytes + opc::place_table_head + (shape.down + opc::place_table_terms) * n.left.place_bytes;
  OPC_LAUNCH((gathering<T, Kind, Along, factor<T, opc::along_terms>>), true, n.work < 2 ? n.work : 2, opc::threads_a_block, all_bytes, nullptr, n,
             left, right, found);
  if (parts > 1) {
    n.of = opc::all_parts;
    OPC_LAUNCH((gathering<T, Kind, Along, factor<T, opc::along_terms>>), true, 2, opc::threads_a_block, 0, nullptr, n, left, right, found);
  }
  for (int64_t d = 0; d < down; ++d) {
    for (int64_t a = 0; a < across; ++a) {
      double total = 0;
      for (int64_t t = 0; t < terms; ++t) {
        if (left.holds(d, t)) total += left.value(d, t) * static_cast<double>(opc::load(right.data + right.at(a, t)));
      }
      const double own = static_cast<double>(found[d * across + a]);
      if (own == total || (own != own && total != total)) continue;
      printf("%s: %g and not %g at %d, %d\n", name, own, total, static_cast<int>(d), static_cast<int>(a));
      return;
    }
  }
}

/* A copy whose second axis of three is the last one. */
template <typename T>
void moving(const sizes &n, const T *from, T *to) {
  const auto start = [&](int64_t batch, int64_t across) { return from + batch * n.down * n.across + across; };
  opc::move_axis(n, start, n.across, to);
}
template <typename T>
void check_move(int64_t batches, int64_t axis, int64_t across) {
  sizes n = {};
  opc::set_move(n, batches, across, axis);
  std::vector<T> from(static_cast<size_t>(batches * axis * across)), to(from.size() + 16);
  T *own = to.data();
  while (reinterpret_cast<uintptr_t>(own) % 16 != 0) ++own;
  for (size_t i = 0; i < from.size(); ++i) from[i] = element_of<T>(static_cast<int>(i * 7 % 113));
  OPC_LAUNCH(moving<T>, true, 2, opc::threads_a_block, 0, nullptr, n, from.data(), own);
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t m = 0; m < axis; ++m) {
      for (int64_t a = 0; a < across; ++a) {
        if (opc::load(own + (b * across + a) * axis + m) == opc::load(&from[static_cast<size_t>((b * axis + m) * across + a)])) continue;
        printf("moved %d x %d x %d: wrong at %d, %d, %d\n", static_cast<int>(batches), static_cast<int>(axis), static_cast<int>(across),
               static_cast<int>(b), static_cast<int>(m), static_cast<int>(a));
        return;
      }
    }
  }
}

/* A warp's product, a register after the other as the PTX ISA lays fragments out. */
template <typename T>
void fragments(const float (*a)[16], const float (*b)[8], float (*to)[8]) {
  const int lane = static_cast<int>(threadIdx.x), group = lane / 4, own = lane % 4 * 2;
  const auto pair = [](float first, float second) {
    return opc::narrow<T>(first).bits | static_cast<uint32_t>(opc::narrow<T>(second).bits) << 16;
  };
  const uint32_t left[4] = {pair(a[group][own], a[group][own + 1]), pair(a[group + 8][own], a[group + 8][own + 1]),
                            pair(a[group][own + 8], a[group][own + 9]), pair(a[group + 8][own + 8], a[group + 8][own + 9])};
  float total[4] = {0.25f, 0.25f, 0.25f, 0.25f};
  opc::multiply_fragments<T>(total, left, pair(b[own][group], b[own + 1][group]), pair(b[own + 8][group], b[own + 9][group]));
  to[group][own] = total[0];
  to[group][own + 1] = total[1];
  to[group + 8][own] = total[2];
  to[group + 8][own + 1] = total[3];
}

template <typename T>
void check_fragments() {
  float a[16][16], b[16][8], to[16][8];
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) a[i][k] = static_cast<float>((i * 7 + k * 3) % 11 - 5);
    for (int j = 0; j < 8; ++j) b[i][j] = static_cast<float>((i * 5 + j * 2) % 9 - 4);
  }
  OPC_LAUNCH(fragments<T>, true, 1, 32, 0, nullptr, a, b, to);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float total = 0.25f;
      for (int k = 0; k < 16; ++k) total += a[i][k] * b[k][j];
      if (to[i][j] != total) printf("a fragment has %g and not %g at %d, %d\n", static_cast<double>(to[i][j]), static_cast<double>(total), i, j);
    }
  }
}

/* Reads what has been asked for before it is there. */
void too_early(const float *from, float *to) {
  OPC_DYNAMIC_SHARED(memory);
  const opc::shared_place shared = opc::place_of_shared(memory);
  opc::copy_16_bytes(shared, from, 16);
  opc::end_copies();
  opc::copy_16_bytes(shared + 16, from + 4, 8);
  opc::end_copies();
  float values[4];
  opc::wait_for_copies<1>();
  opc::read_shared(shared, values);
  to[0] = values[3];
  opc::read_shared(shared + 16, values);
  to[1] = values[1];
  opc::wait_for_copies<0>();
  opc::read_shared(shared + 16, values);
  to[2] = values[1];
  to[3] = values[2];
}

}  // namespace

int main() {
  check_fragments<opc::float16>();
  check_fragments<opc::bfloat16>();
  check_ways<opc::bfloat16, opc::bfloat16, opc::large_tiles>("large", 136, 264, 168, opc::packed, opc::packed);
  check_ways<opc::float16, opc::float16, opc::medium_tiles>("medium", 136, 136, 72, opc::packed, opc::packed);
  check_ways<opc::bfloat16, opc::bfloat16, opc::medium_tiles>("medium in steps", 129, 3, 33, opc::in_steps, opc::packed);
  check_ways<opc::float16, opc::float16, opc::small_tiles>("small", 72, 8, 200, opc::packed, opc::packed);
  check_ways<opc::float16, opc::float16, opc::small_tiles>("small in steps", 65, 67, 1, opc::by_value, opc::in_steps);
  check_ways<float, float, opc::medium_tiles>("floats", 132, 136, 40, opc::packed, opc::packed);
  check_ways<float, float, opc::medium_tiles>("floats in steps", 5, 131, 17, opc::in_steps, opc::in_steps);
  check_ways<float, opc::bfloat16, opc::medium_tiles>("floats and halves", 129, 8, 35, opc::packed, opc::packed);
  check_ways<float, float, opc::small_tiles>("small floats", 68, 64, 20, opc::packed, opc::packed);
  check_ways<opc::bfloat16, float, opc::small_tiles>("small floats by value", 3, 70, 50, opc::by_value, opc::in_steps);
  check_ways<float, float, opc::small_tiles>("no terms", 3, 7, 0, opc::in_steps, opc::by_value);
  check<opc::bfloat16, opc::bfloat16, opc::medium_tiles, opc::along_points, opc::along_terms, true>(
      "computed", 129, 24, 40, opc::computed, opc::packed);
  check<opc::float16, opc::float16, opc::small_tiles, opc::along_terms, opc::along_terms, true>("computed along terms", 65, 24, 200,
                                                                                               opc::computed, opc::packed);
  check<float, float, opc::medium_tiles, opc::along_terms, opc::along_points, true>("computed floats", 129, 24, 100, opc::computed,
                                                                                   opc::packed);
  check<opc::float16, opc::float16, opc::small_tiles, opc::along_points, opc::along_points>("parts", 72, 8, 200, opc::packed,
                                                                                           opc::packed, 3);
  check<float, float, opc::small_tiles, opc::along_points, opc::along_points>("parts of floats", 65, 8, 200, opc::in_steps,
                                                                             opc::by_value, 3);
  check_window<opc::bfloat16, opc::large_tiles, opc::along_terms>("window", 20, 9, 24 * 16, 16, opc::packed);
  check_window<opc::float16, opc::medium_tiles, opc::along_terms>("window in steps", 21, 5, 22 * 3, 3, opc::in_steps);
  check_window<opc::float16, opc::medium_tiles, opc::along_points>("window along points", 17 * 8, 5, 40, 8, opc::packed);
  check_window<opc::bfloat16, opc::small_tiles, opc::along_points>("small window", 23 * 3, 5, 40, 3, opc::in_steps);
  check_window<float, opc::medium_tiles, opc::along_terms>("window of floats", 20, 9, 24 * 20, 20, opc::packed);
  check_window<float, opc::small_tiles, opc::along_points>("window of floats along points", 23 * 4, 9, 40, 4, opc::packed);
  check_window<float, opc::medium_tiles, opc::along_points>("window of floats in steps", 23 * 3, 9, 40, 3, opc::in_steps);
  check_window<float, opc::small_tiles, opc::along_terms>("window in parts", 20, 9, 24 * 16, 16, opc::packed, 3);
  check_window<opc::bfloat16, opc::large_tiles, opc::along_terms>("long window", 90, 12, 70 * 8, 8, opc::packed);
  check_window<opc::bfloat16, opc::medium_tiles, opc::along_terms>("long window in parts", 90, 12, 70 * 24, 24, opc::packed, 2);
  check_window<opc::float16, opc::large_tiles, opc::along_points>("large window along points", 37 * 8, 9, 300, 8, opc::packed);
  check_window<opc::float16, opc::large_tiles, opc::along_points>("long runs along points", 3 * 120, 9, 700, 120, opc::packed, 2);
  check_window<float, opc::medium_tiles, opc::along_terms>("long window of floats", 90, 12, 70 * 4, 4, opc::packed);
  check_window<float, opc::medium_tiles, opc::along_points>("window of many floats along points", 35 * 4, 9, 600, 4, opc::packed);
  check_move<opc::float16>(3, 72, 70);
  check_move<double>(2, 66, 3);
  check_move<float>(2, 5, 130);
  check_move<double>(1, 66, 9);
  alignas(16) const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float to[4];
  OPC_LAUNCH(too_early, true, 1, 1, 32, nullptr, from, to);
  printf("%g %d %g %g\n", static_cast<double>(to[0]), to[1] == to[1], static_cast<double>(to[2]), static_cast<double>(to[3]));
  return 0;
}
