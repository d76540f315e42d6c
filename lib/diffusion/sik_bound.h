// What the path-wise bound of sik-knn (MATH 6) needs at a large vocabulary, where no sum over all tokens y is made. With the
// rates Q_t(x_t, y) = a F(x_t, y) + r/m and p = K_t l, q = K_t(. | x0), the integrand is
//   a sum_y F(x_t, y) g(y) + (r/m) sum_y g(y),   g = rho_0 log(rho_0/rho) - rho_0 + rho,
//   sum_y g(y) = (1/q(x_t)) ( E_{y ~ q} log(q(y)/p(y)) - log(q(x_t)/p(x_t)) - 1 ) + 1/p(x_t),
// so one y ~ F(x_t, .) for the first sum and one y ~ q for the second make it an unbiased estimate. y = x0 is taken out of
// the first sum and counted exactly: where x_t was reached from x0 by one unlikely jump, rho_0(x0) is as large as F(x_t, x0)
// is small, and the draw would find it next to never. Each token needs p at four tokens only,
// p(y) = sum_x e^{-R_t} E_t(y, x) l(x) + v_t(y): sparse rows of E_t, which are made here, or, where a kernel is so diffuse that
// these rows are long, all of E_t l at once by powers of F, whose number and weights are given here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "diffusion/sik.h"
#include "diffusion/snapshots.h"

namespace gdds::diffusion {

// For each token of a few sequences four rows, in this order: of x_t, of x0, of y ~ F(x_t, .) other than x0, of y ~ K_t(. | x0).
struct BoundRows {
  static constexpr std::int64_t kRows = 4;
  std::vector<std::int64_t> tokens;  // [4 tokens], y
  std::vector<std::int64_t> begin;   // [4 tokens + 1]; it and the next two are empty, and q is zero, without rows
  std::vector<std::int32_t> ids;     // x
  std::vector<float> weights;        // e^{-R_t} E_t(y, x)
  std::vector<float> v;              // [4 tokens], v_t(y)
  std::vector<float> q;              // [4 tokens], K_t(y | x0)
  std::vector<float> from_x0;        // [tokens], a(t) F(x_t, x0)
  std::vector<float> semantic;       // [tokens], a(t) times the sum of F(x_t, y) over the other y
  std::vector<float> reset;          // [tokens], r(t)/m
};

// Of sequences first ... first + n - 1. The draws depend on each sequence and its time alone. What is left out of a row
// changes no p(y) by more than kTolerance of itself. Status 1 where the rows have more than kMostEntries together: a kernel
// that reaches most of the vocabulary within a few jumps.
constexpr double kTolerance = 1e-4;
constexpr std::int64_t kMostEntries = 100000000;
enum class WithRows { yes, no };
BoundRows bound_rows(const SikKnnProcess& process, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, WithRows with = WithRows::yes);

// Mean number of entries of a row at t = 1, where they are longest, from a few rows.
double entries_of_a_row(const SikKnnProcess& process);

// e^{-R_t} E_t = sum_n weights[n] F^n, as far as what is left out changes no p(y) by more than kTolerance of itself.
std::vector<double> bound_powers(const SikKnnProcess& process, double t);

}  // namespace gdds::diffusion
