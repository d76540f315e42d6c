// Tables of noising for a vocabulary that is small enough to know every probability, made by hand: the clock of the
// log-linear schedule with the paper's lambda(t) (MATH 1, 2), neighbours of random points, alias slots at random. They are
// vectors here; a table of noise.h points into them, or into copies of them on a device: `at` says where a vector lies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "noise.h"

namespace gdds::test {

using namespace kernels;

// A vector where it is.
struct OnHost {
  template <typename T>
  const T* operator()(const std::vector<T>& v) const { return v.data(); }
};

// ---- clock ------------------------------------------------------------------------------------------------------------

constexpr double kEps = 1e-3;
inline double clock_of_time(double t) { return -std::log(1.0 - (1.0 - kEps) * t); }
inline double time_of_clock(double lambda) { return (1.0 - std::exp(-lambda)) / (1.0 - kEps); }

// The paper's weight of uniform jumps.
inline double lambda_of_time(double t) {
  const auto g = [](double s) { return 1.0 / (1.0 + std::exp(-10.0 * (s - 0.6))); };
  return 0.01 + 0.99 * (g(t) - g(0.0)) / (g(1.0) - g(0.0));
}

// The same as low + rise sigmoid(10 (t - 0.6)), which is how the dense kernel takes it.
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
const struct {
  double rise = 0.99 / (sigmoid(4.0) - sigmoid(-6.0));
  double low = 0.01 - rise * sigmoid(-6.0);
} kResets;

// The integral of f over a cell, by Gauss and Legendre with five points.
inline double integral(const std::function<double(double)>& f, double from, double to) {
  constexpr double kAt[] = {0.0, 0.5384693101056831, 0.9061798459386640};
  constexpr double kWeight[] = {0.5688888888888889, 0.4786286704993665, 0.2369268850561891};
  const double middle = 0.5 * (from + to), half = 0.5 * (to - from);
  double sum = kWeight[0] * f(middle);
  for (int i = 1; i < 3; ++i) sum += kWeight[i] * (f(middle - half * kAt[i]) + f(middle + half * kAt[i]));
  return sum * half;
}

struct Clock {
  std::vector<ClockNode> nodes;
  std::vector<std::int32_t> guide;
  double step, guide_scale;

  explicit Clock(std::int32_t m, std::int32_t cells = 512) : step(clock_of_time(1.0) / cells) {
    const auto weight = [](double clock) { return lambda_of_time(time_of_clock(clock)); };
    const double lift = m / (m - 1.0);
    double a = 0.0, r = 0.0;
    for (std::int32_t i = 0; i <= cells; ++i) {
      const double lambda = weight(i * step);
      nodes.push_back({a, r, 1.0 - lambda, lambda * lift});
      const double resets = integral(weight, i * step, (i + 1) * step);
      a += step - resets;
      r += resets * lift;
    }
    guide_scale = cells / nodes.back().r;
    for (std::int32_t i = 0, node = 0; i <= cells; ++i) {
      while (node < cells && nodes[static_cast<std::size_t>(node) + 1].r <= i / guide_scale) ++node;
      guide.push_back(node);
    }
  }

  template <typename At = OnHost>
  ClockTable table(At at = {}) const {
    const auto cells = static_cast<std::int32_t>(nodes.size()) - 1;
    return {at(nodes), cells, step, at(guide), static_cast<std::int32_t>(guide.size()) - 1, guide_scale};
  }

  SikTime time(double t) const {
    const ClockTable c = table();
    const double lambda = clock_of_time(t);
    const ClockPlace at = place_of_lambda(c, lambda);
    const double a = a_in_cell(c, at.cell)(at.z), r = r_in_cell(c, at.cell)(at.z);
    return {a, r, natural_exp(-r), natural_exp(-a), lambda};
  }
};

// ---- neighbour table ----------------------------------------------------------------------------------------------------

// Slots at random: whatever they are, they are a law.
template <typename Id>
struct Slots {
  std::int32_t m, k;
  std::vector<AliasSlot<Id>> slots;
  Clock clock;

  Slots(std::int32_t m_, std::int32_t k_, unsigned seed) : m(m_), k(k_), clock(m_) {
    std::mt19937 random(seed);
    const auto id = [&] { return static_cast<Id>(random() % static_cast<unsigned>(m)); };
    for (std::int32_t i = 0; i < m * k; ++i) slots.push_back({static_cast<std::uint32_t>(random()), id(), id()});
  }

  template <typename At = OnHost>
  SikTables<Id> table(At at = {}) const { return {at(slots), m, k, clock.table(at)}; }

  // The probability of x after a jump from y.
  double probability(std::int32_t x, std::int32_t y) const {
    double p = 0.0;
    for (std::int32_t i = 0; i < k; ++i) {
      const AliasSlot<Id>& s = slots[static_cast<std::size_t>(y * k + i)];
      const double first = s.limit * 0x1p-32;
      p += (s.token == static_cast<Id>(x) ? first : 0.0) + (s.other == static_cast<Id>(x) ? 1.0 - first : 0.0);
    }
    return p / k;
  }
};

// ---- whole vocabulary ---------------------------------------------------------------------------------------------------

// tau(t) = begin^(1-t) end^t
struct Temperature {
  double begin, end;
  double log_tau(double clock) const { return std::log(begin) + std::log(end / begin) * time_of_clock(clock); }
};

inline Temperature constant(double tau) { return {tau, tau}; }
inline Temperature rising(double tau) { return {tau / 4, tau * 4}; }

struct Dense {
  std::int32_t m, k, d;
  bool cosine;
  std::vector<std::int32_t> neighbours, by_id;
  std::vector<double> distances, scales, lengths;
  std::vector<float> points;
  Clock clock;
  Temperature temperature;

