// See open.h.
#include "diffusion/open.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/hash.h"
#include "base/number.h"
#include "diffusion/config.h"
#include "diffusion/masks.h"
#include "diffusion/matrix.h"
#include "diffusion/sik.h"
#include "graph/clusters.h"

namespace gdds::diffusion {
namespace {

const std::vector<std::string> kNames = {"absorb", "uniform", "hybrid", "sik-knn", "sik-dense", "hierarchical", "mask-rates"};

constexpr double kLowestRate = 1e-12, kHighestRate = 1e6;
const char* const kCluster = "a cluster's number, from 0 to 1000000";
const char* const kRate = "a rate from 1e-12 to 1e6";

// A number a line, as many as there are tokens.
std::vector<double> read_numbers(const std::string& path, std::int32_t m, double low, double high, const char* what, std::vector<h5::Source>& sources) {
  const std::string text = read_text(path);
  sources.push_back({path, hash_hex(text), ""});
  std::vector<double> numbers;
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string word = text.substr(at, end - at);
    double number = 0;
    try {
      number = parse_real(word);
    } catch (const Error&) {
      reject("{}: line {}: expected {}, found '{}'", path, line, what, one_line(word));
    }
    if (!(number >= low && number <= high)) reject("{}: line {}: expected {}, found {}", path, line, what, word);
    numbers.push_back(number);
    at = end + 1;
  }
  if (numbers.size() != static_cast<std::size_t>(m)) reject("{}: expected {} lines, one a token, found {}", path, m, numbers.size());
  return numbers;
}

std::vector<std::int32_t> read_clusters(const std::string& path, std::int32_t m, std::vector<h5::Source>& sources) {
  std::vector<std::int32_t> clusters;
  for (const double number : read_numbers(path, m, 0, 1e6, kCluster, sources)) {
    if (number != std::floor(number)) reject("{}: line {}: expected {}, found {}", path, clusters.size() + 1, kCluster, number);
    clusters.push_back(static_cast<std::int32_t>(number));
  }
  return clusters;
}

struct Embedding {
  std::vector<float> values;
  std::int32_t d = 0;
};

Embedding open_embedding(const std::string& path, const VocabularyName& vocabulary, std::vector<h5::Source>& sources) {
  const h5::Input input(path, "embedding");
  check_vocabulary(input, vocabulary);
  h5::Matrix matrix = input.matrix("/embedding");
  graph::check_finite({matrix.values.data(), static_cast<std::int64_t>(matrix.rows), static_cast<std::int64_t>(matrix.columns)}, input.name());
  sources.push_back(input.source());
  return {std::move(matrix.values), static_cast<std::int32_t>(matrix.columns)};
}

NeighbourTable open_neighbours(const std::string& path, const VocabularyName& vocabulary, std::vector<h5::Source>& sources) {
  const h5::Input input(path, "neighbours");
  check_vocabulary(input, vocabulary);
  NeighbourTable table = read_neighbours(input, "");
  table.metric = input.string_attribute("/ids@metric");
  table.ranking = input.string_attribute("/ids@ranking");
  table.bandwidth = input.string_attribute("/ids@bandwidth");
  check(table, input.name());
  sources.push_back(input.source());
  return table;
}

// Files that the process has no use for are a mistake.
void check_files(const ProcessOptions& o) {
  const bool sik = o.process == "sik-knn" || o.process == "sik-dense", hierarchical = o.process == "hierarchical";
  const bool counted = hierarchical && !o.clusters.empty() && std::all_of(o.clusters.begin(), o.clusters.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto check = [&](const char* name, const std::string& value, bool needed, bool allowed, const char* what) {
    if (needed && value.empty()) bad_usage("--{}: process {} needs {}", name, o.process, what);
    if (!allowed && !value.empty()) bad_usage("--{}: process {} has no use for it", name, o.process);
  };
  check("neighbours", o.neighbours, sik, sik, "a neighbour table, which gdds-knn makes");
  check("embedding", o.embedding, o.process == "sik-dense" || counted, o.process == "sik-dense" || counted, "the embedding, which gdds-embed makes");
  check("clusters", o.clusters, hierarchical, hierarchical, "a number of clusters, or a file with the cluster of each token");
  check("mask-rates", o.mask_rates, o.process == "mask-rates", o.process == "mask-rates", "a file with the rate of each token");
}

std::unique_ptr<Process> make_sik(const ProcessOptions& o, const VocabularyName& vocabulary, std::vector<h5::Source>& sources) {
  NeighbourTable table = open_neighbours(o.neighbours, vocabulary, sources);
  const double epsilon = o.kernel_perplexity > 0 ? epsilon_for_perplexity(table, o.kernel_perplexity) : o.epsilon;
  if (o.process == "sik-knn") return std::make_unique<SikKnnProcess>(o.schedule.make(), vocabulary, o.resets, std::move(table), epsilon);
  if (table.ranking != "normalised") reject("{}: sik-dense needs neighbours by the normalised ranking, found {}", o.neighbours, table.ranking);
  Embedding embedding = open_embedding(o.embedding, vocabulary, sources);
  const Temperature temperature{epsilon, o.epsilon_end > 0 ? o.epsilon_end : epsilon};
  return std::make_unique<SikDenseProcess>(o.schedule.make(), vocabulary, o.resets, std::move(table), std::move(embedding.values), embedding.d, temperature);
}

std::unique_ptr<Process> make_hierarchical(const ProcessOptions& o, const VocabularyName& vocabulary, std::vector<h5::Source>& sources) {
  if (o.embedding.empty()) return std::make_unique<HierarchicalProcess>(o.schedule.make(), vocabulary, read_clusters(o.clusters, vocabulary.size, sources), o.cluster_rate);
  const std::int64_t count = o.clusters.size() > 9 ? -1 : parse_integer(o.clusters);
  if (count < 1 || count > vocabulary.size) bad_usage("--clusters: expected from 1 to {}, found {}", vocabulary.size, o.clusters);
  const Embedding e = open_embedding(o.embedding, vocabulary, sources);
  return std::make_unique<HierarchicalProcess>(o.schedule.make(), vocabulary, graph::cluster_points({e.values.data(), vocabulary.size, e.d}, count), o.cluster_rate);
}

}  // namespace

void check_vocabulary(const h5::Input& input, const VocabularyName& wanted) {
  const VocabularyName found = vocabulary_name(input);
  if (found.hash == wanted.hash && found.size == wanted.size) return;
  reject("{}: its vocabulary is '{}' ({} tokens, {}), expected '{}' ({} tokens, {})", input.name(), found.name, found.size, found.hash.substr(0, 8), wanted.name,
         wanted.size, wanted.hash.substr(0, 8));
}

void ProcessOptions::add_to(Options& options) {
  options.option("process", process, "absorb, uniform, hybrid, sik-knn, sik-dense, hierarchical, mask-rates, or a process file").placeholder("NAME|FILE");
  schedule.add_to(options);
  options.option("neighbours", neighbours, "sik-knn, sik-dense: the neighbour table").placeholder("FILE");
  options.option("embedding", embedding, "sik-dense, hierarchical by k-means: the embedding").placeholder("FILE");
  options.option("epsilon", epsilon, "sik-knn, sik-dense: temperature of the affinity exp(-D/epsilon); sik-dense: at t = 0").range(1e-8, 1e8);
  options.option("epsilon-end", epsilon_end, "sik-dense: temperature at t = 1, geometric in between; 0: the same").range(0, 1e8);
  options.option("kernel-perplexity", kernel_perplexity, "sik-knn, sik-dense: the epsilon at which a column's median perplexity is this; 0: --epsilon").range(0, 1e8);
  resets.add_to(options);
  hybrid.add_to(options);
  options.option("clusters", clusters, "hierarchical: number of clusters, by k-means, or a file with the cluster of each token, a line each").placeholder("N|FILE");
  options.option("cluster-rate", cluster_rate, "hierarchical: rate from cluster to mask, in units of that from token to cluster").range(1e-6, 1e6);
  options.option("mask-rates", mask_rates, "mask-rates: a file with the rate of each token, a line each").placeholder("FILE");
  options.option("mask-form", mask_form, "mask-rates: a token of rate w survives with alpha(t)^w, or with alpha(t^w) as in GenMD4").choices({"rate", "power"});
}

std::string read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) fail_errno(path, "cannot open", errno);
  std::string text;
  char part[4096];
  while (const std::size_t n = std::fread(part, 1, sizeof part, file.get())) text.append(part, n);
  if (std::ferror(file.get())) fail_errno(path, "cannot read", errno);
  return text;
}

