// See schema.h. A row changed here is changed in man/gdds-hdf5.5 too; the test SchemaTable.EqualsTheManual holds them to it.
#include "h5/schema.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gdds::h5 {
namespace {

constexpr bool required = true;
constexpr bool optional = false;
constexpr std::string_view kIds = "uint16|int32";

using Fields = std::vector<Field>;

Fields operator+(Fields left, const Fields& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const Fields& common() {
  static const Fields fields = {
      {"/@gdds_kind", required, "string", "", "kind of the file", "one of the kinds of this page"},
      {"/@gdds_schema", required, "integer", "", "version of the kind's table", "1"},
      {"/@gdds_digest", optional, "string", "", "XXH3-128 of the contents", "32 hexadecimal digits"},
      {"/history", optional, "text", "h", "how the file was made", "a JSON object a line"},
  };
  return fields;
}

// Which vocabulary the ids belong to; tools refuse two files whose hashes differ.
const Fields& vocabulary_name() {
  static const Fields fields = {
      {"/vocab@name", required, "string", "", "name of the vocabulary", ""},
      {"/vocab@hash", required, "string", "", "XXH3-128 of the vocabulary", "32 hexadecimal digits"},
      {"/vocab@size", required, "integer", "", "number of tokens m", "at least 1"},
  };
  return fields;
}

// The vocabulary itself: a must in `vocab`, carried along where ids are to be turned into text.
Fields vocabulary(bool need) {
  return {
      {"/vocab@model", need, "string", "", "how text becomes ids", "text8, bytes, characters, bpe or wordpiece"},
      {"/vocab@pretokenizer", need, "string", "", "how text is cut first", "none, gpt2, digits-gpt2 or bert"},
      {"/vocab@normalizer", need, "string", "", "how text is rewritten first", "none or bert"},
      {"/vocab@eos", need, "integer", "", "id of end of text", "below m; -1: none"},
      {"/vocab@mask", need, "integer", "", "id of the mask", "below m; -1: none"},
      {"/vocab@pad", need, "integer", "", "id of padding", "below m; -1: none"},
      {"/vocab@unk", need, "integer", "", "id of unknown text", "below m; -1: none"},
      {"/vocab/bytes", need, "uint8", "b", "bytes of all tokens, one after the other", ""},
      {"/vocab/offsets", need, "int64", "m+1", "where each token's bytes begin; the end", "from 0 to b, not decreasing"},
      {"/vocab/types", need, "uint8", "m", "0 ordinary, 1 special (never found in text)", "0 or 1"},
      {"/vocab/merges", optional, "int32", "r, 2", "pairs of ids that bpe joins, best first", "ids below m"},
  };
}

Fields neighbours(std::string_view ids, std::string_view distances, std::string_view bandwidths, bool need) {
  return {
      {ids, need, kIds, "m, k", "neighbours of each token, nearest first", "below m, not the token itself"},
      {distances, need, "float64", "m, k", "their distances d", "finite, not negative"},
      {bandwidths, need, "float64", "m", "rho, the distance to the bandwidth neighbour", "finite, not negative"},
  };
}

// A forward process; a model carries the one it was trained on.
Fields process(std::string_view config_length, bool need) {
  return Fields{{"/process@name", need, "string", "", "absorb, uniform, hybrid, sik-knn, ...", ""},
                {"/process@schedule", need, "string", "", "log-linear, linear, cosine, ...", ""},
                {"/process/config", need, "text", config_length, "all its options", "a JSON object"}} +
         neighbours("/neighbours/ids", "/neighbours/distances", "/neighbours/bandwidths", optional) +
         Fields{{"/embedding", optional, "float32", "m, d", "vectors, a row a token (sik-dense)", "finite"},
                {"/clusters", optional, "int32", "m", "cluster of each token (hierarchical)", "not negative"},
                {"/mask_rates", optional, "float64", "m", "rate of each token (mask-rates)", "from 1e-12 to 1e6"},
                {"/matrix/times", optional, "float64", "p+1", "ends of the time pieces", "from 0 to 1, increasing"},
                {"/matrix/exit", optional, "float64", "p, m", "exit rate of each state", "from 0 to 1e6"},
                {"/matrix/dense", optional, "float64", "p, m, m", "jump kernel [piece, from, to]",
                 "not negative, sums to 1 over to"},
                {"/matrix/offsets", optional, "int64", "p, m+1", "where each column begins in rows", "not decreasing"},
                {"/matrix/rows", optional, "int32", "z", "targets of sparse columns", "below m"},
                {"/matrix/weights", optional, "float64", "z", "their probabilities",
                 "not negative, sums to 1 a column"}};
}

std::vector<Kind> make_kinds() {
  const Fields named = common() + vocabulary_name();
  return {
      {"vocab", "a vocabulary and how text is cut into it", named + vocabulary(required)},
      {"tokens", "sequences of token ids",
       named + Fields{{"/tokens", required, kIds, "n, L", "sequences x0", "below m"},
                      {"/lengths", optional, "int32", "n", "tokens of each sequence that count", "from 0 to L"},
                      {"/tokens@split", optional, "string", "", "part of the corpus", "train, valid or test"}} +
           vocabulary(optional)},
      {"embedding", "a vector for each token",
       named + Fields{{"/embedding", required, "float16|float32", "m, d", "vectors, a row a token", "finite"},
                      {"/present", optional, "uint8", "m", "1 where the source had a vector", "0 or 1"}} +
           vocabulary(optional)},
      {"neighbours", "the nearest tokens of each token",
       named + neighbours("/ids", "/distances", "/bandwidths", required) +
           Fields{{"/ids@metric", required, "string", "", "distance", "gauss (squared Euclidean) or cosine"},
                  {"/ids@ranking", required, "string", "", "what the nearest are nearest by", "raw or normalised"},
                  {"/ids@bandwidth", required, "string", "", "how rho enters", "paper or code"},
                  {"/ids@bandwidth_neighbour", required, "integer", "", "rank that gives rho", "at least 1"}}},
      {"process", "a forward process: schedule and jump kernel", named + process("c", required)},
      {"snapshots", "noised sequences, the batches of training",
       named + Fields{{"/x0", required, kIds, "n, L", "clean sequences", "below m"},
                      {"/xt", required, kIds, "n, L", "noised sequences", "below the number of states"},
                      {"/time", required, "float64", "n", "t of each sequence", "from 0 to 1"},
                      {"/jumped", required, "uint8", "n, L", "1 where the token jumped", "0 or 1"},
                      {"/sequence", required, "int64", "n", "number of the sequence in its source", "not negative"},
                      {"/lengths", optional, "int32", "n", "tokens of each sequence that count", "from 0 to L"},
                      {"/process@digest", required, "string", "", "XXH3-128 of the process", "32 hexadecimal digits"},
                      {"/process@name", optional, "string", "", "absorb, uniform, hybrid, sik-knn, ...", ""},
                      {"/process@states", optional, "integer", "", "number of states", "at least m; m if it is not there"},
                      {"/path/offsets", optional, "int64", "n, L+1", "where each token's jumps begin", "not decreasing"},
                      {"/path/times", optional, "float64", "e", "jump times T_k", "from 0 to t, increasing a token"},
                      {"/path/states", optional, kIds, "e", "states z_k after the jumps", "below the number of states"}} +
           vocabulary(optional)},
      {"model", "a network, and all it takes to go on training it",
       named + vocabulary(optional) +
           Fields{{"/@step", required, "integer", "", "optimiser steps done", "not negative"},
                  {"/@position", required, "integer", "", "sequences seen", "not negative"},
                  {"/config", required, "text", "c", "architecture, objective, recipe", "a JSON object"},
                  {"/parameters/*", required, "float32|float16|bfloat16", "...", "a parameter, by its name", "finite"},
                  {"/ema/*", optional, "float32", "...", "its moving average", "shape of the parameter"},
                  {"/optimizer/*", optional, "float32|int64", "...", "optimiser state", ""},
                  {"/curve", optional, "float64", "s, f", "log of the training, a row a report", ""},
                  {"/curve@columns", optional, "string", "", "names of its f columns", "commas between them"},
                  {"/curve@pending_loss", optional, "real", "", "sum of the losses since the last row", "finite"},
                  {"/curve@pending_steps", optional, "integer", "", "steps of that sum", "not negative"},
                  {"/curve@best_validation", optional, "real", "", "least validation loss so far", "finite"}} +
           process("q", optional)},
      {"samples", "sequences drawn from a model",
       named + Fields{{"/tokens", required, kIds, "n, L", "sequences", "below m"},
                      {"/lengths", optional, "int32", "n", "tokens of each sequence that count", "from 0 to L"},
                      {"/trajectory", optional, kIds, "s, n, L", "states on the way, latest t first", "below m"},
                      {"/times", optional, "float64", "s", "their t", "from 0 to 1, decreasing"},
                      {"/tokens@steps", required, "integer", "", "network evaluations a sequence", "at least 1"}} +
           vocabulary(optional)},
  };
}

// "/parameters/*" matches "/parameters/blocks.0.norm1.weight" and what lies deeper.
bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.empty() || pattern.back() != '*') return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.substr(0, pattern.size()) == pattern;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool type_allowed(std::string_view types, Type found) {
  if (types == "text") return found == Type::uint8;
  const auto words = split(types, '|');
  return std::find(words.begin(), words.end(), type_name(found)) != words.end();
}

using Letters = std::map<std::string, std::uint64_t, std::less<>>;

// One dimension against its letter or number; binds a letter that is new. False: they disagree.
bool fits(std::string_view word, std::uint64_t found, Letters& letters) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc{} && stop == word.data() + word.size()) return number == found;
  const bool one_more = word.size() > 2 && word.substr(word.size() - 2) == "+1";
  if (one_more) {
    if (found == 0) return false;
    word.remove_suffix(2);
    --found;
  }
  const auto [place, is_new] = letters.emplace(word, found);
  return is_new || place->second == found;
}

