// What noising does to one token, for the processes that training uses at every step: absorb, uniform and hybrid (resets
// to a mask or to any token), and the semantic kernels, over a neighbour table or over the whole vocabulary. MATH 2.
// A function of one token is the definition; the CPU loops over tokens with it, and so does the CUDA grid, so both give
// the same tokens. What depends on t alone is computed once a sequence, on the host.
#pragma once

#include <cstdint>

#include "philox.h"

namespace gdds::kernels {

// A batch, row-major [sequences, length]; host memory for cpu::, device memory for cuda::.
struct Snapshots {
  const std::int32_t* x0;
  const std::uint64_t* numbers;  // [sequences]: the sequence in the counter of its random numbers
  std::int64_t sequences, length;
  std::uint64_t seed;
  std::int32_t* xt;
  std::uint8_t* jumped;
};

// ---- resets: absorb, uniform, hybrid ---------------------------------------------------------------------------------

// Of one t. A word below `jump` jumps, and below `mask` (at most `jump`) goes to the mask.
struct ResetLimits {
  std::uint32_t jump, mask;
};

// 64 tokens share the words of 16 positions, so that a vector of words belongs to a vector of tokens: token l has word
// l / 16 % 4 of position 16 (l / 64) + l % 16.
GDDS_HD inline void absorb_token(std::int32_t x0, std::uint32_t word, ResetLimits limits, std::int32_t mask, std::int32_t& xt, std::uint8_t& jumped) {
  const bool jumps = word < limits.jump;
  xt = jumps ? mask : x0;
  jumped = jumps ? 1 : 0;
}

// 32 tokens share the words of 16 positions: token l has word 2 (l / 16 % 2) and the next of position
// 16 (l / 32) + l % 16. The new token is one of m, uniform to within 2^-32.
GDDS_HD inline void reset_token(std::int32_t x0, std::uint32_t first, std::uint32_t second, ResetLimits limits, std::int32_t mask, std::int32_t m,
                                std::int32_t& xt, std::uint8_t& jumped) {
  const bool jumps = first < limits.jump;
  const std::int32_t other = static_cast<std::int32_t>((static_cast<std::uint64_t>(second) * static_cast<std::uint32_t>(m)) >> 32);
  const std::int32_t target = first < limits.mask ? mask : other;
  xt = jumps ? target : x0;
  jumped = jumps ? 1 : 0;
}

// ---- the two clocks of a semantic kernel -------------------------------------------------------------------------------

// A and R of MATH 2.2 over the clock Lambda, on equal cells with their derivatives: cubic between the nodes.
struct ClockNode {
  double a, r;    // A, R
  double da, dr;  // their derivatives by Lambda: 1 - lambda, and lambda m/(m-1)
};

struct ClockTable {
  const ClockNode* nodes;  // [cells + 1]
  std::int32_t cells;
  double step;                // Lambda of a cell
  const std::int32_t* guide;  // [guides + 1]: the last node whose R is not above i / guide_scale
  std::int32_t guides;
  double guide_scale;
};

// A cubic on [0, 1] with the values and slopes of its ends; slopes by the cell.
struct Cubic {
  double c0, c1, c2, c3;
  GDDS_HD double operator()(double z) const { return ((c3 * z + c2) * z + c1) * z + c0; }
  GDDS_HD double slope(double z) const { return (3.0 * c3 * z + 2.0 * c2) * z + c1; }
};

GDDS_HD inline Cubic hermite(double left, double right, double left_slope, double right_slope) {
  const double rise = right - left;
  return {left, left_slope, 3.0 * rise - 2.0 * left_slope - right_slope, left_slope + right_slope - 2.0 * rise};
}

GDDS_HD inline Cubic a_in_cell(const ClockTable& c, std::int32_t cell) {
  const ClockNode &left = c.nodes[cell], &right = c.nodes[cell + 1];
  return hermite(left.a, right.a, left.da * c.step, right.da * c.step);
}

GDDS_HD inline Cubic r_in_cell(const ClockTable& c, std::int32_t cell) {
  const ClockNode &left = c.nodes[cell], &right = c.nodes[cell + 1];
  return hermite(left.r, right.r, left.dr * c.step, right.dr * c.step);
}

// A place on the clock: cell and fraction of it.
struct ClockPlace {
  std::int32_t cell;
  double z;
};

GDDS_HD inline ClockPlace place_of_lambda(const ClockTable& c, double lambda) {
  const double at = lambda / c.step;
  std::int32_t cell = static_cast<std::int32_t>(at);
  cell = cell < 0 ? 0 : cell >= c.cells ? c.cells - 1 : cell;
  return {cell, at - static_cast<double>(cell)};
}

// The cell in which R has the value r, through the guide.
GDDS_HD inline std::int32_t cell_of_r(const ClockTable& c, double r) {
  std::int32_t g = static_cast<std::int32_t>(r * c.guide_scale);
  g = g < 0 ? 0 : g >= c.guides ? c.guides - 1 : g;
  std::int32_t low = c.guide[g], high = c.guide[g + 1] + 1;  // R(low) <= r < R(high)
  high = high > c.cells ? c.cells : high;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    if (c.nodes[middle].r <= r) low = middle;
    else high = middle;
  }
  return low;
}

