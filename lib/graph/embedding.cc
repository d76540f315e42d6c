// See embedding.h.
#include "graph/embedding.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/progress.h"
#include "graph/gaussian.h"
#include "graph/tensors.h"
#include "text/encoder.h"
#include "text/readers.h"
#include "text/tokenize.h"

namespace gdds::graph {
namespace {

constexpr std::string_view kParameters = "/parameters/";
constexpr std::uint64_t kBlockElements = 1 << 20;
constexpr std::uint64_t kMostColumns = 1 << 16;  // a row is copied for every token that has none

std::span<float> row_of(h5::Matrix& matrix, std::uint64_t row) {
  return std::span(matrix.values).subspan(row * matrix.columns, matrix.columns);
}
std::span<const float> row_of(const h5::Matrix& matrix, std::uint64_t row) {
  return std::span(matrix.values).subspan(row * matrix.columns, matrix.columns);
}

std::string token_text(const text::Vocabulary& vocabulary, std::uint64_t id) {
  return text::shown_token(vocabulary.token(static_cast<std::int32_t>(id)));
}

// ---- rows that the source does not have -----------------------------------------------------------------------------

// Fills them by the rule, from the rows that are there.
class Filler {
 public:
  Filler(const std::string& rule, Seed seed, const h5::Matrix& vectors, const std::vector<std::uint8_t>& present)
      : rule_(rule), random_(seed.value), mean_(vectors.columns, 0.0) {
    double count = 0, sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < present.size(); ++i) {
      if (present[i] == 0) continue;
      ++count;
      const auto row = row_of(vectors, i);
      for (std::uint64_t j = 0; j < row.size(); ++j) {
        mean_[j] += row[j];
        sum += row[j];
        squares += double{row[j]} * row[j];
      }
    }
    if (count == 0) return;
    for (double& value : mean_) value /= count;
    const double entries = count * static_cast<double>(vectors.columns);
    deviation_ = std::sqrt(std::max(0.0, squares / entries - sum / entries * (sum / entries)));
  }

  void fill(std::span<float> row) {
    for (std::uint64_t j = 0; j < row.size(); ++j)
      row[j] = rule_ == "mean"     ? static_cast<float>(mean_[j])
               : rule_ == "random" ? static_cast<float>(deviation_ * random_.next())
                                   : 0.0f;
  }

