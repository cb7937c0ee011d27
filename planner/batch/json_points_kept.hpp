// The points of a sweep that are done, kept in a folder as they are priced: a sweep that ended in
// whatever way goes on from there, and the points of shards are joined. A line of JSON each; one
// that does not read counts for nothing, and a point counts only while the files that it was made
// of are what they were then.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/line_file.hpp"
#include "planner/batch/shard.hpp"
#include "planner/report/scaling.hpp"

namespace planner {

// A row of a sweep.
struct SweptPoint {
  std::vector<std::string> cells;  // of the workload's columns; none where there is an error
  std::string plan, error = {};
  bool searched = false;     // keys of the plan were left to the search
  bool none_fits = false;    // ... which found none within the memory that it may use
  ScalingPoint scales = {};  // where devices are swept
};

class KeptPoints {
 public:
  // Opens the shard's journal in the folder, which may be new, and keeps others out while it lives.
  // That of all reads the journals of shards too.
  KeptPoints(const std::string& folder, const Shard& shard);

  // The point of a key, which stands for all that is not in files; null where none is kept.
  const SweptPoint* find(const std::string& key) const;

  // Adds points by their keys, and the files that this process has read by now, as what they are
  // made of.
  void add(const std::vector<std::pair<std::string, const SweptPoint*>>& points);

 private:
  void read(const costmodel::LineFile& file, const std::string& name);

  std::deque<costmodel::LineFile> files_;  // the first is written
  std::map<std::string, SweptPoint> points_;
  std::size_t inputs_written_ = 0;  // how many files the last line of them names
};

}  // namespace planner
