// See products.h.
//
// A vector is rounded to s q, s a float of its own and q whole numbers of at most 15 bits, |q| short enough that no product
// overflows 32 bits (Cauchy and Schwarz). The product of two is then exact, and differs from that of the vectors by at most
// |x| |y - y'| + |x - x'| |y'|, of which all are known. That is about four times the bound on what single precision loses.
#include "graph/products.h"

#include <cmath>

#include <cblas.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/threads.h"

namespace gdds::graph {
namespace {

constexpr std::int64_t kLineTokens = 16;  // of a vector register: a pair of 16-bit numbers each
constexpr std::int64_t kStep = 48;        // columns that are computed at a time; divides the size of a block
constexpr std::int64_t kStepRows = 8;
constexpr std::int64_t kLargest = 480;
constexpr double kUnitRoundoff = 0x1p-24;

class FloatProducts final : public Products {
 public:
  FloatProducts(const Prepared& p, const Blocks& b) : Products(b), p_(p) {}
  void multiply(std::int64_t block, std::int64_t other, float* tile) const override {
    const int d = static_cast<int>(p_.points.d), step = d * static_cast<int>(blocks.count);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(blocks.rows(block)), static_cast<int>(blocks.rows(other)), d, 1.0F,
                p_.points.row(block), step, p_.points.row(other), step, 0.0F, tile, static_cast<int>(blocks.size));
  }
  const std::vector<float>& errors() const override { return p_.errors; }

 private:
  const Prepared& p_;
};

#if defined(__x86_64__)
#define GDDS_VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

// Two numbers in a row of each of 16 tokens.
struct alignas(64) Line {
  std::int32_t pairs[kLineTokens];
};

// Sums of one row with 48 columns. Eight of these by name, not an array: compilers keep the array in memory.
struct Sums {
  __m512i a, b, c;
};

// _mm512_dpwssd_epi32, of which GCC 12 makes two copies and a store beside.
GDDS_VNNI inline void add_products(__m512i& sums, __m512i x, __m512i y) { asm("vpdpwssd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(y)); }

GDDS_VNNI inline void add(Sums& sums, std::int32_t row, __m512i a, __m512i b, __m512i c) {
  const __m512i pair = _mm512_set1_epi32(row);
  add_products(sums.a, pair, a);
  add_products(sums.b, pair, b);
  add_products(sums.c, pair, c);
}

GDDS_VNNI inline void store(__m512i sums, float row_scale, const float* column_scales, float* out) {
  const __m512 scales = _mm512_mul_ps(_mm512_set1_ps(row_scale), _mm512_loadu_ps(column_scales));
  _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, sums), scales));
}

GDDS_VNNI inline void store(const Sums& sums, float row_scale, const float* column_scales, float* out) {
  store(sums.a, row_scale, column_scales, out);
  store(sums.b, row_scale, column_scales + kLineTokens, out + kLineTokens);
  store(sums.c, row_scale, column_scales + 2 * kLineTokens, out + 2 * kLineTokens);
}

// tile[i, j] for 8 rows and 48 columns. Lines of the rows begin at the first of the 8; those of 16 columns follow each other.
GDDS_VNNI void multiply_step(const std::int32_t* rows, const Line* columns, std::int64_t lines, const float* row_scales, const float* column_scales, float* tile,
                             std::int64_t stride) {
  const __m512i zero = _mm512_setzero_si512();
  Sums s0{zero, zero, zero}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (std::int64_t l = 0; l < lines; ++l, rows += kLineTokens) {
    const __m512i a = _mm512_load_si512(columns + l), b = _mm512_load_si512(columns + lines + l), c = _mm512_load_si512(columns + 2 * lines + l);
    add(s0, rows[0], a, b, c);
    add(s1, rows[1], a, b, c);
    add(s2, rows[2], a, b, c);
    add(s3, rows[3], a, b, c);
    add(s4, rows[4], a, b, c);
    add(s5, rows[5], a, b, c);
    add(s6, rows[6], a, b, c);
    add(s7, rows[7], a, b, c);
  }
  store(s0, row_scales[0], column_scales, tile);
  store(s1, row_scales[1], column_scales, tile + stride);
  store(s2, row_scales[2], column_scales, tile + 2 * stride);
  store(s3, row_scales[3], column_scales, tile + 3 * stride);
  store(s4, row_scales[4], column_scales, tile + 4 * stride);
  store(s5, row_scales[5], column_scales, tile + 5 * stride);
  store(s6, row_scales[6], column_scales, tile + 6 * stride);
  store(s7, row_scales[7], column_scales, tile + 7 * stride);
}

class IntegerProducts final : public Products {
 public:
  IntegerProducts(const Prepared& p, const Blocks& b);
  void multiply(std::int64_t block, std::int64_t other, float* tile) const override;
  const std::vector<float>& errors() const override { return errors_; }

