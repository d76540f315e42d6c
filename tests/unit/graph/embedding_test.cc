// Embeddings: rows by the rules, means onto another vocabulary that can be done by hand, and the factorisation of a
// corpus's counts against dense arithmetic in double precision.
#include <cmath>
#include <cstdlib>
#include <numeric>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/threads.h"
#include "graph/embedding.h"
#include "support/folder.h"
#include "text/readers.h"

namespace gdds::graph {
namespace {

using test::error_of;
using test::Folder;

const Invocation kInvocation{"gdds-test", "1", {}, {}};

// The letters a, b, c and blank, with the token "ab"; end of text, [CLS].
text::Vocabulary source_vocabulary() {
  text::Vocabulary v;
  v.name = "source";
  v.model = "bpe";
  for (const char* token : {"a", "b", "c", " "}) v.add(token, false);
  v.add("ab", false);
  v.merges = {{0, 1}};
  v.eos = v.add("<end>", true);
  v.add("[CLS]", true);
  v.unk = -1;
  return v;
}

Embedding source_embedding() {
  return {source_vocabulary(), {7, 2, {1, 0, 0, 1, 4, 4, -1, 2, 10, 20, 7, 7, 9, 9}}, std::vector<std::uint8_t>(7, 1)};
}

std::vector<float> row(const Embedding& e, std::size_t i) {
  const auto begin = e.vectors.values.begin() + static_cast<std::ptrdiff_t>(i * e.vectors.columns);
  return {begin, begin + static_cast<std::ptrdiff_t>(e.vectors.columns)};
}

text::Vocabulary target_vocabulary(bool with_x) {
  text::Vocabulary v;
  v.name = "target";
  v.model = "bpe";
  for (const char* token : {"c", "abc", " ab", "ba"}) v.add(token, false);
  if (with_x) v.add("x", false);
  v.eos = v.add("<|endoftext|>", true);
  v.mask = v.add("<|mask|>", true);
  v.add("[CLS]", true);
  return v;
}

TEST(CarryOver, IsTheMeanOfThePieces) {
  const Embedding e = carry_over(source_embedding(), target_vocabulary(false), "reject", {});
  EXPECT_EQ(row(e, 0), (std::vector<float>{4, 4}));                // c
  EXPECT_EQ(row(e, 1), (std::vector<float>{7, 12}));               // ab, c
  EXPECT_EQ(row(e, 2), (std::vector<float>{4.5, 11}));             // blank, ab
  EXPECT_EQ(row(e, 3), (std::vector<float>{0.5, 0.5}));            // b, a
  EXPECT_EQ(row(e, 4), (std::vector<float>{7, 7}));                // end of text, whatever its name
  EXPECT_EQ(row(e, 6), (std::vector<float>{9, 9}));                // of the same name
  EXPECT_EQ(row(e, 5), (std::vector<float>{30.f / 7, 43.f / 7}));  // the mask has the mean of all
  EXPECT_EQ(e.present, (std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1}));
}

TEST(CarryOver, TokensWithoutPiecesFollowTheRule) {
  EXPECT_EQ(
      error_of([] { carry_over(source_embedding(), target_vocabulary(true), "reject", {}); }),
      "3 token 4 (x) of the vocabulary 'target' cannot be made of those of 'source': the vocabulary has no byte 0x78 "
      "(1 such in all); --extra-rows says what they get");
  const Embedding zero = carry_over(source_embedding(), target_vocabulary(true), "zero", {});
  EXPECT_EQ(row(zero, 4), (std::vector<float>{0, 0}));
  EXPECT_EQ(row(zero, 6), (std::vector<float>{0, 0})) << "the mask too";
  EXPECT_EQ(zero.present[4], 0);
  const Embedding random = carry_over(source_embedding(), target_vocabulary(true), "random", {5});
  EXPECT_EQ(row(random, 4), row(carry_over(source_embedding(), target_vocabulary(true), "random", {5}), 4));
  EXPECT_NE(row(random, 4), row(carry_over(source_embedding(), target_vocabulary(true), "random", {6}), 4));
  EXPECT_NE(row(random, 4), row(random, 6));
}

TEST(CarryOver, LeavesOutPiecesWithoutAVector) {
  Embedding source = source_embedding();
  source.present[2] = 0;  // c
  EXPECT_EQ(row(carry_over(source, target_vocabulary(false), "zero", {}), 1), (std::vector<float>{10, 20}))
      << "abc is ab alone";
  EXPECT_EQ(error_of([&] { carry_over(source, target_vocabulary(false), "reject", {}); }),
            "3 token 0 (c) of the vocabulary 'target' cannot be made of those of 'source': its pieces have no vectors "
            "(1 such in all); --extra-rows says what they get");
}

TEST(CarryOver, OntoItselfChangesNothing) {
  const Embedding source = source_embedding();
  const Embedding same = carry_over(source, source.vocabulary, "reject", {});
  EXPECT_EQ(same.vectors.values, source.vectors.values);
  EXPECT_EQ(same.present, source.present);
}

TEST(CarryOver, WordsBeginWithABlankOrHaveNoMarks) {
  text::Vocabulary words = text::read_vocab_txt("[UNK]\nking\n##s\nqueen\n", "f");
  Embedding source{words, {4, 1, {8, 1, 2, 3}}, std::vector<std::uint8_t>(4, 1)};
  text::Vocabulary target = text::bytes_vocabulary();
  target.model = "bpe";
  const auto id = [&](const char* token) { return static_cast<std::size_t>(target.add(token, false)); };
  const auto kings = id(" kings"), queen = id("Queen"), blanks = id("  ");
  log::set_level(log::Level::quiet);
  const Embedding e = carry_over(source, target, "zero", {});
  EXPECT_EQ(row(e, kings), (std::vector<float>{1.5}));
  EXPECT_EQ(row(e, queen), (std::vector<float>{3}));
  EXPECT_EQ(e.present[blanks], 0) << "nothing is left of it";
  EXPECT_EQ(e.present[0xff], 0) << "not UTF-8";
  EXPECT_EQ(row(e, 'x'), (std::vector<float>{8})) << "unknown to the source";
  // And back: king is " king", ##s is "s".
  const Embedding back = carry_over(e, words, "mean", {});
  EXPECT_EQ(row(back, 2), row(e, 's'));
}

EmbedOptions npy_options(const Folder& folder, std::uint64_t rows, const std::vector<float>& values) {
  const std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}\n", rows, values.size() / rows);
  std::string bytes = std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  test::write_bytes(folder.file("e.npy"), bytes);
  EmbedOptions options;
  options.source = folder.file("e.npy");
  options.vocab = "text8";
  return options;
}

