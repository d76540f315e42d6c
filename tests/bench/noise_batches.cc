// bench-noise EMBEDDING.h5 GAUSS.h5 COSINE.h5 [SEEDS]: the paper's table of noising times, batches of 512 x 1024 tokens,
// beside its milliseconds on an H100 and beside a rival in the same run: the straightforward PyTorch way on the CPU. The
// rival is written with ATen, the C++ library under PyTorch, of PyPI's torch wheel and with as many threads as ours: it
// calls what Python would call, without Python's own time. Both get the same tokens (random) and times (uniform from 1e-3
// to 1, one a sequence). Rounds of ours and theirs alternate, a round a seed: 3 runs to warm up, then 10. Mean and standard
// deviation are those of the rounds' means, best and median those of all runs. "changed" is the share of tokens with x_t
// other than x_0: that both do the same thing. Last come the targets, by the medians, with the ratios of the best runs for
// information: where other programs want the cores too, a run shorter than a time slice (4 ms or so) often waits for one,
// and its median says nothing.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/log.h"
#include "base/threads.h"
#include "diffusion/open.h"
#include "diffusion/sik.h"

namespace {

using namespace gdds;
using at::Tensor;

constexpr std::int64_t kSequences = 512, kLength = 1024;

// ---- the rival ---------------------------------------------------------------------------------------------------------

// x0 [B, L], t [B, 1]; the log-linear schedule, alpha = 1 - (1 - eps) t.
struct Torch {
  std::int64_t m, mask;
  double eps;
  Tensor ids, logits;  // [m, k]: neighbours, and log F

  Tensor absorb(const Tensor& x0, const Tensor& t) const { return at::where(at::rand(x0.sizes()) < (1 - eps) * t, at::scalar_tensor(mask, at::kLong), x0); }

  Tensor uniform(const Tensor& x0, const Tensor& t) const { return at::where(at::rand(x0.sizes()) < (1 - eps) * t, at::randint(m, x0.sizes(), at::kLong), x0); }

  // The paper's Algorithm 1: N ~ Poisson(Lambda(t)) jumps a token at sorted times T_1 < T_2 < ...; jump k of all tokens that
  // have one is to any other token with probability lambda(T_k), else to a neighbour, by Gumbel-max over the logits of all k.
  // Gathered are the logits of those that go to a neighbour only.
  Tensor sik(const Tensor& x0, const Tensor& t) const {
    const auto g = [](double u) { return 1 / (1 + std::exp(-10 * (u - 0.6))); };
    const Tensor Lambda = -at::log1p(-(1 - eps) * t);
    const Tensor N = at::poisson(Lambda.expand_as(x0).contiguous()).flatten();
    const auto most = static_cast<std::int64_t>(N.max().item<float>());
    Tensor clock = at::rand({x0.numel(), most});
    clock = std::get<0>(at::where(at::arange(most) < N.unsqueeze(1), clock, at::scalar_tensor(INFINITY)).sort(1));
    const Tensor T = (1 - at::exp(-clock.view({x0.size(0), -1}) * Lambda)).view({x0.numel(), most}) / (1 - eps);
    const Tensor lambda = 0.01 + 0.99 / (g(1) - g(0)) * (at::sigmoid(10 * (T - 0.6)) - g(0));
    Tensor xt = x0.flatten().clone();
    for (std::int64_t k = 0; k < most; ++k) {
      const Tensor jumping = at::nonzero(N > k).squeeze(1);
      const Tensor resets = at::rand({jumping.numel()}) < lambda.select(1, k).index_select(0, jumping);
      const Tensor reset = jumping.masked_select(resets), semantic = jumping.masked_select(~resets);
      const Tensor any = at::randint(m - 1, {reset.numel()}, at::kLong);
      xt.index_copy_(0, reset, any + (any >= xt.index_select(0, reset)));
      const Tensor y = xt.index_select(0, semantic);
      const Tensor gumbel = -at::empty({y.numel(), logits.size(1)}).exponential_().log_();
      const Tensor pick = gumbel.add_(logits.index_select(0, y)).argmax(1, true);
      xt.index_copy_(0, semantic, ids.index_select(0, y).gather(1, pick).squeeze(1));
    }
    return xt.view_as(x0);
  }
};

// ---- runs ----------------------------------------------------------------------------------------------------------------

struct Batch {
  std::uint64_t seed;
  std::vector<std::int32_t> x0, xt;
  std::vector<std::uint64_t> numbers;
  std::vector<double> times;
  std::vector<std::uint8_t> jumped;
  Tensor torch_x0, torch_times;

