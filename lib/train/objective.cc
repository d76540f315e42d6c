// See objective.h.
#include "train/objective.h"

#include <cmath>

#include <torch/torch.h>

#include "base/error.h"
#include "diffusion/resets.h"
#include "model/two_stream.h"

namespace gdds::train {
namespace {

using diffusion::SnapshotBatch;

// Part of a batch as tensors: ids [n, L] int64, flags and weights [n, L].
class Slice {
 public:
  Slice(const SnapshotBatch& batch, std::int64_t first, std::int64_t n, at::Device device) : batch_(batch), first_(first), n_(n), device_(device) {}

  at::Tensor ids(const std::vector<std::int32_t>& values) const {
    auto* data = const_cast<std::int32_t*>(values.data() + first_ * batch_.length);
    return torch::from_blob(data, {n_, batch_.length}, torch::kInt32).to(device_, torch::kInt64);
  }
  at::Tensor x0() const { return ids(batch_.x0); }
  at::Tensor xt() const { return ids(batch_.xt); }
  at::Tensor jumped() const {
    auto* data = const_cast<std::uint8_t*>(batch_.jumped.data() + first_ * batch_.length);
    return torch::from_blob(data, {n_, batch_.length}, torch::kUInt8).to(device_, torch::kBool);
  }
  // 1 where the token counts.
  at::Tensor counts() const {
    if (batch_.lengths.empty()) return torch::ones({n_, batch_.length}, device_);
    const auto lengths = torch::from_blob(const_cast<std::int32_t*>(batch_.lengths.data() + first_), {n_, 1}, torch::kInt32).to(device_);
    return (torch::arange(batch_.length, device_).unsqueeze(0) < lengths).to(torch::kFloat);
  }
  std::int64_t tokens() const {
    if (batch_.lengths.empty()) return n_ * batch_.length;
    std::int64_t sum = 0;
    for (std::int64_t s = first_; s < first_ + n_; ++s) sum += batch_.lengths[static_cast<std::size_t>(s)];
    return sum;
  }
  double time(std::int64_t s) const { return batch_.times[static_cast<std::size_t>(first_ + s)]; }
  // f(t) of each sequence, [n].
  template <typename F>
  at::Tensor of_times(F f) const {
    std::vector<float> values;
    for (std::int64_t s = 0; s < n_; ++s) values.push_back(static_cast<float>(f(time(s))));
    return torch::tensor(values).to(device_);
  }
  const SnapshotBatch& batch() const { return batch_; }
  std::int64_t first() const { return first_; }
  std::int64_t n() const { return n_; }

 private:
  const SnapshotBatch& batch_;
  std::int64_t first_, n_;
  at::Device device_;
};

at::Device device_of(const model::Model& model) { return model.parameters().front().value.device(); }

// -log softmax(logits)[target], [n, L].
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
  return torch::logsumexp(logits, -1) - logits.gather(-1, target.unsqueeze(-1)).squeeze(-1);
}

at::Tensor logits_of(const model::Model& model, const diffusion::Process& process, const Slice& slice, const model::Pass& pass) {
  const auto sigma = slice.of_times([&](double t) { return process.schedule().Lambda(t); });
  return dynamic_cast<const model::Network&>(model).logits(slice.xt(), sigma, pass);
}

class SnapshotObjective final : public Objective {
 public:
  SnapshotObjective(std::shared_ptr<const diffusion::Process> process, bool jumped) : process_(std::move(process)), jumped_(jumped) {}
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    at::Tensor each = cross_entropy(logits_of(model, *process_, slice, pass), slice.x0()) * slice.counts();
    if (jumped_) each = each * slice.jumped();
    return {each.sum(), slice.tokens()};
  }

 private:
  std::shared_ptr<const diffusion::Process> process_;
  bool jumped_;
};

