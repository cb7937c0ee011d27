// A part of a batch or a sweep, for one of several machines or of a scheduler's tasks.
#pragma once

#include <cstddef>
#include <string>

namespace planner {

// The index-th of `count` parts, from 1: every count-th of all, so that parts take much the same
// time. The default is all.
struct Shard {
  std::size_t index = 1, count = 1;

  bool is_all() const { return count == 1; }
  bool has(std::size_t i) const { return i % count == index - 1; }
};

// "2/4". Throws ConfigError for what is none.
Shard read_shard(const std::string& text);

// "journal.jsonl", of a part "journal-2-of-4.jsonl".
std::string journal_name(const Shard& shard);

// Whether a file is the journal of a part.
bool is_part_of_journal(const std::string& name);

}  // namespace planner