// The place in that cell, by Newton from the chord.
GDDS_HD inline double fraction_of_r(const ClockTable& c, std::int32_t cell, double r) {
  const Cubic f = r_in_cell(c, cell);
  const double left = c.nodes[cell].r, right = c.nodes[cell + 1].r;
  double z = (r - left) / (right - left);
  for (int i = 0; i < 3; ++i) z = z - (f(z) - r) / f.slope(z);
  return z < 0.0 ? 0.0 : z > 1.0 ? 1.0 : z;
}

GDDS_HD inline ClockPlace place_of_r(const ClockTable& c, double r) {
  const std::int32_t cell = cell_of_r(c, r);
  return {cell, fraction_of_r(c, cell, r)};
}

struct Noised {
  std::int32_t token;
  bool jumped;
};

// ---- semantic kernels over a neighbour table (sik-knn) ---------------------------------------------------------------------

// A slot of a column's alias table: a word below `limit` takes `token`, another `other`.
template <typename Id>
struct AliasSlot {
  std::uint32_t limit;
  Id token, other;
};

// A draw from the column of y: one slot of k, uniform, then one of its two tokens.
GDDS_HD inline std::int64_t alias_slot(std::int32_t k, std::int32_t y, std::uint64_t bits) {
  return static_cast<std::int64_t>(y) * k + static_cast<std::int64_t>(((bits >> 32) * static_cast<std::uint32_t>(k)) >> 32);
}

template <typename Id>
GDDS_HD inline std::int32_t alias_draw(const AliasSlot<Id>* slots, std::int32_t k, std::int32_t y, std::uint64_t bits) {
  const AliasSlot<Id> s = slots[alias_slot(k, y, bits)];
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) < s.limit ? s.token : s.other);
}

template <typename Id>
struct SikTables {
  const AliasSlot<Id>* slots;  // [m, k]
  std::int32_t m, k;
  ClockTable clock;
};

// Of one t.
struct SikTime {
  double a, r;          // A(t), R(t)
  double no_reset;      // e^-R(t)
  double no_semantic;   // e^-A(t)
  double lambda;        // Lambda(t)
};

// The number of semantic jumps: Poisson with this mean, so none with probability e^-mean.
struct JumpLaw {
  double mean, none;
};

// From a place of the clock, where the last reset was, to t.
GDDS_HD inline JumpLaw jumps_since(const ClockTable& clock, const SikTime& time, ClockPlace reset) {
  const double mean = time.a - a_in_cell(clock, reset.cell)(reset.z);
  const double kept = mean < 0.0 ? 0.0 : mean;
  return {kept, natural_exp(-kept)};
}

