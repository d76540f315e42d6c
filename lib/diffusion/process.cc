// See process.h: what all processes share.
#include "diffusion/process.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"

namespace gdds::diffusion {
namespace {

constexpr double kLargestMean = 64;  // of one inversion
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;

// A Poisson number of any mean: sums of smaller ones.
std::int64_t poisson(double mean, TokenRandom& random) {
  std::int64_t n = 0;
  for (; mean > kLargestMean; mean -= kLargestMean) n += kernels::poisson_inverse(kLargestMean, kernels::natural_exp(-kLargestMean), random.unit());
  return n + kernels::poisson_inverse(mean, kernels::natural_exp(-mean), random.unit());
}

class GeneralBridge final : public Bridge {
 public:
  GeneralBridge(const Process& process, double s, double t) : to_t_(process.transition(s, t)), to_s_(process.transition(0, s)), states_(static_cast<std::size_t>(process.states())) {}

  std::int32_t draw(std::int32_t xt, std::int32_t x0, TokenRandom& random) const override {
    std::vector<double> row(states_), column(states_);
    to_t_->row(xt, row);
    to_s_->column(x0, column);
    for (std::size_t i = 0; i < states_; ++i) column[i] *= row[i];
    return draw_index(column, random.unit());
  }

 private:
  std::unique_ptr<Transition> to_t_, to_s_;
  std::size_t states_;
};

}  // namespace

VocabularyName vocabulary_name(const h5::Input& input) {
  const std::int64_t size = input.integer_attribute("/vocab@size"), mask = input.attribute("/vocab@mask") ? input.integer_attribute("/vocab@mask") : -1;
  if (size > kMostTokens) reject("{}: /vocab@size: expected at most {}, found {}", input.name(), kMostTokens, size);
  if (mask < -1 || mask >= size) reject("{}: /vocab@mask: expected an id below {}, or -1, found {}", input.name(), size, mask);
  return {input.string_attribute("/vocab@name"), input.string_attribute("/vocab@hash"), static_cast<std::int32_t>(size), static_cast<std::int32_t>(mask)};
}

std::int32_t draw_index(std::span<const double> weights, double u) {
  double left = u * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::int32_t last = -1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    last = static_cast<std::int32_t>(i);
    if (left < weights[i]) break;
    left -= weights[i];
  }
  return last;
}

Path Process::path(std::int32_t x0, double t, TokenRandom& random) const {
  const double whole = clock(t);
  std::vector<double> candidates(static_cast<std::size_t>(poisson(whole, random)));
  for (double& c : candidates) c = whole * random.unit();
  std::sort(candidates.begin(), candidates.end());
  Path path;
  std::int32_t state = x0;
  for (const double c : candidates) {
    const double time = std::min(t, time_of(c));
    if (const auto next = jump(state, time, random)) {
      state = next->to;
      path.times.push_back(time);
      path.jumps.push_back(*next);
    }
  }
  return path;
}

std::unique_ptr<Bridge> Process::bridge(double s, double t) const { return std::make_unique<GeneralBridge>(*this, s, t); }

std::string Process::digest() const {
  Hash hash;
  hash.update_field(vocabulary_.hash);
  hash.update_field(config());
  for (const NamedArray& array : arrays()) {
    hash.update_field(array.path);
    hash.update_field(h5::shape_text(array.shape));
    std::visit([&](const auto& values) { hash.update(values.data(), values.size_bytes()); }, array.values);
  }
  return hash.hex();
}

void write(const Process& process, h5::Output& output) {
  output.attribute("/vocab@name", process.vocabulary().name);
  output.attribute("/vocab@hash", process.vocabulary().hash);
  output.attribute("/vocab@size", std::int64_t{process.m()});
  write_parts(process, output);
}

void write_parts(const Process& process, h5::Output& output) {
  output.attribute("/process@name", process.name());
  output.attribute("/process@schedule", process.schedule().name);
  output.text("/process/config", process.config());
  for (const NamedArray& array : process.arrays())
    std::visit([&](const auto& values) { output.write(array.path, array.shape, values); }, array.values);
}

}  // namespace gdds::diffusion
