// The path-wise bound (MATH 6) as an objective, for each process in the way that suits it: in closed form where jumps forget
// where they came from or lead to the mask, from a few draws for sik-knn, by matrices elsewhere. Where nothing leads to x_t
// the network may say what it likes: neither values nor gradients come from there.
#include <array>
#include <cmath>

#include "base/error.h"
#include "diffusion/masks.h"
#include "diffusion/resets.h"
#include "diffusion/sik_bound.h"
#include "train/objective.h"
#include "train/slice.h"

namespace gdds::train {
namespace {

using diffusion::BoundRows;
using diffusion::SnapshotBatch;

// x0 is no mask.
at::Tensor without_mask(const at::Tensor& logits, std::int64_t mask) { return logits.index_fill(-1, torch::tensor({mask}, logits.device()), -1e30); }

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
    if (mask >= 0 && process_->name() != "uniform") logits = without_mask(logits, mask);
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
    return {(rate * inside * slice.counts()).sum(), tokens(batch, first, n)};
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

// x_t alone may be the mask, reached from each token y at its own rate r_y, where it is still itself with keep_y:
//   sum_y r_y rho(y) - r_x0 rho_0 + r_x0 rho_0 log(rho_0/rho(x0)),   rho(y) = keep_y l(y) / sum_z (1 - keep_z) l(z),   rho_0 = keep_x0 / (1 - keep_x0).
class MaskRatesPathObjective final : public Objective {
 public:
  explicit MaskRatesPathObjective(std::shared_ptr<const diffusion::Process> process)
      : process_(std::move(process)), masks_(dynamic_cast<const diffusion::MaskingProcess&>(*process_)) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const at::Tensor log_l = torch::log_softmax(without_mask(logits_of(model, *process_, slice, pass), process_->vocabulary().mask), -1);
    const auto [keeps, goes, flows] = of_tokens(slice, log_l.device());  // [n, 1, m]
    const at::Tensor x0 = slice.x0(), masked = (slice.xt() == process_->vocabulary().mask) & (x0 != process_->vocabulary().mask), none = torch::zeros({1, 1}, log_l.options());
    const auto of_x0 = [&](const at::Tensor& x) { return torch::where(masked, x.squeeze(1).gather(1, x0), none); };
    const auto sum = [&](const at::Tensor& x) { return torch::where(masked, torch::logsumexp(log_l + x, -1), none); };
    const at::Tensor log_rest = sum(goes), log_rho0 = of_x0(keeps) - of_x0(goes), weight = torch::exp(of_x0(flows) - of_x0(goes));  // r_x0 rho_0
    const at::Tensor log_rho = torch::where(masked, log_l.gather(-1, x0.unsqueeze(-1)).squeeze(-1), none) + of_x0(keeps) - log_rest;
    const at::Tensor each = torch::exp(sum(flows) - log_rest) + weight * (log_rho0 - log_rho - 1);
    return {(masked * each * slice.counts()).sum(), tokens(batch, first, n)};
  }

