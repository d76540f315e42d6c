// The path-wise bound (MATH 6) as an objective, for each process in the way that suits it: in closed form where jumps forget
// where they came from or lead to the mask, from a few draws for sik-knn, by matrices elsewhere. Where nothing leads to x_t
// the network may say what it likes: neither values nor gradients come from there.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "diffusion/masks.h"
#include "diffusion/resets.h"
#include "diffusion/sik.h"
#include "train/objective.h"
#include "train/readout.h"
#include "train/slice.h"

namespace gdds::train {
namespace {

using diffusion::SnapshotBatch;

// x0 is no mask.
at::Tensor without_mask(const at::Tensor& logits, std::int64_t mask) { return logits.index_fill(-1, torch::tensor({mask}, logits.device()), -1e30); }

// The loss of all positions of a slice, from the logits of a few sequences at a time.
template <typename F>
at::Tensor sum_over_positions(const model::Model& model, const diffusion::Process& process, const Slice& slice, const model::Pass& pass, F loss) {
  return sum_over_parts(features_of(model, process, slice, pass), model.output(), rows_of_part(process.m()), pass.bf16, loss);
}

// absorb: only masks change, and what is left of the bound is MDM's loss, the cross-entropy of masked tokens times f alpha/(1 - alpha).
class MaskedPathObjective final : public Objective {
 public:
  explicit MaskedPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), resets_(dynamic_cast<const diffusion::ResetProcess&>(*process_)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const std::int64_t mask = process_->vocabulary().mask;
    const at::Tensor x0 = slice.x0(), changed = (slice.xt() == mask) & (x0 != mask);
    const at::Tensor weight = slice.of_times([&](double t) {
      const auto q = resets_.masses(t);
      return process_->schedule().f(t) * q.stay / q.mask;
    });
    return {cross_entropy_sum(features_of(model, *process_, slice, pass), model.output(), pass.bf16, x0.flatten(), (weight.view({n, 1}) * changed * slice.counts()).flatten(), mask),
            tokens(batch, first, n)};
  }

 private:
  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::ResetProcess& resets_;
};

// uniform and hybrid: jumps forget where they came from. With p = K_t l and q = q_t(. | x0), both summing to one, and the same
// rate c to x_t from every other token,
//   c [ sum_y rho_0 log rho_0 - sum_y rho_0 log rho - (1-q(x_t))/q(x_t) + (1-p(x_t))/p(x_t) ],   sums over y != x_t,
//   sum_y rho_0 log rho = (stay log p(x0) + mask log p(mask) + uniform mean_y log p(y) - log p(x_t)) / q(x_t).
// The mask is no x0 of hybrid: a position that has it is passed over.
class ResetPathObjective final : public Objective {
 public:
  explicit ResetPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), resets_(dynamic_cast<const diffusion::ResetProcess&>(*process_)), m_(process_->m()), mask_(process_->name() == "hybrid" ? process_->vocabulary().mask : -1) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const Positions all(*this, slice);
    return {sum_over_positions(model, *process_, slice, pass, [&](const at::Tensor& logits, std::int64_t begin) { return bound(all, logits, begin); }), tokens(batch, first, n)};
  }

 private:
  // x0, x_t [P, 1] and, of their times [P, 1], the masses of q_t(. | x0) and the rate to x_t.
  struct Positions {
    at::Tensor x0, xt, counts, stay, to_mask, any, rate;
    Positions(const ResetPathObjective& o, const Slice& slice)
        : x0(slice.x0().view({-1, 1})), xt(slice.xt().view({-1, 1})), counts(slice.counts().view({-1, 1}) * (x0 != o.mask_)),
          stay(slice.of_positions([&](double t) { return o.resets_.masses(t).stay; })), to_mask(slice.of_positions([&](double t) { return o.resets_.masses(t).mask; })),
          any(slice.of_positions([&](double t) { return o.resets_.masses(t).uniform; })),
          rate(slice.of_positions([&](double t) { return o.rates(t).second / static_cast<double>(o.m_); }) + slice.of_positions([&](double t) { return o.rates(t).first; }) * (xt == o.mask_)) {}
  };

  at::Tensor bound(const Positions& all, at::Tensor logits, std::int64_t begin) const {
    const auto here = [&](const at::Tensor& x) { return x.slice(0, begin, begin + logits.size(0)); };
    if (mask_ >= 0) logits = without_mask(logits, mask_);
    const at::Tensor log_l = torch::log_softmax(logits, -1), x0 = here(all.x0), xt = here(all.xt), stay = here(all.stay), to_mask = here(all.to_mask), any = here(all.any);
    // log p(y) of one y a position, and q(x_t).
    const auto log_p = [&](const at::Tensor& y) { return torch::logaddexp(torch::log(stay) + log_l.gather(-1, y), torch::log(any / m_ + to_mask * (y == mask_))); };
    const at::Tensor log_p_xt = log_p(xt), q_xt = stay * (xt == x0) + any / m_ + to_mask * (xt == mask_);
    at::Tensor target = any / m_;  // of log p(y) for all y
    if (mask_ >= 0) target = target + to_mask * torch::one_hot(torch::tensor(mask_), m_).to(to_mask.options());
    at::Tensor cross = stay * log_p(x0) + any * torch::logaddexp(torch::log(stay) + log_l, torch::log(target)).mean(-1, true);
    if (mask_ >= 0) cross = cross + to_mask * log_p(torch::full_like(x0, mask_));
    const at::Tensor rho0_log_rho = (cross - log_p_xt) / q_xt, rho0_log_rho0 = (entropy_sum(stay, to_mask, any) - torch::log(q_xt)) / q_xt;
    return (here(all.rate) * (rho0_log_rho0 - rho0_log_rho - (1 - q_xt) / q_xt + (torch::exp(-log_p_xt) - 1)) * here(all.counts)).sum();
  }
  // sum_y q(y) log q(y): x0, the mask and all the others have three values.
  at::Tensor entropy_sum(const at::Tensor& stay, const at::Tensor& to_mask, const at::Tensor& any) const {
    const at::Tensor base = any / m_, at_x0 = base + stay, at_mask = base + to_mask;
    const at::Tensor sum = torch::xlogy(base, base) * static_cast<double>(mask_ >= 0 ? m_ - 2 : m_ - 1) + torch::xlogy(at_x0, at_x0);
    return mask_ >= 0 ? sum + torch::xlogy(at_mask, at_mask) : sum;
  }
  std::pair<double, double> rates(double t) const {
    double to_mask = 0, to_any = 0;
    resets_.rates(t, to_mask, to_any);
    return {to_mask, to_any};
  }

  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::ResetProcess& resets_;
  const std::int64_t m_, mask_;
};

