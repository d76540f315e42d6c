// See sik.h: drawing, and what the processes say of themselves. Their operators are in sik_operators.cc.
#include "diffusion/sik.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "diffusion/alias.h"
#include "diffusion/dense.h"

namespace gdds::diffusion {
namespace {

std::string percentiles(const std::vector<double>& sorted) {
  std::string text;
  for (const double percent : {1.0, 25.0, 50.0, 75.0, 99.0})
    text += fmt::format("{}{:.3g}", text.empty() ? "" : " ", sorted[static_cast<std::size_t>(percent / 100 * static_cast<double>(sorted.size() - 1) + 0.5)]);
  return text;
}

template <typename Id>
void fill_columns(const SparseKernel& kernel, std::vector<kernels::AliasSlot<Id>>& slots) {
  const auto k = static_cast<std::size_t>(kernel.k);
  slots.resize(kernel.ids.size());
#pragma omp parallel for schedule(static) num_threads(threads())
  for (std::size_t y = 0; y < static_cast<std::size_t>(kernel.m); ++y)
    fill_alias<Id>(std::span(kernel.weights).subspan(y * k, k), std::span(kernel.ids).subspan(y * k, k), std::span(slots).subspan(y * k, k));
}

std::vector<NamedArray> table_arrays(const NeighbourTable& t) {
  const auto m = static_cast<std::uint64_t>(t.m), k = static_cast<std::uint64_t>(t.k);
  return {{"/neighbours/ids", {m, k}, std::span<const std::int32_t>(t.ids)},
          {"/neighbours/distances", {m, k}, std::span<const double>(t.distances)},
          {"/neighbours/bandwidths", {m}, std::span<const double>(t.bandwidths)}};
}

Json table_json(const NeighbourTable& t) { return {{"metric", t.metric}, {"ranking", t.ranking}, {"bandwidth", t.bandwidth}}; }

}  // namespace

// ---- what both share -------------------------------------------------------------------------------------------------------

double SikProcess::stays(std::int32_t, double t) const { return std::exp(-clock_.total(t)); }

std::optional<Jump> SikProcess::jump(std::int32_t y, double t, TokenRandom& random) const {
  const double a = clock_.a_of(t), r = clock_.r_of(t);
  if (random.unit() * (a + r) < r) return Jump{kernels::below(m(), random.next()), true};
  return Jump{semantic_jump(y, t, random), false};
}

void SikProcess::rates_from(std::int32_t y, double t, std::span<double> out) const {
  const double f = schedule().f(t), a = f * clock_.a_of(t), r = f * clock_.r_of(t);
  kernel_column(y, t, out);
  for (double& rate : out) rate = a * rate + r / m();
  out[static_cast<std::size_t>(y)] -= a + r;
}

std::vector<kernels::SikTime> SikProcess::kernel_times(std::span<const double> times) const {
  std::vector<kernels::SikTime> result;
  for (const double t : times) result.push_back(clock_.at(t));
  return result;
}

std::vector<std::pair<std::string, std::string>> SikProcess::facts() const {
  return {{"A(1), semantic jumps", fmt::format("{:.6g}", clock_.A(1))},
          {"R(1), resets", fmt::format("{:.6g}", clock_.R(1))},
          {"mean lambda over jumps", fmt::format("{:.6g}", clock_.R(1) * (m() - 1) / m() / schedule().Lambda(1))},
          {"tokens never reset by t = 1", fmt::format("{:.3g}", std::exp(-clock_.R(1)))}};
}

// ---- over a neighbour table -------------------------------------------------------------------------------------------------

SparseKernel sparse_kernel(const NeighbourTable& table, double epsilon) {
  SparseKernel kernel;
  kernel.m = table.m;
  kernel.k = table.k;
  kernel.ids = table.ids;
  kernel.weights = jump_kernel(table, epsilon);
  kernel.row_begin.assign(static_cast<std::size_t>(table.m) + 1, 0);
  for (const std::int32_t x : kernel.ids) ++kernel.row_begin[static_cast<std::size_t>(x) + 1];
  for (std::size_t x = 0; x < static_cast<std::size_t>(table.m); ++x) kernel.row_begin[x + 1] += kernel.row_begin[x];
  std::vector<std::int64_t> next(kernel.row_begin.begin(), kernel.row_begin.end() - 1);
  kernel.row_ids.resize(kernel.ids.size());
  kernel.row_weights.resize(kernel.ids.size());
  for (std::size_t at = 0; at < kernel.ids.size(); ++at) {
    const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(kernel.ids[at])]++);
    kernel.row_ids[to] = static_cast<std::int32_t>(at / static_cast<std::size_t>(kernel.k));
    kernel.row_weights[to] = kernel.weights[at];
  }
  return kernel;
}

