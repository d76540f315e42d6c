// The command line of every tool: one way to declare, parse and report, so that all tools agree on --help, --version,
// --config, --threads, -q, -v, exit statuses and error lines. A tool is a function that takes a Command, declares its
// options, calls parse() and works; run() is the only place that catches. Only the .cc file knows Boost.Program_options.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/invocation.h"
#include "base/options.h"

namespace gdds::cli {

struct About {
  std::string tool;                      // "gdds-knn"
  std::string summary;                   // one line, no full stop
  std::string description;               // a few sentences for --help
  std::vector<std::string> examples;     // command lines
  std::vector<std::string> built_on;     // "HDF5 1.10.8", for --version
};

class Command final : public Options {
 public:
  Command(const About& about, std::string verb, std::string verb_summary, std::vector<std::string> words);
  ~Command() override;

  // A positional argument; one whose variable is empty must be given, another one may be.
  void positional(std::string_view name, std::string& value, std::string_view help);
  // The rest of them, in order.
  void positionals(std::string_view name, std::vector<std::string>& values, std::string_view help);

  // Reads the command line and the presets into the variables. --help and --version end the program here.
  void parse();

  // Valid after parse().
  const Invocation& invocation() const { return invocation_; }

 protected:
  Option& add(Option option) override;

 private:
  struct Positional {
    std::string name;
    std::string help;
    std::string* single = nullptr;
    std::vector<std::string>* many = nullptr;
    std::string default_text;
  };
  struct Text {
    const Option* option;
    std::string text;
    std::string from;  // "share/laptop.conf: line 3", or empty: typed
  };
  using Texts = std::vector<Text>;

  void add_common();
  const Option* find(std::string_view name) const;
  // Boost's part: words into options with their texts, and positional words.
  void split(Texts& given, std::vector<std::string>& words) const;
  Texts with_presets(const Texts& given) const;
  static void set(const Text& item);
  void take_positionals(const std::vector<std::string>& words);
  void record(const Texts& given);
  std::string help() const;
  std::string version() const;

  const About& about_;
  std::string verb_;
  std::string verb_summary_;
  std::vector<std::string> words_;
  std::deque<Option> options_;
  std::size_t own_options_ = 0;  // those before the common ones
  std::vector<Positional> positionals_;
  Invocation invocation_;

  bool help_ = false, version_ = false, quiet_ = false, verbose_ = false;
  int threads_ = 0;
  std::vector<std::string> config_;
};

using Body = void (*)(Command&);

struct Verb {
  std::string name;
  std::string summary;
  Body body;
};

// Runs the tool and returns its exit status.
int run(int argc, char** argv, const About& about, Body body);
// The same for a tool with verbs, "gdds-tokenize learn"; without a known verb in front the first one is meant.
int run(int argc, char** argv, const About& about, const std::vector<Verb>& verbs);

}  // namespace gdds::cli
