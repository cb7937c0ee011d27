// Schedules in files: read with the place of every fault, and written. Two forms, one row a rank.
//
// CSV, when the text has a comma: the compute-only format of PyTorch's pipeline runtime (torch 2.x,
// torch/distributed/pipelining/schedules.py: _PipelineScheduleRuntime._load_csv, _Action.from_str).
// A cell is [stage][F|B|I|W][micro-batch] or empty, a step in which the rank idles; the order
// counts, not the column. B is a whole backward, I the input gradient, W the weight gradient;
// "(0F3;7B2)OVERLAP_F_B" runs the two together.
//
// Our own, without commas: "0F0 0F1 0B0 0W0", as to_text() prints it, where B is the input gradient
// if the file has a W, and "0F3+7B2+7W2" runs them together.
//
// What the file does not say follows from it: a rank a row, the stages and micro-batches that it
// names, and whether stages are dealt out in turn (stage p on rank 0) or on a V (on rank p - 1).
#pragma once

#include <string>

#include "costmodel/schedule/schedule.hpp"

namespace costmodel {

struct ListedSchedule {
  std::string file;   // where it was read from
  Schedule schedule;  // valid, of a listed kind
  // Whether it is Megatron's interleaved order, in which the gradients of a chunk are complete
  // before those of the next.
  bool whole_rounds = false;
};

// Throws ConfigError with file, line, column, rank and cell for: a cell that is no action, a stage
// on the wrong rank, an action that is missing or stands twice, a backward before its forward, a
// weight gradient before its backward, and a deadlock.
ListedSchedule parse_schedule_file(const std::string& text, const std::string& file);

// The CSV form, which PyTorch reads.
std::string to_csv(const Schedule& schedule);

}  // namespace costmodel