bool ProcessOptions::is_file() const { return std::find(kNames.begin(), kNames.end(), process) == kNames.end(); }

void ProcessOptions::validate() const {
  check_files(*this);
  if (!is_file()) {
    schedule.make();
    return resets.validate();
  }
  std::error_code ignored;
  if (process != "-" && process.find_first_of("./") == std::string::npos && !std::filesystem::exists(process, ignored))
    bad_usage("--process: expected absorb, uniform, hybrid, sik-knn, sik-dense, hierarchical, mask-rates or a process file, found '{}'", process);
  const ProcessOptions plain;
  for (const auto& [name, same] : {std::pair{"schedule", schedule == plain.schedule}, {"epsilon", epsilon == plain.epsilon && epsilon_end == plain.epsilon_end},
                                   {"kernel-perplexity", kernel_perplexity == plain.kernel_perplexity}, {"reset-floor", resets == plain.resets},
                                   {"hybrid-share", hybrid == plain.hybrid}, {"cluster-rate", cluster_rate == plain.cluster_rate}, {"mask-form", mask_form == plain.mask_form}})
    if (!same) bad_usage("--{}: the process file {} has its own", name, process);
}

std::string ProcessOptions::file_with_vocabulary() const { return is_file() ? process : !neighbours.empty() ? neighbours : embedding; }