// x_t alone may be the mask, reached from each token y at its own rate r_y, where it is still itself with keep_y:
//   sum_y r_y rho(y) - r_x0 rho_0 + r_x0 rho_0 log(rho_0/rho(x0)),   rho(y) = keep_y l(y) / sum_z (1 - keep_z) l(z),   rho_0 = keep_x0 / (1 - keep_x0).
class MaskRatesPathObjective final : public Objective {
 public:
  explicit MaskRatesPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), masks_(dynamic_cast<const diffusion::MaskingProcess&>(*process_)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const std::int64_t mask = process_->vocabulary().mask;
    const auto rates = of_tokens(slice, device_of(model));
    const at::Tensor x0 = slice.x0().view({-1, 1}), masked = (slice.xt().view({-1, 1}) == mask) & (x0 != mask), counts = slice.counts().view({-1, 1});
    const at::Tensor sequences = torch::arange(n, x0.device()).repeat_interleave(batch.length);
    const auto loss = [&](const at::Tensor& logits, std::int64_t begin) {
      const std::int64_t end = begin + logits.size(0);
      const at::Tensor log_l = torch::log_softmax(without_mask(logits, mask), -1), y = x0.slice(0, begin, end), is_masked = masked.slice(0, begin, end), none = torch::zeros({1, 1}, log_l.options());
      const auto rows = [&](const at::Tensor& x) { return x.index_select(0, sequences.slice(0, begin, end)); };
      const at::Tensor keeps = rows(rates[0]), goes = rows(rates[1]), flows = rows(rates[2]);
      const auto of_x0 = [&](const at::Tensor& x) { return torch::where(is_masked, x.gather(1, y), none); };
      const auto sum = [&](const at::Tensor& x) { return torch::where(is_masked, torch::logsumexp(log_l + x, -1, true), none); };
      const at::Tensor log_rest = sum(goes), log_rho0 = of_x0(keeps) - of_x0(goes), weight = torch::exp(of_x0(flows) - of_x0(goes));  // r_x0 rho_0
      const at::Tensor log_rho = of_x0(log_l) + of_x0(keeps) - log_rest;
      return (is_masked * (torch::exp(sum(flows) - log_rest) + weight * (log_rho0 - log_rho - 1)) * counts.slice(0, begin, end)).sum();
    };
    return {sum_over_positions(model, *process_, slice, pass, loss), tokens(batch, first, n)};
  }

 private:
  // Logarithms of keep_y, of 1 - keep_y and of r_y keep_y at each sequence's time, [n, m], in double until there: 1 - keep may
  // be tiny. What is impossible is e^-200, which no sum sees.
  std::array<at::Tensor, 3> of_tokens(const Slice& slice, at::Device device) const {
    const std::int64_t m = process_->m();
    const auto log = [](double x) { return static_cast<float>(std::max(-200.0, std::log(x))); };
    std::array<std::vector<float>, 3> logs;
    for (std::int64_t s = 0; s < slice.n(); ++s)
      for (std::int32_t y = 0; y < m; ++y) {
        const bool token = y != process_->vocabulary().mask;
        const auto p = masks_.probabilities(y, 0, slice.time(s));
        logs[0].push_back(token ? log(p[0]) : -200.0F);
        logs[1].push_back(token ? log(p[1]) : -200.0F);
        logs[2].push_back(token ? log(p[0] * masks_.exit_rate(y, slice.time(s))) : -200.0F);
      }
    const auto tensor = [&](const std::vector<float>& v) { return torch::tensor(v).view({slice.n(), m}).to(device); };
    return {tensor(logs[0]), tensor(logs[1]), tensor(logs[2])};
  }
  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::MaskingProcess& masks_;
};

