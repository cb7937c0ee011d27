// A timeline in the Trace Event Format, the JSON that ui.perfetto.dev and chrome://tracing open
// (Google's document "Trace Event Format"): a process for each pipeline rank, a thread for each of
// its streams, complete events ("X") in field names, an arrow ("s" to "f") from each send to the
// computation that waits for it, and counters ("C") of the micro-batches in flight and of memory.
#pragma once

#include <cstddef>
#include <string>

#include "costmodel/schedule/timeline.hpp"

namespace costmodel {

// What is known of an iteration beside its events.
struct IterationFigures {
  Seconds time;  // where ranks do not synchronise it is shorter than the timeline
  double bubble_fraction = 0;
};

// A trace shows at most as many ranks, the first ones.
inline constexpr int most_traced_ranks = 64;

// A trace of more slices has neither arrows nor counters, which are two thirds of it: viewers hold
// all of a trace in memory.
inline constexpr std::size_t most_annotated_slices = 500'000;

// The sentence that says what the trace leaves out; "" when it has all.
std::string left_out_of_trace(const Timeline& timeline);

// Times are whole nanoseconds, written as microseconds: slices that follow one another without a
// gap do so in the trace too. Slices of one stream that run at the same time, such as transfers in
// both directions, are put on threads of their own, since viewers take slices of a thread for
// nested. Beside the events stand iteration_s and bubble_fraction, which viewers ignore, and what
// is left out.
std::string to_chrome_trace(const Timeline& timeline, const IterationFigures& iteration);

}  // namespace costmodel
