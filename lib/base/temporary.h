// Temporary files that leave nothing behind. A file lives beside its destination until it is renamed into place; if the
// program fails, is interrupted (SIGINT, SIGTERM, SIGHUP, SIGQUIT) or simply goes on, it is removed.
#pragma once

#include <string>

namespace gdds {

// Makes the signals above remove what is registered and then end the program the usual way; makes a closed pipe and a
// file-size limit ordinary write errors. A signal that is ignored at the start (nohup) stays ignored.
void install_signal_handlers();

class TemporaryFile {
 public:
  // Creates an empty file with a name of its own, "DIR/.PREFIX.XXXXXX"; errors speak of `object`.
  TemporaryFile(const std::string& directory, const std::string& prefix, const std::string& object);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  // Removes the name; the open descriptor stays usable.
  void unlink();
  // Gives the file its final name, replacing what is there, after its data are on the disk.
  void rename_to(const std::string& destination);

 private:
  std::string path_;
  int descriptor_ = -1;
  int slot_ = -1;
};

// A folder for large spool files: $TMPDIR, else /var/tmp (on a disk), else /tmp.
std::string spool_directory();

}  // namespace gdds