  Dense(std::int32_t m_, std::int32_t k_, std::int32_t d_, bool cosine_, Temperature temperature_, unsigned seed)
      : m(m_), k(k_), d(d_), cosine(cosine_), clock(m_), temperature(std::move(temperature_)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::int32_t i = 0; i < m * d; ++i) points.push_back(normal(random));
    for (std::int32_t x = 0; x < m; ++x) {
      double square = 0.0;
      for (std::int32_t i = 0; i < d; ++i) square += std::pow(point(x, i), 2);
      lengths.push_back(std::sqrt(square));
    }
    for (std::int32_t x = 0; x < m; ++x) scales.push_back(1.0 / std::sqrt(bandwidth(x)));
    for (std::int32_t y = 0; y < m; ++y) add_neighbours(y);
  }

  template <typename At = OnHost>
  DenseTables table(At at = {}) const {
    return {m, k, d, cosine, at(neighbours), at(by_id), at(distances), at(points), at(scales), at(lengths), clock.table(at),
            {ScheduleInverse::kLinear, 1.0 - kEps, 0.0}, kResets.low, kResets.rise, 10.0, 0.6, std::log(temperature.begin), std::log(temperature.end / temperature.begin)};
  }

  // The distance before it is scaled; written apart from the kernels' own.
  double distance(std::int32_t x, std::int32_t y) const {
    double squares = 0.0, product = 0.0;
    for (std::int32_t i = 0; i < d; ++i) {
      squares += std::pow(point(x, i) - point(y, i), 2);
      product += point(x, i) * point(y, i);
    }
    return cosine ? 1.0 - product / (lengths[static_cast<std::size_t>(x)] * lengths[static_cast<std::size_t>(y)]) : squares;
  }

  // The law of a jump from y at temperature tau.
  std::vector<double> column(std::int32_t y, double tau) const {
    std::vector<double> p(static_cast<std::size_t>(m));
    for (std::int32_t x = 0; x < m; ++x)
      if (x != y) p[static_cast<std::size_t>(x)] = std::exp(-distance(x, y) * scales[static_cast<std::size_t>(x)] * scales[static_cast<std::size_t>(y)] / tau);
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& w : p) w /= sum;
    return p;
  }

 private:
  double point(std::int32_t x, std::int32_t i) const { return points[static_cast<std::size_t>(x * d + i)]; }

  double bandwidth(std::int32_t x) const {  // the distance to the 7th neighbour
    std::vector<double> all;
    for (std::int32_t y = 0; y < m; ++y)
      if (y != x) all.push_back(distance(x, y));
    std::nth_element(all.begin(), all.begin() + 6, all.end());
    return all[6];
  }

  // The row of y by distance and by id; the distances are the kernels', to the last bit, as in a table made by the library.
  void add_neighbours(std::int32_t y) {
    const DenseTables t = table();
    std::vector<std::int32_t> row;
    for (std::int32_t x = 0; x < m; ++x)
      if (x != y) row.push_back(x);
    std::sort(row.begin(), row.end(), [&](std::int32_t a, std::int32_t b) { return scaled_distance(t, a, y) < scaled_distance(t, b, y); });
    row.resize(static_cast<std::size_t>(k));
    for (const std::int32_t x : row) distances.push_back(scaled_distance(t, x, y));
    neighbours.insert(neighbours.end(), row.begin(), row.end());
    std::sort(row.begin(), row.end());
    by_id.insert(by_id.end(), row.begin(), row.end());
  }
};

// ---- batches ------------------------------------------------------------------------------------------------------------

struct Noise {
  std::vector<std::int32_t> xt;
  std::vector<std::uint8_t> jumped;
  bool operator==(const Noise&) const = default;
};

// Sequences of random tokens below m, each with a number and a time of its own.
struct Batch {
  std::int64_t sequences, length;
  std::uint64_t seed;
  std::vector<std::int32_t> x0;
  std::vector<std::uint64_t> numbers;
  std::vector<double> times;

  Batch(std::int64_t sequences_, std::int64_t length_, std::int32_t m, std::uint64_t seed_) : sequences(sequences_), length(length_), seed(seed_) {
    std::mt19937_64 random(seed);
    for (std::int64_t i = 0; i < sequences * length; ++i) x0.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(m)));
    for (std::int64_t s = 0; s < sequences; ++s) {
      numbers.push_back(random());
      times.push_back(0.05 + 0.95 * unit(random()));
    }
  }

  // Limits as of t = times[s]: jumps with probability t, a third of them to the mask.
  std::vector<ResetLimits> limits() const {
    std::vector<ResetLimits> all;
    for (const double t : times) all.push_back({static_cast<std::uint32_t>(t * 0xffffffffU), static_cast<std::uint32_t>(t / 3 * 0xffffffffU)});
    return all;
  }

  std::vector<SikTime> sik_times(const Clock& clock) const {
    std::vector<SikTime> all;
    for (const double t : times) all.push_back(clock.time(t));
    return all;
  }

  // What noise(snapshots, first sequence) makes of sequences begin ... end - 1.
  template <typename Function>
  Noise part(std::int64_t begin, std::int64_t end, Function noise) const {
    const auto size = static_cast<std::size_t>((end - begin) * length);
    Noise result{std::vector<std::int32_t>(size, -7), std::vector<std::uint8_t>(size, 7)};
    noise(Snapshots{x0.data() + begin * length, numbers.data() + begin, end - begin, length, seed, result.xt.data(), result.jumped.data()}, begin);
    return result;
  }

  template <typename Function>
  Noise all(Function noise) const { return part(0, sequences, noise); }
};

const std::int64_t kLengths[] = {1, 15, 16, 17, 63, 64, 65, 130};  // about the runs of 16 and 64 tokens that share words

}  // namespace gdds::test