// All tokens go to their clusters at one rate, and clusters to the mask: the sums over rho are constant, and what is left is
// the cross-entropy of the token within its cluster, where x_t is a cluster, and that of the cluster, where x_t is the mask.
class HierarchicalPathObjective final : public Objective {
 public:
  explicit HierarchicalPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), masks_(dynamic_cast<const diffusion::HierarchicalProcess&>(*process_)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const std::int32_t mask = process_->vocabulary().mask, token = mask == 0 ? 1 : 0, cluster = process_->m();  // any of each
    const std::vector<std::int64_t> ids(masks_.clusters().begin(), masks_.clusters().end());
    const at::Tensor x0 = slice.x0().view({-1, 1}), xt = slice.xt().view({-1, 1}), counts = slice.counts().view({-1, 1}), clusters = torch::tensor(ids).to(x0.device()).view({1, -1});
    const at::Tensor in_cluster = slice.of_positions([&](double t) { return masks_.exit_rate(token, t) * ratio(masks_.probabilities(token, 0, t), 0); });
    const at::Tensor at_mask = slice.of_positions([&](double t) { return masks_.exit_rate(cluster, t) * ratio(masks_.probabilities(token, 0, t), 1); });
    const auto of_token = (xt >= process_->m()) * in_cluster * counts, of_cluster = (xt == mask) * (x0 != mask) * at_mask * counts;
    const auto loss = [&](const at::Tensor& logits, std::int64_t begin) {
      const std::int64_t end = begin + logits.size(0);
      const at::Tensor log_l = torch::log_softmax(without_mask(logits, mask), -1), y = x0.slice(0, begin, end);
      const at::Tensor same = clusters == clusters.squeeze(0).index({y});
      const at::Tensor log_cluster = torch::logsumexp(torch::where(same, log_l, torch::full({1, 1}, -1e30, log_l.options())), -1, true);
      return (of_token.slice(0, begin, end) * (log_cluster - log_l.gather(-1, y)) - of_cluster.slice(0, begin, end) * log_cluster).sum();
    };
    return {sum_over_positions(model, *process_, slice, pass, loss), tokens(batch, first, n)};
  }

 private:
  static double ratio(const std::array<double, 3>& p, std::size_t i) { return p[i] / std::max(p[i + 1], 1e-30); }
  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::HierarchicalProcess& masks_;
};

// The same for any process of few states, by its matrices K_t and Q_t.
class DensePathObjective final : public Objective {
 public:
  static constexpr std::int32_t kMostStates = 1024;
  static constexpr std::int32_t kMostWhereSolved = 64;  // where each matrix is the solution of an equation
  explicit DensePathObjective(std::shared_ptr<const diffusion::Process> process) : process_(std::move(process)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const at::Tensor x0 = slice.x0(), xt = slice.xt(), counts = slice.counts();
    const auto of_sequence = [&](const at::Tensor& logits, std::int64_t begin) { return bound(logits, slice.time(begin / batch.length), x0[begin / batch.length], xt[begin / batch.length], counts[begin / batch.length]); };
    return {sum_over_parts(features_of(model, *process_, slice, pass), model.output(), batch.length, pass.bf16, of_sequence), tokens(batch, first, n)};
  }

