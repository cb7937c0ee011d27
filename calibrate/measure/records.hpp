// Raw measurements of a running calibration: a line per record, the file rewritten after every
// task, so that the next call with the same command resumes an interrupted one.
#pragma once

#include <string>
#include <vector>

#include "calibrate/measure/measurement.hpp"
#include "costmodel/base/pass.hpp"

namespace calibrate {

// One pass of one operator at one shape: a point of its rate table. Measurements that belong to no
// operator ("copy", "all-reduce") use names of their own.
struct Record {
  std::string task;  // the task that measured it
  std::string op;
  costmodel::Pass pass = costmodel::Pass::forward;
  std::vector<double> point;  // the coordinates in the table
  double amount = 0;          // work in the table's unit: rate = amount / time
  Timing time;
};

std::string to_line(const Record& record);
// Throws ConfigError on an invalid line.
Record read_line(const std::string& line);

class PartFile {
 public:
  // Resumes from the records in `path` if its first line is `header`, else ignores the file. Throws
  // ConfigError on an invalid line, and for a symbolic link: what it names is never written.
  PartFile(std::string path, std::string header);

  bool has(const std::string& task) const;
  const std::vector<Record>& records() const { return records_; }
  std::size_t taken_up() const { return taken_up_; }  // records found on disk
  // Adds all of a task's records. Throws ConfigError when the file cannot be written.
  void add(const std::vector<Record>& records);
  void remove();  // deletes the file

 private:
  std::string path_, header_;
  std::vector<Record> records_;
  std::size_t taken_up_ = 0;
};

}  // namespace calibrate