 private:
  std::string rule_;
  Gaussian random_;
  std::vector<double> mean_;
  double deviation_ = 0;
};

void fill_absent(Embedding& embedding, const std::string& rule, Seed seed) {
  Filler filler(rule, seed, embedding.vectors, embedding.present);
  for (std::uint64_t i = 0; i < embedding.present.size(); ++i)
    if (embedding.present[i] == 0) filler.fill(row_of(embedding.vectors, i));
}

// ---- options that are not for every source --------------------------------------------------------------------------

enum class Form { safetensors, gguf, npy, raw, embedding, model, corpus };

struct Use {
  std::string_view option;
  std::vector<Form> forms;
  std::string_view words;
};

const std::vector<Use>& uses() {
  static const std::vector<Use> all = {
      {"tensor", {Form::safetensors, Form::gguf, Form::model}, "safetensors, GGUF and model files"},
      {"raw-type", {Form::raw}, "raw floats, with --raw-dim"},
      {"drop-rows",
       {Form::safetensors, Form::gguf, Form::npy, Form::raw, Form::embedding, Form::model},
       "files of vectors"},
      {"dim", {Form::corpus}, "a corpus"},
      {"window", {Form::corpus}, "a corpus"},
      {"smoothing", {Form::corpus}, "a corpus"}};
  return all;
}

// Status 2 for an option that would do nothing with such a source.
void check_use(const EmbedOptions& options, Form form, const std::string& name) {
  static const char* const words[] = {"a safetensors file", "a GGUF file",  "a .npy file", "raw floats",
                                      "an embedding file",  "a model file", "a corpus"};
  for (const Use& use : uses())
    if (std::find(options.given.begin(), options.given.end(), use.option) != options.given.end() &&
        std::find(use.forms.begin(), use.forms.end(), form) == use.forms.end())
      bad_usage("--{}: this is for {}, but {} is {}", use.option, use.words, name, words[static_cast<int>(form)]);
}

// ---- reading --------------------------------------------------------------------------------------------------------

// A matrix in some file, by rows.
struct Rows {
  std::string name;  // for messages
  std::uint64_t rows = 0, columns = 0;
  std::function<void(std::uint64_t first, std::uint64_t count, std::span<float> out)> read;
};

void check_size(const Rows& rows, const text::Vocabulary& vocabulary, const EmbedOptions& options) {
  const auto tokens = static_cast<std::uint64_t>(vocabulary.size());
  if (rows.columns > kMostColumns)
    reject("{}: rows of {} numbers; expected at most {}", rows.name, rows.columns, kMostColumns);
  const std::string both = fmt::format("{}: {} rows, but the vocabulary '{}' has {} tokens", rows.name, rows.rows,
                                       one_line(vocabulary.name), tokens);
  if (rows.rows < tokens && options.extra_rows == "reject") reject("{}; --extra-rows says what the others get", both);
  if (rows.rows > tokens && !options.drop_rows)
    reject("{}; --drop-rows leaves out the last {}", both, rows.rows - tokens);
}

void check_finite(const Embedding& embedding, std::uint64_t row, const std::string& name) {
  for (const float value : row_of(embedding.vectors, row))
    if (!std::isfinite(value))
      reject("{}: row {} (token {}) holds {}", name, row, token_text(embedding.vocabulary, row),
             std::isnan(value) ? "NaN" : "infinity");
}

// Rows beyond the vocabulary are not looked at; those it has beyond them follow the rule.
Embedding take_rows(const Rows& rows, text::Vocabulary vocabulary, const EmbedOptions& options) {
  check_size(rows, vocabulary, options);
  const auto tokens = static_cast<std::uint64_t>(vocabulary.size());
  const std::uint64_t used = std::min(rows.rows, tokens);
  Embedding embedding{std::move(vocabulary), {tokens, rows.columns, {}}, std::vector<std::uint8_t>(tokens, 0)};
  embedding.vectors.values.resize(tokens * rows.columns);
  const std::uint64_t step = std::max<std::uint64_t>(1, kBlockElements / rows.columns);
  Progress progress("reading", used, "rows");
  for (std::uint64_t at = 0; at < used; at += step) {
    const std::uint64_t count = std::min(step, used - at);
    rows.read(at, count, std::span(embedding.vectors.values).subspan(at * rows.columns, count * rows.columns));
    for (std::uint64_t i = at; i < at + count; ++i) check_finite(embedding, i, rows.name);
    progress.advance(count);
  }
  std::fill_n(embedding.present.begin(), used, std::uint8_t{1});
  if (used < tokens) fill_absent(embedding, options.extra_rows, options.seed);
  return embedding;
}

// The same of a matrix that is in memory already.
Embedding take_matrix(h5::Matrix stored, const std::string& name, text::Vocabulary vocabulary,
                      const EmbedOptions& options) {
  if (stored.rows == 0 || stored.columns == 0)
    reject("{}: an embedding [{}, {}] without elements", name, stored.rows, stored.columns);
  if (stored.rows != static_cast<std::uint64_t>(vocabulary.size())) {
    const auto read = [&](std::uint64_t first, std::uint64_t count, std::span<float> out) {
      std::copy_n(stored.values.begin() + static_cast<std::ptrdiff_t>(first * stored.columns), count * stored.columns,
                  out.begin());
    };
    return take_rows({name, stored.rows, stored.columns, read}, std::move(vocabulary), options);
  }
  Embedding embedding{std::move(vocabulary), std::move(stored), {}};
  embedding.present.assign(embedding.vectors.rows, 1);
  for (std::uint64_t i = 0; i < embedding.vectors.rows; ++i) check_finite(embedding, i, name);
  return embedding;
}

// The vocabulary that a file of ours carries or, where it has only the name, the one given if it is that.
text::Vocabulary own_vocabulary(const h5::Input& input, const EmbedOptions& options, std::vector<h5::Source>& sources) {
  if (options.vocab.empty()) return text::read_vocabulary(input);
  if (input.has("/vocab/bytes"))
    bad_usage("--vocab: {} carries its vocabulary; --onto is for another one", input.name());
  text::Vocabulary vocabulary = text::open_vocabulary(options.vocab, sources);
  if (const std::string wanted = input.string_attribute("/vocab@hash"); wanted != vocabulary.hash())
    reject("{}: its vocabulary is '{}' with the hash {}, but that of {} is {}", input.name(),
           one_line(input.string_attribute("/vocab@name")), one_line(wanted), options.vocab, vocabulary.hash());
  return vocabulary;
}

Embedding from_embedding(const h5::Input& input, const EmbedOptions& options, std::vector<h5::Source>& sources) {
  Embedding embedding =
      take_matrix(input.matrix("/embedding"), input.name(), own_vocabulary(input, options, sources), options);
  if (!input.has("/present")) return embedding;
  embedding.present = input.read<std::uint8_t>("/present");
  embedding.present.resize(embedding.vectors.rows, 0);
  for (std::uint64_t i = 0; i < embedding.present.size(); ++i)
    if (embedding.present[i] > 1)
      reject("{}: /present: row {} is {}; expected 0 or 1", input.name(), i, embedding.present[i]);
  return embedding;
}

Embedding from_model(const h5::Input& input, const EmbedOptions& options, std::vector<h5::Source>& sources) {
  std::vector<Tensor> tensors;
  for (const auto& dataset : input.contents().datasets)
    if (dataset.path.starts_with(kParameters))
      tensors.push_back({dataset.path.substr(kParameters.size()), dataset.shape, Element::f32,
                         std::string(h5::type_name(dataset.type)), 0});
  const Tensor& tensor = choose_tensor(tensors, options.tensor, input.name());
  return take_matrix(input.matrix(std::string(kParameters) + tensor.name), input.name(),
                     own_vocabulary(input, options, sources), options);
}

// Tokens that never occur in the corpus have no vector: zero, unless the rule says otherwise.
Embedding from_corpus(const h5::Input& input, const EmbedOptions& options, std::vector<h5::Source>& sources) {
  Embedding embedding;
  embedding.vocabulary = own_vocabulary(input, options, sources);
  CooccurrenceVectors found = embed_corpus(input, embedding.vocabulary, options.cooccurrence, options.seed);
  embedding.vectors = std::move(found.vectors);
  embedding.present = std::move(found.present);
  fill_absent(embedding, options.extra_rows == "reject" ? "zero" : options.extra_rows, options.seed);
  return embedding;
}

Embedding from_own_file(const EmbedOptions& options, std::vector<h5::Source>& sources) {
  const h5::Input input(options.source, "");
  sources.push_back(input.source());
  if (input.kind() == "embedding") {
    check_use(options, Form::embedding, input.name());
    return from_embedding(input, options, sources);
  }
  if (input.kind() == "model") {
    check_use(options, Form::model, input.name());
    return from_model(input, options, sources);
  }
  if (input.kind() == "tokens") {
    check_use(options, Form::corpus, input.name());
    return from_corpus(input, options, sources);
  }
  reject("{}: expected kind 'embedding' or 'model' or 'tokens', found '{}'", input.name(), input.kind());
}

text::Vocabulary given_vocabulary(const EmbedOptions& options, std::vector<h5::Source>& sources) {
  if (options.vocab.empty()) bad_usage("{}: carries no vocabulary; name it with --vocab", options.source);
  return text::open_vocabulary(options.vocab, sources);
}

Embedding from_tensor(std::string_view bytes, const Tensor& tensor, text::Vocabulary vocabulary,
                      const EmbedOptions& options) {
  const auto read = [&](std::uint64_t first, std::uint64_t count, std::span<float> out) {
    read_tensor_rows(bytes, tensor, first, count, out);
  };
  return take_rows({options.source, tensor.shape[0], tensor.shape[1], read}, std::move(vocabulary), options);
}

Embedding from_foreign_file(std::string_view bytes, const EmbedOptions& options, std::vector<h5::Source>& sources) {
  const std::string& file = options.source;
  const bool npy = bytes.starts_with("\x93NUMPY"), gguf = bytes.starts_with("GGUF");
  check_use(options, options.raw_dim > 0 ? Form::raw : npy ? Form::npy : gguf ? Form::gguf : Form::safetensors, file);
  sources.push_back({file, hash_hex(bytes), ""});
  if (options.raw_dim > 0) {
    const Tensor tensor = raw_tensor(bytes.size(), static_cast<std::uint64_t>(options.raw_dim), options.raw_type, file);
    return from_tensor(bytes, tensor, given_vocabulary(options, sources), options);
  }
  if (npy) {
    const Tensor tensor = parse_npy(bytes, file);
    return from_tensor(bytes, tensor, given_vocabulary(options, sources), options);
  }
  const auto tensors = gguf ? parse_gguf_tensors(bytes, file) : parse_safetensors(bytes, file);
  const Tensor& tensor = choose_tensor(tensors, options.tensor, file);
  if (gguf && options.vocab.empty())
    return from_tensor(bytes, tensor, text::read_gguf_vocabulary(bytes, file), options);
  return from_tensor(bytes, tensor, given_vocabulary(options, sources), options);
}

// ---- carrying over --------------------------------------------------------------------------------------------------

bool is_wordpiece(const text::Vocabulary& vocabulary) { return vocabulary.model == "wordpiece"; }

// The source token that stands for a special token: one of the same role, or a special one of the same name; -1: none.
std::int32_t special_counterpart(const text::Vocabulary& source, const text::Vocabulary& target, std::int32_t id) {
  using V = text::Vocabulary;
  for (const auto role : {&V::eos, &V::mask, &V::pad, &V::unk})
    if (target.*role == id && source.*role >= 0) return source.*role;
  for (std::int32_t i = 0; i < source.size(); ++i)
    if (source.is_special(i) && source.token(i) == target.token(id)) return i;
  return -1;
}

// Which tokens of the source make up each token of the target.
class Pieces {
 public:
  Pieces(const text::Vocabulary& source, const text::Vocabulary& target)
      : source_(source), target_(target), encoder_(text::make_encoder(source)) {
    for (std::int32_t id = 0; id < source.size(); ++id)
      if (!source.is_special(id)) same_.emplace(source.token(id), id);
  }