  Batch(std::uint64_t seed, std::int32_t m) : seed(seed), x0(kSequences * kLength), xt(x0.size()), numbers(kSequences), times(kSequences), jumped(x0.size()) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int32_t> token(0, m - 1);
    std::uniform_real_distribution<double> time(1e-3, 1);
    for (auto& x : x0) x = token(random);
    for (auto& t : times) t = time(random);
    std::iota(numbers.begin(), numbers.end(), seed << 32);
    torch_x0 = at::from_blob(x0.data(), {kSequences, kLength}, at::kInt).to(at::kLong);
    torch_times = at::from_blob(times.data(), {kSequences, 1}, at::kDouble).to(at::kFloat);
  }
};

struct Runs {
  std::vector<double> all, means;  // milliseconds
  double changed = 0;              // share of tokens, in the last run

  double mean() const { return std::accumulate(means.begin(), means.end(), 0.0) / static_cast<double>(means.size()); }
  double deviation() const {
    double sum = 0;
    for (const double v : means) sum += (v - mean()) * (v - mean());
    return means.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(means.size() - 1));
  }
  double best() const { return *std::min_element(all.begin(), all.end()); }
  double median() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void round(int warm, int timed, const std::function<void()>& action, Runs& runs) {
  double sum = 0;
  for (int i = -warm; i < timed; ++i) {
    const auto start = std::chrono::steady_clock::now();
    action();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (i < 0) continue;
    runs.all.push_back(ms);
    sum += ms;
  }
  runs.means.push_back(sum / timed);
}

struct Case {
  std::string name;
  double paper;  // milliseconds, 0: not in the paper
  std::unique_ptr<diffusion::Process> process;
  std::function<Tensor(const Tensor&, const Tensor&)> rival;  // may be empty
  int warm = 3, timed = 10;
  Runs ours = {}, theirs = {};
};

void run(Case& c, Batch& b) {
  round(c.warm, c.timed, [&] { c.process->noise({b.x0.data(), b.numbers.data(), kSequences, kLength, b.seed, b.xt.data(), b.jumped.data()}, b.times); }, c.ours);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < b.x0.size(); ++i) changed += b.xt[i] != b.x0[i];
  c.ours.changed = static_cast<double>(changed) / static_cast<double>(b.x0.size());
  if (!c.rival) return;
  at::manual_seed(b.seed);
  Tensor xt;
  round(c.warm, c.timed, [&] { xt = c.rival(b.torch_x0, b.torch_times); }, c.theirs);
  c.theirs.changed = (xt != b.torch_x0).to(at::kDouble).mean().item<double>();
}

// ---- table -----------------------------------------------------------------------------------------------------------------

void print(const Case& c) {
  std::printf("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f %%", c.name.c_str(), c.ours.mean(), c.ours.deviation(), c.ours.best(), c.ours.median(), 100 * c.ours.changed);
  if (c.paper > 0) std::printf("\t%.2f", c.paper);
  else std::printf("\t-");
  if (c.rival)
    std::printf("\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f %%\t%.1f\n", c.theirs.mean(), c.theirs.deviation(), c.theirs.best(), c.theirs.median(), 100 * c.theirs.changed,
                c.theirs.median() / c.ours.median());
  else std::printf("\t-\t-\t-\t-\t-\t-\n");
}