void SparseKernel::apply(std::span<const double> p, std::span<double> out) const {
  for (std::size_t x = 0; x < out.size(); ++x) {
    double sum = 0;
    for (auto i = static_cast<std::size_t>(row_begin[x]); i < static_cast<std::size_t>(row_begin[x + 1]); ++i) sum += row_weights[i] * p[static_cast<std::size_t>(row_ids[i])];
    out[x] = sum;
  }
}

void SparseKernel::apply_transposed(std::span<const double> h, std::span<double> out) const {
  const auto width = static_cast<std::size_t>(k);
  for (std::size_t y = 0; y < out.size(); ++y) {
    double sum = 0;
    for (std::size_t i = y * width; i < (y + 1) * width; ++i) sum += weights[i] * h[static_cast<std::size_t>(ids[i])];
    out[y] = sum;
  }
}

SikKnnProcess::SikKnnProcess(const Schedule& schedule, const VocabularyName& vocabulary, const ResetShare& share, NeighbourTable table, double epsilon)
    : SikProcess("sik-knn", schedule, vocabulary, share), table_(std::move(table)), epsilon_(epsilon), kernel_(sparse_kernel(table_, epsilon)) {
  if (m() <= 65536) fill_columns(kernel_, narrow_);
  else fill_columns(kernel_, wide_);
}

std::int32_t SikKnnProcess::neighbour(std::int32_t y, TokenRandom& random) const {
  return narrow_.empty() ? kernels::alias_draw(wide_.data(), table_.k, y, random.next()) : kernels::alias_draw(narrow_.data(), table_.k, y, random.next());
}

std::int32_t SikKnnProcess::semantic_jump(std::int32_t y, double, TokenRandom& random) const { return neighbour(y, random); }

void SikKnnProcess::kernel_column(std::int32_t y, double, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  const auto k = static_cast<std::size_t>(table_.k);
  for (std::size_t i = static_cast<std::size_t>(y) * k; i < (static_cast<std::size_t>(y) + 1) * k; ++i) out[static_cast<std::size_t>(kernel_.ids[i])] += kernel_.weights[i];
}

void SikKnnProcess::noise(const kernels::Snapshots& batch, std::span<const double> times) const {
  const auto of_t = kernel_times(times);
  if (narrow_.empty()) kernels::cpu::noise_sik(batch, kernels::SikTables<std::int32_t>{wide_.data(), m(), table_.k, clock_.table()}, of_t.data(), threads());
  else kernels::cpu::noise_sik(batch, kernels::SikTables<std::uint16_t>{narrow_.data(), m(), table_.k, clock_.table()}, of_t.data(), threads());
}

std::string SikKnnProcess::config() const {
  Json json = {{"name", name()}, {"schedule", to_json(schedule())}, {"resets", to_json(share_)}, {"epsilon", epsilon_}};
  json.update(table_json(table_));
  return json.dump();
}

std::vector<NamedArray> SikKnnProcess::arrays() const { return table_arrays(table_); }

std::vector<std::pair<std::string, std::string>> SikKnnProcess::facts() const {
  auto rows = SikProcess::facts();
  rows.emplace_back("total variation of q_1 from the prior, at most", fmt::format("{:.3g}", std::exp(-clock_.R(1))));
  rows.insert(rows.begin(), {{"metric", table_.metric}, {"neighbours", std::to_string(table_.k)}, {"epsilon", fmt::format("{:.6g}", epsilon_)},
                             {"row perplexity, percentiles 1/25/50/75/99", percentiles(row_perplexities(table_, epsilon_))}});
  return rows;
}

// ---- over the whole vocabulary -----------------------------------------------------------------------------------------------

double Temperature::operator()(double t) const { return begin * std::pow(end / begin, t); }

