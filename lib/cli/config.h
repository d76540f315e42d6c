// Presets: files of "name = value" lines for --config, the same names and values as on the command line. They are read
// by this parser and no other, so a preset cannot mean one thing to one tool and another to the next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdds::cli {

struct Setting {
  std::string name;
  std::string value;
  int line = 0;
};

// Blank lines and lines that start with # are passed over; blanks around name and value are cut off; a flag is set by
// "name = true". Anything else, or text that is not UTF-8, is status 2 with file and line.
std::vector<Setting> parse_config(std::string_view text, const std::string& file);

// Reads a preset: a file of that name or, for a plain word, share/presets/TOOL/WORD.conf of the installation.
std::vector<Setting> read_config(const std::string& name, const std::string& tool);

// The share folder of this installation or build tree: $GDDS_SHARE, else ../share/gdds beside the program's folder.
std::string share_directory();

}  // namespace gdds::cli