std::string expected_shape(const Field& field, const Letters& letters) {
  std::string text = fmt::format("[{}]", field.shape);
  std::string known;
  for (const auto& [letter, value] : letters)
    if (field.shape.find(letter) != std::string_view::npos) known += fmt::format("{}{} = {}", known.empty() ? "" : ", ", letter, value);
  return known.empty() ? text : fmt::format("{} with {}", text, known);
}

std::string check_dataset(const Field& field, const Contents::Dataset& dataset, Letters& letters) {
  if (!type_allowed(field.type, dataset.type)) {
    std::string words(field.type == "text" ? "uint8" : field.type);
    for (auto at = words.find('|'); at != std::string::npos; at = words.find('|')) words.replace(at, 1, " or ");
    return fmt::format("{}: expected {}, found {}", dataset.path, words, type_name(dataset.type));
  }
  if (field.shape == "...") return "";
  const auto words = split(field.shape, ',');
  const Letters before = letters;
  bool good = words.size() == dataset.shape.size();
  for (std::size_t i = 0; good && i < words.size(); ++i) good = fits(words[i], dataset.shape[i], letters);
  if (good) return "";
  return fmt::format("{}: expected {}, found {}", dataset.path, expected_shape(field, before), shape_text(dataset.shape));
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = make_kinds();
  return all;
}

