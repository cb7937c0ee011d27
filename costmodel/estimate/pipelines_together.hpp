// The pipelines of a plan together. Each is priced alone, by an evaluator of its own devices;
// several lie on the groups of a mixed cluster, every one with complete replicas of the model, cut
// to suit its devices, and with its share of the batch. They synchronise once per iteration, to sum
// gradients.
//
// With one pipeline per group g of n_g devices, an iteration takes
//   max_g (pipeline and own gradient reduction) + across + max_g optimizer + max_g gather + host,
// times the cluster's straggler factor. `across` is a ring over the G groups on the join tier,
// after each group has reduce-scattered its own gradients over its devices:
//   2 (G - 1) steps of P · (gradient bytes) / (G · n_g) per device, at the slowest group's pace
// (the two-level all-reduce of Jia et al. 2018, arXiv:1807.11205, section 3.3). It is fully
// exposed. One pipeline has no ring, and waits for nobody: together is alone.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/plan/pipeline.hpp"

namespace costmodel {

// A pipeline, and an evaluator of the devices that it lies on, for its share of the batch.
struct PlacedPipeline {
  Pipeline pipeline;
  Evaluator* evaluator;
};

// The end of an iteration of all pipelines, and the one that the others wait for.
struct TogetherEnd {
  Ending end;  // meeting: after the sum over the pipelines; critical: a pipeline rank of the plan
  std::size_t last = 0;
};

class PlacedPipelines {
 public:
  // Of a valid plan. `whole` prices plans on the entire cluster, and outlives this.
  PlacedPipelines(const ParallelPlan& plan, Evaluator& whole);

  std::size_t size() const { return all_.size(); }
  const PlacedPipeline& operator[](std::size_t i) const { return all_[i]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  // The time to sum gradients over the pipelines; 0 for one.
  Seconds across() const { return across_; }
  // `alone`: by pipeline.
  TogetherEnd together(std::span<const Ending> alone) const;

 private:
  std::deque<Evaluator> of_groups_;
  std::vector<PlacedPipeline> all_;
  Seconds across_;
  EndTerms terms_;
};

// Time to sum the gradients of `model` over the groups of a cluster; each device sends its own
// shard. 0 for one kind of device.
Seconds sum_across(const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training);

// Of a valid plan; `whole` prices plans on the entire cluster.
Estimate estimate_together(const ParallelPlan& plan, Evaluator& whole);
Timeline timeline_together(const ParallelPlan& plan, Evaluator& whole);

}  // namespace costmodel
