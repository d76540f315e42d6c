// One small process of every kind, each with its rates Q_t written down once more, straight from its definition and
// independently of lib/diffusion; and the master equation dK/dt = Q_t K solved for them. What the tests compare with.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "diffusion/process.h"
#include "diffusion/schedule.h"
#include "support/folder.h"

namespace gdds::diffusion {

// Square, row-major [to, from].
struct Square {
  std::size_t n = 0;
  std::vector<double> values;
  explicit Square(std::size_t size) : n(size), values(size * size, 0.0) {}
  double& operator()(std::size_t x, std::size_t y) { return values[x * n + y]; }
  double operator()(std::size_t x, std::size_t y) const { return values[x * n + y]; }
};
Square product(const Square& a, const Square& b);

struct Specimen {
  std::string name;
  std::unique_ptr<Process> process;
  std::function<Square(double t)> generator;  // Q_t, columns summing to 0
};

// All schedules, at their usual constants.
std::vector<Schedule> schedules();
// Every process on that schedule; m = 9 tokens, the last one the mask.
std::vector<Specimen> zoo(const Schedule& schedule, const test::Folder& folder);

// K_{t,s} from the generator, by the classical Runge-Kutta method in small steps; errors below 5e-7.
Square solve(const Specimen& specimen, double s, double t);

VocabularyName nine_tokens();

}  // namespace gdds::diffusion