 private:
  // Logarithms of keep_y, of 1 - keep_y and of r_y keep_y, in double until there: 1 - keep may be tiny. What is impossible is
  // e^-200, which no sum sees.
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
    const auto tensor = [&](const std::vector<float>& v) { return torch::tensor(v).view({slice.n(), 1, m}).to(device); };
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
    const at::Tensor log_l = torch::log_softmax(without_mask(logits_of(model, *process_, slice, pass), mask), -1);
    const at::Tensor x0 = slice.x0(), xt = slice.xt();
    const std::vector<std::int64_t> ids(masks_.clusters().begin(), masks_.clusters().end());
    const at::Tensor clusters = torch::tensor(ids).to(x0.device());
    const at::Tensor log_token = log_l.gather(-1, x0.unsqueeze(-1)).squeeze(-1);
    const at::Tensor same = clusters.view({1, 1, -1}) == clusters.index({x0}).unsqueeze(-1);
    const at::Tensor log_cluster = torch::logsumexp(torch::where(same, log_l, torch::full({1, 1, 1}, -1e30, log_l.options())), -1);
    const auto column = [&](auto f) { return slice.of_times(f).view({n, 1}); };
    const at::Tensor in_cluster = column([&](double t) { return masks_.exit_rate(token, t) * ratio(masks_.probabilities(token, 0, t), 0); });
    const at::Tensor at_mask = column([&](double t) { return masks_.exit_rate(cluster, t) * ratio(masks_.probabilities(token, 0, t), 1); });
    const at::Tensor each = (xt >= process_->m()) * in_cluster * (log_cluster - log_token) - (xt == mask) * (x0 != mask) * at_mask * log_cluster;
    return {(each * slice.counts()).sum(), tokens(batch, first, n)};
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
    at::Tensor logits = logits_of(model, *process_, slice, pass);
    const std::int64_t mask = process_->vocabulary().mask;
    if (mask >= 0 && process_->prior()[static_cast<std::size_t>(mask)] > 0.5) logits = without_mask(logits, mask);
    const at::Tensor l = torch::softmax(logits, -1), x0 = slice.x0(), xt = slice.xt();
    std::vector<at::Tensor> sums;
    for (std::int64_t s = 0; s < n; ++s) {
      const auto [K, Q] = matrices(slice.time(s), logits.device());                               // [to, from]
      const at::Tensor p = torch::matmul(l[s], K.slice(1, 0, process_->m()).t());                  // [L, states]
      const at::Tensor q = K.t().index_select(0, x0[s]), rates = Q.index_select(0, xt[s]);          // [L, states]
      const at::Tensor p_xt = p.gather(1, xt[s].unsqueeze(1)), q_xt = q.gather(1, xt[s].unsqueeze(1));
      const at::Tensor leads = rates > 0, any = leads.any(1, true);
      const auto log_of = [](const at::Tensor& x) { return torch::log(x.clamp_min(1e-30)); };
      const at::Tensor one = torch::ones({1, 1}, p.options());
      const at::Tensor log_rho = log_of(torch::where(leads, p, one)) - log_of(torch::where(any, p_xt, one));
      const at::Tensor rho0 = torch::where(leads, q / q_xt, torch::zeros_like(q));
      sums.push_back((rates * (torch::xlogy(rho0, rho0) - rho0 * log_rho - rho0 + torch::exp(log_rho))).sum(1));
    }
    return {(torch::stack(sums) * slice.counts()).sum(), tokens(batch, first, n)};
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

// LibTorch says on every first use that sparse matrices are young; nobody who trains can do anything about it.
class NoWarnings {
  struct Silence final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  } silence_;
  c10::WarningUtils::WarningHandlerGuard guard_{&silence_};
};

// sum_n weights[n] F^n x for the columns of x [m, columns], by Horner's rule; the gradient is the same sum of F's transpose.
class PowersOfKernel : public torch::autograd::Function<PowersOfKernel> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& F, const at::Tensor& transposed, const std::vector<double>& weights) {
    context->saved_data["transposed"] = transposed;
    context->saved_data["weights"] = weights;
    return horner(F, weights, x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const at::Tensor of_x = horner(context->saved_data["transposed"].toTensor(), context->saved_data["weights"].toDoubleVector(), gradients[0]);
    return {of_x, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static at::Tensor horner(const at::Tensor& F, const std::vector<double>& weights, const at::Tensor& columns) {
    const at::Tensor x = columns.contiguous();
    at::Tensor sum = x * weights.back();
    for (std::size_t n = weights.size() - 1; n-- > 0;) sum = torch::mm(F, sum).add_(x, weights[n]);
    return sum;
  }
};

// The same for sik-knn at any size: an unbiased estimate from a few entries of K_t l (see sik_bound.h), by sparse rows of K_t
// or, for diffuse kernels, by powers of F.
class SikPathObjective final : public Objective {
 public:
  SikPathObjective(std::shared_ptr<const diffusion::Process> process, SampledPath way)
      : process_(std::move(process)), sik_(dynamic_cast<const diffusion::SikKnnProcess&>(*process_)), way_(way), entries_(way == SampledPath::chosen ? entries_of_a_row(sik_) : 0) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const bool powers = by_powers(n * batch.length);
    const BoundRows rows = bound_rows(sik_, batch, first, n, powers ? diffusion::WithRows::no : diffusion::WithRows::yes);
    const at::Tensor l = torch::softmax(logits_of(model, *process_, slice, pass), -1);
    const auto device = l.device();
    const auto tensor = [&](const std::vector<float>& values) { return torch::tensor(values).to(device); };
    const std::int64_t count = n * batch.length;
    const auto [products, columns] = powers ? by_powers(rows, slice, l) : std::pair(by_rows(rows, l), tensor(rows.q));
    const at::Tensor p = products.view({count, BoundRows::kRows}), q = columns.view({count, BoundRows::kRows});
    enum { kXt, kX0, kSource, kAgain };
    const auto g = [&](std::int64_t y) {
      const at::Tensor rho0 = q.select(1, y) / q.select(1, kXt), rho = p.select(1, y) / p.select(1, kXt);
      return torch::xlogy(rho0, rho0) - torch::xlogy(rho0, rho) - rho0 + rho;
    };
    const auto log_ratio = [&](std::int64_t y) { return torch::log(q.select(1, y) / p.select(1, y)); };
    const at::Tensor anywhere = (log_ratio(kAgain) - log_ratio(kXt) - 1) / q.select(1, kXt) + 1 / p.select(1, kXt);
    const at::Tensor each = tensor(rows.from_x0) * g(kX0) + tensor(rows.semantic) * g(kSource) + tensor(rows.reset) * anywhere;
    return {(each.view({n, batch.length}) * slice.counts()).sum(), tokens(batch, first, n)};
  }

 private:
  // Rows that hold more than an eighth of the vocabulary, or fill the memory, cost more than all of K_t l.
  bool by_powers(std::int64_t positions) const {
    if (way_ != SampledPath::chosen) return way_ == SampledPath::powers;
    return entries_ > sik_.m() / 8.0 || entries_ * static_cast<double>(BoundRows::kRows * positions) > diffusion::kMostEntries / 4.0;
  }

  // p of four tokens of each position, [4 positions]: rows of e^{-R} E times l, plus v.
  static at::Tensor by_rows(const BoundRows& rows, const at::Tensor& l) {
    const std::int64_t m = l.size(-1);
    std::vector<std::int64_t> places(rows.ids.size()), row_of(rows.ids.size());
    for (std::size_t r = 0; r + 1 < rows.begin.size(); ++r)
      for (auto i = static_cast<std::size_t>(rows.begin[r]); i < static_cast<std::size_t>(rows.begin[r + 1]); ++i) {
        places[i] = static_cast<std::int64_t>(r) / BoundRows::kRows * m + rows.ids[i];
        row_of[i] = static_cast<std::int64_t>(r);
      }
    const auto device = l.device();
    const at::Tensor terms = l.flatten().index_select(0, torch::tensor(places).to(device)) * torch::tensor(rows.weights).to(device);
    return torch::tensor(rows.v).to(device).index_add(0, torch::tensor(row_of).to(device), terms);
  }

  // The same p, and q = K_t(y | x0), [n, L, 4], a sequence at a time. Of q one column is made for each different x0.
  std::pair<at::Tensor, at::Tensor> by_powers(const BoundRows& rows, const Slice& slice, const at::Tensor& l) const {
    const auto device = l.device();
    const auto [F, transposed] = kernel(device);
    const std::int64_t n = slice.n(), length = l.size(1), m = l.size(2);
    const at::Tensor y = torch::tensor(rows.tokens).view({n, length, BoundRows::kRows}).to(device), v = torch::tensor(rows.v).view_as(y).to(device), x0 = slice.x0();
    std::vector<at::Tensor> p, q;
    for (std::int64_t s = 0; s < n; ++s) {
      const std::vector<double> weights = bound_powers(sik_, slice.time(s));
      p.push_back(PowersOfKernel::apply(l[s].t(), F, transposed, weights).t().gather(1, y[s]) + v[s]);
      const auto [different, which, none] = at::_unique2(x0[s], true, true);
      const at::Tensor units = torch::zeros({m, different.size(0)}, l.options().requires_grad(false)).scatter_(0, different.unsqueeze(0), 1.0);
      const at::Tensor column = PowersOfKernel::apply(units, F, transposed, weights);
      q.push_back(column.index({y[s], which.unsqueeze(1)}) + v[s]);
    }
    return {torch::stack(p), torch::stack(q)};
  }

  // F and its transpose as sparse matrices of LibTorch's, made once. A column of F has k entries, some of them zero.
  std::pair<at::Tensor, at::Tensor> kernel(at::Device device) const {
    if (!F_.defined() || F_.device() != device) {
      const NoWarnings quiet;
      const diffusion::SparseKernel& k = sik_.kernel();
      const std::vector<float> by_row(k.row_weights.begin(), k.row_weights.end()), by_column(k.weights.begin(), k.weights.end());
      const at::Tensor columns = torch::tensor(k.ids).view({k.m, k.k});
      const auto [sorted, order] = columns.sort(1);  // as the format wants them
      const at::Tensor values = torch::tensor(by_column).view({k.m, k.k}).gather(1, order);
      const auto matrix = [&](const at::Tensor& begin, const at::Tensor& ids, const at::Tensor& weights) {
        return torch::sparse_csr_tensor(begin.to(torch::kInt64), ids.to(torch::kInt64), weights, {k.m, k.m}, torch::TensorOptions().dtype(torch::kFloat)).to(device);
      };
      F_ = matrix(torch::tensor(k.row_begin), torch::tensor(k.row_ids), torch::tensor(by_row));
      transposed_ = matrix(torch::arange(k.m + 1, torch::kInt64) * k.k, sorted.flatten(), values.flatten());
    }
    return {F_, transposed_};
  }

  std::shared_ptr<const diffusion::Process> process_;
  const diffusion::SikKnnProcess& sik_;
  const SampledPath way_;
  const double entries_;  // of a row of K_1
  mutable at::Tensor F_, transposed_;
};

}  // namespace

std::unique_ptr<Objective> make_sampled_path(std::shared_ptr<const diffusion::Process> process, SampledPath way) { return std::make_unique<SikPathObjective>(std::move(process), way); }
std::unique_ptr<Objective> make_dense_path(std::shared_ptr<const diffusion::Process> process) { return std::make_unique<DensePathObjective>(std::move(process)); }

std::unique_ptr<Objective> make_path_objective(std::shared_ptr<const diffusion::Process> process) {
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
