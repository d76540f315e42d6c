// See display.h.
#include "diffusion/display.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/invocation.h"
#include "diffusion/open.h"
#include "text/encoder.h"
#include "text/tokenize.h"

namespace gdds::diffusion {
namespace {

constexpr int kSteps = 10;

struct Style {
  const char *semantic, *reset, *end_semantic, *end_reset;
};
constexpr Style kColours = {"\033[33m", "\033[31m", "\033[0m", "\033[0m"};
constexpr Style kMarks = {"{", "[", "}", "]"};

std::string state_text(std::int32_t state, const text::Vocabulary& v) {
  if (state >= v.size()) return fmt::format("<cluster {}>", state - v.size());
  std::string text(v.token(state));
  for (char& c : text)
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  return is_utf8(text) ? text : text::shown_token(text);
}

// A token moved shows its blank before the mark, so that words stay apart.
std::string styled(const std::string& text, bool moved, bool reset, const Style& style) {
  if (!moved) return text;
  const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(0, blanks) + (reset ? style.reset : style.semantic) + text.substr(blanks) + (reset ? style.end_reset : style.end_semantic);
}

}  // namespace

std::string text_or_file(const std::string& text) {
  std::error_code ignored;
  std::string contents = std::filesystem::exists(text, ignored) && !std::filesystem::is_directory(text, ignored) ? read_text(text) : text;
  while (contents.ends_with('\n')) contents.pop_back();
  return contents;
}

void show_decay(const std::string& text, const text::Vocabulary& vocabulary, const Process& process, Seed seed, bool colours, const WriteText& write) {
  std::vector<std::int32_t> ids;
  try {
    text::make_encoder(vocabulary)->encode(text, ids);
  } catch (const text::Unencodable& e) {
    bad_usage("--show: byte {} of the text: {}", e.at, e.what);
  }
  const Style& style = colours ? kColours : kMarks;
  write(fmt::format("kept, {}moved by the kernel{}, {}reset{}\n", style.semantic, style.end_semantic, style.reset, style.end_reset));
  std::vector<Path> paths;
  for (std::size_t l = 0; l < ids.size(); ++l) {
    TokenRandom random(seed.value, kernels::kForPaths, 0, static_cast<std::uint32_t>(l));
    paths.push_back(process.path(ids[l], 1, random));
  }
  for (int step = 0; step <= kSteps; ++step) {
    const double t = static_cast<double>(step) / kSteps;
    std::string line = fmt::format("t={:.1f}  ", t);
    for (std::size_t l = 0; l < ids.size(); ++l) {
      std::int32_t state = ids[l];
      bool moved = false, reset = false;
      for (std::size_t k = 0; k < paths[l].times.size() && paths[l].times[k] <= t; ++k) {
        state = paths[l].jumps[k].to;
        moved = true;
        reset |= paths[l].jumps[k].reset;
      }
      line += styled(state_text(state, vocabulary), moved, reset, style);
    }
    write(line + "\n");
  }
}

void describe(const Process& process, const WriteText& write) {
  std::string text = "what\tvalue\n";
  const auto row = [&](const std::string& what, const std::string& value) { text += what + "\t" + value + "\n"; };
  row("process", process.name());
  row("schedule", process.schedule().name);
  row("vocabulary", fmt::format("{} ({} tokens)", process.vocabulary().name, process.m()));
  row("states", std::to_string(process.states()));
  row("digest", process.digest());
  row("Lambda(1)", fmt::format("{:.6g}", process.schedule().Lambda(1)));
  row("candidates for a jump by t = 1, mean", fmt::format("{:.6g}", process.clock(1)));
  for (const auto& [what, value] : process.facts()) row(what, value);
  text += "\nt\talpha\tf\tLambda\n";
  for (int step = 0; step <= kSteps; ++step) {
    const double t = static_cast<double>(step) / kSteps;
    text += fmt::format("{:.1f}\t{:.6g}\t{:.6g}\t{:.6g}\n", t, process.schedule().alpha(t), process.schedule().f(t), process.schedule().Lambda(t));
  }
  write(text);
}

}  // namespace gdds::diffusion
