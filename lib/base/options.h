// How the library declares options without knowing who parses them. An option struct lives with the code it steers and
// registers its fields here, with name, default and help; the tools hand it the command line (lib/cli), tests a map.
//
//   void KnnOptions::add_to(Options& options) {
//     options.option("k", k, "neighbours a token").range(1, 2048);
//     options.option("metric", metric, "distance").choices({"gauss", "cosine"});
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gdds {

class Option {
 public:
  // The value must be one of these words.
  Option& choices(std::vector<std::string> words);
  // The value must be a number from low to high, both included.
  Option& range(double low, double high);
  // Its name is added to this list when it is given, for options that do not apply everywhere.
  Option& noted_in(std::vector<std::string>& given);
  // What stands for the value in the help: "FILE", "SECONDS".
  Option& placeholder(std::string word);
  // Does not change the result (threads, verbosity, where the output goes), so it is not recorded in /history.
  Option& neutral();

  std::string name;          // without dashes
  char letter = 0;           // one-letter form, or 0
  std::string value_name;    // empty for a flag
  std::string default_text;  // empty: none
  std::string help;
  bool repeated = false;
  bool is_neutral = false;
  // Checks the text and sets the variable; throws an Error that does not yet name the option.
  std::function<void(const std::string&)> set;

  bool is_flag() const { return value_name.empty(); }

 private:
  void check_before(std::function<void(const std::string&)> check);
};

class Options {
 public:
  virtual ~Options() = default;

  // names: "output,o" is --output and -o. The variable holds the default and receives the value.
  Option& option(std::string_view names, bool& flag, std::string_view help);
  Option& option(std::string_view names, int& value, std::string_view help);
  Option& option(std::string_view names, std::int64_t& value, std::string_view help);
  Option& option(std::string_view names, std::uint64_t& value, std::string_view help);
  Option& option(std::string_view names, double& value, std::string_view help);
  Option& option(std::string_view names, std::string& value, std::string_view help);
  Option& option(std::string_view names, std::vector<std::string>& values, std::string_view help);

 protected:
  // Takes the option over; the reference stays valid.
  virtual Option& add(Option option) = 0;
};

// Sets the option from text; an error is led by the option's name.
void set_option(const Option& option, const std::string& text);

}  // namespace gdds
