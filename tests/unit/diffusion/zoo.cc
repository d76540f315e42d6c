// See zoo.h.
#include "unit/diffusion/zoo.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "diffusion/masks.h"
#include "diffusion/matrix.h"
#include "diffusion/resets.h"
#include "diffusion/sik.h"
#include "graph/knn.h"
#include "h5/output.h"

namespace gdds::diffusion {
namespace {

constexpr std::size_t kM = 9, kMask = 8;
constexpr std::int32_t kDim = 3;

// Closes the columns: the diagonal is minus the rest.
Square closed(Square q) {
  for (std::size_t y = 0; y < q.n; ++y) {
    q(y, y) = 0;
    double sum = 0;
    for (std::size_t x = 0; x < q.n; ++x) sum += q(x, y);
    q(y, y) = -sum;
  }
  return q;
}

const std::vector<float>& points() {
  static const std::vector<float> all = [] {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(kM * static_cast<std::size_t>(kDim));
    for (float& v : values) v = normal(random);
    return values;
  }();
  return all;
}

NeighbourTable neighbours(std::int64_t k, const std::string& metric, const std::string& bandwidth) {
  const std::vector<float>& values = points();
  graph::KnnOptions options;
  options.k = k;
  options.metric = metric;
  options.bandwidth = bandwidth;
  options.bandwidth_neighbour = 2;
  const graph::Neighbours n = graph::brute_force({values.data(), kM, kDim}, options);
  return {kM, static_cast<std::int32_t>(k), n.ids, n.distances, n.bandwidths, metric, "normalised", bandwidth};
}

double lambda(const ResetShare& r, double t) {
  const auto g = [&](double u) { return 1 / (1 + std::exp(-r.steepness * (u - r.middle))); };
  return r.floor + (r.ceiling - r.floor) * (g(t) - g(0)) / (g(1) - g(0));
}

double distance(const std::string& metric, const float* a, const float* b) {
  double square = 0, dot = 0, aa = 0, bb = 0;
  for (int i = 0; i < kDim; ++i) {
    square += std::pow(double(a[i]) - double(b[i]), 2);
    dot += double(a[i]) * double(b[i]);
    aa += double(a[i]) * double(a[i]);
    bb += double(b[i]) * double(b[i]);
  }
  return metric == "gauss" ? square : 1 - dot / std::sqrt(aa * bb);
}

// MATH 2, as the paper has it: f ((1 - lambda) F + lambda (1 1^T - I)/(m-1) - I), F over `among` (the neighbours of y, or all).
Square sik_rates(const Schedule& schedule, const ResetShare& share, const NeighbourTable& table, bool all, double tau, double t) {
  const std::vector<float>& values = points();
  Square q(kM);
  for (std::size_t y = 0; y < kM; ++y) {
    std::vector<double> w(kM, 0.0);
    double sum = 0;
    for (std::size_t x = 0; x < kM; ++x) {
      bool in = all && x != y;
      for (std::int32_t i = 0; i < table.k; ++i) in |= table.ids[y * static_cast<std::size_t>(table.k) + static_cast<std::size_t>(i)] == static_cast<std::int32_t>(x);
      if (!in) continue;
      const double rho = table.bandwidths[x] * table.bandwidths[y];
      w[x] = std::exp(-distance(table.metric, &values[x * kDim], &values[y * kDim]) / (tau * (table.bandwidth == "code" ? rho : std::sqrt(rho))));
      sum += w[x];
    }
    const double l = lambda(share, t), f = schedule.f(t);
    for (std::size_t x = 0; x < kM; ++x)
      if (x != y) q(x, y) = f * ((1 - l) * w[x] / sum + l / (kM - 1));
  }
  return closed(q);
}

void add_resets(const Schedule& s, std::vector<Specimen>& all) {
  const auto v = nine_tokens();
  all.push_back({"absorb", std::make_unique<ResetProcess>("absorb", s, v), [s](double t) {
                   Square q(kM);
                   for (std::size_t y = 0; y < kM; ++y) q(kMask, y) = s.f(t);
                   return closed(q);
                 }});
  all.push_back({"uniform", std::make_unique<ResetProcess>("uniform", s, v), [s](double t) {
                   Square q(kM);
                   for (double& rate : q.values) rate = s.f(t) / kM;
                   return closed(q);
                 }});
  // GIDD: q_t = (a x + (1-a) mask + c 1) / C, C = 1 + m c, c = B (a(1-a))^(gamma/2), B = 2^gamma share / (m (1-share)); the
  // rates from (beta pi)' + f beta pi, with derivatives by differences.
  const HybridShape shape{0.3, 1.2};
  all.push_back({"hybrid", std::make_unique<ResetProcess>("hybrid", s, v, shape), [s, shape](double t) {
                   const double a = s.alpha(t), gone = -std::expm1(-s.Lambda(t)), h = 1e-5 * std::min(a, gone), falls = -s.f(t) * a;  // da/dt
                   const auto mass = [&](double more) {
                     const double c = std::pow(2, shape.gamma) * shape.share / (kM * (1 - shape.share)) * std::pow((a + more) * (gone - more), shape.gamma / 2);
                     return std::array<double, 3>{(a + more) / (1 + kM * c), (gone - more) / (1 + kM * c), kM * c / (1 + kM * c)};
                   };
                   const auto low = mass(-h), middle = mass(0), high = mass(h);
                   const double f = -falls * (std::log(high[0]) - std::log(low[0])) / (2 * h);
                   const double to_mask = falls * (high[1] - low[1]) / (2 * h) + f * middle[1], to_any = falls * (high[2] - low[2]) / (2 * h) + f * middle[2];
                   Square q(kM);
                   for (std::size_t y = 0; y < kM; ++y)
                     for (std::size_t x = 0; x < kM; ++x) q(x, y) = to_any / kM + (x == kMask ? to_mask : 0);
                   return closed(q);
                 }});
}

void add_sik(const Schedule& s, std::vector<Specimen>& all) {
  const auto v = nine_tokens();
  const ResetShare share{0.05, 0.9, 8, 0.5};
  for (const char* metric : {"gauss", "cosine"}) {
    const NeighbourTable table = neighbours(4, metric, "paper");
    all.push_back({std::string("sik-knn ") + metric, std::make_unique<SikKnnProcess>(s, v, share, table, 0.4),
                   [s, share, table](double t) { return sik_rates(s, share, table, false, 0.4, t); }});
  }
  const NeighbourTable code = neighbours(8, "gauss", "code");
  all.push_back({"sik-knn code", std::make_unique<SikKnnProcess>(s, v, share, code, 0.3), [s, share, code](double t) { return sik_rates(s, share, code, false, 0.3, t); }});
  for (const char* metric : {"gauss", "cosine"}) {
    const NeighbourTable table = neighbours(2, metric, "paper");
    const Temperature tau = metric == std::string("gauss") ? Temperature{0.1, 2} : Temperature{0.4, 0.4};
    all.push_back({std::string("sik-dense ") + metric, std::make_unique<SikDenseProcess>(s, v, share, table, points(), kDim, tau),
                   [s, share, table, tau](double t) { return sik_rates(s, share, table, true, std::pow(tau.begin, 1 - t) * std::pow(tau.end, t), t); }});
  }
}

void add_masks(const Schedule& s, std::vector<Specimen>& all) {
  const auto v = nine_tokens();
  const std::vector<std::int32_t> clusters = {0, 1, 2, 0, 1, 2, 0, 0, 1};
  for (const double gamma : {1.0, 2.5, 0.4})
    all.push_back({"hierarchical " + std::to_string(gamma).substr(0, 3), std::make_unique<HierarchicalProcess>(s, v, clusters, gamma), [s, clusters, gamma](double t) {
                     Square q(kM + 3);
                     for (std::size_t y = 0; y < kMask; ++y) q(kM + static_cast<std::size_t>(clusters[y]), y) = s.f(t);
                     for (std::size_t c = kM; c < kM + 3; ++c) q(kMask, c) = gamma * s.f(t);
                     return closed(q);
                   }});
  const std::vector<double> rates = {0.5, 1, 2, 3, 0.7, 1.4, 0.2, 1, 1};
  all.push_back({"mask-rates", std::make_unique<MaskRatesProcess>(s, v, rates, "rate"), [s, rates](double t) {
                   Square q(kM);
                   for (std::size_t y = 0; y < kMask; ++y) q(kMask, y) = rates[y] * s.f(t);
                   return closed(q);
                 }});
  all.push_back({"mask-rates power", std::make_unique<MaskRatesProcess>(s, v, rates, "power"), [s, rates](double t) {
                   Square q(kM);
                   for (std::size_t y = 0; y < kMask; ++y) q(kMask, y) = rates[y] * std::pow(t, rates[y] - 1) * s.f(std::pow(t, rates[y]));
                   return closed(q);
                 }});
}

// Two pieces of time, exit rates of each state, one state without any way out in the second piece.
void add_matrix(const Schedule& s, const test::Folder& folder, std::vector<Specimen>& all) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> unit;
  const std::size_t pieces = 2;
  std::vector<double> exit(pieces * kM), dense(pieces * kM * kM);
  for (double& e : exit) e = 0.3 + unit(random);
  exit[kM + 4] = 0;
  for (std::size_t c = 0; c < pieces * kM; ++c) {
    double sum = 0;
    for (std::size_t x = 0; x < kM; ++x) sum += dense[c * kM + x] = unit(random) < 0.4 ? 0 : unit(random);
    for (std::size_t x = 0; x < kM; ++x) dense[c * kM + x] /= sum;
  }
  const std::string path = folder.file("matrix-" + s.name + ".h5");
  h5::Output output(h5::OutputOptions{path}, "process", {"test", "1", {}, {}}, {});
  const auto v = nine_tokens();
  output.attribute("/vocab@name", v.name);
  output.attribute("/vocab@hash", v.hash);
  output.attribute("/vocab@size", std::int64_t{v.size});
  output.attribute("/process@name", std::string("matrix"));
  output.attribute("/process@schedule", s.name);
  output.text("/process/config", "{}");
  output.write("/matrix/times", std::vector<double>{0, 0.4, 1});
  output.write("/matrix/exit", {pieces, kM}, std::span<const double>(exit));
  output.write("/matrix/dense", {pieces, kM, kM}, std::span<const double>(dense));
  output.commit();
  const h5::Input input(path, "process");
  all.push_back({"matrix", std::make_unique<MatrixProcess>(input, s, v), [s, exit, dense](double t) {
                   const std::size_t p = t < 0.4 ? 0 : 1;
                   Square q(kM);
                   for (std::size_t y = 0; y < kM; ++y)
                     for (std::size_t x = 0; x < kM; ++x) q(x, y) = s.f(t) * exit[p * kM + y] * dense[(p * kM + y) * kM + x];
                   return closed(q);
                 }});
}

}  // namespace