std::string row_error(const EmbedOptions& options) {
  std::vector<h5::Source> sources;
  const std::string error = error_of([&] { open_embedding(options, sources); });
  const auto at = error.find(options.source);
  return at == std::string::npos ? error : error.substr(0, at) + "F" + error.substr(at + options.source.size());
}

TEST(OpenEmbedding, MissingAndSpareRowsNeedARule) {
  const Folder folder;
  std::vector<float> values(50);
  std::iota(values.begin(), values.end(), 1.0f);
  EmbedOptions options = npy_options(folder, 25, values);
  EXPECT_EQ(row_error(options),
            "3 F: 25 rows, but the vocabulary 'text8' has 27 tokens; --extra-rows says what the others get");
  std::vector<h5::Source> sources;
  options.extra_rows = "mean";
  const Embedding mean = open_embedding(options, sources);
  EXPECT_EQ(row(mean, 26), (std::vector<float>{25, 26}));
  EXPECT_EQ(mean.present[24], 1);
  EXPECT_EQ(mean.present[25], 0);
  options.extra_rows = "zero";
  EXPECT_EQ(row(open_embedding(options, sources), 25), (std::vector<float>{0, 0}));

  values.resize(60, std::nanf(""));  // spare rows are not looked at
  options = npy_options(folder, 30, values);
  EXPECT_EQ(row_error(options),
            "3 F: 30 rows, but the vocabulary 'text8' has 27 tokens; --drop-rows leaves out the last 3");
  options.drop_rows = true;
  EXPECT_EQ(row_error(options), "3 F: row 25 (token y) holds NaN");
  values[50] = INFINITY;
  npy_options(folder, 30, values);
  EXPECT_EQ(row_error(options), "3 F: row 25 (token y) holds infinity");
  values.assign(60, 0.5f);
  values[59] = std::nanf("");
  npy_options(folder, 30, values);
  EXPECT_EQ(open_embedding(options, sources).vectors.rows, 27u);
}

