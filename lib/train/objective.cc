// See objective.h.
#include "train/objective.h"

#include <algorithm>
#include <cmath>

#include <torch/torch.h>

#include "base/error.h"
#include "diffusion/resets.h"
#include "diffusion/sik_bound.h"
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
    const at::Tensor rate = column([&](double t) { return rates(t).second / static_cast<double>(m); }) + column([&](double t) { return rates(t).first; }) * is_mask(xt);
    // Where nothing leads to x_t the network may say what it likes: neither values nor gradients may come from there.
    const at::Tensor log_p_xt = torch::where(rate > 0, log_p(xt), torch::zeros({1, 1}, stay.options())), q_xt = q(xt);
    at::Tensor cross = stay * log_p(x0);
    if (mask >= 0 && process_->name() != "uniform") cross = cross + to_mask * log_p(torch::full_like(x0, mask));
    if (spread) {
      const at::Tensor target = any.unsqueeze(-1) / m + (process_->name() == "hybrid" ? mask_row(to_mask, mask, m) : torch::zeros({1, 1, 1}, stay.options()));
      const at::Tensor all = torch::logaddexp(torch::log(stay).unsqueeze(-1) + log_l, torch::log(target));
      cross = cross + any * all.mean(-1);
    }
    const at::Tensor rho0_log_rho = (cross - log_p_xt) / q_xt;
    const at::Tensor rho0_log_rho0 = (entropy_sum(x0, stay, to_mask, any, m, mask) - torch::log(q_xt)) / q_xt;
    const at::Tensor inside = rho0_log_rho0 - rho0_log_rho - (1 - q_xt) / q_xt + (torch::exp(-log_p_xt) - 1);
    return {(rate * inside * slice.counts()).sum(), slice.tokens()};
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
      // Where nothing leads to x_t the network may say what it likes: neither values nor gradients may come from there.
      const at::Tensor leads = rates > 0, any = leads.any(1, true);
      const auto log_of = [](const at::Tensor& x) { return torch::log(x.clamp_min(1e-30)); };
      const at::Tensor one = torch::ones({1, 1}, p.options());
      const at::Tensor log_rho = log_of(torch::where(leads, p, one)) - log_of(torch::where(any, p_xt, one));
      const at::Tensor rho0 = torch::where(leads, q / q_xt, torch::zeros_like(q));
      sums.push_back((rates * (torch::xlogy(rho0, rho0) - rho0 * log_rho - rho0 + torch::exp(log_rho))).sum(1));
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

// The same for sik-knn at any size: an unbiased estimate from a few entries of K_t l (see sik_bound.h).
class SikPathObjective final : public Objective {
 public:
  explicit SikPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), sik_(dynamic_cast<const diffusion::SikKnnProcess&>(*process_)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const diffusion::BoundRows rows = bound_rows(sik_, batch, first, n);
    const at::Tensor l = torch::softmax(logits_of(model, *process_, slice, pass), -1);
    const auto device = l.device();
    const auto tensor = [&](const std::vector<float>& values) { return torch::tensor(values).to(device); };
    const std::int64_t count = n * batch.length;
    const at::Tensor p = products(rows, l).view({count, 3}), q = tensor(rows.q).view({count, 3});
    const auto at_xt = [](const at::Tensor& x) { return x.select(1, 0); };
    const at::Tensor rho0 = q.select(1, 1) / at_xt(q), rho = p.select(1, 1) / at_xt(p);
    const at::Tensor semantic = rho0 * torch::log(rho0 / rho) - rho0 + rho;
    const at::Tensor anywhere = (torch::log(q.select(1, 2) / p.select(1, 2)) - torch::log(at_xt(q) / at_xt(p)) - 1) / at_xt(q) + 1 / at_xt(p);
    const at::Tensor each = tensor(rows.semantic) * semantic + tensor(rows.reset) * anywhere;
    return {(each.view({n, batch.length}) * slice.counts()).sum(), slice.tokens()};
  }

 private:
  // p of three tokens of each position, [3 positions]: rows of e^{-R} E times l, plus v.
  static at::Tensor products(const diffusion::BoundRows& rows, const at::Tensor& l) {
    const std::int64_t m = l.size(-1);
    std::vector<std::int64_t> places(rows.ids.size()), row_of(rows.ids.size());
    for (std::size_t r = 0; r + 1 < rows.begin.size(); ++r)
      for (auto i = static_cast<std::size_t>(rows.begin[r]); i < static_cast<std::size_t>(rows.begin[r + 1]); ++i) {
        places[i] = static_cast<std::int64_t>(r / 3) * m + rows.ids[i];
        row_of[i] = static_cast<std::int64_t>(r);
      }
    const auto device = l.device();
    const at::Tensor terms = l.flatten().index_select(0, torch::tensor(places).to(device)) * torch::tensor(rows.weights).to(device);
    return torch::tensor(rows.v).to(device).index_add(0, torch::tensor(row_of).to(device), terms);
  }

  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::SikKnnProcess& sik_;
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

