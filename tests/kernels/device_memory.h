// Copies of vectors in device memory, for as long as the object lives; the shim's memory where the shim runs the kernels.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace gdds::test {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (void* block : blocks_) cudaFree(block);
  }

  template <typename T>
  T* copy(const std::vector<T>& host) {
    T* device = nullptr;
    check(cudaMalloc(&device, host.size() * sizeof(T)));
    blocks_.push_back(device);
    check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
  }

  template <typename T>
  static void fetch(std::vector<T>& host, const T* device) {
    check(cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
  }

 private:
  static void check(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error("CUDA error " + std::to_string(static_cast<int>(error)));
  }
  std::vector<void*> blocks_;
};

}  // namespace gdds::test
