// Time and memory of a forward and a backward pass: bench-network [small] [8] [256] [50257] [3] (size, batch, length, tokens,
// runs), a line a setting. The step is the paper's, cross-entropy on every position with dropout; the best of the runs, by the
// clock and by the processors' time, which a busy machine disturbs less.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

#include <torch/torch.h>

#include "model/autocast.h"
#include "model/network.h"

using namespace gdds::model;

int main(int argc, char** argv) {
  ModelOptions options;
  if (argc > 1) options.size = argv[1];
  const std::int64_t batch = argc > 2 ? std::stoll(argv[2]) : 8, length = argc > 3 ? std::stoll(argv[3]) : 256, m = argc > 4 ? std::stoll(argv[4]) : 50257;
  const int runs = argc > 5 ? std::stoi(argv[5]) : 3;
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  at::manual_seed(1);
  const at::Tensor ids = at::randint(m, {batch, length}, at::kLong), sigma = at::rand({batch});
  printf("arch\ttype\trecompute\tforward_s\tbackward_s\tcpu_s\ttokens_per_s\tpeak_MB\n");
  for (const Arch arch : {Arch::ddit, Arch::ar}) {
    const auto network = make_network(options.config(arch, m + 1, m, length), 1);
    for (const auto type : {at::kBFloat16, at::kFloat})
      for (const bool recompute : {true, false}) {  // by rising memory: the peak is of the whole process
        double forward = 1e9, backward = 1e9, cpu = 1e9;
        for (int run = 0; run < runs; ++run) {
          const double start = now(), cpu_start = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
          at::Tensor logits;
          {
            const Autocast mixed(at::kCPU, type);
            logits = network->logits(ids, sigma, {.dropout = true, .seed = 1, .recompute = recompute});
          }
          const at::Tensor loss = at::cross_entropy_loss(logits.flatten(0, 1), ids.flatten());
          const double middle = now();
          loss.backward();
          forward = std::min(forward, middle - start);
          backward = std::min(backward, now() - middle);
          cpu = std::min(cpu, static_cast<double>(std::clock()) / CLOCKS_PER_SEC - cpu_start);
        }
        rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        printf("%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.0f\t%ld\n", std::string(arch_name(arch)).c_str(), type == at::kFloat ? "fp32" : "bf16", recompute ? "yes" : "no", forward, backward, cpu,
               static_cast<double>(batch * length) / (forward + backward), usage.ru_maxrss / 1024);
        fflush(stdout);
      }
  }
}
