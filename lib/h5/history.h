// Where a file came from: /history, a JSON object a line, one for each tool run that the data passed through, oldest
// first. A run is named by the hash of what it did (tool, version, arguments, seed, inputs), so the history does not
// depend on file names, pipes, threads or the day, and two histories merge without renumbering. Each line carries its
// command with inputs and output named after runs, so the lines in order are a script that makes the file again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/invocation.h"

namespace gdds::h5 {

// An input of a run: how the command line named it, the digest of its contents, and its own history (empty for a file
// from elsewhere, which keeps its name).
struct Source {
  std::string argument;
  std::string digest;
  std::string history;
};

struct HistoryInput {
  std::string name;  // "4f1c09d2a6b3.h5" after the run that made it, or a foreign file's name
  std::string digest;
};

struct HistoryLine {
  std::string id;
  std::string tool;
  std::string version;
  std::vector<std::string> arguments;
  std::optional<std::uint64_t> seed;
  std::vector<HistoryInput> inputs;
  std::string command;  // "gdds-knn --k 64 4f1c09d2a6b3.h5 > 88e05b1d7c24.h5"
  std::string json;     // the line itself
};

// Throws status 3 with the number of a line that is not such an object.
std::vector<HistoryLine> parse_history(const std::string& text, const std::string& file);

// The histories of the sources, each run once, and the line of this run.
std::string make_history(const Invocation& invocation, const std::vector<Source>& sources);

}  // namespace gdds::h5
