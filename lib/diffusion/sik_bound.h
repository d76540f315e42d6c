// What the path-wise bound of sik-knn (MATH 6) needs at a large vocabulary, where no sum over all tokens y is made. With the
// rates Q_t(x_t, y) = a F(x_t, y) + r/m and p = K_t l, q = K_t(. | x0), the integrand is
//   a sum_y F(x_t, y) g(y) + (r/m) sum_y g(y),   g = rho_0 log(rho_0/rho) - rho_0 + rho,
//   sum_y g(y) = (1/q(x_t)) ( E_{y ~ q} log(q(y)/p(y)) - log(q(x_t)/p(x_t)) - 1 ) + 1/p(x_t),
// so one y ~ F(x_t, .) for the first sum and one y ~ q for the second make it an unbiased estimate. Each token needs p at
// three tokens only, p(y) = sum_x e^{-R_t} E_t(y, x) l(x) + v_t(y): sparse rows of E_t, which are made here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "diffusion/sik.h"
#include "diffusion/snapshots.h"

namespace gdds::diffusion {

// For each token of a few sequences three rows, in this order: of x_t, of y ~ F(x_t, .), of y ~ K_t(. | x0).
struct BoundRows {
  std::vector<std::int64_t> begin;   // [3 tokens + 1]
  std::vector<std::int32_t> ids;     // x
  std::vector<float> weights;        // e^{-R_t} E_t(y, x)
  std::vector<float> v;              // [3 tokens], v_t(y)
  std::vector<float> q;              // [3 tokens], K_t(y | x0)
  std::vector<float> semantic;       // [tokens], a(t) sum_y F(x_t, y)
  std::vector<float> reset;          // [tokens], r(t)/m
};

// Of sequences first ... first + n - 1. The draws depend on each sequence and its time alone. What is left out of a row
// changes no p(y) by more than kTolerance of itself.
constexpr double kTolerance = 1e-5;
BoundRows bound_rows(const SikKnnProcess& process, const SnapshotBatch& batch, std::int64_t first, std::int64_t n);

}  // namespace gdds::diffusion
