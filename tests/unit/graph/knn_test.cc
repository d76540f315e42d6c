// Neighbours: equal to a brute force in double precision, for every metric, ranking and method, on easy and nasty points;
// the same for any number of threads.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "base/threads.h"
#include "graph/products.h"
#include "support/folder.h"

namespace gdds::graph {
namespace {

struct Cloud {
  std::vector<float> values;
  std::int64_t m, d;
  Points points() const { return {values.data(), m, d}; }
};

Cloud gaussian(std::int64_t m, std::int64_t d, unsigned seed, float shift = 0) {
  Cloud c{{}, m, d};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < m * d; ++i) c.values.push_back(normal(random) + shift);
  return c;
}

KnnOptions options(std::int64_t k, const std::string& metric, const std::string& ranking, const std::string& method = "tiles", const std::string& bandwidth = "paper") {
  KnnOptions o;
  o.k = k;
  o.metric = metric;
  o.ranking = ranking;
  o.method = method;
  o.bandwidth = bandwidth;
  o.device.text = "cpu";
  return o;
}

void expect_equal(const Neighbours& a, const Neighbours& b, const std::string& what) {
  EXPECT_TRUE(a.ids == b.ids) << what;
  EXPECT_TRUE(a.distances == b.distances) << what;
  EXPECT_TRUE(a.bandwidths == b.bandwidths) << what;
}

// Both ways to multiply, on any machine that has them.
std::vector<std::string> methods() {
  if (has_integer_products()) return {"blas", "integers"};
  return {"blas"};
}

void check_all(const Cloud& cloud, std::int64_t k, const std::string& what) {
  for (const char* metric : {"gauss", "cosine"}) {
    for (const char* ranking : {"raw", "normalised"}) {
      const Neighbours slow = brute_force(cloud.points(), options(k, metric, ranking));
      for (const std::string& method : methods())
        expect_equal(find_neighbours(cloud.points(), options(k, metric, ranking, method)), slow, what + " " + metric + " " + ranking + " " + method);
    }
    const Neighbours slow = brute_force(cloud.points(), options(k, metric, "normalised", "tiles", "code"));
    for (const std::string& method : methods())
      expect_equal(find_neighbours(cloud.points(), options(k, metric, "normalised", method, "code")), slow, what + " " + metric + " code " + method);
    const auto faiss = options(k, metric, "raw", "faiss");
    expect_equal(find_neighbours(cloud.points(), faiss), brute_force(cloud.points(), faiss), what + " " + metric + " faiss");
  }
}

TEST(Knn, EqualsBruteForce) {
  check_all(gaussian(3000, 24, 1), 64, "gaussian");  // nine blocks
  check_all(gaussian(1500, 3, 2), 10, "few dimensions");
  check_all(gaussian(40, 8, 3), 39, "all the others");
  check_all(gaussian(9, 1, 4), 3, "a line");
}

TEST(Knn, EqualsBruteForceWhereSinglePrecisionCancels) {
  // A large common shift: |x|^2 + |y|^2 - 2xy loses all digits, so nothing can be certified and every row is done again.
  const Cloud cloud = gaussian(600, 16, 5, 3000);
  check_all(cloud, 20, "shifted");
  EXPECT_GT(find_neighbours(cloud.points(), options(20, "gauss", "raw")).recomputed, 0);
}

TEST(Knn, TakesCopiesZerosAndTies) {
  Cloud cloud = gaussian(700, 12, 6);
  const auto copy = [&](std::int64_t from, std::int64_t to) { std::copy_n(cloud.points().row(from), cloud.d, cloud.values.begin() + to * cloud.d); };
  for (std::int64_t i = 0; i < 40; ++i) copy(0, 100 + i);  // more copies than the bandwidth's rank: rho = 0
  for (std::int64_t i = 0; i < 3; ++i) copy(1, 200 + i);
  std::fill_n(cloud.values.begin() + 300 * cloud.d, 5 * cloud.d, 0.0F);  // five zero vectors
  check_all(cloud, 15, "copies");
  const Neighbours n = find_neighbours(cloud.points(), options(5, "gauss", "raw"));
  EXPECT_EQ(std::vector<std::int32_t>(n.ids.begin(), n.ids.begin() + 5), (std::vector<std::int32_t>{100, 101, 102, 103, 104})) << "ties by id, self left out";
  EXPECT_GT(n.bandwidths[0], 0) << "never zero";
  // Whole numbers on a grid: thousands of exact ties.
  Cloud grid{{}, 1200, 3};
  for (int i = 0; i < 1200; ++i)
    for (const int c : {i % 10, i / 10 % 10, i / 100}) grid.values.push_back(static_cast<float>(c));
  check_all(grid, 30, "grid");
}

TEST(Knn, DoesNotDependOnThreads) {
  const Cloud cloud = gaussian(2500, 20, 7);
  for (const char* ranking : {"raw", "normalised"}) {
    set_threads(1);
    const Neighbours one = find_neighbours(cloud.points(), options(30, "gauss", ranking));
    for (const std::string& method : methods()) {
      for (const int n : {2, 5, 40}) {
        set_threads(n);
        expect_equal(find_neighbours(cloud.points(), options(30, "gauss", ranking, method)), one, std::string(ranking) + " " + method);
      }
    }
  }
  set_threads(0);
}

TEST(Knn, RefusesWhatCannotBe) {
  using test::error_of;
  EXPECT_EQ(error_of([] { options(11, "gauss", "raw").validate(11); }), "2 --k: 11 tokens have at most 10 neighbours, found 11");
  EXPECT_EQ(error_of([] { options(2, "gauss", "raw").validate(5); }), "2 --bandwidth-neighbour: 5 tokens have at most 4 neighbours, found 7");
  EXPECT_EQ(error_of([] { options(2, "gauss", "normalised", "faiss").validate(50); }),
            "2 --ranking: FAISS, which --method faiss and a GPU use, ranks by raw distance only");
  Cloud cloud = gaussian(10, 4, 8);
  check_finite(cloud.points(), "f");
  cloud.values[4 * 3 + 1] = NAN;
  EXPECT_EQ(error_of([&] { check_finite(cloud.points(), "f"); }), "3 f: /embedding[3, 1] is not a finite number");
}

TEST(Knn, RowPerplexityIsTheEntropysExponential) {
  Neighbours n;
  n.k = 4;
  n.ids = {1, 1, 1, 1, 0, 0, 0, 0};
  n.distances = {1, 1, 1, 1, 0, 50, 50, 50};
  n.bandwidths = {1, 1};
  const auto p = row_perplexities(n, 1, "paper");
  EXPECT_NEAR(p[0], 1, 1e-12) << "one neighbour has it all";
  EXPECT_NEAR(p[1], 4, 1e-12) << "four share alike";
}

}  // namespace
}  // namespace gdds::graph
