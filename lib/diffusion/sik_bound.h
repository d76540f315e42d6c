// What the path-wise bound (MATH 6) needs of sik-knn at a large vocabulary, where no matrix over it can be made. With the
// leave-one-out l, p = K_t l and q = K_t(. | x0), the integrand is
//   a sum_{y != x_t} F(x_t, y) g(y) + r/m sum_{y != x_t} g(y),   g = rho_0 log(rho_0/rho) - rho_0 + rho,   rho = p(.)/p(x_t), rho_0 = q(.)/q(x_t),
// a and r the rates of semantic jumps and of resets. Over all y, sum rho and sum rho_0 are known since p and q sum to one,
//   sum_{y != x_t} g(y) = [ KL(q || p) - log q(x_t)/p(x_t) - 1 ] / q(x_t) + 1/p(x_t).
// Where a kernel is so diffuse that a few jumps reach most tokens, E_t l is made for all of them by powers of F, whose number
// and weights are given here, and both sums are exact. Where it is sharp, p is wanted at four tokens of each position only,
// p(y) = sum_x e^{-R_t} E_t(y, x) l(x) + v_t(y), from sparse rows of E_t, which are made here: x_t, x0, and a draw for each
// sum, which makes it an unbiased estimate: for KL, whose terms of x_t and x0 are known then, y ~ q among all others, and for
// the first sum y with a probability near that of its term.
// Where x_t was reached from y by one unlikely jump, rho_0(y) is as large as F(x_t, y) is small: a draw of F(x_t, .) alone would
// find it next to never, and be enormous when it does. y = x0, the worst, is taken out of it and counted exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "diffusion/sik.h"
#include "diffusion/snapshots.h"

namespace gdds::diffusion {

// For each token of a few sequences four rows, in this order: of x_t, of x0, of a y != x0 that jumps to x_t, of y ~ K_t(. | x0), neither x0 nor x_t.
struct BoundRows {
  static constexpr std::int64_t kRows = 4;
  std::vector<std::int64_t> tokens;  // [4 tokens], y
  std::vector<std::int64_t> begin;   // [4 tokens + 1]
  std::vector<std::int32_t> ids;     // x
  std::vector<float> weights;        // e^{-R_t} E_t(y, x)
  std::vector<float> v;              // [4 tokens], v_t(y)
  std::vector<float> q;              // [4 tokens], K_t(y | x0)
  std::vector<float> from_x0;        // [tokens], a(t) F(x_t, x0)
  std::vector<float> semantic;       // [tokens], a(t) F(x_t, y) over the probability with which y was drawn; 0 where there is none
  std::vector<float> reset;          // [tokens], r(t)/m
  std::vector<float> elsewhere;      // [tokens], 1 - K_t(x0 | x0) - K_t(x_t | x0), the weight of the fourth row in KL
};

// Of sequences first ... first + n - 1. The draws depend on each sequence and its time alone. What is left out of a row
// changes no p(y) by more than kTolerance of itself. Status 1 where the rows have more than kMostEntries together: a kernel
// that reaches most of the vocabulary within a few jumps.
constexpr double kTolerance = 1e-4;
constexpr std::int64_t kMostEntries = 100000000;
BoundRows bound_rows(const SikKnnProcess& process, const SnapshotBatch& batch, std::int64_t first, std::int64_t n);

// Mean number of entries of a row at t = 1, where they are longest, from a few rows.
double entries_of_a_row(const SikKnnProcess& process);

// e^{-R_t} E_t = sum_n weights[n] F^n, as far as what is left out changes no p(y) by more than kTolerance of itself.
std::vector<double> bound_powers(const SikKnnProcess& process, double t);
// v_t(y) of all y.
std::vector<float> bound_spread(const SikKnnProcess& process, double t);

}  // namespace gdds::diffusion