 private:
  at::Tensor bound(at::Tensor logits, double t, const at::Tensor& x0, const at::Tensor& xt, const at::Tensor& counts) const {
    const std::int64_t mask = process_->vocabulary().mask;
    if (mask >= 0 && process_->prior()[static_cast<std::size_t>(mask)] > 0.5) logits = without_mask(logits, mask);
    const at::Tensor l = torch::softmax(logits, -1);
    const auto [K, Q] = matrices(t, logits.device());                                            // [to, from]
    const at::Tensor p = torch::matmul(l, K.slice(1, 0, process_->m()).t());                      // [L, states]
    const at::Tensor q = K.t().index_select(0, x0), rates = Q.index_select(0, xt);                // [L, states]
    const at::Tensor p_xt = p.gather(1, xt.unsqueeze(1)), q_xt = q.gather(1, xt.unsqueeze(1));
    const at::Tensor leads = rates > 0, any = leads.any(1, true);
    const auto log_of = [](const at::Tensor& x) { return torch::log(x.clamp_min(1e-30)); };
    const at::Tensor one = torch::ones({1, 1}, p.options());
    const at::Tensor log_rho = log_of(torch::where(leads, p, one)) - log_of(torch::where(any, p_xt, one));
    const at::Tensor rho0 = torch::where(leads, q / q_xt, torch::zeros_like(q));
    return ((rates * (torch::xlogy(rho0, rho0) - rho0 * log_rho - rho0 + torch::exp(log_rho))).sum(1) * counts).sum();
  }
  std::pair<at::Tensor, at::Tensor> matrices(double t, at::Device device) const {
    const auto n = static_cast<std::size_t>(process_->states());
    std::vector<double> column(n), k(n * n), q(n * n);
    const auto transition = process_->transition(0, t);
    for (std::size_t y = 0; y < n; ++y) {
      transition->column(static_cast<std::int32_t>(y), column);
      for (std::size_t x = 0; x < n; ++x) k[x * n + y] = column[x];
      process_->rates_from(static_cast<std::int32_t>(y), t, column);
      for (std::size_t x = 0; x < n; ++x) q[x * n + y] = x == y ? 0.0 : column[x];
    }
    const auto shape = static_cast<std::int64_t>(n);
    const auto tensor = [&](const std::vector<double>& v) { return torch::tensor(v, torch::kDouble).view({shape, shape}).to(device, torch::kFloat); };
    return {tensor(k), tensor(q)};
  }
  std::shared_ptr<const diffusion::Process> process_;
};

}  // namespace

std::unique_ptr<Objective> make_dense_path(std::shared_ptr<const diffusion::Process> process) { return std::make_unique<DensePathObjective>(std::move(process)); }

std::unique_ptr<Objective> make_path_objective(std::shared_ptr<const diffusion::Process> process) {
  if (process->name() == "absorb") return std::make_unique<MaskedPathObjective>(std::move(process));
  if (dynamic_cast<const diffusion::ResetProcess*>(process.get()) != nullptr) return std::make_unique<ResetPathObjective>(std::move(process));
  if (process->name() == "mask-rates") return std::make_unique<MaskRatesPathObjective>(std::move(process));
  if (process->name() == "hierarchical") return std::make_unique<HierarchicalPathObjective>(std::move(process));
  if (process->states() > DensePathObjective::kMostStates && process->name() == "sik-knn") return make_sampled_path(std::move(process));
  if (process->states() > DensePathObjective::kMostStates)
    bad_usage("--objective path: process {} of {} states; the bound is computed for at most {} states", process->name(), process->states(), DensePathObjective::kMostStates);
  if (const auto* dense = dynamic_cast<const diffusion::SikDenseProcess*>(process.get()); dense != nullptr && !dense->constant_temperature() && dense->m() > DensePathObjective::kMostWhereSolved)
    bad_usage("--objective path: process sik-dense of {} tokens with a temperature that changes (--epsilon-end); the bound is computed for at most {}", dense->m(), DensePathObjective::kMostWhereSolved);
  return std::make_unique<DensePathObjective>(std::move(process));
}

}  // namespace gdds::train
