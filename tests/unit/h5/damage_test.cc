// The promise about damage: of a file of any kind, flip any bit; the flip is reported (status 3) or the result is exactly
// the same. No crash, no other number. 2,000 random bits a kind, plain and compressed, fixed seed; and every truncation.
#include <random>

#include <gtest/gtest.h>

#include "h5/input.h"
#include "h5/output.h"
#include "h5/schema.h"
#include "support/folder.h"
#include "support/hdf5_leaks.h"
#include "support/sample.h"

namespace gdds::h5 {
namespace {

using test::Folder;

// Everything a tool could learn from the file, as a digest computed from the data themselves.
std::string result_of(const std::string& path, const std::string& kind) {
  const Input input(path, kind);
  return input.computed_digest() + input.digest() + input.history();
}

std::string make(const Folder& folder, const std::string& kind, int compress) {
  Output output({folder.file("good.h5"), compress, false}, kind, test::sample_invocation(), {});
  test::write_sample(output, kind, 40);
  output.commit();
  return test::file_bytes(folder.file("good.h5"));
}

class Damage : public testing::TestWithParam<std::tuple<std::string, int>> {};
INSTANTIATE_TEST_SUITE_P(, Damage,
                         testing::Combine(testing::ValuesIn([] {
                                            std::vector<std::string> names;
                                            for (const Kind& kind : kinds()) names.emplace_back(kind.name);
                                            return names;
                                          }()),
                                          testing::Values(0, 6)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) > 0 ? "Compressed" : "Plain");
                         });

TEST_P(Damage, OfABitIsReportedOrHarmless) {
  const auto [kind, compress] = GetParam();
  const Folder folder;
  const std::string good = make(folder, kind, compress);
  const std::string expected = result_of(folder.file("good.h5"), kind);
  std::mt19937_64 random(20261118);
  int reported = 0, harmless = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bit = random() % (good.size() * 8);
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    test::write_bytes(folder.file("bad.h5"), bad);
    try {
      ASSERT_EQ(result_of(folder.file("bad.h5"), kind), expected) << "bit " << bit << " changed the result";
      ++harmless;
    } catch (const Error& error) {
      ASSERT_EQ(error.status(), Status::rejected) << "bit " << bit << ": " << error.what();
      ++reported;
    }
  }
  RecordProperty("reported", reported);
  RecordProperty("harmless", harmless);
  EXPECT_GT(reported, harmless) << "most bits of a file mean something";
}

TEST_P(Damage, OfTheLengthIsReported) {
  const auto [kind, compress] = GetParam();
  const Folder folder;
  const std::string good = make(folder, kind, compress);
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 50) {
    test::write_bytes(folder.file("bad.h5"), good.substr(0, size));
    const std::string error = test::error_of([&, k = kind] { result_of(folder.file("bad.h5"), k); });
    ASSERT_TRUE(error.starts_with("3 ")) << size << ": " << error;
  }
}

}  // namespace
}  // namespace gdds::h5
