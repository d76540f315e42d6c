// The random numbers: the published test vectors, independence of the cut into sequences, and the CUDA kernel's word for
// word equality where there is a GPU.
#include <vector>

#include <gtest/gtest.h>

#include "base/device.h"
#include "philox.h"

#ifdef GDDS_TEST_CUDA
#include <cuda_runtime.h>
#endif

namespace gdds::kernels {
namespace {

TEST(Philox, IsThePublishedOne) {
  // Philox4x32-10 of zeros: Random123's known answer.
  const RandomWords r = random_words(0, 0, 0, 0, 0);
  EXPECT_EQ(r.word[0], 0x6627e8d5U);
  EXPECT_EQ(r.word[1], 0xe169c58dU);
  EXPECT_EQ(r.word[2], 0xbc57ac4cU);
  EXPECT_EQ(r.word[3], 0x9b00dbd8U);
}

TEST(Philox, DependsOnEveryArgument) {
  const auto first = [](auto... a) { return random_words(a...).word[0]; };
  const std::uint32_t base = first(1, 2, 3, 4, 5);
  for (const std::uint32_t other : {first(2, 2, 3, 4, 5), first(1, 3, 3, 4, 5), first(1, 2, 4, 4, 5), first(1, 2, 3, 5, 5), first(1, 2, 3, 4, 6),
                                    first(1 | std::uint64_t{1} << 40, 2, 3, 4, 5), first(1, 2, 3 | std::uint64_t{1} << 40, 4, 5)})
    EXPECT_NE(other, base);
}

TEST(Philox, DoesNotDependOnTheBatch) {
  std::vector<std::uint32_t> whole(10 * 16), part(4 * 16);
  cpu::fill_random(7, 1, 100, 10, 16, whole.data());
  cpu::fill_random(7, 1, 103, 4, 16, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 3 * 16));
}

TEST(Philox, CudaEqualsCpu) {
#ifdef GDDS_TEST_CUDA
  const CudaProbe probe = probe_cuda();
  if (probe.devices.empty()) GTEST_SKIP() << probe.reason << "; the kernel was compiled, not run";
  std::vector<std::uint32_t> expected(300 * 17), found(300 * 17);
  cpu::fill_random(7, 1, 100, 300, 17, expected.data());
  std::uint32_t* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, found.size() * 4), cudaSuccess);
  ASSERT_EQ(cuda::fill_random(7, 1, 100, 300, 17, device), 0);
  ASSERT_EQ(cudaMemcpy(found.data(), device, found.size() * 4, cudaMemcpyDeviceToHost), cudaSuccess);
  cudaFree(device);
  EXPECT_EQ(found, expected);
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

}  // namespace
}  // namespace gdds::kernels
