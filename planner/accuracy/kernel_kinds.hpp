// Seconds of profiled iterations by kind of kernel, predicted and measured.
#pragma once

#include <vector>

#include "planner/accuracy/validation.hpp"
#include "planner/report/table.hpp"

namespace planner {

// A kind counts in a run where it takes so much of the measured iteration, and what it takes is
// compared. Smaller ones, within some microseconds of the timings' noise, mean little in per cent.
inline constexpr double counted_share = 0.05;

// Over the runs in which a kind counts; errors in per cent of the measured seconds.
struct KindError {
  int runs = 0, within = 0;  // within 10 %
  double mape = 0, bias = 0, largest = 0;
  std::string largest_in;
};
KindError kind_error(const std::vector<ValidationRow>& rows, std::size_t kind);

Table kind_error_table(const std::vector<ValidationRow>& rows);
// Each run's kinds that count.
Table kind_run_table(const std::vector<ValidationRow>& rows);

}  // namespace planner
