// A plan as the list of its pipelines: most often one, on the entire cluster; or one a group of a
// mixed cluster, each with stages of its own and its share of the batch.
//
// A pipeline here stands for all its replicas, which run alike. Shares of the batch, ranks and
// pipeline ranks are numbered pipeline after pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

struct Pipeline {
  ParallelPlan plan;               // of this pipeline only
  std::int64_t micro_batches = 1;  // per replica; it has plan.dp
  // The group of the cluster that it lies on, and its name; none: the entire cluster.
  std::optional<std::size_t> on;
  std::string group;
  // Offsets: sums over the pipelines before this one.
  std::int64_t first_sequence = 0, first_rank = 0;
  int first_stage = 0;  // in pipeline ranks

  std::int64_t sequences() const { return plan.dp * plan.micro_batch * micro_batches; }
};

// The pipelines of a plan, first to last. Their sizes do not depend on the batch.
std::vector<Pipeline> pipelines_of(const ParallelPlan& plan, std::int64_t global_batch);

// The devices of a pipeline.
const ClusterSpec& cluster_of(const Pipeline& pipeline, const ClusterSpec& cluster);

// The pipeline that contains a rank, or a pipeline rank.
const Pipeline& pipeline_of_rank(const std::vector<Pipeline>& all, std::int64_t rank);
const Pipeline& pipeline_of_stage(const std::vector<Pipeline>& all, int pipeline_rank);

}  // namespace costmodel
