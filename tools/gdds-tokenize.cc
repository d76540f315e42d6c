// gdds-tokenize: text to token ids and back, and the vocabularies in between. See gdds-tokenize(1).
#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"
#include "h5/output.h"
#include "text/readers.h"
#include "text/tokenize.h"

namespace {

using namespace gdds;

void encode(cli::Command& cmd) {
  std::string vocab = "bytes";
  bool show = false;
  text::CorpusOptions corpus_options;
  text::ChunkOptions chunk_options;
  h5::OutputOptions output;
  cmd.positionals("FILE", corpus_options.files, "text files; none or - for standard input");
  cmd.option("vocab", vocab, "vocabulary: text8, bytes, or a file in any form that is known").placeholder("VOCAB");
  cmd.option("show", show, "write the tokens as text, a document a line, instead of a file");
  chunk_options.add_to(cmd);
  corpus_options.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();

  std::vector<h5::Source> sources;
  const text::Vocabulary vocabulary = text::open_vocabulary(vocab, sources);
  const auto encoder = text::make_encoder(vocabulary);
  text::Corpus corpus(corpus_options, [&](std::string_view t) { return encoder->last_cut(t); });
  if (show) return show_tokens(corpus, *encoder, vocabulary, [](const std::string& line) { cli::write_text(line + "\n"); });

  h5::Output sink(output, "tokens", cmd.invocation(), sources);
  write(vocabulary, sink);
  if (corpus_options.split != "none") sink.attribute("/tokens@split", corpus_options.part);
  const auto sum = encode_corpus(corpus, *encoder, vocabulary, chunk_options, sink);
  for (const h5::Source& source : corpus.sources()) sink.add_source(source);
  sink.commit();
  log::info("{} documents, {} bytes, {} tokens ({:.3f} bytes a token), {} sequences of {}, {} tokens dropped", sum.documents, sum.bytes,
            sum.tokens, sum.tokens > 0 ? double(sum.bytes) / double(sum.tokens) : 0.0, sum.sequences, chunk_options.length, sum.dropped);
}

void decode(cli::Command& cmd) {
  std::string input = "-", output = "-";
  text::DecodeOptions options;
  cmd.positional("FILE.h5", input, "tokens or samples file, - for standard input");
  cmd.option("output,o", output, "file to write, - for standard output").placeholder("FILE");
  options.add_to(cmd);
  cmd.parse();

  const h5::Input source(input, "");
  h5::TextOutput sink(output);
  decode_sequences(source, options, [&](const std::string& t) { sink.write(t); });
  sink.commit();
}

void learn(cli::Command& cmd) {
  text::LearnOptions options;
  text::SpecialOptions special;
  text::CorpusOptions corpus_options;
  h5::OutputOptions output;
  cmd.positionals("FILE", corpus_options.files, "text files; none or - for standard input");
  options.add_to(cmd);
  special.add_to(cmd);
  corpus_options.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();

  text::Corpus corpus(corpus_options, text::last_learning_cut(options));
  h5::Output sink(output, "vocab", cmd.invocation(), {});
  const text::Vocabulary vocabulary = learn_vocabulary(corpus, options, special);
  write(vocabulary, sink);
  for (const h5::Source& source : corpus.sources()) sink.add_source(source);
  sink.commit();
  log::info("{} tokens, {} merges", vocabulary.size(), vocabulary.merges.size());
}

void convert(cli::Command& cmd) {
  std::string vocab, form = "hdf5", name;
  text::SpecialOptions special;
  h5::OutputOptions output;
  cmd.positional("VOCAB", vocab, "vocabulary: text8, bytes, or a file in any form that is known");
  cmd.option("to", form, "form to write").choices({"hdf5", "tokenizer.json"});
  cmd.option("name", name, "give it another name");
  special.add_to(cmd);
  output.add_to(cmd);
  cmd.parse();

  std::vector<h5::Source> sources;
  text::Vocabulary vocabulary = text::open_vocabulary(vocab, sources);
  special.apply(vocabulary);
  if (!name.empty()) vocabulary.name = name;
  if (form == "tokenizer.json") {
    h5::TextOutput sink(output.path);
    sink.write(write_tokenizer_json(vocabulary));
    return sink.commit();
  }
  h5::Output sink(output, "vocab", cmd.invocation(), sources);
  write(vocabulary, sink);
  sink.commit();
}

void info(cli::Command& cmd) {
  std::string vocab;
  bool tokens = false;
  cmd.positional("VOCAB", vocab, "vocabulary in any form, or a file that carries one");
  cmd.option("tokens", tokens, "list every token: id, special or not, text");
  cmd.parse();

  std::vector<h5::Source> sources;
  const text::Vocabulary vocabulary = text::open_vocabulary(vocab, sources);
  cli::write_text(tokens ? "id\tspecial\ttoken\n" : "what\tvalue\n");
  for (std::int32_t id = 0; tokens && id < vocabulary.size(); ++id)
    cli::print("{}\t{}\t{}\n", id, int{vocabulary.is_special(id)}, text::shown_token(vocabulary.token(id)));
  if (!tokens)
    for (const auto& [what, value] : describe(vocabulary)) cli::print("{}\t{}\n", what, value);
}

}  // namespace

int main(int argc, char** argv) {
  const cli::About about = {"gdds-tokenize",
                            "Text to token ids and back, and vocabularies",
                            "Vocabularies are text8's 27 symbols, bytes, characters, byte-level BPE and WordPiece, learned here or read from the "
                            "files of other libraries.",
                            {},
                            {h5::library_version()}};
  return cli::run(argc, argv, about,
                  {{"encode", "Encode text files as sequences of token ids", encode},
                   {"decode", "Write the text of a tokens or samples file", decode},
                   {"learn", "Learn a vocabulary from text files", learn},
                   {"convert", "Read a vocabulary in any form and write it in another", convert},
                   {"info", "Show what a vocabulary is", info}});
}
