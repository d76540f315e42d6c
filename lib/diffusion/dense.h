// K_{t,s} as a matrix, by integrating dK/dt = Q_t K: for any process, where the number of states is small.
#pragma once

#include "diffusion/process.h"

namespace gdds::diffusion {

// a b, square and row-major.
std::vector<double> multiply(const std::vector<double>& a, const std::vector<double>& b, std::size_t n);

class DenseTransition final : public Transition {
 public:
  static constexpr std::int32_t kMostStates = 2048;

  // Status 1 for more states than kMostStates.
  DenseTransition(const Process& process, double s, double t);
  // K itself, [n, n].
  DenseTransition(std::size_t n, std::vector<double> matrix) : n_(n), matrix_(std::move(matrix)) {}

  double entry(std::int32_t x, std::int32_t y) const override { return matrix_[index(x, y)]; }
  void column(std::int32_t y, std::span<double> out) const override;
  void row(std::int32_t x, std::span<double> out) const override;
  void apply(std::span<const double> p, std::span<double> out) const override;
  void apply_transposed(std::span<const double> h, std::span<double> out) const override;

 private:
  std::size_t index(std::int32_t x, std::int32_t y) const { return static_cast<std::size_t>(x) * n_ + static_cast<std::size_t>(y); }
  std::size_t n_;
  std::vector<double> matrix_;  // [to, from]
};

}  // namespace gdds::diffusion
