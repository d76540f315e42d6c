// bench-knn M D [K] or bench-knn EMBEDDING.h5 [K]: exact neighbours beside plain FAISS (IndexFlatL2.search, the same library
// and threads) in one run, on Gaussian points or on an embedding. Rounds alternate; best and median seconds, the ratio of
// the medians, the rate of the matrix product alone and how near the symmetric search comes to it.
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
#include "graph/knn.h"
#include "h5/input.h"

namespace {

double seconds(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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

  std::vector<double> faiss_times, raw_times, ranked_times, product_times;
  std::int64_t raw_again = 0, ranked_again = 0;
  std::vector<float> product(2048 * 2048);
  for (int round = 0; round < 3; ++round) {
    faiss_times.push_back(seconds([&] {
      faiss::IndexFlatL2 index(points.d);
      index.add(points.m, points.values);
      std::vector<float> d(static_cast<std::size_t>(points.m * (options.k + 1)));
      std::vector<std::int64_t> ids(d.size());
      index.search(points.m, points.values, options.k + 1, d.data(), ids.data());
    }));
    options.ranking = "raw";
    raw_times.push_back(seconds([&] { raw_again = find_neighbours(points, options).recomputed; }));
    options.ranking = "normalised";
    ranked_times.push_back(seconds([&] { ranked_again = find_neighbours(points, options).recomputed; }));
    const int d = static_cast<int>(points.d), n = static_cast<int>(std::min<std::int64_t>(2048, points.m));
    product_times.push_back(seconds([&] {
      for (int i = 0; i < 10; ++i) cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, d, 1, points.values, d, points.values, d, 0, product.data(), n);
    }) / 10 / (2.0 * n * n * d));
  }
  const double flops = 2.0 * double(points.m) * double(points.m) * double(points.d);
  const double limit = *std::min_element(product_times.begin(), product_times.end()) * flops / 2;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("what\tbest s\tmedian s\ttimes FAISS\trows again\n");
  const auto row = [&](const char* what, const std::vector<double>& t, std::int64_t again) {
    std::printf("%s\t%.2f\t%.2f\t%.2f\t%lld\n", what, *std::min_element(t.begin(), t.end()), median(t), median(faiss_times) / median(t), static_cast<long long>(again));
  };
  std::printf("%lld x %lld, k = %lld, %d threads\n", (long long)points.m, (long long)points.d, (long long)options.k, threads());
  row("FAISS IndexFlatL2.search", faiss_times, 0);
  row("gdds, raw ranking", raw_times, raw_again);
  row("gdds, normalised ranking", ranked_times, ranked_again);
  std::printf("limit: %.2f s (half of 2 m^2 d at %.0f GFLOP/s); peak memory %ld MB\n", limit, 1e-9 / *std::min_element(product_times.begin(), product_times.end()), usage.ru_maxrss / 1024);
}