// MATH 2.2: the last reset, then a Poisson number of semantic jumps since. Draws: reset, number of jumps, then, where
// they are needed, the new token and the jumps.
template <typename Id>
GDDS_HD inline Noised sik_token(const SikTables<Id>& tables, const SikTime& time, std::int32_t x0, TokenRandom& random) {
  const double u = random.unit(), v = random.unit();
  const bool reset = u > time.no_reset;
  JumpLaw law = {time.a, time.no_semantic};
  if (reset) law = jumps_since(tables.clock, time, place_of_r(tables.clock, time.r + natural_log(u)));
  const int jumps = poisson_inverse(law.mean, law.none, v);
  std::int32_t token = reset ? below(tables.m, random.next()) : x0;
  for (int i = 0; i < jumps; ++i) token = alias_draw(tables.slots, tables.k, token, random.next());
  return {token, reset || jumps > 0};
}

// t as a function of the clock Lambda, for each schedule of MATH 1.
struct ScheduleInverse {
  enum Form : std::int32_t { kLinear, kCosine, kGeometric, kExponential };
  Form form;
  double a, b;  // slope; slope; sigma_min and log(sigma_max/sigma_min); rate

  GDDS_HD double operator()(double lambda) const {
    if (form == kExponential) return lambda / a;
    if (form == kGeometric) return natural_log(1.0 + lambda / a) / b;
    const double gone = (1.0 - natural_exp(-lambda)) / a;
    const double kept = gone > 1.0 ? 1.0 : gone;
    return form == kLinear ? kept : arc_sine(kept) / 1.5707963267948966;
  }
};

// ---- semantic kernels over the whole vocabulary (sik-dense) -------------------------------------------------------------------

struct DenseTables {
  std::int32_t m, k, d;
  bool cosine;
  const std::int32_t* neighbours;  // [m, k], by D
  const std::int32_t* by_id;       // [m, k], the same, sorted by id
  const double* distances;         // [m, k]: D, the distance divided by the bandwidths
  const float* points;             // [m, d]
  const double* scales;            // [m]: D(x, y) = d(x, y) scales[x] scales[y]
  const double* lengths;           // [m]: |e|, for the cosine
  ClockTable clock;
  ScheduleInverse schedule;
  double reset_low, reset_rise, reset_steepness, reset_middle;  // lambda(t) = low + rise sigmoid(steepness (t - middle))
  double log_tau, log_tau_rise;                                 // log tau(t) = log_tau + log_tau_rise t
};

constexpr int kLanes = 8;  // partial sums, always the same, so that a value does not depend on the vector width

GDDS_HD inline double add_lanes(const double* s) { return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); }

// sum (a-b)^2, or sum a b for the cosine.
template <bool kProduct>
GDDS_HD inline double lane_sum(const float* a, const float* b, std::int32_t d) {
  double sums[kLanes] = {};
  std::int32_t i = 0;
  for (; i + kLanes <= d; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const double p = static_cast<double>(a[i + l]), q = static_cast<double>(b[i + l]), difference = p - q;
      sums[l] = sums[l] + (kProduct ? p * q : difference * difference);
    }
  for (int l = 0; i + l < d; ++l) {
    const double p = static_cast<double>(a[i + l]), q = static_cast<double>(b[i + l]), difference = p - q;
    sums[l] = sums[l] + (kProduct ? p * q : difference * difference);
  }
  return add_lanes(sums);
}

// D(x, y) in double precision; a vector of zeros is at right angles to all others.
GDDS_HD inline double scaled_distance(const DenseTables& t, std::int32_t x, std::int32_t y) {
  const float* a = t.points + static_cast<std::int64_t>(x) * t.d;
  const float* b = t.points + static_cast<std::int64_t>(y) * t.d;
  double d;
  if (t.cosine) {
    const double length = t.lengths[x] * t.lengths[y];
    d = 1.0 - (length > 0.0 ? lane_sum<true>(a, b, t.d) / length : 0.0);
  } else {
    d = lane_sum<false>(a, b, t.d);
  }
  return (d < 0.0 ? 0.0 : d) * t.scales[x] * t.scales[y];
}

