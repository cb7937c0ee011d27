// Raw measurements of a calibration under way: a line each, written to disk whole after every task,
// so that the next call with the same command goes on where this one was ended.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/measurement.hpp"
#include "costmodel/base/pass.hpp"

namespace calibrate {

// One pass of one operator at one shape: a point of its rate table. Figures that are no operator's
// ("copy", "all-reduce") stand under names of their own.
struct Record {
  std::string task;  // which measured it
  std::string op;
  costmodel::Pass pass = costmodel::Pass::forward;
  std::vector<double> point;  // the table's coordinates
  double amount = 0;          // of the table's work: rate = amount / time
  Timing time;
};

std::string to_line(const Record& record);
// Throws ConfigError on a line that is none.
Record read_line(const std::string& line);

class PartFile {
 public:
  // Takes up what `path` holds if its first line is `header`; anything else there is left out.
  PartFile(std::string path, std::string header);

  bool has(const std::string& task) const;
  const std::vector<Record>& records() const { return records_; }
  std::size_t taken_up() const { return taken_up_; }  // records found on disk
  // All that a task measured. Throws ConfigError when the file cannot be written.
  void add(const std::vector<Record>& records);
  void remove();  // the file, when all is done

 private:
  std::string path_, header_;
  std::vector<Record> records_;
  std::size_t taken_up_ = 0;
};

}  // namespace calibrate