Square product(const Square& a, const Square& b) {
  Square c(a.n);
  for (std::size_t x = 0; x < a.n; ++x)
    for (std::size_t z = 0; z < a.n; ++z)
      for (std::size_t y = 0; y < a.n; ++y) c(x, y) += a(x, z) * b(z, y);
  return c;
}

VocabularyName nine_tokens() { return {"nine", "00112233445566778899aabbccddeeff", static_cast<std::int32_t>(kM), static_cast<std::int32_t>(kMask)}; }

std::vector<Schedule> schedules() {
  std::vector<Schedule> all;
  for (const char* name : {"log-linear", "linear", "cosine", "geometric", "exponential"}) {
    Schedule s;
    s.name = name;
    s.eps = s.name == "log-linear" ? 1e-3 : 1e-4;
    all.push_back(s);
  }
  return all;
}

std::vector<Specimen> zoo(const Schedule& schedule, const test::Folder& folder) {
  std::vector<Specimen> all;
  add_resets(schedule, all);
  add_sik(schedule, all);
  add_masks(schedule, all);
  add_matrix(schedule, folder, all);
  return all;
}

namespace {

// Over u, with t = t(u) and dt/du.
Square integrate(const Specimen& specimen, double from, double to, const std::function<double(double)>& time, const std::function<double(double)>& slope) {
  constexpr int kSteps = 400;
  const double h = (to - from) / kSteps;
  const auto rates = [&](double u) {
    Square q = specimen.generator(time(u));
    for (double& rate : q.values) rate *= slope(u);
    return q;
  };
  const auto plus = [](const Square& a, double w, const Square& b) {
    Square c = a;
    for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] += w * b.values[i];
    return c;
  };
  Square K(static_cast<std::size_t>(specimen.process->states()));
  for (std::size_t i = 0; i < K.n; ++i) K(i, i) = 1;
  for (int i = 0; i < kSteps; ++i) {
    const double u = from + i * h;
    const Square q1 = rates(u + 1e-9 * h), q2 = rates(u + h / 2), q4 = rates(u + h * (1 - 1e-6));
    const Square k1 = product(q1, K), k2 = product(q2, plus(K, h / 2, k1)), k3 = product(q2, plus(K, h / 2, k2)), k4 = product(q4, plus(K, h, k3));
    K = plus(plus(plus(plus(K, h / 6, k1), h / 3, k2), h / 3, k3), h / 6, k4);
  }
  return K;
}

