// The part of submesh_cut for one limit on the time: whether a cut keeps it, by a dynamic program
// from the last layer and device to the first over (devices used, first layer). Internal to
// submesh_cut.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solvers/submesh_cut.hpp"

namespace planner {

// A stage of a pipeline as submesh_cut times it.
struct TimedStage {
  double forward = 0, backward = 0;  // with the transfers that it waits for
  double passing = 0;                // of the transfers to it and back that nobody waits for
  double after = 0;                  // what follows the pipeline
  double work() const { return forward + backward; }
};

// The time by which what is before a stage must be over for the pipeline to end at `limit`; the
// stages behind it take `behind` together.
double latest_start(const TimedStage& stage, double limit, double behind, int stages_behind,
                    double micro_batches);

class SubmeshStates {
 public:
  explicit SubmeshStates(const SubmeshProblem& problem);

  enum class Outcome { found, none, unsettled };
  Outcome solve(double limit);
  // The stages of the last solve that found any.
  std::vector<SlicedStage> stages() const;
  std::uint64_t effort() const { return effort_; }
  // Beyond this limit nothing is ruled out. Seconds.
  double longest() const { return longest_; }
  double shortest() const { return shortest_; }  // the quickest stage's micro-batches

  // The least limit that these stages keep.
  double time(const std::vector<SlicedStage>& stages) const;

 private:
  struct Use {  // an option, its place among the sizes of its group
    std::int32_t devices = 0, size = 0;
    double forward = 0, backward = 0, after = 0;
    std::int32_t most_in_flight = 0;
    const StageOption* option = nullptr;
  };
  struct Label {
    double start;                    // the latest time by which what is before may be over
    double behind;                   // what its stages take for one micro-batch, transfers included
    std::int32_t stages, rest, end;  // how many; the label of those behind the first; its end
    const StageOption* option;       // of the first stage
  };
  struct Waits {  // the transfers over a boundary, by (group, size, join, layer)
    std::vector<double> seconds;
  };

  std::size_t state(int used, int layer) const {
    return static_cast<std::size_t>(used) * (static_cast<std::size_t>(layers_) + 1) +
           static_cast<std::size_t>(layer);
  }
  bool out_of_effort() const;
  void take_options();
  void take_transfers();
  double wait(std::size_t group, std::int32_t size, bool join, int layer) const;
  // A stage on devices that have `behind` devices behind them in the pipeline.
  TimedStage timed(const Use& use, std::size_t group, int behind, int first, int end) const;
  TimedStage timed(const SlicedStage& stage, int behind) const;
  void keep(double limit);
  void reach(double limit);
  void reach_from(int used, int first, double limit);
  void extend(int used, int end, double limit);
  void extend(const Use& use, std::size_t group, int used, int first, int end, double limit);
  void add(std::vector<std::int32_t>& labels, const Label& label);

  const SubmeshProblem& p_;
  double m_;
  int layers_, devices_ = 0;
  double longest_ = 0, shortest_ = infinity;
  std::vector<int> starts_;            // by group: devices in later groups
  std::vector<std::size_t> group_at_;  // group of the device that has this many behind it
  std::vector<std::vector<int>> sizes_;
  std::vector<std::vector<std::vector<Use>>> uses_;  // by group and class, fewest devices first
  std::vector<Waits> waits_;                         // by group
  // For the current limit:
  std::vector<std::vector<std::vector<Use>>> kept_;
  std::vector<std::vector<int>> last_end_, first_start_;  // by group: of ranges with options
  std::vector<double> before_;  // by state: the least time that what is before it takes
  std::vector<std::vector<std::int32_t>> labels_at_;
  std::vector<Label> labels_;
  std::uint64_t effort_ = 0;
};

}  // namespace planner
