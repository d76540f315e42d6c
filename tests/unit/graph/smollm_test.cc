// Real vectors: SmolLM2's 49,152 x 576, out of its GGUF file. Words have the neighbours they should have, and the search on
// 3,000 random rows equals a brute force in double precision. Needs scripts/fetch-data smollm2; skipped without it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "graph/embedding.h"
#include "graph/knn.h"
#include "text/vocabulary.h"

namespace gdds::graph {
namespace {

std::string smollm_file() {
  const char* const data = std::getenv("GDDS_DATA");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string folder = data != nullptr ? data : cache != nullptr ? std::string(cache) + "/gdds" : std::string(home != nullptr ? home : "") + "/.cache/gdds";
  return folder + "/smollm2/smollm2-135m-q4_1.gguf";
}

const Embedding& smollm() {
  static const Embedding embedding = [] {
    EmbedOptions options;
    options.source = smollm_file();
    std::vector<h5::Source> sources;
    return open_embedding(options, sources);
  }();
  return embedding;
}

Points points_of(const Embedding& e) {
  return {e.vectors.values.data(), static_cast<std::int64_t>(e.vectors.rows), static_cast<std::int64_t>(e.vectors.columns)};
}

TEST(SmolLm, WordsHaveTheNeighboursTheyShouldHave) {
  if (!std::filesystem::exists(smollm_file())) GTEST_SKIP() << "SmolLM2 is not here (scripts/fetch-data smollm2)";
  const Embedding& e = smollm();
  ASSERT_EQ(e.vectors.rows, 49152U);
  ASSERT_EQ(e.vectors.columns, 576U);
  const auto expect_among = [&](const std::string& word, const std::vector<std::string>& expected) {
    const std::int32_t id = e.vocabulary.find(word);
    ASSERT_GE(id, 0) << word;
    std::string found;
    for (const auto& [d, other] : nearest(points_of(e), id, 10, true)) found += "[" + std::string(e.vocabulary.token(other)) + "]";
    for (const std::string& other : expected) EXPECT_NE(found.find("[" + other + "]"), std::string::npos) << word << ": no " << other << " in " << found;
  };
  expect_among(" king", {" King", " kings", " queen"});
  expect_among(" red", {" Red", " blue", " yellow"});
  expect_among(" Paris", {" London", " France"});
}

TEST(SmolLm, SearchEqualsBruteForceOn3000Rows) {
  if (!std::filesystem::exists(smollm_file())) GTEST_SKIP() << "SmolLM2 is not here (scripts/fetch-data smollm2)";
  const Points all = points_of(smollm());
  std::vector<std::int64_t> rows(static_cast<std::size_t>(all.m));
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(1));
  std::vector<float> values;
  for (std::size_t r = 0; r < 3000; ++r) values.insert(values.end(), all.row(rows[r]), all.row(rows[r]) + all.d);
  const Points some{values.data(), 3000, all.d};
  for (const char* metric : {"gauss", "cosine"}) {
    for (const char* ranking : {"raw", "normalised"}) {
      KnnOptions o;
      o.metric = metric;
      o.ranking = ranking;
      o.device.text = "cpu";
      const Neighbours fast = find_neighbours(some, o), slow = brute_force(some, o);
      EXPECT_TRUE(fast.ids == slow.ids && fast.distances == slow.distances && fast.bandwidths == slow.bandwidths) << metric << " " << ranking;
    }
  }
}

}  // namespace
}  // namespace gdds::graph
