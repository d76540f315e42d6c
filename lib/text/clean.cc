// See clean.h. The published rules are Python: chains of str.replace and re.sub over the whole document. Here each link
// is one pass of a small function that does what Python's leftmost, non-overlapping search would: the regular
// expressions among them all end at the next quote or bracket, so none needs to go back and all are linear, where
// std::regex recurses once a character. \s and \w are Python 3's on UTF-8; a byte that is not UTF-8 is neither.
#include "text/clean.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/unicode.h"

namespace gdds::text {
namespace {

using std::string;
using std::string_view;
constexpr auto npos = string_view::npos;

// ---- Python's classes -----------------------------------------------------------------------------------------------

// str.isspace also counts the four separators of ASCII, which are not White_Space.
bool is_space(char32_t code) { return (code >= 0x1c && code <= 0x1f) || class_of(code) == Class::space; }

bool is_word(char32_t code) {
  const Class c = class_of(code);
  return c == Class::letter || c == Class::number || code == U'_';
}

Decoded first_of(string_view text) { return decode(text.data(), text.data() + text.size()); }

// The last character of a text that is not empty. Lead bytes never follow lead bytes, so what is well-formed seen from
// the end is what reading from the beginning finds there.
Decoded last_of(string_view text) {
  for (std::size_t n = 2; n <= 4 && n <= text.size(); ++n) {
    const Decoded d = first_of(text.substr(text.size() - n));
    if (d.code != kInvalid && d.bytes == n) return d;
  }
  return first_of(text.substr(text.size() - 1));
}

string_view strip(string_view text) {
  while (!text.empty()) {
    const Decoded d = first_of(text);
    if (!is_space(d.code)) break;
    text.remove_prefix(d.bytes);
  }
  while (!text.empty()) {
    const Decoded d = last_of(text);
    if (!is_space(d.code)) break;
    text.remove_suffix(d.bytes);
  }
  return text;
}

std::size_t word_bytes(string_view text) {
  std::size_t n = 0;
  while (n < text.size()) {
    const Decoded d = first_of(text.substr(n));
    if (!is_word(d.code)) break;
    n += d.bytes;
  }
  return n;
}

// ---- str.replace ----------------------------------------------------------------------------------------------------

// Which byte of a pattern to look for: blanks and letters are everywhere in text, the others are rare.
std::size_t rarest(string_view pattern) {
  const auto is_common = [](char c) { return c == ' ' || (c >= 'a' && c <= 'z'); };
  const auto at = std::find_if_not(pattern.begin(), pattern.end(), is_common);
  return at == pattern.end() ? 0 : static_cast<std::size_t>(at - pattern.begin());
}

std::size_t find(string_view text, string_view pattern, std::size_t from, std::size_t anchor) {
  for (std::size_t at = from + anchor; at < text.size(); ++at) {
    at = text.find(pattern[anchor], at);  // memchr
    if (at == npos) break;
    if (text.compare(at - anchor, pattern.size(), pattern) == 0) return at - anchor;
  }
  return npos;
}

void replace(string& text, string_view pattern, string_view by) {
  const std::size_t anchor = rarest(pattern);
  std::size_t at = find(text, pattern, 0, anchor);
  if (at == npos) return;
  string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (; at != npos; at = find(text, pattern, done, anchor)) {
    out.append(text, done, at - done).append(by);
    done = at + pattern.size();
  }
  text = std::move(out.append(text, done));
}

// " X " to "X ": marks that stand apart from the word before them.
void attach(string& text, string_view marks) {
  for (const char mark : marks) replace(text, string{' ', mark, ' '}, string{mark, ' '});
}

// ---- re.sub ---------------------------------------------------------------------------------------------------------

// \(\s*([^\)]*?)\s*\) to (\1), whatever the brackets: from an opening one to the next closing one, stripped.
void strip_inside(string& text, char open, char close) {
  string out;
  out.reserve(text.size());
  std::size_t done = 0;
  while (true) {
    const std::size_t begin = text.find(open, done);
    const std::size_t end = begin == npos ? npos : text.find(close, begin + 1);
    if (end == npos) break;  // nor does a later opening bracket have a closing one
    const string_view inside = string_view(text).substr(begin + 1, end - begin - 1);
    out.append(text, done, begin + 1 - done).append(strip(inside)) += close;
    done = end + 1;
  }
  text = std::move(out.append(text, done));
}

// \( ([^\(\)]+) \) to (\1): one blank each side, something between them, no bracket of the kind inside.
void unpad_inside(string& text, char open, char close) {
  const auto is_bracket = [&](char c) { return c == open || c == close; };
  string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (std::size_t begin = text.find(open); begin != npos;) {
    const auto next = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(begin + 1), text.end(), is_bracket);
    if (next == text.end()) break;
    const auto end = static_cast<std::size_t>(next - text.begin());
    if (text[end] == close && end - begin > 3 && text[begin + 1] == ' ' && text[end - 1] == ' ') {
      out.append(text, done, begin + 1 - done).append(text, begin + 2, end - begin - 3) += close;
      done = end + 1;
      begin = text.find(open, done);
    } else {
      begin = text.find(open, end);
    }
  }
  text = std::move(out.append(text, done));
}

// /' [0-9]/ to /'[0-9]/: meant for years, but as published the slashes are part of the pattern, and what comes in place
// of the digit is the text "[0-9]". Papers' numbers were made with it, so it stays.
void replace_slashed_digit(string& text) {
  string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (std::size_t at = find(text, "/' ", 0, 0); at != npos;) {
    const bool matches = at + 4 < text.size() && text[at + 3] >= '0' && text[at + 3] <= '9' && text[at + 4] == '/';
    if (matches) {
      out.append(text, done, at - done).append("/'[0-9]/");
      done = at + 5;
    }
    at = find(text, "/' ", matches ? done : at + 1, 0);
  }
  text = std::move(out.append(text, done));
}

//  '(\w+) to '\1: the blank before a quote that opens a word.
void close_up_quotes(string& text) {
  string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (std::size_t at = find(text, " '", 0, 1); at != npos; at = find(text, " '", at + 2, 1)) {
    if (at + 2 == text.size() || !is_word(first_of(string_view(text).substr(at + 2)).code)) continue;
    out.append(text, done, at - done);
    done = at + 1;
  }
  text = std::move(out.append(text, done));
}

//  (\w+) \.  to  \1. : the blank after the full stop belongs to the match, so the word after it cannot begin the next.
void close_up_full_stops(string& text) {
  string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (std::size_t at = text.find(' '); at != npos;) {
    const std::size_t word = word_bytes(string_view(text).substr(at + 1));
    const std::size_t after = at + 1 + word;
    if (word > 0 && text.compare(after, 3, " . ") == 0) {
      out.append(text, done, after - done).append(". ");
      done = after + 3;
      at = text.find(' ', done);
    } else {
      at = text.find(' ', after);
    }
  }
  text = std::move(out.append(text, done));
}

// Where $ matches before: the end of the text without its last newline.
string_view without_newline(const string& text) {
  string_view body = text;
  if (body.ends_with('\n')) body.remove_suffix(1);
  return body;
}

//  (\w+) \.$ to  \1.
void close_up_last_full_stop(string& text) {
  string_view body = without_newline(text);
  if (!body.ends_with(" .")) return;
  body.remove_suffix(2);
  const std::size_t blank = body.size();
  while (!body.empty()) {
    const Decoded d = last_of(body);
    if (!is_word(d.code)) break;
    body.remove_suffix(d.bytes);
  }
  if (body.size() < blank && body.ends_with(' ')) text.erase(blank, 1);
}

//  X$ to X
void close_up_last(string& text, char mark) {
  const string_view body = without_newline(text);
  if (body.size() >= 2 && body.ends_with(mark) && body[body.size() - 2] == ' ') text.erase(body.size() - 2, 1);
}

// ---- the chains, in their published order ---------------------------------------------------------------------------

void clean_ptb(string& text) {
  replace(text, " 's", "'s");
  replace(text, "s ' ", "s' ");
  replace(text, " n't", "n't");
  replace(text, " \n ", "\n");
  replace(text, "\\/", "/");
  for (int i = 0; i < 10; ++i) replace(text, " N ", " 1 ");  // neighbours share a blank: one pass takes every other one
  replace(text, "$ 1", "$1");
  replace(text, "# 1", "#1");
  replace(text, "<unk>", "?");
}

void clean_wikitext(string& text) {
  replace(text, "s '", "s'");
  replace_slashed_digit(text);
  replace(text, " @-@ ", "-");
  replace(text, " @,@ ", ",");
  replace(text, " @.@ ", ".");
  attach(text, ":;.!?,");
  strip_inside(text, '(', ')');
  strip_inside(text, '[', ']');
  strip_inside(text, '{', '}');
  strip_inside(text, '"', '"');
  strip_inside(text, '\'', '\'');
  replace(text, "= = = =", "====");
  replace(text, "= = =", "===");
  replace(text, "= =", "==");
  replace(text, " \u00b0 ", "\u00b0");
  replace(text, " \n", "\n");
  replace(text, "\n ", "\n");
  replace(text, " N ", " 1 ");
  replace(text, " 's", "'s");
}

void clean_lm1b(string& text) {
  replace(text, "http : / / ", "http://");
  replace(text, "https : / / ", "https://");
  close_up_quotes(text);
  close_up_full_stops(text);
  close_up_last_full_stop(text);
  attach(text, "?");
  close_up_last(text, '?');
  attach(text, "!");
  close_up_last(text, '!');
  attach(text, ",:;");
  replace(text, " / ", "/");
  unpad_inside(text, '"', '"');
  unpad_inside(text, '\'', '\'');
  unpad_inside(text, '(', ')');
  unpad_inside(text, '[', ']');
  replace(text, "$ ", "$");
  replace(text, "\u00a3 ", "\u00a3");
}

void clean_lambada(string& text) {
  replace(text, "\u201c", "\"");
  replace(text, "\u201d", "\"");
  text = '\n' + string(strip(text));
}

}  // namespace

const std::vector<string>& clean_names() {
  static const std::vector<string> names = {"none", "ptb", "wikitext", "lm1b", "lambada"};
  return names;
}

string clean(const string& name, string document) {
  if (name == "ptb") {
    clean_ptb(document);
  } else if (name == "wikitext") {
    clean_wikitext(document);
  } else if (name == "lm1b") {
    clean_lm1b(document);
  } else if (name == "lambada") {
    clean_lambada(document);
  } else if (name != "none") {
    bad_usage("no detokeniser is called '{}'", name);
  }
  return document;
}

}  // namespace gdds::text