// Of two rows: slow / fast, by the medians and by the best runs.
void print_target(const std::string& what, const Runs& slow, const Runs& fast, bool at_least, double wanted) {
  const double ratio = slow.median() / fast.median();
  std::printf("%s\t%.1f\t%.1f\t%s %.0f\t%s\n", what.c_str(), ratio, slow.best() / fast.best(), at_least ? ">=" : "<=", wanted, (at_least ? ratio >= wanted : ratio <= wanted) ? "met" : "missed");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int seeds = argc > 4 ? std::atoi(argv[4]) : 5;
  log::set_level(log::Level::quiet);
  const c10::InferenceMode inference;
  at::set_num_threads(threads());
  const std::string embedding = argv[1], gauss = argv[2], cosine = argv[3];
  auto vocabulary = diffusion::vocabulary_name(h5::Input(embedding, "embedding"));
  if (vocabulary.mask < 0) vocabulary.mask = vocabulary.size - 1;  // its place does not matter here

  const auto open = [&](const char* name, const std::string& neighbours, double epsilon) {
    diffusion::ProcessOptions options;
    options.process = name;
    options.neighbours = neighbours;
    options.epsilon = epsilon;
    if (options.process == "sik-dense") options.embedding = embedding;
    std::vector<h5::Source> sources;
    return open_process(options, vocabulary, sources);
  };
  const auto rival = [&](const diffusion::Process& process) {
    Torch torch{vocabulary.size, vocabulary.mask, process.schedule().eps, {}, {}};
    if (const auto* sik = dynamic_cast<const diffusion::SikKnnProcess*>(&process)) {
      const auto& F = sik->kernel();
      torch.ids = at::tensor(at::ArrayRef<std::int32_t>(F.ids), at::kLong).view({F.m, F.k});
      torch.logits = at::tensor(at::ArrayRef<double>(F.weights), at::kDouble).log().to(at::kFloat).view({F.m, F.k});
    }
    return torch;
  };
  std::vector<Case> cases;
  cases.push_back({"absorbing", 0.09, open("absorb", "", 0.01), {}});
  cases.back().rival = [torch = rival(*cases.back().process)](const Tensor& x0, const Tensor& t) { return torch.absorb(x0, t); };
  cases.push_back({"uniform", 0.07, open("uniform", "", 0.01), {}});
  cases.back().rival = [torch = rival(*cases.back().process)](const Tensor& x0, const Tensor& t) { return torch.uniform(x0, t); };
  for (const auto& [name, file, paper] : {std::tuple{"SIK Gauss kNN", gauss, 8.97}, {"SIK cosine kNN", cosine, 8.94}}) {
    cases.push_back({name, paper, open("sik-knn", file, 0.01), {}});
    cases.back().rival = [torch = rival(*cases.back().process)](const Tensor& x0, const Tensor& t) { return torch.sik(x0, t); };
  }
  cases.push_back({"SIK Gauss dense", 152.49, open("sik-dense", gauss, 0.01), {}});
  cases.push_back({"SIK cosine dense", 162.45, open("sik-dense", cosine, 0.01), {}});
  // More tries a jump (MATH 2.3), and slow enough for one run a seed.
  cases.push_back({"SIK Gauss dense, epsilon 0.05", 0, open("sik-dense", gauss, 0.05), {}, 0, 1});
  cases.push_back({"SIK Gauss dense, epsilon 0.1", 0, open("sik-dense", gauss, 0.1), {}, 0, 1});
  cases.push_back({"SIK Gauss dense, epsilon 1", 0, open("sik-dense", gauss, 1), {}, 0, 1});

  for (int seed = 1; seed <= seeds; ++seed) {
    Batch batch(static_cast<std::uint64_t>(seed), vocabulary.size);
    for (Case& c : cases) run(c, batch);
  }

  std::printf("%lld x %lld tokens of %d, %d threads; milliseconds\n", (long long)kSequences, (long long)kLength, vocabulary.size, threads());
  std::printf("process\tmean\tsd\tbest\tmedian\tchanged\tpaper, H100\ttorch mean\tsd\tbest\tmedian\tchanged\ttimes torch\n");
  for (const Case& c : cases) print(c);

  std::printf("\nratio\tmedians\tbest\twanted\tby the medians\n");
  for (std::size_t i = 0; i < 4; ++i) print_target("torch / ours, " + cases[i].name, cases[i].theirs, cases[i].ours, true, i < 2 ? 8 : 100);
  for (std::size_t i = 4; i < 6; ++i) print_target("dense / kNN, " + cases[i].name, cases[i].ours, cases[i - 2].ours, false, 20);
}
