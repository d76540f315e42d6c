// Uniform numbers, logarithm and exponential in double precision from additions, multiplications and one division alone,
// so that the host, every vector width and the GPU give the same bits (each is compiled without contraction of a*b+c).
// Tests bound their errors; libraries' log and exp differ between machines.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define GDDS_HD __host__ __device__
#else
#define GDDS_HD
#endif

namespace gdds::kernels {

GDDS_HD inline double bits_to_double(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

GDDS_HD inline std::uint64_t double_to_bits(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// In (0, 1), from the upper 52 bits: with one more, the half would be rounded away above 1/2, and 1 could occur.
GDDS_HD inline double unit(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

// In {0, ..., count - 1}: the upper part of a 96-bit product, so each has its probability to within 2^-64.
GDDS_HD inline std::int32_t below(std::int32_t count, std::uint64_t bits) {
  const std::uint64_t n = static_cast<std::uint32_t>(count);
  return static_cast<std::int32_t>(((bits >> 32) * n + (((bits & 0xffffffffU) * n) >> 32)) >> 32);
}

// log x for a positive, normal x: x = 2^e m, and log m as an odd series in (m-1)/(m+1).
GDDS_HD inline double natural_log(double x) {
  std::uint64_t bits = double_to_bits(x);
  std::int64_t e = static_cast<std::int64_t>(bits >> 52) - 1023;
  bits = (bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL;
  double m = bits_to_double(bits);
  const bool upper = m > 1.4142135623730951;
  m = upper ? 0.5 * m : m;
  e += upper ? 1 : 0;
  const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
  double p = 1.0 / 21;
  p = p * s2 + 1.0 / 19;
  p = p * s2 + 1.0 / 17;
  p = p * s2 + 1.0 / 15;
  p = p * s2 + 1.0 / 13;
  p = p * s2 + 1.0 / 11;
  p = p * s2 + 1.0 / 9;
  p = p * s2 + 1.0 / 7;
  p = p * s2 + 1.0 / 5;
  p = p * s2 + 1.0 / 3;
  const double head = 2.0 * s;
  return (head + head * s2 * p) + static_cast<double>(e) * 1.90821492927058770002e-10 + static_cast<double>(e) * 0.693147180369123816490;
}

// e^x: 2^k times a Taylor series on |r| <= log(2)/2; 0 below -708, where the result is no longer normal, and e^709 above 709. k comes out of
// the last bits of a sum with a large number, so that a loop over x has no branch and no conversion in it.
GDDS_HD inline double natural_exp(double x) {
  const double kept = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
  const double shifted = kept * 1.4426950408889634 + 0x1.8p52;
  const double k = shifted - 0x1.8p52;
  const double r = (kept - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  const double value = 1.0 + (r + r * r * p);
  const double scale = bits_to_double((double_to_bits(shifted) + 1023) << 52);
  return x < -708.0 ? 0.0 : value * scale;
}

// asin x for 0 <= x <= 1, by its series up to 1/2 and by asin x = pi/2 - 2 asin sqrt((1-x)/2) beyond.
GDDS_HD inline double arc_sine(double x) {
  const bool upper = x > 0.5;
  const double z = upper ? ::sqrt((1.0 - x) * 0.5) : x, z2 = z * z;
  double term = z, sum = z;
  for (int n = 0; n < 26; ++n) {
    const double odd = 2.0 * n + 1.0;
    term = term * z2 * (odd * odd) / ((odd + 1.0) * (odd + 2.0));
    sum = sum + term;
  }
  return upper ? 1.5707963267948966 - 2.0 * sum : sum;
}

// The number of events of a Poisson process with this mean, by inversion: the first n whose distribution function
// exceeds u. `none` is e^-mean. For means up to 64.
GDDS_HD inline int poisson_inverse(double mean, double none, double u) {
  int n = 0;
  double p = none, sum = none;
  while (u >= sum && n < 400) {
    ++n;
    p = p * mean / static_cast<double>(n);
    sum = sum + p;
  }
  return n;
}

}  // namespace gdds::kernels
