// What this machine can do at most: fused multiply-adds a second, and bytes a second to and from memory.
// Usage: peak THREADS; prints one line of JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__AVX512F__)
constexpr int width = 16;
#elif defined(__AVX__)
constexpr int width = 8;
#else
constexpr int width = 4;
#endif
typedef float vector __attribute__((vector_size(width * sizeof(float))));

constexpr int repeats = 7;
constexpr int chains = 12;  // Enough to hide the latency of one multiply-add behind the others, few enough for registers.
constexpr long steps = 4000000;
constexpr long elements = 1L << 25;  // Far beyond any cache.

// The best of several runs of `body(thread)` on all threads, in seconds.
static double seconds(int threads, const std::function<void(int)> &body) {
  double best = 1e30;
  for (int r = 0; r < repeats; ++r) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(body, t);
    body(0);
    for (std::thread &other : others) other.join();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (time.count() < best) best = time.count();
  }
  return best;
}

static float multiply_add(float start) {
  vector value[chains];
  const vector factor = vector{} + 0.999f, more = vector{} + start;
  for (int i = 0; i < chains; ++i) value[i] = vector{} + start * static_cast<float>(i);
  for (long s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) value[i] = value[i] * factor + more;
  }
  float sum = 0;
  for (int i = 0; i < chains; ++i) sum += value[i][0];
  return sum;
}

// A vector to memory, past the caches where the processor has such a store: its line is not fetched first.
static void store(vector *to, vector value) {
#if defined(__clang__)
  __builtin_nontemporal_store(value, to);
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512(reinterpret_cast<float *>(to), value);
#elif defined(__AVX__)
  __builtin_ia32_movntps256(reinterpret_cast<float *>(to), value);
#elif defined(__SSE__)
  __builtin_ia32_movntps(reinterpret_cast<float *>(to), value);
#else
  *to = value;
#endif
}

static float *new_array() { return static_cast<float *>(std::aligned_alloc(1 << 21, elements * sizeof(float))); }

int main(int, char **arguments) {
  const int threads = atoi(arguments[1]);
  volatile float sink = 0;
  const double arithmetic = seconds(threads, [&](int t) { sink = multiply_add(static_cast<float>(t)); });
  const double flops = 2.0 * threads * steps * chains * width / arithmetic;

  float *const a = new_array(), *const b = new_array(), *const c = new_array();
  for (float *array : {a, b, c}) memset(array, 1, elements * sizeof(float));
  const long part = elements / threads / width * width;
  const double copying = seconds(threads, [&](int t) { memcpy(&a[t * part], &b[t * part], part * sizeof(float)); });
  const double triad = seconds(threads, [&](int t) {
    for (long i = t * part; i < (t + 1) * part; i += width) {
      store(reinterpret_cast<vector *>(a + i), *reinterpret_cast<vector *>(b + i) + 3.0f * *reinterpret_cast<vector *>(c + i));
    }
  });
  const double moved = static_cast<double>(part) * threads * sizeof(float);
  const double bandwidth = 2 * moved / copying > 3 * moved / triad ? 2 * moved / copying : 3 * moved / triad;
  for (float *array : {a, b, c}) free(array);
  printf("{\"flops\": %.6e, \"bytes\": %.6e}\n", flops, bandwidth);
  return 0;
}