// The bound's integrand for processes whose jumps forget where they came from. With p = K_t l and q = q_t(. | x0), both
// summing to one, and the same rate c to x_t from every other token,
//   c [ sum_y rho_0 log rho_0 - sum_y rho_0 log rho - (1-q(x_t))/q(x_t) + (1-p(x_t))/p(x_t) ],   sums over y != x_t,
//   sum_y rho_0 log rho = (stay log p(x0) + mask log p(mask) + uniform mean_y log p(y) - log p(x_t)) / q(x_t).
class ResetPathObjective final : public Objective {
 public:
  explicit ResetPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), resets_(dynamic_cast<const diffusion::ResetProcess&>(*process_)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const std::int64_t m = process_->m(), mask = process_->vocabulary().mask;
    at::Tensor logits = logits_of(model, *process_, slice, pass);
    if (mask >= 0 && process_->name() != "uniform") logits = logits.index_fill(-1, torch::tensor({mask}, logits.device()), -1e30);  // x0 is no mask
    const auto column = [&](auto f) { return slice.of_times(f).view({n, 1}); };
    const at::Tensor stay = column([&](double t) { return resets_.masses(t).stay; });
    const at::Tensor to_mask = column([&](double t) { return resets_.masses(t).mask; });
    const at::Tensor any = column([&](double t) { return resets_.masses(t).uniform; });
    const bool spread = process_->name() != "absorb";
    const at::Tensor x0 = slice.x0(), xt = slice.xt();
    const at::Tensor log_l = torch::log_softmax(logits, -1);
    const auto is_mask = [&](const at::Tensor& ids) { return (ids == mask).to(torch::kFloat); };
    // log p(y) for a few y, by gathering l.
    const auto log_p = [&](const at::Tensor& ids) {
      const at::Tensor l = log_l.gather(-1, ids.unsqueeze(-1)).squeeze(-1);
      return torch::logaddexp(torch::log(stay) + l, torch::log(any / m + to_mask * is_mask(ids)));
    };
    const auto q = [&](const at::Tensor& ids) { return stay * (ids == x0).to(torch::kFloat) + any / m + to_mask * is_mask(ids); };
    const at::Tensor log_p_xt = log_p(xt), q_xt = q(xt);
    at::Tensor cross = stay * log_p(x0);
    if (mask >= 0 && process_->name() != "uniform") cross = cross + to_mask * log_p(torch::full_like(x0, mask));
    if (spread) {
      const at::Tensor target = any.unsqueeze(-1) / m + (process_->name() == "hybrid" ? mask_row(to_mask, mask, m) : torch::zeros({1, 1, 1}, stay.options()));
      const at::Tensor all = torch::logaddexp(torch::log(stay).unsqueeze(-1) + log_l, torch::log(target));
      cross = cross + any * all.mean(-1);
    }
    const at::Tensor rho0_log_rho = (cross - log_p_xt) / q_xt;
    const at::Tensor rho0_log_rho0 = (entropy_sum(x0, stay, to_mask, any, m, mask) - torch::log(q_xt)) / q_xt;
    const at::Tensor rate = column([&](double t) { return rates(t).second / static_cast<double>(m); }) + column([&](double t) { return rates(t).first; }) * is_mask(xt);
    const at::Tensor inside = rho0_log_rho0 - rho0_log_rho - (1 - q_xt) / q_xt + (torch::exp(-log_p_xt) - 1);
    const at::Tensor each = torch::where(rate > 0, rate * inside, torch::zeros_like(inside));
    return {(each * slice.counts()).sum(), slice.tokens()};
  }

 private:
  static at::Tensor mask_row(const at::Tensor& to_mask, std::int64_t mask, std::int64_t m) {
    return to_mask.unsqueeze(-1) * torch::one_hot(torch::tensor(mask), m).to(to_mask.options());
  }
  // sum_y q(y) log q(y): x0, the mask and all the others have three values.
  static at::Tensor entropy_sum(const at::Tensor& x0, const at::Tensor& stay, const at::Tensor& to_mask, const at::Tensor& any, std::int64_t m, std::int64_t mask) {
    const at::Tensor base = any / m, at_x0 = base + stay, at_mask = base + to_mask;
    const bool masked = mask >= 0;
    const at::Tensor others = torch::xlogy(base, base) * static_cast<double>(masked ? m - 2 : m - 1);
    at::Tensor sum = others + torch::xlogy(at_x0, at_x0);
    if (masked) sum = sum + torch::xlogy(at_mask, at_mask);
    return sum.expand_as(x0);
  }
  std::pair<double, double> rates(double t) const {
    double to_mask = 0, to_any = 0;
    resets_.rates(t, to_mask, to_any);
    return {to_mask, to_any};
  }

  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::ResetProcess& resets_;
};

