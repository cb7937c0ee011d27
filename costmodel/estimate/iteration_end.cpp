#include "costmodel/estimate/iteration_end.hpp"

// What follows the pipeline: gradient reduction, optimizer, parameter gather; and the lower bound
// of the complete iteration.
#include <algorithm>
#include <cmath>

#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_schedule.hpp"
#include "costmodel/schedule/closed_form.hpp"

namespace costmodel {

Bytes optimizer_traffic(double own, double gradients, const TrainingSpec& training) {
  const double gradient = gradient_bytes_per_parameter(training);
  const double states = optimizer_bytes_per_parameter(training);
  return Bytes(gradients * gradient +
               own * (4 * gradient + 2 * states + weight_bytes_per_parameter(training)));
}

Seconds Evaluator::optimizer_time(std::size_t rank, const ParallelPlan& plan) const {
  const double weights = cost_.weights[rank], experts = cost_.expert_weights[rank];
  const double own = plan.zero >= 1 ? sharded(weights, experts, plan) : weights;
  const Bytes parameters(own * weight_bytes_per_parameter(training_));
  if (const auto measured = measured_optimizer(parameters, cluster_.device)) {
    return *measured * slowdown_together(cluster_.device, static_cast<double>(ranks_on_a_node()));
  }
  const double kept_gradients = plan.zero >= 2 ? sharded(weights, experts, plan) : weights;
  return streaming_time(optimizer_traffic(own, kept_gradients, training_), optimizer_passes,
                        cluster_.device);
}

namespace {

// One message after the other, each of at most `bucket`; 0: a single one.
Seconds in_buckets(CollectiveKind kind, Bytes all, Bytes bucket, const GroupLayout& group,
                   const ClusterSpec& cluster) {
  if (bucket.value <= 0 || all <= bucket) return collective_time(kind, all, group, cluster);
  const double messages = std::ceil(all / bucket);
  return messages * collective_time(kind, all / messages, group, cluster);
}

}  // namespace

void Evaluator::price_data_parallel(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  const auto ranks = static_cast<std::size_t>(plan.pp);
  c.gradient_exposed.assign(ranks, Seconds(0));
  c.gather_exposed.assign(ranks, Seconds(0));
  c.optimizer.assign(ranks, Seconds(0));
  c.gradient_bytes = Bytes(0);
  const GroupLayout group = Mesh(plan).replica_layout(cluster_);
  const GroupLayout expert_group =
      model_.experts > 0 ? expert_mesh(plan).replica_layout(cluster_) : group;
  const double gradient_size = gradient_bytes_per_parameter(training_);
  const double weight_size = gather_bytes_per_parameter(training_);
  for (std::size_t r = 0; r < ranks; ++r) {
    c.gradient_bytes = max(c.gradient_bytes, Bytes(c.weights[r] * gradient_size));
    const auto alone = [&](CollectiveKind kind, double bytes_per_parameter, Bytes bucket) {
      const Bytes experts(c.expert_weights[r] * bytes_per_parameter);
      const Bytes all(c.weights[r] * bytes_per_parameter);
      return in_buckets(kind, all - experts, bucket, group, cluster_) +
             in_buckets(kind, experts, bucket, expert_group, cluster_);
    };
    Seconds forward, backward;
    double layers = 0;
    for (int v = 0; v < plan.vpp; ++v) {
      const auto k =
          static_cast<std::size_t>(stage_of(plan.schedule, plan.pp, v, static_cast<int>(r)));
      forward += c.forward[k].time();
      backward += c.backward[k].time() + c.recompute[k].time();
      layers += c.layers[k].layers();
    }
    layers = std::max(layers, 1.0);
    // Interleaved: a chunk's gradients are complete p micro-batches before the next chunk's, and
    // its reduction overlaps with those; likewise the gather of a chunk's parameters.
    if (in_whole_rounds(plan)) {
      const auto rounds = static_cast<double>(std::min<std::int64_t>(plan.pp, c.micro_batches));
      forward = forward * rounds;
      backward = backward * rounds;
    }
    // Overlaps with one micro-batch's pass, except the last bucket (one layer's part).
    const auto exposed = [layers](Seconds time, Seconds window, bool overlap) {
      return overlap ? time / layers + exposed_beside(time * ((layers - 1) / layers), window)
                     : time;
    };
    if (plan.zero < 2) {
      const auto kind =
          plan.zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
      const bool beside = training_.overlap.overlap_grad_reduce &&
                          !(training_.stack.one_collective_queue && plan.tp > 1);
      c.gradient_exposed[r] =
          exposed(alone(kind, gradient_size, training_.stack.gradient_bucket), backward, beside);
    }
    if (plan.zero == 1 || plan.zero == 2) {
      c.gather_exposed[r] = exposed(alone(CollectiveKind::all_gather, weight_size, Bytes(0)),
                                    forward, training_.overlap.overlap_param_gather);
    }
    // One message with all gradients of a rank, after the last micro-batch.
    c.gradient_exposed[r] +=
        collective_time(CollectiveKind::all_reduce, Bytes(c.partial_weights[r] * gradient_size),
                        layout_of(Axis::tensor, plan, cluster_), cluster_);
    c.optimizer[r] = optimizer_time(r, plan);
  }
}

// The ranks with a copy of the token table: the first; with an encoder, the one where the decoder
// starts; with tied embeddings, the last (Megatron-LM's embedding group: core/parallel_state.py).
void Evaluator::find_tables(int last) {
  PlanCost& c = cost_;
  c.table_ranks.clear();
  const auto add = [&c](std::size_t rank) {
    if (c.table_ranks.empty() || c.table_ranks.back() != rank) c.table_ranks.push_back(rank);
  };
  add(0);
  if (model_.encoder_decoder()) {
    for (std::size_t k = 0; k < c.layers.size(); ++k) {
      if (c.layers[k].decoder_starts) add(k);
    }
  }
  if (model_.tie_embeddings || model_.mtp_layers > 0) add(static_cast<std::size_t>(last));
  if (c.table_ranks.size() == 1) c.table_ranks.clear();
}

// All-reduce of its gradient; a ring of three is as slow as its slowest link.
void Evaluator::price_embedding(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  c.embedding_reduce = Seconds(0);
  find_tables(rank_of(plan.schedule, plan.pp, plan.virtual_stages() - 1));
  if (c.table_ranks.empty() || !training_.stack.embedding_all_reduce) return;
  std::size_t longest = 0;
  for (std::size_t i = 1; i < c.table_ranks.size(); ++i)
    longest = std::max(longest, c.table_ranks[i] - c.table_ranks[i - 1]);
  const Mesh mesh(plan);
  const GroupLayout group =
      layout_of(static_cast<int>(c.table_ranks.size()),
                mesh.stride(Axis::pipeline) * static_cast<std::int64_t>(longest), cluster_);
  c.embedding_reduce = collective_time(
      CollectiveKind::all_reduce,
      Bytes(shared_tables(model_, plan.tp) * gradient_bytes_per_parameter(training_)), group,
      cluster_);
}

// A schedule with split backward may end on any rank.
void Evaluator::bound_split(const ParallelPlan& plan) {
  PlanCost& c = cost_;
  const EndTerms terms = end_terms(plan);
  const bool apart = terms.apart;
  c.pipeline_bound =
      apart ? split_span_bound(plan.schedule, plan.pp, c.micro_batches, c.times)
            : pipeline_lower_bound(plan.schedule, plan.pp, plan.vpp, c.micro_batches, c.times);
  Seconds least, optimizer, gather;
  for (std::size_t r = 0; r < c.optimizer.size(); ++r) {
    const Seconds own =
        c.gradient_exposed[r] + (apart ? c.optimizer[r] + c.gather_exposed[r] : Seconds(0));
    least = r == 0 ? own : min(least, own);
    optimizer = max(optimizer, c.optimizer[r]);
    gather = max(gather, c.gather_exposed[r]);
  }
  c.lower_bound =
      (c.pipeline_bound + least + (apart ? Seconds(0) : optimizer + gather) + terms.host) *
      terms.straggler;
}

void Evaluator::bound(const ParallelPlan& plan) {
  if (splits_backward(plan.schedule)) {
    bound_split(plan);
    return;
  }
  PlanCost& c = cost_;
  const Seconds pipeline =
      pipeline_lower_bound(plan.schedule, plan.pp, plan.vpp, c.micro_batches, c.times);
  Seconds optimizer, gather;
  for (std::size_t r = 0; r < c.optimizer.size(); ++r) {
    optimizer = max(optimizer, c.optimizer[r]);
    gather = max(gather, c.gather_exposed[r]);
  }
  // Rank 0 ends last in every schedule but the ideal one, and pays its own gradient reduction after
  // that.
  const Seconds reduce =
      row_of(plan.schedule).waits ? c.gradient_exposed.front() + c.embedding_reduce : Seconds(0);
  c.pipeline_bound = pipeline;
  c.lower_bound = (pipeline + reduce + optimizer + gather + training_.stack.iteration_host) *
                  straggler_factor(cluster_);
}

bool ends_apart(ScheduleKind kind, const StackSpec& stack) {
  return splits_backward(kind) && stack.post_validation;
}

Seconds pipeline_of(const SimulationResult& run, bool apart) {
  Seconds longest;
  for (std::size_t r = 0; r < run.finish.size(); ++r)
    longest = max(longest, run.finish[r] - (apart ? run.begin[r] : Seconds(0)));
  return longest;
}

Seconds reduced(Seconds end, const PlanCost& c, std::size_t rank) {
  end += c.gradient_exposed[rank];
  if (c.sums_table(rank)) end += c.embedding_reduce;
  return end;
}

namespace {

// Ranks do not synchronise at the gradient norm (Qi et al. 2024, section 4): each starts its next
// iteration when its own has ended, so the iteration time is the longest span of a rank, from first
// start to end.
Ending ending_apart(const PlanCost& c, const SimulationResult& run) {
  Ending end;
  Seconds longest(-1);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds busy = reduced(run.finish[r] - run.begin[r], c, r);
    const Seconds own = busy + c.optimizer[r] + c.gather_exposed[r];
    if (own <= longest) continue;
    longest = own;
    end.meeting = busy;
    end.critical = r;
    end.optimizer = c.optimizer[r];
    end.gather = c.gather_exposed[r];
  }
  return end;
}

// All ranks synchronise at the gradient norm, then run the optimizer, then gather parameters.
Ending ending_together(const PlanCost& c, const SimulationResult& run) {
  Ending end;
  end.meeting = Seconds(-1);
  for (std::size_t r = 0; r < run.finish.size(); ++r) {
    const Seconds done = reduced(run.finish[r], c, r);
    if (done > end.meeting) {
      end.meeting = done;
      end.critical = r;
    }
    end.optimizer = max(end.optimizer, c.optimizer[r]);
    end.gather = max(end.gather, c.gather_exposed[r]);
  }
  return end;
}

}  // namespace

Ending ending(const PlanCost& c, const SimulationResult& run, const EndTerms& terms) {
  Ending end = terms.apart ? ending_apart(c, run) : ending_together(c, run);
  const Seconds even = end.meeting + end.optimizer + end.gather + terms.host;
  end.waiting = even * (terms.straggler - 1);
  end.iteration = even + end.waiting;
  return end;
}

}  // namespace costmodel
