// Vocabularies in other people's formats. Each reader takes the bytes of a file and gives a checked Vocabulary, or status
// 3 with what is wrong; none trusts a length, an id or an offset that it reads (all are fuzzed).
#pragma once

#include <string>
#include <string_view>

#include "h5/history.h"
#include "text/vocabulary.h"

namespace gdds::text {

// Hugging Face's tokenizer.json: byte-level BPE (GPT-2's and the digits-apart pre-tokenizers) or BERT's WordPiece.
Vocabulary read_tokenizer_json(std::string_view json, const std::string& file);
// OpenAI's pair of files: encoder.json (token to id) and vocab.bpe (merges, best first).
Vocabulary read_gpt2_files(std::string_view encoder_json, std::string_view vocab_bpe, const std::string& file);
// OpenAI's r50k_base.tiktoken: a line a token, base64 and rank. <|endoftext|> gets the next id. Merges are found from the
// ranks: a token's last merge is what BPE with the lower ranks leaves of it.
Vocabulary read_tiktoken(std::string_view text, const std::string& file);
// BERT's vocab.txt, a token a line; lower-casing and accent stripping as in the uncased models.
Vocabulary read_vocab_txt(std::string_view text, const std::string& file);
// The tokenizer section of a GGUF file (model gpt2; pre-tokenizers gpt-2 and smollm).
Vocabulary read_gguf_vocabulary(std::string_view gguf, const std::string& file);

// A byte-level BPE or WordPiece vocabulary as a tokenizer.json that other libraries read.
std::string write_tokenizer_json(const Vocabulary& vocabulary);

// Any vocabulary by what was typed: text8, bytes, or a file in any of the forms above (known by its first bytes; the other
// half of GPT-2's pair is looked for beside it) or in one of our own files. Adds what was read to `sources`.
Vocabulary open_vocabulary(const std::string& text, std::vector<h5::Source>& sources);

}  // namespace gdds::text