  // Empty where the source has nothing for it; `why` then says so.
  std::vector<std::int32_t> of(std::int32_t id, std::string& why) {
    std::vector<std::int32_t> ids;
    if (target_.is_special(id)) {
      const std::int32_t found = special_counterpart(source_, target_, id);
      if (found >= 0) ids.push_back(found);
      return ids;
    }
    if (is_wordpiece(source_) == is_wordpiece(target_)) {  // else ## and blanks mean different things
      const auto found = same_.find(target_.token(id));
      if (found != same_.end()) return {found->second};
    }
    try {
      encoder_->encode(text_of(id), ids);
      if (ids.empty()) why = "its text leaves nothing to encode";
    } catch (const text::Unencodable& wrong) {
      ids.clear();
      why = wrong.what;
    }
    return ids;
  }

 private:
  // What the token looks like in running text. A WordPiece token without ## begins a word, which behind a pre-tokenizer
  // of bytes is written as a blank.
  std::string text_of(std::int32_t id) const {
    std::string_view token = target_.token(id);
    if (!is_wordpiece(target_)) return std::string(token);
    if (token.size() > 2 && token.starts_with("##")) return std::string(token.substr(2));
    return (source_.model == "bpe" && source_.pretokenizer != "none" ? " " : "") + std::string(token);
  }

