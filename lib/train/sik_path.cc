// The path-wise bound for sik-knn at any size (lib/diffusion/sik_bound.h has what it is made of): for sharp kernels an unbiased
// estimate from four rows of K_t a position, for diffuse ones all of K_t l by powers of F, and nothing is drawn.
#include <torch/torch.h>

#include "diffusion/sik.h"
#include "diffusion/sik_bound.h"
#include "train/objective.h"
#include "train/readout.h"
#include "train/slice.h"

namespace gdds::train {
namespace {

using diffusion::BoundRows;
using diffusion::SnapshotBatch;

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

// rho_0 log(rho_0/rho) - rho_0 + rho
at::Tensor g(const at::Tensor& rho0, const at::Tensor& rho) { return torch::xlogy(rho0, rho0) - torch::xlogy(rho0, rho) - rho0 + rho; }

// sum over all y of g, from KL(q || p).
at::Tensor sum_of_g(const at::Tensor& kl, const at::Tensor& q_xt, const at::Tensor& p_xt) { return (kl - torch::log(q_xt / p_xt) - 1) / q_xt + 1 / p_xt; }

class SikPathObjective final : public Objective {
 public:
  SikPathObjective(std::shared_ptr<const diffusion::Process> process, SampledPath way)
      : process_(std::move(process)), sik_(dynamic_cast<const diffusion::SikKnnProcess&>(*process_)), way_(way), entries_(way == SampledPath::chosen ? entries_of_a_row(sik_) : 0) {}

  LossSum loss(const model::Model& model, const SnapshotBatch& batch, std::int64_t first, std::int64_t n, const model::Pass& pass) const override {
    const Slice slice(batch, first, n, device_of(model));
    const at::Tensor features = features_of(model, *process_, slice, pass);
    const auto sum = [&](std::int64_t rows, const LossOfLogits& loss) { return sum_over_parts(features, model.output(), rows, pass.bf16, loss); };
    if (by_powers(n * batch.length)) {
      const at::Tensor x0 = slice.x0(), xt = slice.xt(), counts = slice.counts();
      return {sum(batch.length, [&](const at::Tensor& logits, std::int64_t begin) {
        const std::int64_t s = begin / batch.length;
        return exact(logits, slice.time(s), x0[s], xt[s], counts[s]);
      }), tokens(batch, first, n)};
    }
    const BoundRows rows = bound_rows(sik_, batch, first, n);
    const at::Tensor counts = slice.counts().flatten();
    return {sum(rows_of_part(process_->m()), [&](const at::Tensor& logits, std::int64_t begin) { return (estimate(rows, logits, begin) * counts.slice(0, begin, begin + logits.size(0))).sum(); }),
            tokens(batch, first, n)};
  }

 private:
  // Rows that hold more than an eighth of the vocabulary, or fill the memory, cost more than all of K_t l.
  bool by_powers(std::int64_t positions) const {
    if (way_ != SampledPath::chosen) return way_ == SampledPath::powers;
    return entries_ > sik_.m() / 8.0 || entries_ * static_cast<double>(BoundRows::kRows * positions) > diffusion::kMostEntries / 4.0;
  }

  // Of positions begin ... begin + P - 1, [P].
  static at::Tensor estimate(const BoundRows& rows, const at::Tensor& logits, std::int64_t begin) {
    const std::int64_t count = logits.size(0);
    const auto part = [&](const std::vector<float>& values, std::int64_t each) {
      return torch::from_blob(const_cast<float*>(values.data() + each * begin), {count, each}, torch::kFloat).to(logits.device());
    };
    const at::Tensor p = products(rows, torch::softmax(logits, -1), begin), q = part(rows.q, BoundRows::kRows);
    const at::Tensor tokens = torch::from_blob(const_cast<std::int64_t*>(rows.tokens.data() + BoundRows::kRows * begin), {count, BoundRows::kRows}, torch::kInt64);
    const at::Tensor other_x0 = (tokens.select(1, 0) != tokens.select(1, 1)).to(logits.device());
    enum { kXt, kX0, kSource, kAgain };
    const auto column = [](const at::Tensor& x, std::int64_t y) { return x.select(1, y); };
    const at::Tensor p_xt = column(p, kXt), q_xt = column(q, kXt);
    const auto term = [&](std::int64_t y) { return g(column(q, y) / q_xt, column(p, y) / p_xt); };
    const auto of = [&](const std::vector<float>& values) { return part(values, 1).squeeze(1); };
    const auto log_ratio = [&](std::int64_t y) { return torch::log(column(q, y) / column(p, y)); };
    const at::Tensor kl = q_xt * log_ratio(kXt) + other_x0 * column(q, kX0) * log_ratio(kX0) + of(rows.elsewhere) * log_ratio(kAgain);
    return of(rows.from_x0) * term(kX0) + of(rows.semantic) * term(kSource) + of(rows.reset) * sum_of_g(kl, q_xt, p_xt);
  }

