// The journal of a batch: what is done, of which inputs, and how long it took. A line of JSON each;
// a line that a kill left incomplete counts for nothing.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "costmodel/base/file_descriptor.hpp"

namespace planner {

// An FNV-1a hash of text as 16 hexadecimal digits: tells changed inputs, guards against nobody.
std::string fingerprint(std::string_view text);

struct JournalEntry {
  std::string name;                           // of the report
  std::string key;                            // fingerprint of program, command and flags
  std::map<std::string, std::string> inputs;  // files read, and their fingerprints
  int status = 0;                             // of the command
  std::string report;                         // fingerprint of the report's file
  std::string row;                            // its line of the index, a JSON object
};

// Whether the report stands as the entry left it, and what it was made of is what is there now.
bool is_up_to_date(const JournalEntry& entry, const std::string& key, const std::string& report);

// The fingerprint of a file's contents; "" when it cannot be read.
std::string file_fingerprint(const std::string& file);

class Journal {
 public:
  // Opens DIR/journal.jsonl, which may be new, and keeps others out while it lives. Throws
  // costmodel::ConfigError when another batch has it, and when it cannot be written.
  explicit Journal(const std::string& folder);

  // The last entry of each name, as the file had them when it was opened.
  const std::map<std::string, JournalEntry>& entries() const { return entries_; }

  // Adds a line, flushed to the disk: `seconds` is what the command took. Thread-safe.
  void add(const JournalEntry& entry, double seconds);

 private:
  std::string path_;
  costmodel::FileDescriptor file_;
  std::map<std::string, JournalEntry> entries_;
  std::mutex mutex_;
};

}  // namespace planner