SikDenseProcess::SikDenseProcess(const Schedule& schedule, const VocabularyName& vocabulary, const ResetShare& share, NeighbourTable table, std::vector<float> points,
                                 std::int32_t d, const Temperature& temperature)
    : SikProcess("sik-dense", schedule, vocabulary, share), table_(std::move(table)), points_(std::move(points)), d_(d), temperature_(temperature), by_id_(table_.ids) {
  const auto k = static_cast<std::size_t>(table_.k);
  for (std::int32_t y = 0; y < m(); ++y) {
    std::sort(by_id_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y) * k), by_id_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y + 1) * k));
    for (std::int32_t i = 0; i < table_.k; ++i) scaled_.push_back(table_.D(y, i));
    scales_.push_back(table_.scale(y));
    const float* row = points_.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(d);
    lengths_.push_back(std::sqrt(kernels::lane_sum<true>(row, row, d)));
  }
  check_head();
}

// The rejection is exact if the table is what it should be: nearest first, and of this embedding.
void SikDenseProcess::check_head() const {
  for (std::int32_t y = 0; y < m(); ++y)
    for (std::int32_t i = 0; i < table_.k; ++i) {
      const std::size_t at = static_cast<std::size_t>(y) * static_cast<std::size_t>(table_.k) + static_cast<std::size_t>(i);
      if (i > 0 && scaled_[at] < scaled_[at - 1] * (1 - 1e-9)) reject("process sik-dense: the neighbours of token {} are not sorted by their distance over bandwidths", y);
      if (i > 0 && i + 1 < table_.k) continue;
      const double found = kernels::scaled_distance(tables(), table_.ids[at], y);
      if (std::abs(found - scaled_[at]) > 1e-6 * (1 + found))
        reject("process sik-dense: the neighbours are not those of the embedding: from token {} to {} the distance over bandwidths is {:.6g} in the table and {:.6g} in it", y,
               table_.ids[at], scaled_[at], found);
    }
}

kernels::DenseTables SikDenseProcess::tables() const {
  return {m(), table_.k, d_, table_.metric == "cosine", table_.ids.data(), by_id_.data(), scaled_.data(), points_.data(), scales_.data(), lengths_.data(),
          clock_.table(), schedule().inverse(), share_.low(), share_.rise(), share_.steepness, share_.middle, std::log(temperature_.begin),
          std::log(temperature_.end / temperature_.begin)};
}

std::int32_t SikDenseProcess::semantic_jump(std::int32_t y, double t, TokenRandom& random) const {
  return kernels::RejectionDraw()(tables(), temperature_(t), y, random);
}

void SikDenseProcess::kernel_column(std::int32_t y, double t, std::span<double> out) const {
  double sum = 0;
  for (std::int32_t x = 0; x < m(); ++x) sum += out[static_cast<std::size_t>(x)] = kernels::column_weight(tables(), temperature_(t), x, y);
  for (double& w : out) w /= sum;
}

void SikDenseProcess::noise(const kernels::Snapshots& batch, std::span<const double> times) const {
  kernels::cpu::noise_dense(batch, tables(), kernel_times(times).data(), threads());
}

void SikDenseProcess::noise_blockwise(const kernels::Snapshots& batch, std::span<const double> times) const {
  kernels::cpu::noise_blockwise(batch, tables(), kernel_times(times).data(), threads());
}


// Resets dominate at the end, so q_1 is nearly uniform; its distance is that of F^n 1/m from 1/m.
std::vector<double> SikDenseProcess::prior() const { return std::vector<double>(static_cast<std::size_t>(m()), 1.0 / m()); }

std::string SikDenseProcess::config() const {
  Json json = {{"name", name()}, {"schedule", to_json(schedule())}, {"resets", to_json(share_)}, {"epsilon", temperature_.begin}, {"epsilon_end", temperature_.end}};
  json.update(table_json(table_));
  return json.dump();
}

std::vector<NamedArray> SikDenseProcess::arrays() const {
  auto arrays = table_arrays(table_);
  arrays.push_back({"/embedding", {static_cast<std::uint64_t>(m()), static_cast<std::uint64_t>(d_)}, std::span<const float>(points_)});
  return arrays;
}

std::vector<std::pair<std::string, std::string>> SikDenseProcess::facts() const {
  auto rows = SikProcess::facts();
  rows.insert(rows.begin(), {{"metric", table_.metric}, {"neighbours in the head of the sampler", std::to_string(table_.k)},
                             {"epsilon at t = 0", fmt::format("{:.6g}", temperature_.begin)}, {"epsilon at t = 1", fmt::format("{:.6g}", temperature_.end)}});
  return rows;
}

}  // namespace gdds::diffusion
