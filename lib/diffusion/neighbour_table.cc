// See neighbour_table.h.
#include "diffusion/neighbour_table.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace gdds::diffusion {

double NeighbourTable::scale(std::int32_t x) const {
  const double rho = bandwidths[static_cast<std::size_t>(x)];
  return 1 / (bandwidth == "code" ? rho : std::sqrt(rho));
}

NeighbourTable read_neighbours(const h5::Input& input, const std::string& group) {
  NeighbourTable t;
  const h5::Shape shape = input.shape(group + "/ids");
  t.m = static_cast<std::int32_t>(shape[0]);
  t.k = static_cast<std::int32_t>(shape[1]);
  t.ids = input.read<std::int32_t>(group + "/ids");
  t.distances = input.read<double>(group + "/distances");
  t.bandwidths = input.read<double>(group + "/bandwidths");
  return t;
}

void check(const NeighbourTable& t, const std::string& file) {
  if (t.k < 1) reject("{}: ids: expected at least one neighbour a token, found none", file);
  for (std::size_t at = 0; at < t.ids.size(); ++at) {
    const std::size_t y = at / static_cast<std::size_t>(t.k), i = at % static_cast<std::size_t>(t.k);
    if (t.ids[at] < 0 || t.ids[at] >= t.m || t.ids[at] == static_cast<std::int32_t>(y))
      reject("{}: ids[{}, {}]: expected another token below {}, found {}", file, y, i, t.m, t.ids[at]);
    if (!(t.distances[at] >= 0) || std::isinf(t.distances[at])) reject("{}: distances[{}, {}]: expected a finite number, not negative, found {}", file, y, i, t.distances[at]);
  }
  for (std::size_t y = 0; y < t.bandwidths.size(); ++y)
    if (!(t.bandwidths[y] > 0) || std::isinf(t.bandwidths[y])) reject("{}: bandwidths[{}]: expected a positive number, found {}", file, y, t.bandwidths[y]);
}

std::vector<double> jump_kernel(const NeighbourTable& t, double epsilon) {
  std::vector<double> kernel(t.ids.size());
  const auto k = static_cast<std::size_t>(t.k);
  for (std::int32_t y = 0; y < t.m; ++y) {
    double* column = kernel.data() + static_cast<std::size_t>(y) * k;
    for (std::int32_t i = 0; i < t.k; ++i) column[i] = -t.D(y, i) / epsilon;
    const double largest = *std::max_element(column, column + k);
    double sum = 0;
    for (std::size_t i = 0; i < k; ++i) sum += column[i] = std::exp(column[i] - largest);
    for (std::size_t i = 0; i < k; ++i) column[i] /= sum;
  }
  return kernel;
}

std::vector<double> row_perplexities(const NeighbourTable& t, double epsilon) {
  const std::vector<double> kernel = jump_kernel(t, epsilon);
  std::vector<double> result;
  for (std::size_t y = 0; y < static_cast<std::size_t>(t.m); ++y) {
    double entropy = 0;
    for (std::size_t i = y * static_cast<std::size_t>(t.k); i < (y + 1) * static_cast<std::size_t>(t.k); ++i)
      if (kernel[i] > 0) entropy -= kernel[i] * std::log(kernel[i]);
    result.push_back(std::exp(entropy));
  }
  std::sort(result.begin(), result.end());
  return result;
}

double epsilon_for_perplexity(const NeighbourTable& t, double wanted) {
  const auto median = [&](double log_epsilon) {
    const auto all = row_perplexities(t, std::exp(log_epsilon));
    return all[all.size() / 2];
  };
  double low = std::log(1e-8), high = std::log(1e8);
  if (median(high) < wanted || median(low) > wanted)
    bad_usage("--kernel-perplexity: the median over {} neighbours can be from {:.4g} to {:.4g}, found {}", t.k, median(low), median(high), wanted);
  while (high - low > 1e-9) {
    const double middle = 0.5 * (low + high);
    (median(middle) < wanted ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

}  // namespace gdds::diffusion
