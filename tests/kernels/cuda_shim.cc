// See cuda_shim.h. Fibres by swapcontext; AddressSanitizer is told of each switch, and says once itself that it cannot be
// sure of a program that calls swapcontext.
#include "cuda_shim.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

dim3 gridDim, blockDim, blockIdx, threadIdx;

namespace gdds::shim {
namespace {

constexpr std::size_t kStack = 64 * 1024;
constexpr unsigned kMostThreads = 1024;  // of a block, as on every GPU

// A stack that execution goes to and comes from; with the sanitizer's note of what it kept of it.
struct Stack {
  ucontext_t context;
  const void* bottom = nullptr;
  std::size_t size = 0;
  void* kept = nullptr;
};

void arrived([[maybe_unused]] const Stack& here, [[maybe_unused]] Stack* from) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(here.kept, from ? &from->bottom : nullptr, from ? &from->size : nullptr);
#endif
}

// Goes from one stack to the other, and returns when someone comes back.
void change(Stack& from, Stack& to, [[maybe_unused]] bool for_good = false) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.kept, to.bottom, to.size);
#endif
  swapcontext(&from.context, &to.context);
}

struct Fibre {
  Stack stack;
  std::unique_ptr<char[]> memory{new char[kStack]};
  bool done = false;
};

Settings the_settings;
cudaError_t last_error = cudaSuccess;
std::vector<Fibre> fibres;  // of the block that runs; stacks serve many blocks
Stack scheduler;
Fibre* running = nullptr;
const std::function<void()>* body_of_threads = nullptr;
std::mt19937 shuffle_random(1);

void thread_main() {
  arrived(running->stack, &scheduler);  // the sanitizer tells where the scheduler's stack lies
  (*body_of_threads)();
  running->done = true;
  change(running->stack, scheduler, true);
}

void prepare(Fibre& fibre) {
  Stack& stack = fibre.stack;
  getcontext(&stack.context);
  stack.context.uc_stack = {.ss_sp = fibre.memory.get(), .ss_flags = 0, .ss_size = kStack};
  stack.context.uc_link = nullptr;
  stack.bottom = fibre.memory.get();
  stack.size = kStack;
  stack.kept = nullptr;
  makecontext(&stack.context, thread_main, 0);
  fibre.done = false;
}

void resume(unsigned thread) {
  running = &fibres[thread];
  threadIdx = dim3(thread, 0, 0);
  change(scheduler, running->stack);
  arrived(scheduler, nullptr);
}

std::vector<unsigned> order_of_threads() {
  std::vector<unsigned> threads(blockDim.x);
  std::iota(threads.begin(), threads.end(), 0U);
  if (the_settings.order == Order::backward) std::reverse(threads.begin(), threads.end());
  if (the_settings.order == Order::shuffled) std::shuffle(threads.begin(), threads.end(), shuffle_random);
  return threads;
}

// From barrier to barrier until all have left; false where some have left and others wait.
bool run_block() {
  for (unsigned t = 0; t < blockDim.x; ++t) prepare(fibres[t]);
  for (;;) {
    for (const unsigned t : order_of_threads()) resume(t);
    const auto left = std::count_if(fibres.begin(), fibres.begin() + blockDim.x, [](const Fibre& f) { return f.done; });
    if (left == blockDim.x) return true;
    if (left > 0) return false;
  }
}

}  // namespace

Settings& settings() { return the_settings; }

void run_grid(const cudaLaunchConfig_t& config, const std::function<void()>& body) {
  if (config.gridDim.x == 0 || config.blockDim.x == 0 || config.blockDim.x > kMostThreads) {
    last_error = cudaErrorInvalidConfiguration;
    return;
  }
  body_of_threads = &body;
  gridDim = dim3(std::min(config.gridDim.x, the_settings.most_blocks));
  blockDim = config.blockDim;
  if (fibres.size() < blockDim.x) fibres.resize(blockDim.x);
  for (unsigned b = 0; b < gridDim.x && last_error == cudaSuccess; ++b) {
    blockIdx = dim3(b, 0, 0);
    if (!run_block()) last_error = cudaErrorLaunchFailure;
  }
}

}  // namespace gdds::shim

void __syncthreads() {
  using namespace gdds::shim;
  Fibre& self = *running;
  change(self.stack, scheduler);
  arrived(self.stack, &scheduler);
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = gdds::shim::last_error;
  gdds::shim::last_error = cudaSuccess;
  return error;
}
