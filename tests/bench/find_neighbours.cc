// bench-knn M D [K] or bench-knn EMBEDDING.h5 [K]: exact neighbours beside plain FAISS (IndexFlatL2.search, the same library
// and threads) in one run, on Gaussian points or on an embedding. Rounds alternate. Seconds on the clock and of all processors
// (which a busy machine disturbs less), best and median; the ratio of the medians; the rate of the matrix product alone, the
// time that half of all products takes at this rate, and how near each comes to it: integers can pass it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include <cblas.h>
#include <faiss/IndexFlat.h>
#include <omp.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/threads.h"
#include "graph/products.h"
#include "h5/input.h"

namespace {

struct Times {
  std::vector<double> clock, processors;
};

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

void measure(Times& times, const std::function<void()>& action) {
  const double before = processor_seconds();
  const auto start = std::chrono::steady_clock::now();
  action();
  times.clock.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  times.processors.push_back(processor_seconds() - before);
}

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Way {
  std::string name, ranking, method;
  Times times = {};
  std::int64_t again = 0;
};

void search_with_faiss(const gdds::graph::Points& points, std::int64_t k) {
  faiss::IndexFlatL2 index(points.d);
  index.add(points.m, points.values);
  std::vector<float> d(static_cast<std::size_t>(points.m * (k + 1)));
  std::vector<std::int64_t> ids(d.size());
  index.search(points.m, points.values, k + 1, d.data(), ids.data());
}

// Ten products of n points with n, n large enough for the full rate.
void multiply(const gdds::graph::Points& points, int n) {
  static std::vector<float> product(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  const int d = static_cast<int>(points.d);
  for (int i = 0; i < 10; ++i) cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, d, 1, points.values, d, points.values, d, 0, product.data(), n);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gdds;
  if (argc < 2) return 2;
  log::set_level(log::Level::quiet);
  std::vector<float> values;
  graph::Points points;
  int next = 2;
  if (std::string(argv[1]).ends_with(".h5")) {
    const h5::Matrix matrix = h5::Input(argv[1], "embedding").matrix("/embedding");
    values = matrix.values;
    points = {values.data(), static_cast<std::int64_t>(matrix.rows), static_cast<std::int64_t>(matrix.columns)};
  } else {
    points.m = std::atoll(argv[1]), points.d = std::atoll(argv[2]), next = 3;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    values.resize(static_cast<std::size_t>(points.m * points.d));
    for (float& v : values) v = normal(random);
    points.values = values.data();
  }
  graph::KnnOptions options;
  if (argc > next) options.k = std::atoll(argv[next]);
  options.device.text = "cpu";
  omp_set_num_threads(threads());
  openblas_set_num_threads(threads());

  Times faiss_times, product_times;
  std::vector<Way> ways = {{"gdds, raw ranking", "raw", "tiles"}, {"gdds, normalised ranking", "normalised", "tiles"}};
  if (graph::has_integer_products()) {  // what a machine without gets
    ways.push_back({"gdds, raw ranking, BLAS", "raw", "blas"});
    ways.push_back({"gdds, normalised ranking, BLAS", "normalised", "blas"});
  }
  const int n = static_cast<int>(std::min<std::int64_t>(2048, points.m));
  for (int round = 0; round < 3; ++round) {
    measure(faiss_times, [&] { search_with_faiss(points, options.k); });
    for (Way& way : ways) {
      options.ranking = way.ranking;
      options.method = way.method;
      measure(way.times, [&] { way.again = find_neighbours(points, options).recomputed; });
    }
    measure(product_times, [&] { multiply(points, n); });
  }
  const double rate = 10 * 2.0 * n * n * double(points.d) / least(product_times.clock);
  const double limit = double(points.m) * double(points.m) * double(points.d) / rate;
  std::printf("%lld x %lld, k = %lld, %d threads, OpenBLAS for %s\n", (long long)points.m, (long long)points.d, (long long)options.k, threads(), openblas_get_corename());
  std::printf("what\tbest s\tmedian s\tprocessor s\ttimes FAISS\tby processor s\tlimit / best\trows again\n");
  const auto row = [&](const std::string& what, const Times& t, std::int64_t again) {
    std::printf("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%lld\n", what.c_str(), least(t.clock), median(t.clock), median(t.processors), median(faiss_times.clock) / median(t.clock),
                median(faiss_times.processors) / median(t.processors), limit / least(t.clock), static_cast<long long>(again));
  };
  row("FAISS IndexFlatL2.search", faiss_times, 0);
  for (const Way& way : ways) row(way.name, way.times, way.again);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("limit: %.2f s (half of 2 m^2 d at %.0f GFLOP/s); peak memory %ld MB, FAISS and all\n", limit, 1e-9 * rate, usage.ru_maxrss / 1024);
}
