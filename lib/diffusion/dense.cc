// See dense.h. The classical Runge-Kutta method over the clock Lambda, in which rates are bounded, in steps that become small
// towards both ends, where t may be steep as a function of Lambda; with three numbers of steps, extrapolated (Romberg).
#include "diffusion/dense.h"

#include <algorithm>
#include <cmath>

#include <cblas.h>

#include "base/error.h"

namespace gdds::diffusion {
namespace {

using Matrix = std::vector<double>;

// Q_t dt/du, row-major [to, from]; u from 0 to 1 goes over the clock as u^2 (3 - 2u).
Matrix generator(const Process& process, double from, double to, double u) {
  const double Lambda = from + (to - from) * u * u * (3 - 2 * u), speed = 6 * (to - from) * u * (1 - u);
  const auto n = static_cast<std::size_t>(process.states());
  const double t = std::clamp(process.schedule().time_of(Lambda), 0.0, 1.0), f = process.schedule().f(t);
  Matrix g(n * n);
  std::vector<double> column(n);
  for (std::size_t y = 0; y < n; ++y) {
    process.rates_from(static_cast<std::int32_t>(y), t, column);
    for (std::size_t x = 0; x < n; ++x) g[x * n + y] = f > 0 ? column[x] / f * speed : 0.0;
  }
  return g;
}

Matrix sum(const Matrix& a, double weight, const Matrix& b) {
  Matrix c(a);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += weight * b[i];
  return c;
}

Matrix runge_kutta(const Process& process, double from, double to, int steps) {
  const auto n = static_cast<std::size_t>(process.states());
  const double h = 1.0 / steps;
  Matrix K(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) K[i * n + i] = 1;
  Matrix left = generator(process, from, to, 0);
  for (int i = 0; i < steps; ++i) {
    const Matrix middle = generator(process, from, to, (i + 0.5) * h), right = generator(process, from, to, (i + 1) * h);
    const Matrix k1 = multiply(left, K, n), k2 = multiply(middle, sum(K, h / 2, k1), n), k3 = multiply(middle, sum(K, h / 2, k2), n), k4 = multiply(right, sum(K, h, k3), n);
    for (std::size_t e = 0; e < K.size(); ++e) K[e] += h / 6 * (k1[e] + 2 * k2[e] + 2 * k3[e] + k4[e]);
    left = right;
  }
  return K;
}

}  // namespace

std::vector<double> multiply(const std::vector<double>& a, const std::vector<double>& b, std::size_t n) {
  Matrix c(n * n);
  const auto size = static_cast<int>(n);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, a.data(), size, b.data(), size, 0, c.data(), size);
  return c;
}

DenseTransition::DenseTransition(const Process& process, double s, double t) : n_(static_cast<std::size_t>(process.states())) {
  if (process.states() > kMostStates)
    fail("process {}: the transition matrix of {} states is computed for at most {}", process.name(), process.states(), kMostStates);
  const double from = process.schedule().Lambda(s), to = process.schedule().Lambda(t);
  const int steps = 128 + static_cast<int>(std::ceil(32 * (to - from)));
  Matrix coarse = runge_kutta(process, from, to, steps), middle = runge_kutta(process, from, to, 2 * steps), fine = runge_kutta(process, from, to, 4 * steps);
  matrix_.resize(fine.size());
  for (std::size_t i = 0; i < fine.size(); ++i) {
    const double first = (16 * middle[i] - coarse[i]) / 15, second = (16 * fine[i] - middle[i]) / 15;
    matrix_[i] = std::max(0.0, (32 * second - first) / 31);
  }
}

void DenseTransition::column(std::int32_t y, std::span<double> out) const {
  for (std::size_t x = 0; x < n_; ++x) out[x] = matrix_[x * n_ + static_cast<std::size_t>(y)];
}

void DenseTransition::row(std::int32_t x, std::span<double> out) const {
  std::copy_n(matrix_.begin() + static_cast<std::ptrdiff_t>(index(x, 0)), n_, out.begin());
}

void DenseTransition::apply(std::span<const double> p, std::span<double> out) const {
  const auto n = static_cast<int>(n_);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, n, n, 1, matrix_.data(), n, p.data(), 1, 0, out.data(), 1);
}

void DenseTransition::apply_transposed(std::span<const double> h, std::span<double> out) const {
  const auto n = static_cast<int>(n_);
  cblas_dgemv(CblasRowMajor, CblasTrans, n, n, 1, matrix_.data(), n, h.data(), 1, 0, out.data(), 1);
}

}  // namespace gdds::diffusion
