/* Sums of products in tiles of every shape, from factors that lie and are brought in every way, beside plain sums; and fragments of tensor
 * cores beside a plain product. */
#define OPC_ON_GPU
#include "opc/abi.h"
#include "opc/core/call.h"
#include "opc/cuda/multiply.h"

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
  opc::factor_steps steps(opc::bringing how) const { return {by_terms ? pitch : 1, by_terms ? 1 : pitch, how}; }
};

template <typename T, typename U, int Kind, bool computed, typename LeftAlong, typename RightAlong, typename Left, typename Right>
void kernel(const sizes &n, const Left &left, const Right &right, float *to) {
  [[maybe_unused]] const auto left_value = [&](int64_t, int64_t p, int64_t t) { return opc::load(left.data + left.at(p, t)); };
  const auto right_value = [&](int64_t, int64_t p, int64_t t) { return opc::load(right.data + right.at(p, t)); };
  [[maybe_unused]] const auto left_at = [&](int64_t) { return left.data; };
  const auto right_at = [&](int64_t) { return right.data; };
  const auto finish = [&](int64_t, int64_t down, int64_t across, float total) { to[down * n.across + across] += total; };
  typedef std::conditional_t<std::is_same<T, U>::value, T, void> stored;
  if constexpr (computed) {
    const auto value = [&](int64_t, const opc::digits &p, const opc::digits &t) {
      return opc::load(left.data + left.at(p.at[0] * 4 + p.at[1], t.at[0] * 3 + t.at[1]));
    };
    const auto points = [&](int64_t point) { return opc::digits(point / 4, point % 4); };
    const auto term_places = [&](int64_t term) { return opc::digits(term / 3, term % 3); };
    const opc::computed_places places(points, term_places);
    opc::multiply_tiles<float, stored, Kind, LeftAlong, RightAlong>(n, value, places, right_value, right_at, finish);
  } else {
    opc::multiply_tiles<float, stored, Kind, LeftAlong, RightAlong>(n, left_value, left_at, right_value, right_at, finish);
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
  std::vector<float> found(static_cast<size_t>(down * across));
  const bool halves = opc::is_for_tensors<T> && std::is_same<T, U>::value;
  const int64_t bytes = halves ? (shape.down + shape.across) * shape.halves * 2 * shape.half_stages
                               : (shape.down + shape.across) * shape.floats * 4 * shape.float_stages;
  const int64_t all_bytes = bytes + (computed ? 8192 : 0);
  typedef factor<T, LeftAlong> left_type;
  typedef factor<U, RightAlong> right_type;
  /* Fewer blocks than tiles: a block takes several. */
  OPC_LAUNCH((kernel<T, U, Kind, computed, LeftAlong, RightAlong, left_type, right_type>), true, n.work < 2 ? n.work : 2, opc::threads_a_block,
             all_bytes, nullptr, n, left, right, found.data());
  if (parts > 1) {
    n.of = opc::all_parts;
    OPC_LAUNCH((kernel<T, U, Kind, computed, LeftAlong, RightAlong, left_type, right_type>), true, 2, opc::threads_a_block, 0, nullptr, n,
               left, right, found.data());
  }
  for (int64_t d = 0; d < down; ++d) {
    for (int64_t a = 0; a < across; ++a) {
      double total = 0;
      for (int64_t t = 0; t < terms; ++t) total += left.value(d, t) * right.value(a, t);
      if (found[static_cast<size_t>(d * across + a)] == total) continue;
      printf("%s: %g and not %g at %d, %d\n", name, static_cast<double>(found[static_cast<size_t>(d * across + a)]), total,
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
  alignas(16) const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float to[4];
  OPC_LAUNCH(too_early, true, 1, 1, 32, nullptr, from, to);
  printf("%g %d %g %g\n", static_cast<double>(to[0]), to[1] == to[1], static_cast<double>(to[2]), static_cast<double>(to[3]));
  return 0;
}