 private:
  // Returns what rounding takes away: |x - s q|.
  double round(const float* x, std::int64_t d, std::int64_t place);
  const Line* lines_of(std::int64_t place) const { return values_.data() + place / kLineTokens * lines_; }

  const std::int64_t lines_;  // of 16 tokens
  std::vector<Line> values_;
  std::vector<float> scales_;
  std::vector<float> errors_;
};

double IntegerProducts::round(const float* x, std::int64_t d, std::int64_t place) {
  double square = 0;
  float largest = 0;
  for (std::int64_t c = 0; c < d; ++c) {
    square += static_cast<double>(x[c]) * static_cast<double>(x[c]);
    largest = std::max(largest, std::abs(x[c]));
  }
  // |q| <= 46340 = sqrt(2^31), after rounding too.
  const double longest = 46339 - std::sqrt(static_cast<double>(d)) / 2;
  const auto scale = static_cast<float>(1.000001 * std::max(std::sqrt(square) / longest, static_cast<double>(largest) / 32766));
  scales_[static_cast<std::size_t>(place)] = scale;
  if (!(scale > 0)) return std::sqrt(square);
  Line* const lines = values_.data() + place / kLineTokens * lines_;
  double lost = 0;
  for (std::int64_t c = 0; c < d; ++c) {
    const auto q = static_cast<std::int32_t>(std::lrint(static_cast<double>(x[c]) / static_cast<double>(scale)));
    const double rest = static_cast<double>(x[c]) - static_cast<double>(scale) * q;
    lost += rest * rest;
    std::int32_t& pair = lines[c / 2].pairs[place % kLineTokens];
    pair = c % 2 == 0 ? q & 0xffff : static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) | static_cast<std::uint32_t>(q) << 16);
  }
  return std::sqrt(lost);
}

IntegerProducts::IntegerProducts(const Prepared& p, const Blocks& b)
    : Products(b), lines_((p.points.d + 1) / 2), values_(static_cast<std::size_t>(b.places() / kLineTokens * lines_)), scales_(static_cast<std::size_t>(b.places())),
      errors_(static_cast<std::size_t>(b.m)) {
  const auto m = static_cast<std::size_t>(b.m);
  std::vector<double> lost(m), lengths(m);
#pragma omp parallel for schedule(static) num_threads(threads())
  for (std::size_t i = 0; i < m; ++i) {
    const auto token = static_cast<std::int64_t>(i);
    const float* const x = p.points.row(token);
    lost[i] = round(x, p.points.d, blocks.place(token));
    double square = 0;
    for (std::int64_t c = 0; c < p.points.d; ++c) square += static_cast<double>(x[c]) * static_cast<double>(x[c]);
    lengths[i] = std::sqrt(square);
  }
  const double most_lost = *std::max_element(lost.begin(), lost.end()), longest = *std::max_element(lengths.begin(), lengths.end());
  for (std::size_t i = 0; i < m; ++i) {
    const double products = lengths[i] * most_lost + lost[i] * (longest + most_lost), reach = lengths[i] + longest + (p.scale == 1 ? 1 : 0);
    errors_[i] = static_cast<float>(1.01 * (static_cast<double>(p.scale) * products + 16 * kUnitRoundoff * reach * reach));
  }
}

void IntegerProducts::multiply(std::int64_t block, std::int64_t other, float* tile) const {
  const std::int64_t rows = blocks.rows(block), columns = blocks.rows(other), from = block * blocks.size, to = other * blocks.size;
  for (std::int64_t j = 0; j < columns; j += kStep)
    for (std::int64_t i = 0; i < rows; i += kStepRows)
      multiply_step(lines_of(from + i)->pairs + i % kLineTokens, lines_of(to + j), lines_, scales_.data() + from + i, scales_.data() + to + j,
                    tile + i * blocks.size + j, blocks.size);
}
#endif

}  // namespace

Blocks divide(std::int64_t m, int threads) {
  const std::int64_t share = m / (4 * threads) / kStep * kStep;
  Blocks blocks{m, std::clamp(share, kStep, kLargest), 0};
  blocks.count = (m + blocks.size - 1) / blocks.size;
  return blocks;
}

std::unique_ptr<Products> float_products(const Prepared& prepared, const Blocks& blocks) { return std::make_unique<FloatProducts>(prepared, blocks); }

#if defined(__x86_64__)
bool has_integer_products() { return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"); }
std::unique_ptr<Products> integer_products(const Prepared& prepared, const Blocks& blocks) { return std::make_unique<IntegerProducts>(prepared, blocks); }
#else
bool has_integer_products() { return false; }
std::unique_ptr<Products> integer_products(const Prepared& prepared, const Blocks& blocks) { return float_products(prepared, blocks); }
#endif

}  // namespace gdds::graph