// The same for any process of few states, by its matrices K_t and Q_t.
class DensePathObjective final : public Objective {
 public:
  static constexpr std::int32_t kMostStates = 1024;
  explicit DensePathObjective(std::shared_ptr<const diffusion::Process> process) : process_(std::move(process)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    at::Tensor logits = logits_of(model, *process_, slice, pass);
    const std::int64_t mask = process_->vocabulary().mask;
    if (mask >= 0 && process_->prior()[static_cast<std::size_t>(mask)] > 0.5) logits = logits.index_fill(-1, torch::tensor({mask}, logits.device()), -1e30);
    const at::Tensor l = torch::softmax(logits, -1), x0 = slice.x0(), xt = slice.xt();
    std::vector<at::Tensor> sums;
    for (std::int64_t s = 0; s < n; ++s) {
      const auto [K, Q] = matrices(slice.time(s), logits.device());                               // [to, from]
      const at::Tensor p = torch::matmul(l[s], K.slice(1, 0, process_->m()).t());                  // [L, states]
      const at::Tensor q = K.t().index_select(0, x0[s]), rates = Q.index_select(0, xt[s]);          // [L, states]
      const at::Tensor p_xt = p.gather(1, xt[s].unsqueeze(1)), q_xt = q.gather(1, xt[s].unsqueeze(1));
      const at::Tensor rho = p / p_xt, rho0 = q / q_xt;
      const at::Tensor inside = torch::xlogy(rho0, rho0) - torch::where(rho0 > 0, rho0 * torch::log(rho + 1e-38), torch::zeros_like(rho)) - rho0 + rho;
      sums.push_back(torch::where(rates > 0, rates * inside, torch::zeros_like(inside)).sum(1));  // the diagonal of Q is not positive
    }
    return {(torch::stack(sums) * slice.counts()).sum(), slice.tokens()};
  }

 private:
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

class NextTokenObjective final : public Objective {
 public:
  model::Arch arch() const override { return model::Arch::ar; }
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const at::Tensor x0 = slice.x0(), counts = slice.counts().slice(1, 1);
    const at::Tensor logits = dynamic_cast<const model::Network&>(model).logits(x0.slice(1, 0, -1), at::Tensor(), pass);
    return {(cross_entropy(logits, x0.slice(1, 1)) * counts).sum(), slice.tokens() - n};
  }
};

// The token before the last jump of each position on paths to t = 1. For absorb there is one jump at most, and this is the
// whole of the paper's Algorithm 4; positions that did not jump are known from the beginning.
class CampbellObjective final : public Objective {
 public:
  explicit CampbellObjective(std::shared_ptr<const diffusion::Process> process) : process_(std::move(process)) {}
  model::Arch arch() const override { return model::Arch::two_stream; }
  bool needs_paths() const override { return true; }
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const std::int64_t length = batch.length;
    std::vector<double> times(static_cast<std::size_t>(n * length), 2.0);
    std::vector<float> sigma(times.size(), 0.0F);
    for (std::int64_t i = 0; i < n * length; ++i) {
      const std::int64_t at = (first + i / length) * (length + 1) + i % length;
      const std::int64_t begin = batch.path_offsets[static_cast<std::size_t>(at)], end = batch.path_offsets[static_cast<std::size_t>(at + 1)];
      if (begin == end) continue;
      times[static_cast<std::size_t>(i)] = batch.path_times[static_cast<std::size_t>(end - 1)];
      sigma[static_cast<std::size_t>(i)] = static_cast<float>(process_->schedule().Lambda(times[static_cast<std::size_t>(i)]));
    }
    const auto device = device_of(model);
    const at::Tensor when = torch::tensor(times, torch::kDouble).view({n, length}).to(device), x0 = slice.x0();
    const at::Tensor logits = dynamic_cast<const model::TwoStream&>(model).logits(x0, slice.xt(), model::ranks_of_times(when), torch::tensor(sigma).view({n, length}).to(device), pass);
    return {(cross_entropy(logits, x0) * slice.jumped() * slice.counts()).sum(), slice.tokens()};
  }

 private:
  std::shared_ptr<const diffusion::Process> process_;
};

}  // namespace

void ObjectiveOptions::add_to(Options& options) {
  options.option("objective", objective, "what is minimised").choices({"snapshot", "path", "campbell", "ar"});
  options.option("posterior", posterior, "snapshot: the cross-entropy of every token, or of those that jumped").choices({"full", "jumped"});
}

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& o, std::shared_ptr<const diffusion::Process> process) {
  if (o.objective == "ar") return std::make_unique<NextTokenObjective>();
  if (o.objective == "snapshot") return std::make_unique<SnapshotObjective>(std::move(process), o.posterior == "jumped");
  if (o.objective == "campbell") {
    if (process->name() != "absorb") bad_usage("--objective campbell: trains on paths of the process absorb, found {}", process->name());
    return std::make_unique<CampbellObjective>(std::move(process));
  }
  if (dynamic_cast<const diffusion::ResetProcess*>(process.get()) != nullptr) return std::make_unique<ResetPathObjective>(std::move(process));
  if (process->states() > DensePathObjective::kMostStates)
    bad_usage("--objective path: process {} of {} states; the bound is computed for at most {} states", process->name(), process->states(), DensePathObjective::kMostStates);
  return std::make_unique<DensePathObjective>(std::move(process));
}

}  // namespace gdds::train