// The jumps of paths to t = 1 that changed a token, [n, L] lists; what leads to where it came from (a mask that is masked
// again, a reset to the same token) cannot be seen and costs nothing.
struct Change {
  double time;
  std::int64_t before, after;
};
std::vector<std::vector<Change>> changes(const Slice& slice) {
  const SnapshotBatch& b = slice.batch();
  std::vector<std::vector<Change>> out(static_cast<std::size_t>(slice.n() * b.length));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t s = slice.first() + static_cast<std::int64_t>(i) / b.length, l = static_cast<std::int64_t>(i) % b.length;
    const auto offset = static_cast<std::size_t>(s * (b.length + 1) + l);
    std::int32_t at = b.x0[static_cast<std::size_t>(s * b.length + l)];
    for (auto jump = static_cast<std::size_t>(b.path_offsets[offset]); jump < static_cast<std::size_t>(b.path_offsets[offset + 1]); ++jump) {
      if (b.path_states[jump] != at) out[i].push_back({b.path_times[jump], at, b.path_states[jump]});
      at = b.path_states[jump];
    }
  }
  return out;
}

// Cross-entropy of the token before every change of the paths to t = 1 (the paper's Algorithm 4). In round k each position is
// at its k-th change from the end: the query has the token after it and its time, and is to tell the token before it, knowing
// the same of the positions whose k-th change was later. One that has fewer changes is known to be x0 from its first on, one
// that has none always. So every term knows only what the reverse process knows by then, and there are as many rounds as the
// longest path has changes: one for absorb.
class CampbellObjective final : public Objective {
 public:
  explicit CampbellObjective(std::shared_ptr<const diffusion::Process> process) : process_(std::move(process)) {}
  model::Arch arch() const override { return model::Arch::two_stream; }
  bool needs_paths() const override { return true; }
  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const auto paths = changes(slice);
    std::size_t rounds = 1;
    for (const auto& path : paths) rounds = std::max(rounds, path.size());
    at::Tensor sum;
    for (std::size_t k = 1; k <= rounds; ++k) {
      model::Pass round = pass;
      round.seed += static_cast<std::uint64_t>(k - 1) << 40;  // a dropout of its own
      const at::Tensor part = round_sum(dynamic_cast<const model::TwoStream&>(model), slice, paths, k, round);
      sum = k == 1 ? part : sum + part;
    }
    return {sum, slice.tokens()};
  }

 private:
  at::Tensor round_sum(const model::TwoStream& model, const Slice& slice, const std::vector<std::vector<Change>>& paths, std::size_t k, const model::Pass& pass) const {
    std::vector<double> times(paths.size(), 2.0);  // later than any: known from the beginning
    std::vector<float> sigma(paths.size(), 0.0F), weight(paths.size(), 0.0F);
    std::vector<std::int64_t> before(paths.size()), after(paths.size());
    const SnapshotBatch& b = slice.batch();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i].empty()) {
        before[i] = after[i] = b.x0[static_cast<std::size_t>(slice.first() * b.length) + i];
        continue;
      }
      const Change& change = paths[i][paths[i].size() - std::min(k, paths[i].size())];
      times[i] = change.time;
      sigma[i] = static_cast<float>(process_->schedule().Lambda(change.time));
      before[i] = change.before;
      after[i] = change.after;
      weight[i] = paths[i].size() >= k ? 1.0F : 0.0F;
    }
    const auto device = device_of(model);
    const auto tensor = [&](const auto& values) { return torch::tensor(values).view({slice.n(), b.length}).to(device); };
    const at::Tensor target = tensor(before), when = torch::tensor(times, torch::kDouble).view_as(target).to(device);
    const at::Tensor logits = model.logits(target, tensor(after), model::ranks_of_times(when), tensor(sigma), pass);
    return (cross_entropy(logits, target) * tensor(weight) * slice.counts()).sum();
  }

  std::shared_ptr<const diffusion::Process> process_;
};

}  // namespace

void ObjectiveOptions::add_to(Options& options) {
  options.option("objective", objective, "what is minimised").choices({"snapshot", "path", "campbell", "ar"});
  options.option("posterior", posterior, "snapshot: the cross-entropy of every token, or of those that jumped").choices({"full", "jumped"});
}

std::unique_ptr<Objective> make_sampled_path(std::shared_ptr<const diffusion::Process> process) { return std::make_unique<SikPathObjective>(std::move(process)); }

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& o, std::shared_ptr<const diffusion::Process> process) {
  if (o.objective == "ar") return std::make_unique<NextTokenObjective>();
  if (o.objective == "snapshot") return std::make_unique<SnapshotObjective>(std::move(process), o.posterior == "jumped");
  if (o.objective == "campbell") {
    if (process->states() != process->m())
      bad_usage("--objective campbell: process {} has {} states that are no tokens, which the network cannot name", process->name(), process->states() - process->m());
    return std::make_unique<CampbellObjective>(std::move(process));
  }
  if (dynamic_cast<const diffusion::ResetProcess*>(process.get()) != nullptr) return std::make_unique<ResetPathObjective>(std::move(process));
  if (process->states() > DensePathObjective::kMostStates && process->name() == "sik-knn") return make_sampled_path(std::move(process));
  if (process->states() > DensePathObjective::kMostStates)
    bad_usage("--objective path: process {} of {} states; the bound is computed for at most {} states", process->name(), process->states(), DensePathObjective::kMostStates);
  return std::make_unique<DensePathObjective>(std::move(process));
}

}  // namespace gdds::train