TEST(OpenEmbedding, ARowIsNotCopiedWhateverItsLength) {
  const Folder folder;
  EmbedOptions options = npy_options(folder, 1, std::vector<float>(70000, 1.0f));
  options.extra_rows = "mean";
  EXPECT_EQ(row_error(options), "3 F: rows of 70000 numbers; expected at most 65536");
}

TEST(OpenEmbedding, RandomRowsHaveTheSpreadOfTheOthers) {
  const Folder folder;
  std::vector<float> values(10 * 2000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 3.0f : -3.0f;
  EmbedOptions options = npy_options(folder, 10, values);
  options.extra_rows = "random";
  std::vector<h5::Source> sources;
  const Embedding e = open_embedding(options, sources);
  double sum = 0, squares = 0;
  for (std::size_t i = values.size(); i < e.vectors.values.size(); ++i)
    sum += e.vectors.values[i], squares += std::pow(e.vectors.values[i], 2);
  EXPECT_NEAR(sum / 34000, 0, 5 * 3 / std::sqrt(34000.0));
  EXPECT_NEAR(squares / 34000, 9, 5 * 9 * std::sqrt(2 / 34000.0));
}

TEST(Normalise, ZeroRowsStay) {
  Embedding e{text::text8_vocabulary(), {2, 2, {3, 4, 0, 0}}, {1, 1}};
  normalise(e);
  EXPECT_EQ(e.vectors.values, (std::vector<float>{0.6f, 0.8f, 0, 0}));
}

TEST(Write, RejectsWhatFloat16CannotHold) {
  const Folder folder;
  Embedding e{text::text8_vocabulary(), {27, 1, std::vector<float>(27, 65504)}, std::vector<std::uint8_t>(27, 1)};
  h5::OutputOptions options;
  options.path = folder.file("e.h5");
  {
    h5::Output output(options, "embedding", kInvocation, {});
    write(e, "float16", output);
    output.commit();
  }
  const h5::Input input(options.path, "embedding");
  EXPECT_EQ(input.type("/embedding"), h5::Type::float16);
  EXPECT_FALSE(input.has("/present"));
  e.vectors.values[2] = -70000;
  h5::Output output(options, "embedding", kInvocation, {});
  EXPECT_EQ(error_of([&] { write(e, "float16", output); }),
            "3 row 2 (token b): -70000 is too large for float16; --normalise or --dtype float32");
}

// ---- a corpus -------------------------------------------------------------------------------------------------------

constexpr std::uint32_t kTokens = 30;

std::vector<std::int32_t> toy_corpus() {
  std::vector<std::int32_t> ids;
  std::uint64_t state = 12345;
  std::int32_t last = 0;
  for (int i = 0; i < 4000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto r = static_cast<std::int32_t>(state >> 40);
    last = r % 3 == 0 ? r / 3 % static_cast<std::int32_t>(kTokens - 1)
                      : (last * 7 + r % 4) % static_cast<std::int32_t>(kTokens - 1);
    ids.push_back(last);
  }
  return ids;
}

TEST(PairCounts, AreSymmetricSumsOfInverseDistances) {
  PairCounts counts(5, 3);
  const std::vector<std::int32_t> ids = {0, 1, 1, 2, 4, 0};
  counts.add(ids.data(), ids.size(), 4);
  EXPECT_DOUBLE_EQ(counts.count(0, 1), 1 + 0.5 + 1.0 / 3);
  EXPECT_DOUBLE_EQ(counts.count(1, 0), counts.count(0, 1));
  EXPECT_DOUBLE_EQ(counts.count(1, 1), 2);
  EXPECT_DOUBLE_EQ(counts.count(0, 2), 1.0 / 3 + 0.5);
  EXPECT_DOUBLE_EQ(counts.count(1, 2), 1 + 0.5);
  EXPECT_DOUBLE_EQ(counts.count(2, 4), 0);
  EXPECT_DOUBLE_EQ(counts.count(3, 3), 0);
}

using Square = std::vector<std::vector<double>>;

// By the formulas, from the ids: no table, no logarithms of integers.
Square dense_pmi(const std::vector<std::int32_t>& ids, int window, double smoothing) {
  Square counts(kTokens, std::vector<double>(kTokens, 0));
  for (int i = 0; i < static_cast<int>(ids.size()); ++i)
    for (int j = 0; j < static_cast<int>(ids.size()); ++j)
      if (i != j && std::abs(i - j) <= window)
        counts[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])]
              [static_cast<std::size_t>(ids[static_cast<std::size_t>(j)])] += 1.0 / std::abs(i - j);
  std::vector<double> totals(kTokens, 0);
  double all = 0, smooth = 0;
  for (std::size_t i = 0; i < kTokens; ++i) totals[i] = std::accumulate(counts[i].begin(), counts[i].end(), 0.0);
  for (const double total : totals) all += total, smooth += std::pow(total, smoothing);
  Square pmi = counts;
  for (std::size_t i = 0; i < kTokens; ++i)
    for (std::size_t j = 0; j < kTokens; ++j)
      pmi[i][j] = counts[i][j] == 0
                      ? 0
                      : std::max(0.0, std::log(counts[i][j] / all /
                                               (totals[i] / all * std::pow(totals[j], smoothing) / smooth)));
  return pmi;
}

