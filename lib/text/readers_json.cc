// Hugging Face's tokenizer.json, read and written. It describes a whole pipeline of steps, of which we know two:
// byte-level BPE and BERT's WordPiece. Any step or setting that would cut text in another way is rejected by name,
// never ignored; what comes after the ids (post-processor, padding, truncation, decoder) is not ours.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/assemble.h"
#include "text/readers.h"

namespace gdds::text {
namespace {

using Json = nlohmann::json;

// Nothing where there is nothing, so that absent and null are the same.
const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}
std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }
bool is_true(const Json& json) { return json.is_boolean() && json.get<bool>(); }
bool is_false(const Json& json) { return json.is_boolean() && !json.get<bool>(); }
bool is_none(const Json& json) { return json.is_null() || (json.is_string() && text_of(json).empty()); }

std::int64_t id_of(const Json& json, std::string_view token, const std::string& file) {
  if (!json.is_number_integer()) reject("{}: the id of token {} is no integer", file, in_quotes(token));
  return json.get<std::int64_t>();
}

// ---- what kind of tokenizer it is ----------------------------------------------------------------------------------

std::string described(const Json& step) {
  if (step.is_null()) return "none";
  const std::string type = text_of(member(step, "type"));
  return type.empty() ? "of no type" : in_quotes(type);
}

void check_byte_level(const Json& step, const std::string& file) {
  if (!is_false(member(step, "add_prefix_space")))
    reject("{}: pre-tokenizer 'ByteLevel' with add_prefix_space is not supported", file);
  if (!member(step, "use_regex").is_null() && !is_true(member(step, "use_regex")))
    reject("{}: pre-tokenizer 'ByteLevel' without use_regex is not supported", file);
}

std::string bpe_pretokenizer(const Json& step, const std::string& file) {
  const std::string type = text_of(member(step, "type"));
  if (type == "ByteLevel") {
    check_byte_level(step, file);
    return "gpt2";
  }
  const Json& steps = member(step, "pretokenizers");
  if (type != "Sequence" || !steps.is_array()) reject("{}: pre-tokenizer {} is not supported", file, described(step));
  const bool known = steps.size() == 2 && text_of(member(steps[0], "type")) == "Digits" &&
                     text_of(member(steps[1], "type")) == "ByteLevel";
  if (!known) {
    std::string names;
    for (const Json& part : steps) names += (names.empty() ? "" : ", ") + described(part);
    reject("{}: pre-tokenizer 'Sequence' of {} is not supported", file, names.substr(0, 200));
  }
  if (!is_true(member(steps[0], "individual_digits")))
    reject("{}: pre-tokenizer 'Digits' without individual_digits is not supported", file);
  check_byte_level(steps[1], file);
  return "digits-gpt2";
}

Vocabulary bpe_settings(const Json& json, const std::string& file) {
  const Json& model = member(json, "model");
  const auto unsupported = [&](const char* what) { reject("{}: {} of model 'BPE' is not supported", file, what); };
  if (!member(model, "dropout").is_null()) unsupported("dropout");
  if (is_true(member(model, "byte_fallback"))) unsupported("byte_fallback");
  if (!is_none(member(model, "continuing_subword_prefix"))) unsupported("continuing_subword_prefix");
  if (!is_none(member(model, "end_of_word_suffix"))) unsupported("end_of_word_suffix");
  if (is_true(member(model, "ignore_merges"))) unsupported("ignore_merges");
  if (const Json& step = member(json, "normalizer"); !step.is_null())
    reject("{}: normalizer {} with model 'BPE' is not supported", file, described(step));
  Vocabulary vocabulary;
  vocabulary.model = "bpe";
  vocabulary.pretokenizer = bpe_pretokenizer(member(json, "pre_tokenizer"), file);
  return vocabulary;
}

Vocabulary wordpiece_settings(const Json& json, const std::string& file) {
  const Json& model = member(json, "model");
  const Json& normalizer = member(json, "normalizer");
  if (text_of(member(normalizer, "type")) != "BertNormalizer")
    reject("{}: normalizer {} with model 'WordPiece' is not supported", file, described(normalizer));
  for (const char* setting : {"lowercase", "clean_text", "handle_chinese_chars"})
    if (!is_true(member(normalizer, setting)))
      reject("{}: normalizer 'BertNormalizer' without {} is not supported", file, setting);
  // Null follows lowercase.
  if (const Json& strip = member(normalizer, "strip_accents"); !strip.is_null() && !is_true(strip))
    reject("{}: normalizer 'BertNormalizer' without strip_accents is not supported", file);
  if (const Json& step = member(json, "pre_tokenizer"); text_of(member(step, "type")) != "BertPreTokenizer")
    reject("{}: pre-tokenizer {} with model 'WordPiece' is not supported", file, described(step));
  if (text_of(member(model, "continuing_subword_prefix")) != "##")
    reject("{}: continuing_subword_prefix of model 'WordPiece' is not '##'", file);
  if (member(model, "max_input_chars_per_word") != 100)
    reject("{}: max_input_chars_per_word of model 'WordPiece' is not 100", file);
  Vocabulary vocabulary;
  vocabulary.model = "wordpiece";
  vocabulary.pretokenizer = vocabulary.normalizer = "bert";
  return vocabulary;
}