GDDS_HD inline bool is_neighbour(const DenseTables& t, std::int32_t x, std::int32_t y) {
  const std::int32_t* row = t.by_id + static_cast<std::int64_t>(y) * t.k;
  std::int32_t low = 0, high = t.k;
  while (low < high) {
    const std::int32_t middle = (low + high) / 2;
    if (row[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low < t.k && row[low] == x;
}

// The sum of the neighbours' weights, that of the nearest being 1.
GDDS_HD inline double head_weight(const double* distances, std::int32_t k, double tau) {
  double sums[kLanes] = {};
  std::int32_t i = 0;
  for (; i + kLanes <= k; i += kLanes)
    for (int l = 0; l < kLanes; ++l) sums[l] = sums[l] + natural_exp((distances[0] - distances[i + l]) / tau);
  for (int l = 0; i + l < k; ++l) sums[l] = sums[l] + natural_exp((distances[0] - distances[i + l]) / tau);
  return add_lanes(sums);
}

// A draw from the column of y at temperature tau, by rejection (MATH 2.3): the k neighbours have their weights, all other
// tokens at most that of the k-th. A far token is drawn among all m, and one that is y or a neighbour is turned down.
struct RejectionDraw {
  GDDS_HD std::int32_t operator()(const DenseTables& t, double tau, std::int32_t y, TokenRandom& random) const {
    const double* row = t.distances + static_cast<std::int64_t>(y) * t.k;
    const double farthest = row[t.k - 1];
    const double head = head_weight(row, t.k, tau);
    const bool all = t.k == t.m - 1;  // every token is a neighbour
    const double tail = all ? 0.0 : static_cast<double>(t.m) * natural_exp((row[0] - farthest) / tau);
    for (;;) {
      double u = random.unit() * (head + tail);
      if (u < head || all) {
        std::int32_t i = 0;
        for (; i < t.k - 1; ++i) {
          u = u - natural_exp((row[0] - row[i]) / tau);
          if (u < 0.0) break;
        }
        return t.neighbours[static_cast<std::int64_t>(y) * t.k + i];
      }
      const std::int32_t x = below(t.m, random.next());
      const double v = random.unit();
      if (x == y || v >= natural_exp((farthest - scaled_distance(t, x, y)) / tau) || is_neighbour(t, x, y)) continue;
      return x;
    }
  }
};

// The same law from all weights of the column, in strips of every kStrips-th token: the sum of each strip, the strip that
// a uniform number falls into, the token in it. A block of a GPU does a strip a thread.
constexpr std::int32_t kStrips = 256;

GDDS_HD inline double column_weight(const DenseTables& t, double tau, std::int32_t x, std::int32_t y) {
  return x == y ? 0.0 : natural_exp((t.distances[static_cast<std::int64_t>(y) * t.k] - scaled_distance(t, x, y)) / tau);
}

GDDS_HD inline double strip_weight(const DenseTables& t, double tau, std::int32_t y, std::int32_t strip) {
  double sum = 0.0;
  for (std::int32_t x = strip; x < t.m; x += kStrips) sum = sum + column_weight(t, tau, x, y);
  return sum;
}

// The strip that u times the total falls into; u becomes what is left of it in that strip.
GDDS_HD inline std::int32_t find_strip(const double* strips, double& u) {
  double total = 0.0;
  for (std::int32_t s = 0; s < kStrips; ++s) total = total + strips[s];
  u = u * total;
  std::int32_t last = 0;
  for (std::int32_t s = 0; s < kStrips; ++s) {
    if (strips[s] <= 0.0) continue;
    last = s;
    if (u < strips[s]) return s;
    u = u - strips[s];
  }
  u = strips[last];  // rounding: the last token that has a weight
  return last;
}

GDDS_HD inline std::int32_t token_in_strip(const DenseTables& t, double tau, std::int32_t y, std::int32_t strip, double u) {
  std::int32_t last = -1;
  for (std::int32_t x = strip; x < t.m; x += kStrips) {
    const double w = column_weight(t, tau, x, y);
    if (w <= 0.0) continue;
    last = x;
    if (u < w) break;
    u = u - w;
  }
  return last;
}

struct BlockwiseDraw {
  GDDS_HD std::int32_t operator()(const DenseTables& t, double tau, std::int32_t y, TokenRandom& random) const {
    double strips[kStrips];
    for (std::int32_t s = 0; s < kStrips; ++s) strips[s] = strip_weight(t, tau, y, s);
    double u = random.unit();
    const std::int32_t strip = find_strip(strips, u);
    return token_in_strip(t, tau, y, strip, u);
  }
};

GDDS_HD inline double reset_share(const DenseTables& t, double time) {
  return t.reset_low + t.reset_rise / (1.0 + natural_exp(t.reset_steepness * (t.reset_middle - time)));
}

// The last reset as in sik_token; then events of rate 1 on the clock Lambda, each a semantic jump with probability
// 1 - lambda, at the temperature of its time. `Draw` is one of the two above.
template <typename Draw>
GDDS_HD inline Noised dense_token(const DenseTables& tables, const SikTime& time, std::int32_t x0, TokenRandom& random, Draw draw) {
  const double u = random.unit();
  const bool reset = u > time.no_reset;
  double lambda = 0.0;
  std::int32_t token = x0;
  if (reset) {
    const ClockPlace at = place_of_r(tables.clock, time.r + natural_log(u));
    lambda = (static_cast<double>(at.cell) + at.z) * tables.clock.step;
    token = below(tables.m, random.next());
  }
  bool jumped = reset;
  for (;;) {
    lambda = lambda + random.exponential();
    if (!(lambda < time.lambda)) return {token, jumped};
    const double t = tables.schedule(lambda);
    if (random.unit() >= 1.0 - reset_share(tables, t)) continue;
    token = draw(tables, natural_exp(tables.log_tau + tables.log_tau_rise * t), token, random);
    jumped = true;
  }
}

// ---- loops over a batch ------------------------------------------------------------------------------------------------------

namespace cpu {
// One entry of limits or times a sequence. The tokens do not depend on `threads`.
void noise_absorb(const Snapshots& batch, const ResetLimits* limits, std::int32_t mask, int threads);
void noise_reset(const Snapshots& batch, const ResetLimits* limits, std::int32_t mask, std::int32_t m, int threads);
void noise_sik(const Snapshots& batch, const SikTables<std::uint16_t>& tables, const SikTime* times, int threads);
void noise_sik(const Snapshots& batch, const SikTables<std::int32_t>& tables, const SikTime* times, int threads);
void noise_dense(const Snapshots& batch, const DenseTables& tables, const SikTime* times, int threads);
// The same law from all m weights of each column: the definition that noise_dense is tested against.
void noise_blockwise(const Snapshots& batch, const DenseTables& tables, const SikTime* times, int threads);
}  // namespace cpu

namespace cuda {
// The same tokens. Return 0 or the CUDA error.
int noise_absorb(const Snapshots& batch, const ResetLimits* limits, std::int32_t mask);
int noise_reset(const Snapshots& batch, const ResetLimits* limits, std::int32_t mask, std::int32_t m);
int noise_sik(const Snapshots& batch, const SikTables<std::uint16_t>& tables, const SikTime* times);
int noise_sik(const Snapshots& batch, const SikTables<std::int32_t>& tables, const SikTime* times);
int noise_dense(const Snapshots& batch, const DenseTables& tables, const SikTime* times);
int noise_blockwise(const Snapshots& batch, const DenseTables& tables, const SikTime* times);
}  // namespace cuda

}  // namespace gdds::kernels
