// A pipeline schedule as data: one ordered list of actions per pipeline rank. Four functions work
// on it: generate, validate, lower (adds transfers and checks that the schedule cannot deadlock).
// The simulator and the engine execute it.
//
// Stages are virtual: stage k is chunk k / p of rank k mod p (Narayanan et al. 2021,
// arXiv:2104.04473, section 2.2), or where the V of a folded kind has it. A kind that goes two ways
// has every stage on two ranks: the second half of the micro-batches goes from the last rank to the
// first. Text form: "2F0 1B3" means stage 2 forward of micro-batch 0, stage 1 backward of
// micro-batch 3 (PyTorch's letters). With a split backward, B is the input gradient and "1W3" the
// weight gradient; "2F4+1B3+1W3" run together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/schedule/schedule_kind.hpp"

namespace costmodel {

struct Schedule {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  int ranks = 1;          // p
  int chunks = 1;         // v
  int micro_batches = 1;  // m
  ActionsByRank actions;
  int stages() const { return ranks * chunks; }
  bool goes_back(int micro_batch) const {  // from the last rank to the first
    return row_of(kind).two_way && micro_batch >= micro_batches / 2;
  }
  // The rank that has a micro-batch's stage.
  int home_of(int stage, int micro_batch) const {
    return goes_back(micro_batch) ? ranks - 1 - stage : rank_of(kind, ranks, stage);
  }
  bool has_cells() const;  // whether any actions run together
  // The chunk of its rank, as stage_of counts them.
  int chunk_of(const Action& action) const {
    return row_of(kind).two_way ? (goes_back(action.micro_batch) ? 1 : 0) : action.stage / ranks;
  }
};

// The forwards and backwards in the kind's order, with input gradients for backwards where it
// splits them and does not place the weight gradients itself; zero_bubble.hpp adds them. Of the
// kinds only zero-bubble-h2's order depends on times.
Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const OrderChoices& choices = {});

struct OrderedAction {
  int rank;
  Action action;
};

// All ranks' actions in one order that satisfies every dependency: a forward after the forward of
// the previous stage, a backward after its own forward and after the backward of the next stage, a
// weight gradient after its own backward. Shorter than the schedule when the schedule deadlocks.
std::vector<OrderedAction> execution_order(const Schedule& schedule);

struct ScheduleFault {
  int rank = 0;
  int step = 0;  // index in that rank's list; its length when an action is missing at the end
  std::string reason, remedy;
  std::string grid;  // the schedule as a grid rank x step, the faulty cell in brackets
};

// Checks that every stage runs forward and backward (and weight gradient, when the kind splits the
// backward) of every micro-batch exactly once, on its own rank and in this order, and that the
// schedule does not deadlock. Empty when valid.
std::optional<ScheduleFault> validate(const Schedule& schedule);

// The same lists with a send and a receive wherever neighbouring stages are on different ranks.
// Throws InternalError for a schedule that validate() rejects.
Schedule lower(const Schedule& schedule);

// "0F0 0F1 0B0 0B1", one line per rank.
std::string to_text(const Schedule& schedule);

// The micro-batches in flight (forward done, backward not yet) at the peaks of each rank.
// `peaks[rank]` lists the maximal mixes; a mix counts the micro-batches in flight of each chunk
// (index: chunk; the way it goes where the kind goes two ways). A micro-batch that waits for its
// weight gradient only is not counted.
struct InFlight {
  std::vector<std::vector<std::vector<int>>> peaks;
};
InFlight in_flight(const Schedule& schedule);

// The same for ranks with two or more chunks of which all but the first and the last need equal
// memory: a maximal mix is reduced to the counts over all chunks, the first and the last. There are
// few such mixes, for any number of chunks.
struct EndMix {
  int total, first, last;
};
std::vector<std::vector<EndMix>> end_mixes(const Schedule& schedule);

}  // namespace costmodel