Vocabulary settings(const Json& json, const std::string& file) {
  const Json& model = member(json, "model");
  if (!model.is_object()) reject("{}: not a tokenizer.json: no object 'model'", file);
  const std::string type = text_of(member(model, "type"));
  if (type == "BPE") return bpe_settings(json, file);
  if (type == "WordPiece") return wordpiece_settings(json, file);
  reject("{}: model {} is not supported", file, described(model));
}

// ---- tokens --------------------------------------------------------------------------------------------------------

using Specials = std::map<std::string, std::int64_t, std::less<>>;

Specials special_tokens(const Json& json, const std::string& file) {
  Specials specials;
  const Json& added = member(json, "added_tokens");
  if (added.is_null()) return specials;
  if (!added.is_array()) reject("{}: 'added_tokens' is no array", file);
  for (const Json& token : added) {
    if (!member(token, "content").is_string()) reject("{}: an added token has no content", file);
    const std::string content = text_of(member(token, "content"));
    // It would be looked for in the text before all else, which only its own library does.
    if (!is_true(member(token, "special"))) reject("{}: added token {} is not special", file, in_quotes(content));
    if (!specials.emplace(content, id_of(member(token, "id"), content, file)).second)
      reject("{}: added token {} occurs twice", file, in_quotes(content));
  }
  return specials;
}

std::vector<Listed> listed_tokens(const Json& json, const Vocabulary& vocabulary, Specials specials,
                                  const std::string& file) {
  static const std::set<std::string, std::less<>> bert = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  const Json& table = member(member(json, "model"), "vocab");
  if (!table.is_object()) reject("{}: the model has no object 'vocab'", file);
  std::vector<Listed> tokens;
  for (const auto& [text, value] : table.items()) {
    const std::int64_t id = id_of(value, text, file);
    if (const auto special = specials.find(text); special != specials.end()) {
      if (special->second != id)
        reject("{}: added token {} has the id {}, but {} in the model", file, in_quotes(text), special->second, id);
      specials.erase(special);
      tokens.push_back({id, text, true});
    } else if (vocabulary.model == "wordpiece") {
      tokens.push_back({id, text, bert.contains(text)});
    } else {
      tokens.push_back(listed_byte_level(id, text, file));
    }
  }
  for (const auto& [text, id] : specials) tokens.push_back({id, text, true});
  return tokens;
}

void add_merges(const Json& merges, Vocabulary& vocabulary, const std::string& file) {
  if (!merges.is_array()) reject("{}: the model has no array 'merges'", file);
  MergeReader reader(vocabulary, file);
  for (const Json& merge : merges) {
    if (merge.is_string()) {
      reader.add_pair(merge.get_ref<const std::string&>());
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      reader.add(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
    } else {
      reject("{}: merge {} is no pair of tokens", file, vocabulary.merges.size());
    }
  }
}

// ---- which special token is which ----------------------------------------------------------------------------------

struct Role {
  const char* name;
  std::int32_t Vocabulary::*id;
};
constexpr Role kRoles[] = {
    {"eos", &Vocabulary::eos}, {"mask", &Vocabulary::mask}, {"pad", &Vocabulary::pad}, {"unk", &Vocabulary::unk}};

// By their names; where these would mislead, the writer has said it in a key of our own, "roles", which others skip.
void set_roles(const Json& json, Vocabulary& vocabulary, const std::string& file) {
  find_roles(vocabulary);
  bool said = false;
  for (const Json& token : member(json, "added_tokens")) {
    const Json& roles = member(token, "roles");
    if (!roles.is_array()) continue;
    if (!std::exchange(said, true)) vocabulary.eos = vocabulary.mask = vocabulary.pad = vocabulary.unk = -1;
    // The id has been seen to be that of a token.
    for (const Role& role : kRoles)
      if (std::find(roles.begin(), roles.end(), role.name) != roles.end())
        vocabulary.*role.id = static_cast<std::int32_t>(member(token, "id").get<std::int64_t>());
  }
  if (vocabulary.model != "wordpiece") return;
  const std::string unknown = text_of(member(member(json, "model"), "unk_token"));
  vocabulary.unk = special_named(vocabulary, {unknown});
  if (vocabulary.unk < 0) reject("{}: the unk_token {} is no special token", file, in_quotes(unknown));
}

Json parsed(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    reject("{}: not JSON (at byte {})", file, error.byte);
  } catch (const Json::exception&) {
    reject("{}: holds a number that is too large", file);
  }
}

// ---- writing -------------------------------------------------------------------------------------------------------

std::string json_text(std::string_view text) { return Json(text).dump(); }

std::string written_token(const Vocabulary& vocabulary, std::int32_t id) {
  const bool plain = vocabulary.is_special(id) || vocabulary.model == "wordpiece";
  return plain ? std::string(vocabulary.token(id)) : to_byte_level(vocabulary.token(id));
}