constexpr double kCut = 0.4;

// Early: t = u^10, since some rates are infinite at t = 0.
Square early(const Specimen& specimen, double s, double t) {
  return integrate(specimen, std::pow(s, 0.1), std::pow(t, 0.1), [](double u) { return std::max(1e-250, std::pow(u, 10)); }, [](double u) { return 10 * std::pow(u, 9); });
}

// Late: over the clock, since some rates are steep at t = 1, and as the square of the distance from its end, where t is vertical
// on the cosine schedule.
Square late(const Specimen& specimen, double s, double t) {
  const Schedule& schedule = specimen.process->schedule();
  const double to = schedule.Lambda(t), whole = to - schedule.Lambda(s);
  const auto time = [&](double u) { return std::clamp(schedule.time_of(to - whole * (1 - u) * (1 - u)), kCut, 1.0); };
  return integrate(specimen, 0, 1, time, [&](double u) { return 2 * (1 - u) * whole / schedule.f(time(u)); });
}

}  // namespace

// In two parts, so that no step crosses where the rates of `matrix` change.
Square solve(const Specimen& specimen, double s, double t) {
  if (t <= kCut) return early(specimen, s, t);
  if (s >= kCut) return late(specimen, s, t);
  return product(late(specimen, kCut, t), early(specimen, s, kCut));
}

}  // namespace gdds::diffusion