Square times_transposed(const Square& a) {
  Square product(a.size(), std::vector<double>(a.size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j)
      product[i][j] = std::inner_product(a[i].begin(), a[i].end(), a[j].begin(), 0.0);
  return product;
}

// Eigenvalues of a positive symmetric matrix, largest first, by powers and deflation.
std::vector<double> eigenvalues(Square a, int count) {
  std::vector<double> values;
  for (int n = 0; n < count; ++n) {
    std::vector<double> v(a.size(), 0);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = 1 + std::sin(static_cast<double>(i * i + 1));
    double value = 0;
    for (int step = 0; step < 20000; ++step) {
      std::vector<double> w(v.size());
      for (std::size_t i = 0; i < v.size(); ++i) w[i] = std::inner_product(v.begin(), v.end(), a[i].begin(), 0.0);
      value = std::sqrt(std::inner_product(w.begin(), w.end(), w.begin(), 0.0));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = w[i] / value;
    }
    values.push_back(value);
    for (std::size_t i = 0; i < v.size(); ++i)
      for (std::size_t j = 0; j < v.size(); ++j) a[i][j] -= value * v[i] * v[j];
  }
  return values;
}

Sparse toy_matrix() {
  const auto ids = toy_corpus();
  PairCounts counts(kTokens, 5);
  counts.add(ids.data(), 1500, -1);
  counts.add(ids.data() + 1500, ids.size() - 1500, -1);
  return counts.positive_pmi(0.75);
}

TEST(PositivePmi, IsTheFormula) {
  PairCounts counts(kTokens, 5);
  const auto ids = toy_corpus();
  counts.add(ids.data(), ids.size(), -1);
  const Sparse sparse = counts.positive_pmi(0.75);
  const Square dense = dense_pmi(ids, 5, 0.75);
  Square found(kTokens, std::vector<double>(kTokens, 0));
  for (std::size_t i = 0; i < kTokens; ++i) {
    for (std::uint64_t at = sparse.begin[i]; at < sparse.begin[i + 1]; ++at) {
      found[i][sparse.column[at]] = sparse.value[at];
      EXPECT_TRUE(at == sparse.begin[i] || sparse.column[at - 1] < sparse.column[at]);
    }
    for (std::size_t j = 0; j < kTokens; ++j) EXPECT_NEAR(found[i][j], dense[i][j], 1e-5);
  }
}

Square dense_of(const Sparse& sparse) {
  Square dense(sparse.rows(), std::vector<double>(sparse.columns, 0));
  for (std::size_t i = 0; i < sparse.rows(); ++i)
    for (std::uint64_t at = sparse.begin[i]; at < sparse.begin[i + 1]; ++at)
      dense[i][sparse.column[at]] = sparse.value[at];
  return dense;
}

TEST(Factorise, HasTheSingularValuesOfTheDenseMatrix) {
  const Sparse sparse = toy_matrix();
  const Factors factors = factorise(sparse, 8, {});
  const auto expected = eigenvalues(times_transposed(dense_of(sparse)), 8);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(factors.singular_values[i], std::sqrt(expected[i]), 1e-3 * std::sqrt(expected[i]));
}

// With all dimensions, G = U S U^T is the root of M M^T: G G = M M^T, with no decomposition to compare with.
TEST(Factorise, GramMatrixOfAllRowsIsTheRootOfTheSquare) {
  const Sparse sparse = toy_matrix();
  const Factors factors = factorise(sparse, static_cast<int>(kTokens), {});
  Square rows(kTokens, std::vector<double>(kTokens));
  for (std::size_t i = 0; i < kTokens; ++i)
    for (std::size_t j = 0; j < kTokens; ++j) rows[i][j] = factors.rows.values[i * kTokens + j];
  const Square squared = times_transposed(times_transposed(rows)), expected = times_transposed(dense_of(sparse));
  for (std::size_t i = 0; i < kTokens; ++i)
    for (std::size_t j = 0; j < kTokens; ++j) EXPECT_NEAR(squared[i][j], expected[i][j], 1e-4);
}

// Columns of U sqrt(S) are orthogonal, with squared length S.
TEST(Factorise, ColumnsAreOrthogonalAndSeedsAgree) {
  const Sparse sparse = toy_matrix();
  const Factors one = factorise(sparse, 6, {1}), two = factorise(sparse, 6, {2});
  for (std::size_t a = 0; a < 6; ++a) {
    for (std::size_t b = 0; b < 6; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < kTokens; ++i) sum += double{one.rows.values[i * 6 + a]} * one.rows.values[i * 6 + b];
      EXPECT_NEAR(sum, a == b ? one.singular_values[a] : 0, 1e-4);
    }
    EXPECT_NEAR(one.singular_values[a], two.singular_values[a], 1e-3 * one.singular_values[a]);
  }
}