std::string written_specials(const Vocabulary& vocabulary) {
  Vocabulary guessed = vocabulary;
  find_roles(guessed);
  bool misleading = false;
  for (const Role& role : kRoles) misleading |= guessed.*role.id != vocabulary.*role.id;
  std::string list;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.is_special(id)) continue;
    Json roles = Json::array();
    for (const Role& role : kRoles)
      if (vocabulary.*role.id == id) roles.push_back(role.name);
    list += fmt::format(
        "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
        "\"normalized\": false, \"special\": true{}}}",
        list.empty() ? "" : ",", id, json_text(vocabulary.token(id)), misleading ? ", \"roles\": " + roles.dump() : "");
  }
  return "[" + list + "]";
}

// In the order of the ids. The library takes an added token's id from here, so special tokens are listed too.
std::string written_vocab(const Vocabulary& vocabulary) {
  std::string list;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id)
    list += fmt::format("{}\n      {}: {}", id == 0 ? "" : ",", json_text(written_token(vocabulary, id)), id);
  return "{" + list + "}";
}

// "a b", the old form, which every version of the library reads.
std::string written_merges(const Vocabulary& vocabulary) {
  std::string list;
  for (const auto& [left, right] : vocabulary.merges)
    list += fmt::format("{}\n      {}", list.empty() ? "" : ",",
                        json_text(written_token(vocabulary, left) + " " + written_token(vocabulary, right)));
  return "[" + list + "]";
}

std::string written(const Vocabulary& vocabulary, std::string_view steps, std::string_view model) {
  return fmt::format(
      "{{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": {},\n{}"
      "  \"model\": {{\n{}    \"vocab\": {}{}\n  }}\n}}\n",
      written_specials(vocabulary), steps, model, written_vocab(vocabulary),
      vocabulary.model == "bpe" ? ",\n    \"merges\": " + written_merges(vocabulary) : "");
}

std::string written_bpe(const Vocabulary& vocabulary) {
  const std::string cut =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  const std::string digits = R"({"type": "Digits", "individual_digits": true})";
  const bool apart = vocabulary.pretokenizer == "digits-gpt2";
  const std::string steps = "  \"normalizer\": null,\n  \"pre_tokenizer\": " +
                            (apart ? R"({"type": "Sequence", "pretokenizers": [)" + digits + ", " + cut + "]}" : cut) +
                            ",\n  \"post_processor\": null,\n  \"decoder\": " + cut + ",\n";
  return written(vocabulary, steps, R"(    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
)");
}

std::string written_wordpiece(const Vocabulary& vocabulary) {
  if (vocabulary.unk < 0) reject("it has no unknown token");
  const std::string model = fmt::format(R"(    "type": "WordPiece",
    "unk_token": {},
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
)",
                                        json_text(vocabulary.token(vocabulary.unk)));
  return written(vocabulary, R"(  "normalizer": {
    "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true
  },
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": null,
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
)",
                 model);
}

}  // namespace

Vocabulary read_tokenizer_json(std::string_view json, const std::string& file) {
  const Json whole = parsed(json, file);
  Vocabulary vocabulary = settings(whole, file);
  add_tokens(vocabulary, listed_tokens(whole, vocabulary, special_tokens(whole, file), file), file);
  if (vocabulary.model == "bpe") add_merges(member(member(whole, "model"), "merges"), vocabulary, file);
  set_roles(whole, vocabulary, file);
  return finished(std::move(vocabulary), file);
}

std::string write_tokenizer_json(const Vocabulary& vocabulary) {
  const std::string name = one_line(vocabulary.name);
  if (vocabulary.model != "bpe" && vocabulary.model != "wordpiece")
    bad_usage("vocabulary '{}' is of model '{}', which has no form as tokenizer.json", name, vocabulary.model);
  // Read back before it is given away: special tokens that are spelled like others and the like come out here.
  std::string reason = "it reads back as another vocabulary";
  try {
    std::string json = vocabulary.model == "bpe" ? written_bpe(vocabulary) : written_wordpiece(vocabulary);
    if (read_tokenizer_json(json, "tokenizer.json").hash() == vocabulary.hash()) return json;
  } catch (const Json::exception&) {
    reason = "a token is not UTF-8";
  } catch (const Error& error) {
    if (error.status() != Status::rejected) throw;
    reason = error.what();
  }
  bad_usage("vocabulary '{}' has no form as tokenizer.json: {}", name, reason);
}

bool is_tokenizer_json(std::string_view json) {
  bool found = false;
  bool model_next = false;
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key) model_next = depth == 1 && parsed == "model";
    if (event == Json::parse_event_t::object_start && depth == 1 && std::exchange(model_next, false)) found = true;
    return event == Json::parse_event_t::key || depth == 0;  // nothing is kept
  };
  // What is not JSON is for the reader to say.
  [[maybe_unused]] const Json nothing = Json::parse(json, look, false);
  return found;
}

}  // namespace gdds::text