  const text::Vocabulary& source_;
  const text::Vocabulary& target_;
  std::unique_ptr<text::Encoder> encoder_;
  std::unordered_map<std::string_view, std::int32_t> same_;
};

// The mean of those pieces that have a vector; false if none has.
bool mean_of(const Embedding& source, const std::vector<std::int32_t>& pieces, std::span<float> out) {
  std::vector<double> sum(out.size(), 0.0);
  double count = 0;
  for (const std::int32_t piece : pieces) {
    if (source.present[static_cast<std::size_t>(piece)] == 0) continue;
    const auto row = row_of(source.vectors, static_cast<std::uint64_t>(piece));
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += row[j];
    ++count;
  }
  if (count == 0) return false;
  for (std::size_t j = 0; j < sum.size(); ++j) out[j] = static_cast<float>(sum[j] / count);
  return true;
}

struct Left {
  std::uint64_t ordinary = 0;  // tokens without a vector
  std::int32_t first = -1;     // the first of them
  std::string why;
  std::uint64_t unknown = 0;  // tokens that are nothing but the source's unknown token
};

void reject_left(const Embedding& source, const text::Vocabulary& target, const Left& left) {
  reject(
      "token {} ({}) of the vocabulary '{}' cannot be made of those of '{}': {} ({} such in all); "
      "--extra-rows says what they get",
      left.first, text::shown_token(target.token(left.first)), one_line(target.name), one_line(source.vocabulary.name),
      left.why.empty() ? "its pieces have no vectors" : left.why, left.ordinary);
}

}  // namespace