TEST(Factorise, DoesNotDependOnTheThreads) {
  const Sparse sparse = toy_matrix();
  std::vector<std::vector<float>> results;
  for (const int count : {1, 2, 7}) {
    set_threads(count);
    results.push_back(factorise(sparse, 12, {}).rows.values);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Factorise, RankBelowTheDimensionLeavesZeros) {
  Sparse one;
  one.columns = 3;
  one.begin = {0, 2, 2, 4};
  one.column = {0, 1, 0, 1};
  one.value = {1, 2, 2, 4};
  const Factors factors = factorise(one, 3, {});
  EXPECT_NEAR(factors.singular_values[0], 5, 1e-9);
  EXPECT_NEAR(factors.singular_values[1], 0, 1e-6);
  EXPECT_NEAR(factors.rows.values[0], 1 / std::sqrt(5.0) * std::sqrt(5.0), 1e-6);
  EXPECT_NEAR(factors.rows.values[6], 2, 1e-6);
  EXPECT_EQ(factors.rows.values[3], 0);
}

// ---- a real model ---------------------------------------------------------------------------------------------------

TEST(SmolLm2, KingIsNearKingsAndQueens) {
  const char* const data = std::getenv("GDDS_DATA");
  const char* const home = std::getenv("HOME");
  const std::string cache = data != nullptr ? data : std::string(home != nullptr ? home : "") + "/.cache/gdds";
  const std::string file = cache + "/smollm2/smollm2-135m-q4_1.gguf";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there (scripts/fetch-data)";
  log::set_level(log::Level::quiet);
  EmbedOptions options;
  options.source = file;
  std::vector<h5::Source> sources;
  Embedding e = open_embedding(options, sources);
  EXPECT_EQ(e.vectors.rows, 49152u);
  EXPECT_EQ(e.vectors.columns, 576u);
  normalise(e);
  const auto king = row(e, static_cast<std::size_t>(e.vocabulary.find(" king")));
  std::vector<std::pair<double, std::int32_t>> near;
  for (std::int32_t i = 0; i < e.vocabulary.size(); ++i) {
    const auto begin = e.vectors.values.begin() + std::ptrdiff_t{i} * 576;
    near.emplace_back(-std::inner_product(king.begin(), king.end(), begin, 0.0), i);
  }
  std::partial_sort(near.begin(), near.begin() + 9, near.end());
  std::vector<std::string> tokens;
  for (std::size_t i = 1; i < 9; ++i) tokens.emplace_back(e.vocabulary.token(near[i].second));
  for (const char* expected : {" King", " kings", " queen"})
    EXPECT_NE(std::find(tokens.begin(), tokens.end(), expected), tokens.end()) << expected;
}

}  // namespace
}  // namespace gdds::graph
