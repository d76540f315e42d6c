// The shim that runs kernels on the CPU is only worth something if it does what a GPU does: every thread of every block,
// barriers that hold, and kernels that lack one found out.
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "cuda_shim.h"

namespace gdds::shim {
namespace {

constexpr unsigned kThreads = 256;

struct Shim : testing::Test {
  ~Shim() override { settings() = {}; }
};

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, const Arguments&... arguments) {
  const cudaLaunchConfig_t config{dim3(blocks), dim3(threads)};
  cudaLaunchKernelEx(&config, kernel, arguments...);
  return cudaGetLastError();
}

// sums[block] = the sum of the block's values, by halves in shared memory.
template <bool kBarriers>
__global__ void sum(const int* values, int* sums) {
  __shared__ int part[kThreads];
  part[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
  if (kBarriers) __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    if (kBarriers) __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

template <bool kBarriers>
std::vector<int> sums_of_blocks(Order order) {
  settings().order = order;
  std::vector<int> values(5 * kThreads), sums(5);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(launch(sum<kBarriers>, 5, kThreads, values.data(), sums.data()), cudaSuccess);
  return sums;
}

const std::vector<int> kSums = {32896, 98432, 163968, 229504, 295040};  // 256 * 257 / 2 + 65536 b

TEST_F(Shim, BarriersMakeAReductionRight) {
  for (const Order order : {Order::forward, Order::backward, Order::shuffled}) EXPECT_EQ(sums_of_blocks<true>(order), kSums);
}

TEST_F(Shim, AReductionWithoutBarriersIsFoundOut) {
  EXPECT_NE(sums_of_blocks<false>(Order::forward), kSums);
  EXPECT_NE(sums_of_blocks<false>(Order::shuffled), kSums);
}

// Every thread tells its right neighbour; the last value told is read after the barrier.
__global__ void pass_on(unsigned* got) {
  __shared__ unsigned told[kThreads];
  for (unsigned round = 0; round < 3; ++round) {
    told[(threadIdx.x + 1) % blockDim.x] = threadIdx.x + 1000 * round;
    __syncthreads();
    got[round * blockDim.x + threadIdx.x] = told[threadIdx.x];
    __syncthreads();
  }
}

TEST_F(Shim, ThreadsKeepTheirVariablesAcrossBarriers) {
  for (const Order order : {Order::forward, Order::backward, Order::shuffled})
    for (const unsigned threads : {1U, 33U, 256U}) {
      settings().order = order;
      std::vector<unsigned> got(3 * threads);
      ASSERT_EQ(launch(pass_on, 1, threads, got.data()), cudaSuccess);
      for (unsigned i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], (i % threads + threads - 1) % threads + 1000 * (i / threads));
    }
}

__global__ void count(int* seen, int items) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(items); i += gridDim.x * blockDim.x) ++seen[i];
}

TEST_F(Shim, RunsEveryThreadOnceOrGoesRound) {
  for (const unsigned most : {~0U, 3U, 1U}) {
    settings().most_blocks = most;
    std::vector<int> seen(1000);
    ASSERT_EQ(launch(count, 32, 32, seen.data(), 1000), cudaSuccess);
    EXPECT_EQ(seen, std::vector<int>(1000, 1));
  }
}

__global__ void leave_early() {
  if (threadIdx.x % 2 == 0) __syncthreads();
}

TEST_F(Shim, ABarrierThatSomeNeverReachIsAnError) {
  EXPECT_EQ(launch(leave_early, 1, 8), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Shim, RefusesTheGridsThatAGpuRefuses) {
  EXPECT_EQ(launch(leave_early, 0, 8), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(leave_early, 1, 1025), cudaErrorInvalidConfiguration);
}

}  // namespace
}  // namespace gdds::shim
