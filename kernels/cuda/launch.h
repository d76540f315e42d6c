// How kernels are launched and how threads share out the items of a batch. The launch is a call of the runtime rather than
// nvcc's <<<>>>, so that a plain C++ compiler takes the same files: the tests run the kernels' bodies on the CPU with
// what they put in place of the runtime. nvcc brings the runtime's header along, so it is not included here.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gdds::kernels::cuda {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostBlocks = 65536;  // several waves on any GPU; threads go round for what lies beyond

// kernel(arguments...) on that many blocks, or kMostBlocks: kernels do not count on the number. Returns 0 or the CUDA error.
template <typename... Parameters, typename... Arguments>
int launch(void (*kernel)(Parameters...), std::int64_t blocks, unsigned threads, const Arguments&... arguments) {
  if (blocks == 0) return 0;  // an empty grid would be an error
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(std::min(blocks, kMostBlocks)));
  config.blockDim = dim3(threads);
  cudaLaunchKernelEx(&config, kernel, arguments...);
  return static_cast<int>(cudaGetLastError());
}

// The same, with a thread an item.
template <typename... Parameters, typename... Arguments>
int launch_items(void (*kernel)(Parameters...), std::int64_t items, const Arguments&... arguments) {
  return launch(kernel, (items + kThreads - 1) / kThreads, kThreads, arguments...);
}

// The items of a thread are first_item(), and from there every item_step()-th.
__device__ inline std::int64_t first_item() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t item_step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

}  // namespace gdds::kernels::cuda
