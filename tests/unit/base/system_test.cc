// What touches the machine: temporary files, hashes, progress lines, the CUDA probe.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/device.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/temporary.h"
#include "base/threads.h"
#include "support/folder.h"

namespace gdds {
namespace {

namespace fs = std::filesystem;
using test::Folder;

TEST(TemporaryFile, IsGoneUnlessRenamed) {
  const Folder folder;
  { const TemporaryFile file(folder.path, "a", "a"); EXPECT_EQ(folder.count(), 1U); }
  EXPECT_EQ(folder.count(), 0U);
  {
    TemporaryFile file(folder.path, "a", "a");
    EXPECT_EQ(write(file.descriptor(), "xyz", 3), 3);
    file.rename_to(folder.path / "b");
  }
  EXPECT_EQ(folder.count(), 1U);
  EXPECT_EQ(fs::file_size(folder.path / "b"), 3U);
}

TEST(TemporaryFile, KeepsPermissionsOfWhatItReplaces) {
  const Folder folder;
  std::ofstream(folder.path / "old") << "old";
  fs::permissions(folder.path / "old", fs::perms(0604));
  const mode_t before = umask(027);
  TemporaryFile replaced(folder.path, "t", "t"), fresh(folder.path, "t", "t");
  replaced.rename_to(folder.path / "old");
  fresh.rename_to(folder.path / "new");
  umask(before);
  EXPECT_EQ(fs::status(folder.path / "old").permissions(), fs::perms(0604));
  EXPECT_EQ(fs::status(folder.path / "new").permissions(), fs::perms(0640));
}

TEST(TemporaryFile, SaysWhereItCannotBe) {
  EXPECT_EQ(test::error_of([] { TemporaryFile("/does/not/exist", "out.h5", "out.h5"); }),
            "1 out.h5: cannot create a file in /does/not/exist: No such file or directory");
}

TEST(Hash, IsXxh3Of128Bits) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  Hash pieces;
  pieces.update("ab");
  pieces.update("c");
  EXPECT_EQ(pieces.hex(), hash_hex("abc"));
  Hash one, other;
  one.update_field("ab"), one.update_field("c");
  other.update_field("a"), other.update_field("bc");
  EXPECT_NE(one.hex(), other.hex());
}

TEST(Progress, LinesAreShortAndTellTheTimeLeft) {
  EXPECT_EQ(progress_line("noising", 430, 1000, "tokens", 43, "", 0), "noising:  43% 430 of 1.00k tokens, 10/s, 0:57 left");
  EXPECT_EQ(progress_line("reading", 2500000, 0, "bytes", 2, "x", 0), "reading: 2.50M bytes, 1.25M/s, x");
  const std::string bar = progress_line("training", 50, 100, "steps", 10, "loss 4.21", 120);
  EXPECT_NE(bar.find("[##########..........]"), std::string::npos) << bar;
  EXPECT_LT(progress_line("training", 50, 100, "steps", 10, "loss 4.21", 30).size(), 30U);
  EXPECT_EQ(progress_line("done", 7, 7, "rows", 0, "", 0), "done: 100% 7 of 7 rows");
  EXPECT_EQ(progress_line("training", 60, 1000000, "tokens", 60, "", 0, 180), "training:  33% 60 tokens, 1/s, 2:00 left");
  EXPECT_EQ(progress_line("training", 60, 100, "tokens", 60, "", 0, 180), "training:  60% 60 of 100 tokens, 1/s, 0:40 left");
}

TEST(Progress, ShortNumbers) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(999), "999");
  EXPECT_EQ(short_number(1000), "1.00k");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(999999), "1.00M");
  EXPECT_EQ(short_number(0.1234), "0.12");
  EXPECT_EQ(short_time(59.6), "1:00");
  EXPECT_EQ(short_time(3725), "1:02:05");
}

TEST(Threads, DefaultToTheCoresOfThisProcess) {
  EXPECT_GE(available_cores(), 1);
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  set_threads(0);
  EXPECT_EQ(threads(), available_cores());
}

// A driver of the tests' own (fake_cuda.c) tells what the environment says.
CudaProbe fake_driver(const char* devices, const char* error) {
  setenv("FAKE_CUDA_DEVICES", devices, 1);
  setenv("FAKE_CUDA_ERROR", error, 1);
  return probe_cuda(FAKE_CUDA_LIBRARY);
}

TEST(CudaProbe, NeverAborts) {
  EXPECT_EQ(probe_cuda("libno-such-driver.so.1").reason, "no CUDA driver (libno-such-driver.so.1)");
  EXPECT_EQ(probe_cuda("libm.so.6").reason, "libm.so.6 is not a CUDA driver");
  EXPECT_EQ(fake_driver("2", "100").reason, "the CUDA driver does not start (error 100)");
  EXPECT_EQ(fake_driver("0", "0").reason, "the CUDA driver has no device");
  EXPECT_EQ(fake_driver("2", "0").devices, (std::vector<std::string>{"Fake 0", "Fake 1"}));
}

TEST(Device, IsChosenByWord) {
  const CudaProbe none{{}, "no CUDA driver (x)"}, two{{"a", "b"}, ""};
  EXPECT_EQ(choose_device("auto", none), (Device{false, 0}));
  EXPECT_EQ(choose_device("auto", two), (Device{true, 0}));
  EXPECT_EQ(choose_device("cpu", two), (Device{false, 0}));
  EXPECT_EQ(choose_device("cuda:1", two), (Device{true, 1}));
  const auto error_of = [](const char* text, const CudaProbe& probe) {
    return test::error_of([&] { choose_device(text, probe); });
  };
  EXPECT_EQ(error_of("cuda", none), "1 --device cuda: no CUDA driver (x)");
  EXPECT_EQ(error_of("cuda:2", two), "1 --device cuda:2: there are 2 CUDA devices, numbered from 0");
  for (const char* bad : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "", "cuda1"})
    EXPECT_EQ(error_of(bad, two), "2 --device: expected auto, cpu, cuda or cuda:N, found '" + std::string(bad) + "'");
}

}  // namespace
}  // namespace gdds
