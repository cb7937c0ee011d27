// The journal of a batch: what is done, of which inputs, and how long it took. A line of JSON each.
// It is data like any other: a line that does not read counts for nothing, and what it has of a
// scenario counts only while the files are what they were then.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "costmodel/base/line_file.hpp"
#include "planner/batch/shard.hpp"

namespace planner {

struct JournalEntry {
  std::string name;                           // of the report
  std::string key;                            // fingerprint of program, command and flags
  std::map<std::string, std::string> inputs;  // files read, and their fingerprints
  int status = 0;                             // of the command
  std::string report, page;                   // fingerprints of the two files
};

// Where a scenario comes from and goes to.
struct JobFiles {
  std::string scenario, report, page;
};

// Whether report and page stand as the entry left them, as regular files and no links, and what
// they were made of, the scenario among it, is what is there now.
bool is_up_to_date(const JournalEntry& entry, const std::string& key, const JobFiles& files);

class Journal {
 public:
  // Opens the shard's journal in the folder, which may be new, and keeps others out while it lives:
  // LineFile. That of all reads the journals of shards too.
  explicit Journal(const std::string& folder, const Shard& shard = {});

  // The last entry of each name, as the file had them when it was opened.
  const std::map<std::string, JournalEntry>& entries() const { return entries_.front(); }

  // Whether any journal has the name.
  bool knows(const std::string& name) const;
  // The entry of the name that is_up_to_date(), of whichever journal; null where there is none.
  const JournalEntry* current(const std::string& name, const std::string& key,
                              const JobFiles& files) const;

  // Adds a line, flushed to the disk: `seconds` is what the command took. Thread-safe.
  void add(const JournalEntry& entry, double seconds);

 private:
  std::deque<costmodel::LineFile> files_;  // the first is written
  std::vector<std::map<std::string, JournalEntry>> entries_;
};

}  // namespace planner
