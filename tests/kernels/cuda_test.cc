// Every kernel of kernels/cuda gives what its namesake on the CPU gives, bit for bit. The file is compiled twice: with the
// shim (unit-shim), which runs the kernels' bodies on the CPU in several ways, and with the CUDA runtime (unit-cuda), for
// machines with a GPU; elsewhere that one skips.
#ifdef GDDS_TEST_SHIM
#include "cuda_shim.h"
#else
#include <cuda_runtime.h>

#include "base/device.h"
#endif

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device_memory.h"
#include "noise.h"
#include "small_tables.h"

namespace gdds::kernels {
namespace {

using test::Batch;
using test::DeviceMemory;
using test::Noise;

#ifdef GDDS_TEST_SHIM
struct Cuda : testing::Test {
  ~Cuda() override { shim::settings() = {}; }
  // All that a kernel must not mind: the order of the threads, and a grid too small for the batch.
  static void in_every_way(const std::function<void()>& run) {
    using shim::Order;
    for (const shim::Settings& way : {shim::Settings{Order::forward, 3}, shim::Settings{Order::backward, ~0U}, shim::Settings{Order::shuffled, 1}}) {
      SCOPED_TRACE("order " + std::to_string(static_cast<int>(way.order)) + ", blocks at most " + std::to_string(way.most_blocks));
      shim::settings() = way;
      run();
    }
  }
};
#else
struct Cuda : testing::Test {
  void SetUp() override {
    const CudaProbe probe = probe_cuda();
    if (probe.devices.empty()) GTEST_SKIP() << probe.reason << "; the kernels were compiled, and run by unit-shim alone";
  }
  static void in_every_way(const std::function<void()>& run) { run(); }
};
#endif

// A copy of each vector of a table on the device.
struct OnDevice {
  DeviceMemory& memory;
  template <typename T>
  const T* operator()(const std::vector<T>& v) const { return memory.copy(v); }
};

// noise(snapshots, memory) in device memory, with what it makes brought back.
template <typename Function>
Noise on_device(const Batch& batch, Function noise) {
  DeviceMemory memory;
  Noise result{std::vector<std::int32_t>(batch.x0.size(), -7), std::vector<std::uint8_t>(batch.x0.size(), 7)};
  const Snapshots b{memory.copy(batch.x0), memory.copy(batch.numbers), batch.sequences, batch.length, batch.seed, memory.copy(result.xt), memory.copy(result.jumped)};
  EXPECT_EQ(noise(b, memory), 0);
  DeviceMemory::fetch(result.xt, b.xt);
  DeviceMemory::fetch(result.jumped, b.jumped);
  return result;
}

// cpu_noise(snapshots) and cuda_noise(snapshots, memory) agree on every token and flag, and the batch was worth a look.
template <typename CpuFunction, typename CudaFunction>
void expect_agreement(const Batch& batch, CpuFunction cpu_noise, CudaFunction cuda_noise) {
  const Noise expected = batch.all([&](const Snapshots& b, std::int64_t) { cpu_noise(b); });
  EXPECT_TRUE(batch.x0.size() < 100 || expected.xt != batch.x0);
  Cuda::in_every_way([&] {
    const Noise found = on_device(batch, cuda_noise);
    EXPECT_TRUE(found == expected) << "length " << batch.length << ", seed " << batch.seed;
  });
}

// check(batch) for all lengths and several seeds.
void for_batches(std::int64_t sequences, std::int32_t m, const std::function<void(const Batch&)>& check) {
  for (const std::int64_t length : test::kLengths)
    for (const std::uint64_t seed : {1ULL, 0x123456789abcULL}) check(Batch(sequences, length, m, seed));
}

constexpr std::int32_t kMask = 1000;

TEST_F(Cuda, FillRandom) {
  std::vector<std::uint32_t> expected(300 * 17);
  cpu::fill_random(7, 1, 100, 300, 17, expected.data());
  in_every_way([&] {
    DeviceMemory memory;
    std::vector<std::uint32_t> found(expected.size());
    std::uint32_t* device = memory.copy(found);
    ASSERT_EQ(cuda::fill_random(7, 1, 100, 300, 17, device), 0);
    DeviceMemory::fetch(found, device);
    EXPECT_TRUE(found == expected);
  });
}

TEST_F(Cuda, Absorb) {
  for_batches(5, 40, [](const Batch& batch) {
    const auto limits = batch.limits();
    expect_agreement(batch, [&](const Snapshots& b) { cpu::noise_absorb(b, limits.data(), kMask, 2); },
                     [&](const Snapshots& b, DeviceMemory& memory) { return cuda::noise_absorb(b, memory.copy(limits), kMask); });
  });
}

TEST_F(Cuda, Reset) {
  for_batches(5, 40, [](const Batch& batch) {
    const auto limits = batch.limits();
    expect_agreement(batch, [&](const Snapshots& b) { cpu::noise_reset(b, limits.data(), kMask, 40, 2); },
                     [&](const Snapshots& b, DeviceMemory& memory) { return cuda::noise_reset(b, memory.copy(limits), kMask, 40); });
  });
}

template <typename Id>
void expect_sik_agreement() {
  const test::Slots<Id> slots(300, 9, 3);
  for_batches(5, slots.m, [&](const Batch& batch) {
    const auto times = batch.sik_times(slots.clock);
    expect_agreement(batch, [&](const Snapshots& b) { cpu::noise_sik(b, slots.table(), times.data(), 2); },
                     [&](const Snapshots& b, DeviceMemory& memory) { return cuda::noise_sik(b, slots.table(OnDevice{memory}), memory.copy(times)); });
  });
}

TEST_F(Cuda, SikWithNarrowIds) { expect_sik_agreement<std::uint16_t>(); }
TEST_F(Cuda, SikWithWideIds) { expect_sik_agreement<std::int32_t>(); }

// Few tokens and several a strip, few neighbours and all, both distances.
const test::Dense& dense_tables(int which) {
  static const test::Dense tables[] = {test::Dense(30, 8, 5, false, test::constant(0.3), 1), test::Dense(600, 16, 19, true, test::rising(0.2), 2),
                                       test::Dense(30, 29, 16, false, test::rising(1.0), 3)};
  return tables[which];
}

TEST_F(Cuda, Dense) {
  for (int which = 0; which < 3; ++which) {
    const test::Dense& dense = dense_tables(which);
    for_batches(5, dense.m, [&](const Batch& batch) {
      const auto times = batch.sik_times(dense.clock);
      expect_agreement(batch, [&](const Snapshots& b) { cpu::noise_dense(b, dense.table(), times.data(), 2); },
                       [&](const Snapshots& b, DeviceMemory& memory) { return cuda::noise_dense(b, dense.table(OnDevice{memory}), memory.copy(times)); });
    });
  }
}

TEST_F(Cuda, Blockwise) {
  for (int which = 0; which < 3; ++which) {
    const test::Dense& dense = dense_tables(which);
    for_batches(2, dense.m, [&](const Batch& batch) {
      const auto times = batch.sik_times(dense.clock);
      expect_agreement(batch, [&](const Snapshots& b) { cpu::noise_blockwise(b, dense.table(), times.data(), 2); },
                       [&](const Snapshots& b, DeviceMemory& memory) { return cuda::noise_blockwise(b, dense.table(OnDevice{memory}), memory.copy(times)); });
    });
  }
}

TEST_F(Cuda, EmptyBatches) {
  const test::Slots<std::uint16_t> narrow(30, 4, 3);
  const test::Slots<std::int32_t> wide(30, 4, 3);
  for (const auto& [sequences, length] : {std::pair<std::int64_t, std::int64_t>{0, 5}, {5, 0}, {0, 0}}) {
    const Snapshots none{nullptr, nullptr, sequences, length, 1, nullptr, nullptr};
    EXPECT_EQ(cuda::noise_absorb(none, nullptr, kMask), 0);
    EXPECT_EQ(cuda::noise_reset(none, nullptr, kMask, 30), 0);
    EXPECT_EQ(cuda::noise_sik(none, narrow.table(), nullptr), 0);
    EXPECT_EQ(cuda::noise_sik(none, wide.table(), nullptr), 0);
    EXPECT_EQ(cuda::noise_dense(none, dense_tables(0).table(), nullptr), 0);
    EXPECT_EQ(cuda::noise_blockwise(none, dense_tables(0).table(), nullptr), 0);
    EXPECT_EQ(cuda::fill_random(1, 1, 0, sequences, length, nullptr), 0);
  }
}

}  // namespace
}  // namespace gdds::kernels