void EmbedOptions::add_to(Options& options) {
  options
      .option("tensor", tensor,
              "tensor of a safetensors, GGUF or model file; by default the first of wte.weight, "
              "vocab_embed.embedding, embeddings.word_embeddings.weight, token_embd.weight and their like")
      .placeholder("NAME")
      .noted_in(given);
  options
      .option("vocab", vocab,
              "vocabulary of a source that carries none: text8, bytes, or a file in any form that is known")
      .placeholder("VOCAB");
  options.option("raw-dim", raw_dim, "the source is nothing but floats, so many a row (0: it is not)")
      .range(0, 1 << 16);
  options.option("raw-type", raw_type, "type of these floats").choices({"float32", "float16"}).noted_in(given);
  options
      .option("onto", onto,
              "carry the vectors over to this vocabulary: a token gets the mean of those of its text's pieces")
      .placeholder("VOCAB");
  options
      .option("extra-rows", extra_rows,
              "what tokens get that the source has no vector for; of special tokens with --onto "
              "reject means mean, of a corpus's tokens that do not occur it means zero")
      .choices({"reject", "zero", "mean", "random"});
  options.option("drop-rows", drop_rows, "leave out the source's rows beyond the vocabulary").noted_in(given);
  options.option("normalise", normalise, "scale rows to unit length");
  options.option("dtype", dtype, "type to write").choices({"float32", "float16"});
  cooccurrence.add_to(options, given);
  seed.add_to(options);
}

void EmbedOptions::validate() const {
  if ((source == "-") + (vocab == "-") + (onto == "-") > 1) bad_usage("standard input can be read only once");
}

Embedding open_embedding(const EmbedOptions& options, std::vector<h5::Source>& sources) {
  struct stat status {};
  const bool regular = options.source != "-" && stat(options.source.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    if (options.raw_dim > 0)
      bad_usage("--raw-dim: expected a file, found {}", options.source == "-" ? "standard input" : options.source);
    return from_own_file(options, sources);
  }
  const MappedFile file(options.source);
  const std::string_view bytes = file.bytes();
  if (options.raw_dim > 0) return from_foreign_file(bytes, options, sources);
  if (bytes.empty()) reject("{}: empty", options.source);
  if (bytes.starts_with("\x89HDF\r\n\x1a\n")) return from_own_file(options, sources);
  const bool safetensors = bytes.size() > 8 && bytes[8] == '{';
  if (!safetensors && !bytes.starts_with("GGUF") && !bytes.starts_with("\x93NUMPY"))
    reject("{}: neither HDF5 nor safetensors, GGUF or .npy; raw floats need --raw-dim", options.source);
  return from_foreign_file(bytes, options, sources);
}

