// The CUDA runtime as far as the kernels use it, on the CPU, so that the .cu files can be compiled by a C++ compiler and
// their bodies run where there is no GPU: blocks one after the other, the threads of a block as fibres that give way at
// __syncthreads. A thread runs from barrier to barrier without being disturbed, so a missing barrier shows as a wrong
// result in one order of the threads or another: see Settings. Device memory is host memory of its own.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __shared__ static  // blocks do not overlap

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// Of the thread that runs.
extern dim3 gridDim, blockDim, blockIdx, threadIdx;
void __syncthreads();

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
};

namespace gdds::shim {

// What a kernel's result must not depend on: the order of the threads between two barriers, and how many blocks a grid has
// (at most so many are run, whatever was asked for; every kernel goes round for the rest).
enum class Order { forward, backward, shuffled };
struct Settings {
  Order order = Order::forward;
  unsigned most_blocks = ~0U;
};
Settings& settings();

// body() in every thread of every block. Threads that leave while others wait at a barrier are a launch failure.
void run_grid(const cudaLaunchConfig_t& config, const std::function<void()>& body);

}  // namespace gdds::shim

cudaError_t cudaGetLastError();  // and forgets it

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), const Arguments&... arguments) {
  gdds::shim::run_grid(*config, [&] { kernel(arguments...); });
  return cudaSuccess;  // as on a GPU, what happens in the kernel is known later
}

template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  *memory = static_cast<T*>(std::malloc(bytes));
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