const Kind* find_kind(std::string_view name) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

std::string check_contents(const Kind& kind, const Contents& contents) {
  Letters letters;
  for (const Field& field : kind.fields) {
    bool found = false;
    if (field.path.find('@') != std::string_view::npos) {
      for (const auto& attribute : contents.attributes) {
        if (attribute.path != field.path) continue;
        found = true;
        if (attribute.type != field.type)
          return fmt::format("{}: expected {}, found {}", field.path, field.type, attribute.type);
        // The size of the vocabulary is the m of the shapes.
        if (field.path == "/vocab@size" && attribute.integer > 0) letters["m"] = static_cast<std::uint64_t>(attribute.integer);
        if (field.path == "/vocab@size" && attribute.integer < 1)
          return fmt::format("/vocab@size: expected at least 1, found {}", attribute.integer);
      }
    } else {
      for (const std::string& path : contents.foreign)
        if (matches(field.path, path)) return fmt::format("{}: expected {}, found a type of another class", path, field.type);
      for (const auto& dataset : contents.datasets) {
        if (!matches(field.path, dataset.path)) continue;
        found = true;
        if (std::string wrong = check_dataset(field, dataset, letters); !wrong.empty()) return wrong;
      }
    }
    if (field.required && !found) return fmt::format("{} is missing", field.path);
  }
  return "";
}

}  // namespace gdds::h5