  // p of four tokens of each position, [P, 4]: rows of e^{-R} E times l [P, m], plus v.
  static at::Tensor products(const BoundRows& rows, const at::Tensor& l, std::int64_t begin) {
    const std::int64_t count = l.size(0), m = l.size(1), first = BoundRows::kRows * begin, last = first + BoundRows::kRows * count;
    const std::int64_t from = rows.begin[static_cast<std::size_t>(first)], entries = rows.begin[static_cast<std::size_t>(last)] - from;
    std::vector<std::int64_t> places(static_cast<std::size_t>(entries)), row_of(places.size());
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t i = rows.begin[static_cast<std::size_t>(r)]; i < rows.begin[static_cast<std::size_t>(r) + 1]; ++i) {
        places[static_cast<std::size_t>(i - from)] = (r - first) / BoundRows::kRows * m + rows.ids[static_cast<std::size_t>(i)];
        row_of[static_cast<std::size_t>(i - from)] = r - first;
      }
    const auto device = l.device();
    const auto floats = [&](const std::vector<float>& values, std::int64_t at, std::int64_t n) { return torch::from_blob(const_cast<float*>(values.data() + at), {n}, torch::kFloat).clone().to(device); };
    const at::Tensor terms = l.flatten().index_select(0, torch::tensor(places).to(device)) * floats(rows.weights, from, entries);
    return floats(rows.v, first, last - first).index_add(0, torch::tensor(row_of).to(device), terms).view({count, BoundRows::kRows});
  }

  // Of a sequence, x0 xt counts [L]. Of K_t(. | x0) one column is made for each different x0.
  at::Tensor exact(const at::Tensor& logits, double t, const at::Tensor& x0, const at::Tensor& xt, const at::Tensor& counts) const {
    const auto device = logits.device();
    const auto [F, transposed] = kernel(device);
    const std::vector<double> weights = bound_powers(sik_, t);
    const at::Tensor v = torch::tensor(diffusion::bound_spread(sik_, t)).to(device).unsqueeze(1), l = torch::softmax(logits, -1);
    const auto [different, which, none] = at::_unique2(x0, true, true);
    const at::Tensor units = torch::zeros({process_->m(), different.size(0)}, v.options()).scatter_(0, different.unsqueeze(0), 1.0);
    const at::Tensor p = PowersOfKernel::apply(l.t(), F, transposed, weights) + v, columns = PowersOfKernel::apply(units, F, transposed, weights) + v;  // [m, L], [m, different x0]
    const at::Tensor p_xt = p.gather(0, xt.unsqueeze(0)).squeeze(0), q_xt = columns.index({xt, which});
    const at::Tensor kl = (columns.index_select(1, which) * (torch::log(columns).index_select(1, which) - torch::log(p))).sum(0);
    const double f = process_->schedule().f(t), reset = f * sik_.clocks().r_of(t) / static_cast<double>(process_->m());
    // The entries of the rows F(x_t, .): position, y, value.
    const auto [at, y, values] = entries_of_rows(xt);
    const at::Tensor near = g(columns.index({y, which.index_select(0, at)}) / q_xt.index_select(0, at), p.index({y, at}) / p_xt.index_select(0, at));
    return f * sik_.clocks().a_of(t) * (values * near * counts.index_select(0, at)).sum() + reset * (sum_of_g(kl, q_xt, p_xt) * counts).sum();
  }
  std::tuple<at::Tensor, at::Tensor, at::Tensor> entries_of_rows(const at::Tensor& xt) const {
    const diffusion::SparseKernel& k = sik_.kernel();
    const at::Tensor rows = xt.cpu().contiguous();
    std::vector<std::int64_t> at, y;
    std::vector<float> values;
    for (std::int64_t l = 0; l < rows.size(0); ++l) {
      const auto x = static_cast<std::size_t>(rows.data_ptr<std::int64_t>()[l]);
      for (auto i = static_cast<std::size_t>(k.row_begin[x]); i < static_cast<std::size_t>(k.row_begin[x + 1]); ++i) {
        at.push_back(l);
        y.push_back(k.row_ids[i]);
        values.push_back(static_cast<float>(k.row_weights[i]));
      }
    }
    const auto device = xt.device();
    return {torch::tensor(at, torch::kInt64).to(device), torch::tensor(y, torch::kInt64).to(device), torch::tensor(values, torch::kFloat).to(device)};
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

}  // namespace gdds::train
