// Products of blocks: what distances made of them are off by stays within the bound that is given, whatever the vectors; every
// token has one place.
#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "graph/products.h"

namespace gdds::graph {
namespace {

// Of many lengths, among them zero, one number alone, and numbers of very different size.
std::vector<float> odd_vectors(std::int64_t m, std::int64_t d) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t c = 0; c < d; ++c) {
      const float x = normal(random) * std::pow(10.0F, static_cast<float>(i % 7 - 3));
      values.push_back(i % 11 == 0 ? 0 : i % 11 == 1 && c != i % d ? 0 : i % 11 == 2 ? x * std::exp(4 * normal(random)) : x);
    }
  return values;
}

void expect_within_bounds(const Prepared& p, const Products& products, const std::string& what) {
  const Blocks& b = products.blocks;
  std::vector<float> tile(static_cast<std::size_t>(b.size * b.size));
  double worst = 0;
  for (std::int64_t block = 0; block < b.count; ++block)
    for (std::int64_t other = 0; other < b.count; ++other) {
      products.multiply(block, other, tile.data());
      for (std::int64_t r = 0; r < b.rows(block); ++r)
        for (std::int64_t s = 0; s < b.rows(other); ++s) {
          const std::int64_t i = b.token(block * b.size + r), j = b.token(other * b.size + s);
          double exact = p.scale == 1 ? 1 : 0;
          for (std::int64_t c = 0; c < p.points.d; ++c) {
            const double x = p.points.row(i)[c], y = p.points.row(j)[c];
            exact += p.scale == 1 ? -x * y : (x - y) * (x - y);
          }
          const float d = (p.norms[static_cast<std::size_t>(i)] + p.norms[static_cast<std::size_t>(j)]) - p.scale * tile[static_cast<std::size_t>(r * b.size + s)];
          const double bound = products.errors()[static_cast<std::size_t>(i)];
          worst = std::max(worst, bound > 0 ? std::abs(static_cast<double>(d) - exact) / bound : std::abs(static_cast<double>(d) - exact));
        }
    }
  EXPECT_LE(worst, 1) << what;
}

TEST(Products, StayWithinTheirBounds) {
  for (const std::int64_t d : {1, 2, 7, 64, 301}) {
    const std::int64_t m = 205;
    const std::vector<float> values = odd_vectors(m, d);
    for (const bool cosine : {false, true}) {
      const Prepared p = prepare({values.data(), m, d}, cosine);
      for (const int threads : {1, 9}) {
        const std::string what = std::to_string(d) + (cosine ? " cosine" : " gauss");
        expect_within_bounds(p, *float_products(p, divide(m, threads)), what + " floats");
        if (has_integer_products()) expect_within_bounds(p, *integer_products(p, divide(m, threads)), what + " integers");
      }
    }
  }
  if (!has_integer_products()) GTEST_SKIP() << "no AVX-512 VNNI here: integers were left out";
}

TEST(Products, LoseLittle) {
  if (!has_integer_products()) GTEST_SKIP() << "no AVX-512 VNNI here";
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(100 * 768);
  for (float& v : values) v = normal(random);
  const Prepared p = prepare({values.data(), 100, 768}, false);
  EXPECT_LT(integer_products(p, divide(100, 1))->errors()[0], 5 * p.errors[0]) << "about four times the bound of single precision";
}

TEST(Blocks, GiveEveryTokenOnePlace) {
  for (const std::int64_t m : {1, 2, 47, 48, 49, 1000, 50257}) {
    for (const int threads : {1, 2, 64}) {
      const Blocks b = divide(m, threads);
      std::set<std::int64_t> places;
      std::int64_t rows = 0;
      for (std::int64_t i = 0; i < m; ++i) {
        places.insert(b.place(i));
        ASSERT_EQ(b.token(b.place(i)), i);
        ASSERT_LT(b.place(i) % b.size, b.rows(b.place(i) / b.size));
      }
      for (std::int64_t block = 0; block < b.count; ++block) rows += b.rows(block);
      EXPECT_EQ(static_cast<std::int64_t>(places.size()), m);
      EXPECT_EQ(rows, m);
    }
  }
}

}  // namespace
}  // namespace gdds::graph