Embedding carry_over(const Embedding& source, const text::Vocabulary& target, const std::string& rule, Seed seed) {
  const auto tokens = static_cast<std::uint64_t>(target.size());
  Embedding result{target, {tokens, source.vectors.columns, {}}, std::vector<std::uint8_t>(tokens, 0)};
  result.vectors.values.resize(tokens * source.vectors.columns);
  Pieces pieces(source.vocabulary, target);
  Filler filler(rule == "reject" ? "mean" : rule, seed, source.vectors, source.present);
  Left left;
  Progress progress("carrying over", tokens, "tokens");
  for (std::int32_t id = 0; id < target.size(); ++id) {
    const auto row = row_of(result.vectors, static_cast<std::uint64_t>(id));
    std::string why;
    const auto ids = pieces.of(id, why);
    if (mean_of(source, ids, row)) {
      result.present[static_cast<std::size_t>(id)] = 1;
      left.unknown += !target.is_special(id) && ids == std::vector{source.vocabulary.unk};
    } else {
      if (!target.is_special(id) && left.ordinary++ == 0) left.first = id, left.why = why;
      filler.fill(row);
    }
    progress.advance();
  }
  if (left.ordinary > 0 && rule == "reject") reject_left(source, target, left);
  if (left.unknown > 0) log::info("{} tokens have the vector of the source's unknown token", left.unknown);
  return result;
}

void normalise(Embedding& embedding) {
  std::uint64_t zeros = 0;
  for (std::uint64_t i = 0; i < embedding.vectors.rows; ++i) {
    const auto row = row_of(embedding.vectors, i);
    double squares = 0;
    for (const float value : row) squares += double{value} * value;
    zeros += squares == 0;
    if (squares > 0)
      for (float& value : row) value = static_cast<float>(value / std::sqrt(squares));
  }
  if (zeros > 0) log::warning("{} zero {}", zeros, zeros == 1 ? "row stays as it is" : "rows stay as they are");
}

void write(const Embedding& embedding, const std::string& dtype, h5::Output& output) {
  const h5::Matrix& vectors = embedding.vectors;
  const bool half = dtype == "float16";
  h5::Writer writer =
      output.dataset("/embedding", {vectors.rows, vectors.columns}, half ? h5::Type::float16 : h5::Type::float32);
  std::vector<std::uint16_t> bits(vectors.columns);
  for (std::uint64_t i = 0; i < vectors.rows; ++i) {
    const auto row = row_of(vectors, i);
    if (!half) {
      writer.append(row);
      continue;
    }
    for (std::uint64_t j = 0; j < row.size(); ++j) {
      bits[j] = h5::float_to_half(row[j]);
      if ((bits[j] & 0x7fff) == 0x7c00)
        reject("row {} (token {}): {} is too large for float16; --normalise or --dtype float32", i,
               token_text(embedding.vocabulary, i), row[j]);
    }
    writer.append_stored(bits.data(), bits.size());
  }
  const auto& present = embedding.present;
  if (std::find(present.begin(), present.end(), 0) != present.end()) output.write("/present", present);
  text::write(embedding.vocabulary, output);
}

EmbeddingSummary summarise(const Embedding& embedding) {
  EmbeddingSummary sum{embedding.vectors.rows, embedding.vectors.columns, 0, 0};
  for (std::uint64_t i = 0; i < sum.rows; ++i) {
    sum.present += embedding.present[i];
    double squares = 0;
    for (const float value : row_of(embedding.vectors, i)) squares += double{value} * value;
    sum.mean_norm += std::sqrt(squares) / static_cast<double>(sum.rows);
  }
  return sum;
}

}  // namespace gdds::graph