std::unique_ptr<Process> open_process(const ProcessOptions& o, const VocabularyName& vocabulary, std::vector<h5::Source>& sources) {
  o.validate();
  if (o.is_file()) {
    const h5::Input input(o.process, "process");
    check_vocabulary(input, vocabulary);
    sources.push_back(input.source());
    return read_process(input);
  }
  if (o.process == "sik-knn" || o.process == "sik-dense") return make_sik(o, vocabulary, sources);
  if (o.process == "hierarchical") return make_hierarchical(o, vocabulary, sources);
  if (o.process == "mask-rates")
    return std::make_unique<MaskRatesProcess>(o.schedule.make(), vocabulary, read_numbers(o.mask_rates, vocabulary.size, kLowestRate, kHighestRate, kRate, sources), o.mask_form);
  return std::make_unique<ResetProcess>(o.process, o.schedule.make(), vocabulary, o.hybrid);
}

std::unique_ptr<Process> read_process(const h5::Input& input) {
  const ConfigReader config(input.text("/process/config"), input.name());
  const std::string name = input.string_attribute("/process@name");
  VocabularyName vocabulary = vocabulary_name(input);
  config.word("name", name, {name});
  const Schedule schedule = config.schedule(input.string_attribute("/process@schedule"));
  vocabulary.mask = config.integer("mask", vocabulary.mask, -1, vocabulary.size - 1);
  const auto require = [&](const char* path) {
    if (!input.has(path)) reject("{}: {} is missing, which process {} needs", input.name(), path, name);
  };
  if (name == "absorb" || name == "uniform" || name == "hybrid")
    return std::make_unique<ResetProcess>(name, schedule, vocabulary, HybridShape{config.number("share", 0.1, 0, 0.99), config.number("gamma", 1, 0.1, 2)});
  if (name == "matrix") return std::make_unique<MatrixProcess>(input, schedule, vocabulary);
  if (name == "mask-rates") {
    require("/mask_rates");
    auto rates = input.read<double>("/mask_rates");
    for (std::size_t i = 0; i < rates.size(); ++i)
      if (!(rates[i] >= kLowestRate && rates[i] <= kHighestRate)) reject("{}: /mask_rates[{}]: expected {}, found {}", input.name(), i, kRate, rates[i]);
    return std::make_unique<MaskRatesProcess>(schedule, vocabulary, std::move(rates), config.word("form", "rate", {"rate", "power"}));
  }
  if (name == "hierarchical") {
    require("/clusters");
    auto clusters = input.read<std::int32_t>("/clusters");
    for (std::size_t i = 0; i < clusters.size(); ++i)
      if (clusters[i] < 0 || clusters[i] > 1000000) reject("{}: /clusters[{}]: expected from 0 to 1000000, found {}", input.name(), i, clusters[i]);
    return std::make_unique<HierarchicalProcess>(schedule, vocabulary, std::move(clusters), config.number("gamma", 1, 1e-6, 1e6));
  }
  if (name != "sik-knn" && name != "sik-dense") reject("{}: /process@name: expected a process that is known, found '{}'", input.name(), name);
  for (const char* path : {"/neighbours/ids", "/neighbours/distances", "/neighbours/bandwidths"}) require(path);
  NeighbourTable table = read_neighbours(input, "/neighbours");
  table.metric = config.word("metric", "gauss", {"gauss", "cosine"});
  table.ranking = config.word("ranking", "normalised", {"normalised", "raw"});
  table.bandwidth = config.word("bandwidth", "paper", {"paper", "code"});
  check(table, input.name());
  const double epsilon = config.number("epsilon", 0.01, 1e-8, 1e8);
  if (name == "sik-knn") return std::make_unique<SikKnnProcess>(schedule, vocabulary, config.reset_share(), std::move(table), epsilon);
  require("/embedding");
  if (table.ranking != "normalised") reject("{}: sik-dense needs neighbours by the normalised ranking, found {}", input.name(), table.ranking);
  h5::Matrix matrix = input.matrix("/embedding");
  graph::check_finite({matrix.values.data(), static_cast<std::int64_t>(matrix.rows), static_cast<std::int64_t>(matrix.columns)}, input.name());
  return std::make_unique<SikDenseProcess>(schedule, vocabulary, config.reset_share(), std::move(table), std::move(matrix.values), static_cast<std::int32_t>(matrix.columns),
                                           Temperature{epsilon, config.number("epsilon_end", epsilon, 1e-8, 1e8)});
}

}  // namespace gdds::diffusion
