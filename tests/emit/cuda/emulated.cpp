/* What CUDA's emulation does with kernels that use all its words, and with mistakes in them: the argument names a case. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "opc/cuda/reduce.h"

using opc::threads_a_block;

/* Each thread hands a number on through shared memory: `barrier` is what keeps one from reading before the other has written. */
OPC_KERNEL(threads_a_block) pass_on(int *to, bool barrier) {
  OPC_SHARED(int, numbers, threads_a_block);
  numbers[threadIdx.x] = 0;
  __syncthreads();
  numbers[threadIdx.x] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (barrier) __syncthreads();
  to[blockIdx.x * blockDim.x + threadIdx.x] = numbers[(threadIdx.x + 1) % blockDim.x];
}

OPC_KERNEL(threads_a_block) lanes(int *to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int sum = lane;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  const int below = __shfl_up_sync(0xffffffffu, lane, 1), above = __shfl_down_sync(0xffffffffu, lane, 1);
  const unsigned odd = __ballot_sync(0xffffffffu, lane % 2 == 1);
  const bool any = __any_sync(0xffffffffu, lane == 7), all = __all_sync(0xffffffffu, lane < 31);
  const bool right = sum == 496 && below == (lane == 0 ? 0 : lane - 1) && above == (lane == 31 ? 31 : lane + 1) &&
                     odd == 0xaaaaaaaau && any && !all && __shfl_sync(0xffffffffu, lane, 5) == 5;
  atomicAdd(to, right ? 1 : 0);
}

OPC_KERNEL(threads_a_block) sums(double *to) {
  const double sum = opc::block_reduce<opc::joins_sum>(1.0 + threadIdx.x);
  const double most = opc::block_reduce<opc::joins_max>(static_cast<double>(threadIdx.x));
  if (threadIdx.x == 0) to[blockIdx.x] = sum + most;
}

/* A search by teams of so many threads, each of 8 terms, for the greatest or, of the other half, the least. */
struct team_of {
  int32_t team;
};
OPC_KERNEL(threads_a_block) searches(int *to, const float *values, OPC_PARAMETER(team_of) all) {
  const int64_t team = opc::own_team(all);
  const bool greatest = team % 2 == 0;
  float best = greatest ? -INFINITY : INFINITY;
  int64_t found = 0;
  for (int64_t k = opc::thread_of_team(all); k < 8 * all.team; k += all.team) {
    const float here = values[k + team];
    if ((greatest ? here > best : here < best) || (here != here && best == best)) {
      best = here;
      found = k;
    }
  }
  if (greatest) {
    opc::team_search<opc::finds_max>(all, best, found);
  } else {
    opc::team_search<opc::finds_min>(all, best, found);
  }
  to[opc::own_thread()] = static_cast<int>(found);
}

/* What one thread finds among the terms of a team. */
static int found_by_one(const float *values, int terms, bool greatest) {
  int found = 0;
  for (int k = 1; k < terms; ++k) {
    const float here = values[k], best = values[found];
    if ((greatest ? here > best : here < best) || (here != here && best == best)) found = k;
  }
  return found;
}

OPC_KERNEL(threads_a_block) outside(int *to) {
  OPC_SHARED(int, numbers, 4);
  numbers[threadIdx.x] = 1;
  *to = numbers[0];
}

OPC_KERNEL(threads_a_block) some_wait(int *to) {
  if (threadIdx.x < 8) __syncthreads();
  *to = 1;
}

/* Each block waits for the one before it: by the numbers that blocks draw when they begin, or by those that they have. */
OPC_KERNEL(threads_a_block) in_turn(int *to, unsigned *drawn, bool draws) {
  const unsigned number = draws ? atomicAdd(drawn, 1u) : blockIdx.x;
  if (number > 0) OPC_WAIT_UNTIL(to[number - 1] != 0);
  to[number] = static_cast<int>(number) + 1;
}

int main(int, char **arguments) {
  static int to[1024];
  static double sum[4];
  const char *name = arguments[1];
  if (strncmp(name, "pass", 4) == 0) {
    OPC_LAUNCH(pass_on, true, 4, threads_a_block, 0, nullptr, to, strcmp(name, "pass_barrier") == 0);
    int right = 0;
    for (int i = 0; i < 1024; ++i) right += to[i] == i / 256 * 256 + (i + 1) % 256;
    printf("%d\n", right);
  } else if (strncmp(name, "in_turn", 7) == 0) {
    static unsigned drawn = 0;
    OPC_LAUNCH(in_turn, false, 64, 1, 0, nullptr, to, &drawn, strcmp(name, "in_turn_drawn") == 0);
    printf("%d\n", to[63]);
  } else if (strcmp(name, "lanes") == 0) {
    OPC_LAUNCH(lanes, true, 2, threads_a_block, 0, nullptr, to);
    printf("%d\n", to[0]);
  } else if (strcmp(name, "sums") == 0) {
    OPC_LAUNCH(sums, true, 3, threads_a_block, 0, nullptr, sum);
    printf("%g %g %g\n", sum[0], sum[1], sum[2]);
  } else if (strcmp(name, "searches") == 0) {
    /* Few values, so that many are alike; then infinite ones, NaNs, and nothing but what is worse than nothing. */
    static float values[3 * 8 * threads_a_block];
    for (int round = 0; round < 4; ++round) {
      int right = 0;
      for (int i = 0; i < 3 * 8 * threads_a_block; ++i) {
        values[i] = static_cast<float>(i * 7919 % 101 % 13);
        if (round == 1 && i % 97 == 5) values[i] = i % 2 == 0 ? INFINITY : -INFINITY;
        if (round == 2 && i % 89 > 85) values[i] = NAN;
        if (round == 3) values[i] = -INFINITY;
      }
      for (int32_t team = 1; team <= threads_a_block; team *= team < 32 ? 2 : 8) {
        const team_of all = {team};
        OPC_LAUNCH(searches, true, 2, threads_a_block, 0, nullptr, to, values, all);
        for (int i = 0; i < 2 * threads_a_block; ++i) right += to[i] == found_by_one(values + i / team, 8 * team, i / team % 2 == 0);
      }
      printf("%d\n", right);
    }
  } else if (strcmp(name, "outside") == 0) {
    OPC_LAUNCH(outside, true, 1, 8, 0, nullptr, to);
  } else if (strcmp(name, "some_wait") == 0) {
    OPC_LAUNCH(some_wait, true, 1, 32, 0, nullptr, to);
  } else {
    OPC_LAUNCH(sums, false, 1, 32, 0, nullptr, sum);
  }
  return 0;
}
