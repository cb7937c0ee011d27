#include "planner/report/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/estimate/zero_plus_plus.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "planner/report/explain_boundaries.hpp"
#include "planner/report/explain_exchanges.hpp"
#include "planner/report/explain_model_states.hpp"
#include "planner/report/explain_operators.hpp"
#include "planner/report/explain_replicas.hpp"
#include "planner/report/explain_stages.hpp"
#include "planner/report/explain_textbook.hpp"
#include "planner/report/fine_tuning_report.hpp"
#include "planner/report/packing_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Rows = Explanation;

std::string number(double v) { return fmt::format("{:.6g}", v); }

// What training.expert_load comes to.
void routing_rows(const ParallelPlan& p, const TrainingSpec& t, Rows& rows) {
  if (!t.expert_load.given()) return;
  rows.add("r_max", number(fullest_load(p, t)),
           fmt::format("routed rows of the fullest of {} ranks over their mean, on average over "
                       "layers ({}): a layer's products, exchange and kept rows are this rank's",
                       p.ep, t.expert_load.form));
  if (t.capacity_factor > 0) {
    rows.add("dropped", number(t.expert_load.dropped),
             fmt::format("part of all routed rows beyond {:g} times the mean of an expert "
                         "(capacity_factor)",
                         t.capacity_factor));
  }
}

// The sizes that every rank has.
void even_rows(const std::string& devices, const ParallelPlan& p, const Scenario& s, Rows& rows) {
  rows.add("N", devices,
           fmt::format("devices = t {} x p {}{} x d {}", p.tp, p.pp,
                       p.cp > 1 ? fmt::format(" x c {}", p.cp) : "", p.dp));
  if (s.model.experts > 0) {
    rows.add("E/e", fmt::format("{}", s.model.experts / p.ep),
             fmt::format("experts on a rank: {} / {}; {} ranks hold the same", s.model.experts,
                         p.ep, p.expert_replicas()));
    routing_rows(p, s.training, rows);
  }
  if (p.cp > 1) {
    rows.add("s/c", fmt::format("{}", s.training.sequence / p.cp),
             fmt::format("tokens of a sequence on a rank: {} / {}", s.training.sequence, p.cp));
  }
}

void batch_rows(const Estimate& e, const Scenario& s, Rows& rows) {
  const ParallelPlan& p = e.plan;
  rows.group = "batch";
  rows.add("B", number(static_cast<double>(s.training.global_batch)),
           "training.global_batch, sequences");
  rows.add("s", number(static_cast<double>(s.training.sequence)), "training.sequence, tokens");
  if (s.model.encoder_decoder()) {
    rows.add("s_d", number(static_cast<double>(s.training.decoder_sequence)),
             "training.decoder_sequence, tokens");
  }
  const std::string devices = number(static_cast<double>(s.cluster.devices));
  if (p.even()) {
    even_rows(devices, p, s, rows);
  } else {
    rows.add("N", devices, "devices, of all stages together");
  }
  rows.add("m", number(static_cast<double>(e.micro_batches)),
           fmt::format("B / (d b) = {} / ({} x {})", s.training.global_batch, p.dp, p.micro_batch));
}

struct SlowestRank {
  std::size_t rank;
  Seconds time;
};

SlowestRank slowest_rank(const Estimate& e) {
  const auto forward = by_rank(e.stage_forward, e.plan),
             backward = by_rank(e.stage_backward, e.plan);
  SlowestRank slowest{0, Seconds(0)};
  for (std::size_t r = 0; r < forward.size(); ++r) {
    const Seconds time(forward[r] + backward[r]);
    if (time > slowest.time) slowest = {r, time};
  }
  return slowest;
}

const char* pipeline_text(const ParallelPlan& p, const Scenario& s) {
  return ends_apart(p.schedule, s.training.stack.collectives)
             ? "the simulated pipeline: the longest span of a rank, from its first start to its "
               "last end (arXiv:2401.10241 section 4)"
             : "the simulated pipeline, from first start to last end";
}

// What a micro-batch takes, and the pipeline if all stages were the slowest.
void micro_batch_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator, Rows& rows) {
  const ParallelPlan& p = e.plan;
  const auto cost = evaluator.cost(p);
  const auto slowest_forward = *std::ranges::max_element(e.stage_forward);
  const auto slowest_backward = *std::ranges::max_element(e.stage_backward);
  rows.add("t_f", format_seconds(slowest_forward),
           "forward of one micro-batch on the slowest virtual stage");
  const bool split = splits_backward(p.schedule);
  rows.add("t_b", format_seconds(slowest_backward),
           split ? "backward on the slowest virtual stage: recomputation, input and weight gradient"
                 : "backward on the slowest virtual stage, recomputation included");
  Seconds weight_gradient;
  for (const Seconds t : cost.times.weight_gradient) weight_gradient = max(weight_gradient, t);
  if (split) {
    rows.add(
        "t_w", format_seconds(weight_gradient),
        "weight gradient on the slowest virtual stage, part of t_b; no other rank waits for it");
  }
  if (e.meshes.empty() && evaluator.training().overlap.cuda_graph) {
    rows.add("t_k", format_seconds(evaluator.pricing(p).kernel_launch),
             "cuda_graph: no kernel of a graph is faster, in t_f and t_b");
  }
  rows.add("t_p2p", format_seconds(cost.times.transfer),
           fmt::format("{} to the next stage{}, {}", format_bytes(cost.transfer_bytes),
                       cost.boundaries.empty() ? "" : " at most",
                       cost.times.blocking ? "the sender waits" : "beside computation"));
  rows.add(explained_boundaries(p, s, cost));
  if (is_listed(p.schedule)) return;
  const Seconds even =
      pipeline_time(p.schedule, p.pp, p.vpp, e.micro_batches, slowest_forward,
                    slowest_backward - weight_gradient, Seconds(0), weight_gradient);
  rows.add(
      "T_even", format_seconds(even),
      fmt::format("if all stages were the slowest, no transfers: {}", row_of(p.schedule).formula));
}

void pipeline_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator, Rows& rows) {
  const ParallelPlan& p = e.plan;
  rows.group = "pipeline";
  micro_batch_rows(e, s, evaluator, rows);
  rows.add("T_bound", format_seconds(evaluator.cost(p).bound.pipeline),
           splits_backward(p.schedule)
               ? "no schedule of this kind is shorter: wait for the first backward + work of the "
                 "worst rank"
               : "no schedule of these stages ends earlier: fill + work + drain of the worst rank");
  const SlowestRank slowest = slowest_rank(e);
  rows.add("t_max", format_seconds(slowest.time),
           fmt::format("one micro-batch, forward and backward, on the slowest pipeline rank, {}",
                       slowest.rank));
  rows.add("T_pipe", format_seconds(e.pipeline), pipeline_text(p, s));
  rows.add(
      "bubble", fmt::format("{:.2f} %", 100 * e.bubble_fraction),
      is_listed(p.schedule)
          ? "(T_pipe - m t_max) / (m t_max)"
          : fmt::format("(T_pipe - m t_max) / (m t_max); even stages, no communication: {:.2f} %",
                        100 * bubble_fraction(p.schedule, p.pp, p.vpp, e.micro_batches)));
  const auto critical = static_cast<std::size_t>(e.critical_rank);
  rows.add(
      "imbalance", format_seconds(e.breakdown.imbalance - e.longest_samples),
      critical == slowest.rank
          ? fmt::format("rank {}, whose end counts, is the slowest itself", critical)
          : fmt::format("rank {} waits for rank {}, m (t_max - its own); more micro-batches do "
                        "not reduce it, moved layers do",
                        critical, slowest.rank));
}

std::string tiers_of(const GroupLayout& group, const ClusterSpec& cluster) {
  std::string text;
  for (std::size_t i = 0; i < group.tiers; ++i)
    text += fmt::format("{}{} {}", i ? " x " : "", group.fan[i], cluster.tiers[i].name);
  return text;
}

// Groups of shards: experts have fewer ranks to be sharded over, so larger shards.
void group_rows(const ParallelPlan& p, const PlanCost& cost, const Scenario& s, Rows& rows) {
  const auto between = Mesh(p).between_shards(p.dp_replicate, s.cluster);
  rows.add("groups", number(p.dp_replicate),
           fmt::format("each with all shards (HSDP): ranks {} apart: {}", between.stride,
                       tiers_of(between, s.cluster)));
  const CollectiveKind outer = outer_reduction(p);
  const auto largest = std::ranges::max_element(
      cost.ranks, [](const auto& a, const auto& b) { return a.weights.all < b.weights.all; });
  const double each = gradient_bytes_per_parameter(s.training);
  const RankWeights& weights = largest->weights;
  const Bytes experts(weights.experts * each / static_cast<double>(p.expert_shards())),
      others((weights.all - weights.experts) * each / p.shards());
  Seconds time = collective_time(outer, others, between, s.cluster);
  std::string what = fmt::format("a shard of G, {}", format_bytes(others));
  if (experts.value > 0) {
    time += collective_time(outer, experts,
                            expert_mesh(p).between_shards(p.dp_replicate, s.cluster), s.cluster);
    what = fmt::format("shards of G, {} of experts over {} ranks and {} of the rest over {}",
                       format_bytes(experts), p.expert_shards(), format_bytes(others), p.shards());
  }
  rows.add("t_outer", format_seconds(time),
           fmt::format("{} of {}, between the groups, once an iteration{}",
                       collective_names[static_cast<std::size_t>(outer)], what,
                       p.shards_states_further() ? "; the optimizer's states are sharded over "
                                                   "all (HFSDP), new weights gathered back"
                                                 : ""));
}

void data_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator, Rows& rows) {
  const ParallelPlan p = e.plan;
  const auto& cost = evaluator.cost(p);
  const auto critical = static_cast<std::size_t>(e.critical_rank);
  rows.group = "data parallel";
  const Mesh mesh(p);
  const auto layout = mesh.shard_layout(p.dp_replicate, s.cluster);
  const char* const of = p.cp > 1 ? "d x c, " : "";
  rows.add("group", number(layout.size),
           fmt::format("{}ranks {} apart: {}{}", of, layout.stride, tiers_of(layout, s.cluster),
                       p.dp_replicate > 1 ? "; ZeRO shards within it" : ""));
  rows.add("G", format_bytes(cost.gradient_bytes), "gradients of the largest stage on one device");
  const auto kind = p.zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  rows.add("t_dp", format_seconds(collective_time(kind, cost.gradient_bytes, layout, s.cluster)),
           fmt::format("{} of G, alone", collective_names[static_cast<std::size_t>(kind)]));
  if (p.zero_plus_plus.gradients)
    rows.add("qgZ", "", "instead of it all-to-alls of 4 bits, within a node and between nodes");
  if (p.dp_replicate > 1) group_rows(p, cost, s, rows);
  if (p.zero >= 2) {
    const StageRow& stage = cost.stages[critical];
    rows.add("passes",
             format_seconds((stage.zero_forward + stage.zero_backward) *
                            static_cast<double>(e.micro_batches)),
             fmt::format("ZeRO's collectives of m {} micro-batches that computation does not hide: "
                         "{} forward, {} backward, of stage {}",
                         e.micro_batches, format_seconds(stage.zero_forward),
                         format_seconds(stage.zero_backward), critical));
  }
  rows.add("exposed", format_seconds(cost.ranks[critical].after.gradient_exposed),
           s.training.overlap.overlap_grad_reduce
               ? "what the last micro-batch's backward does not hide"
               : "not overlapped");
  rows.add("gather", format_seconds(cost.ranks[critical].after.gather_exposed),
           p.zero == 0 ? "no sharded parameters" : "exposed parameter gather");
  rows.add("t_opt", format_seconds(cost.ranks[critical].after.optimizer),
           p.offload.optimizer > 0
               ? "optimizer: the slower of device and host, each over its share of the states"
               : "optimizer: passes over gradients and states at memory bandwidth");
}

// Of an optimizer that treats parameters differently.
void optimizer_rows(const OptimizerShare& share, const Scenario& s, Rows& rows) {
  if (keeps_alike(s.training.optimizer)) return;
  rows.add("moments", format_bytes(share.moments),
           fmt::format("of all parameters on stage 0, by {}: matrices, tables and vectors apart",
                       to_string(s.training.optimizer)));
  if (share.products.value > 0) {
    rows.add("muon", format_seconds(share.products),
             "five Newton-Schulz iterations of 4 d^2 D + 2 d^3 FLOPs for each matrix of stage 0, d "
             "its shorter side (arXiv:2502.16982)");
  }
}

// What a parameter takes before ZeRO divides it, and by what it does.
void sharded_rows(const ParallelPlan& p, double weights, double gradients, double optimizer,
                  Rows& rows) {
  rows.add(
      "bytes", number(weights + gradients + optimizer),
      fmt::format("a parameter: weights {}, gradients {}, optimizer {}; ZeRO {} divides {} by d{}",
                  weights, gradients, optimizer, p.zero,
                  p.zero == 0   ? "nothing"
                  : p.zero == 1 ? "the optimizer's"
                  : p.zero == 2 ? "gradients' and optimizer's"
                                : "all",
                  p.zero > 0 && p.cp > 1 ? " x c" : "") +
          (p.dp_replicate == 1
               ? std::string()
               : fmt::format(
                     " / {} groups{}", p.dp_replicate,
                     p.shards_states_further() ? ", the optimizer's not by their number" : "")));
}

// What holds the peak.
void peak_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator, Rows& rows) {
  const PeakPlace peak = evaluator.peak_place(e);
  rows.add("peak", format_bytes(e.peak),
           fmt::format("of {} on stage {}: fits with a chance of {}", format_bytes(e.capacity),
                       e.fullest, fits_chance(e, s)));
  if (!peak.op.empty()) {
    rows.add("peak at", peak.op,
             peak.layer.empty()
                 ? fmt::format("the optimizer's {}: {}", peak.pass, format_bytes(peak.working))
                 : fmt::format("{} pass, a layer of kind {}: works on {}", peak.pass, peak.layer,
                               format_bytes(peak.working)));
  }
  if (peak.kept.value > 0) {
    rows.add("most kept", peak.tensor,
             fmt::format("{} of the activations kept for backward, over layers and micro-batches",
                         format_bytes(peak.kept)));
  }
}

void memory_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator, Rows& rows) {
  const ParallelPlan p = e.plan;
  rows.group = "memory";
  const auto cost = evaluator.cost(p);
  const double w = weight_bytes_per_parameter(s.training),
               g = gradient_bytes_per_parameter(s.training);
  const RankWeights& weights = cost.ranks.front().weights;
  const bool alike = keeps_alike(s.training.optimizer);
  const double o =
      alike ? optimizer_bytes_per_parameter(s.training)
            : master_bytes_per_parameter(s.training) + cost.optimizer.moments.value / weights.all;
  rows.add("psi", format_count(weights.all), "parameters on one device of stage 0");
  sharded_rows(p, w, g, o, rows);
  if (p.zero_plus_plus.partition > 1) {
    rows.add(
        "hpZ", format_bytes(second_copy(weights, p, s.training)),
        fmt::format("a second copy of the weights, over {} ranks", p.zero_plus_plus.partition));
  }
  optimizer_rows(cost.optimizer, s, rows);
  const auto region = region_of(p.recompute);
  const auto layer_rows = [&](LayerKind kind, const std::string& name) {
    const auto& layer = evaluator.layer(kind, p, region);
    rows.add("kept", format_bytes(layer.footprint.kept),
             fmt::format("activations {} keeps for one micro-batch, recompute {}", name,
                         to_string(p.recompute)));
    rows.add("working", format_bytes(layer.footprint.backward_transient),
             "on top while that layer's backward runs");
  };
  const bool two_stacks = s.model.encoder_decoder();
  const std::vector<Block> blocks = s.model.blocks();
  if (s.model.layer_pattern.empty()) {
    layer_rows(blocks.front(), two_stacks ? "an encoder layer" : "a layer");
  } else {
    for (const Block& block : blocks)
      layer_rows(block, fmt::format("a layer of {}", describe(block)));
  }
  if (two_stacks) {
    layer_rows(blocks.back(), "a decoder layer");
    const double tokens =
        static_cast<double>(s.training.sequence * p.micro_batch) / (p.sequence_parallel ? p.tp : 1);
    rows.add("shared",
             format_bytes(Bytes(tokens * static_cast<double>(s.model.hidden) *
                                storage_bytes(s.training.precision))),
             "the encoder's output, once on each stage with decoder layers, for each in flight");
  }
  rows.add("in flight", number(e.memory.front().in_flight_micro_batches),
           "micro-batches held by stage 0 at most");
  peak_rows(e, s, evaluator, rows);
}

void flop_rows(const Estimate& e, const Scenario& s, Rows& rows) {
  rows.group = "FLOPs";
  rows.add("F_model", number(e.model_flops.value),
           s.training.fine_tuning.adapts()
               ? "matrix products of one iteration, attention in full, no recomputation; frozen "
                 "ones have no weight gradient: 4 N D and the adapters, not 6 N D"
               : "matrix products of one iteration, attention in full, no recomputation "
                 "(arXiv:2104.04473 eq. 3 less recomputation)");
  rows.add("F_hardware", number(e.hardware_flops.value),
           "what the kernels execute: with recomputation, without masked scores that they skip");
  rows.add("F_causal", number(e.causal_model_flops.value),
           "F_model with attention halved for causality, as Megatron-LM's --log-throughput counts");
  const std::string peak = format_rate(s.cluster.device.peak_of(s.training.precision));
  rows.add("MFU", fmt::format("{:.2f} %", 100 * e.mfu), fmt::format("F_model / (T N x {})", peak));
  rows.add("MFU_causal", fmt::format("{:.2f} %", 100 * e.causal_mfu),
           fmt::format("F_causal / (T N x {})", peak));
}

Rows all_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  Rows rows;
  batch_rows(e, s, rows);
  pipeline_rows(e, s, evaluator, rows);
  if (e.meshes.empty()) {
    data_rows(e, s, evaluator, rows);
    memory_rows(e, s, evaluator, rows);
    rows.add(explained_model_states(e, s, evaluator));
    rows.add(explained_fine_tuning(e, s, evaluator));
  } else {
    rows.add(explained_stages(e, s, evaluator));
  }
  rows.add(explained_packing(e, s));
  flop_rows(e, s, rows);
  if (!e.meshes.empty() || is_listed(e.plan.schedule)) return rows;
  rows.add(textbook(e, s, evaluator));
  rows.add(other_exchanges(e, s, evaluator));
  return rows;
}

// The slowest virtual stage, which gives t_f and t_b, unless they come from two stages.
std::size_t slowest_stage(const Estimate& e) {
  std::size_t slowest = 0;
  const auto time = [&](std::size_t k) { return e.stage_forward[k] + e.stage_backward[k]; };
  for (std::size_t k = 1; k < e.stage_forward.size(); ++k)
    if (time(k) > time(slowest)) slowest = k;
  return slowest;
}

// The slowest virtual stage; of stages that differ, one of each kind. With its plan, and an
// evaluator of its devices.
template <class Explain>
void each_stage(const Estimate& e, const Scenario& s, Evaluator& evaluator, Explain explain) {
  if (e.meshes.empty()) explain(slowest_stage(e), e.plan, evaluator);
  for (const StageKind& kind : stage_kinds(e, s)) {
    Evaluator its(s.model, kind.scenario.cluster, s.training);
    explain(static_cast<std::size_t>(kind.stage), kind.plan, its);
  }
}

// Of programs: what each kernel of a stage takes, and what of a layer waits for the host.
void kernel_rows(const Estimate& e, const Scenario& s, Evaluator& evaluator, Rows& all) {
  each_stage(e, s, evaluator, [&](std::size_t k, const ParallelPlan& p, Evaluator& its) {
    const auto kernels = stage_kernels(evaluator.cost(e.plan), k, p, its);
    all.group = fmt::format("kernels of stage {}", k);
    for (const auto& row : kernel_table(kernels).rows) {
      all.add(row[0] + ", " + row[1], row[4],
              fmt::format("{} launches, {}, bound by {}", row[2], row[3], row[5]));
    }
    all.group = fmt::format("host and device of stage {}", k);
    for (const auto& row : pace_table(kernels).rows) {
      all.add(
          row[0], row[5],
          fmt::format("{} launches take the host {}, their kernels the device {}; {} such layers",
                      row[2], row[3], row[4], row[1]));
    }
  });
}

Table group_table(const std::vector<Explained>& all, const std::string& group) {
  Table t{{left("symbol"), "value", left("from")}};
  for (const Explained& row : all) {
    if (row.group == group) t.rows.push_back({row.symbol, row.value, row.from});
  }
  return t;
}

struct GroupTitle {
  const char* group;
  const char* title;
};
constexpr std::array titles_before_stages{
    GroupTitle{"pipeline", "Pipeline"}, GroupTitle{"data parallel", "Data parallel and optimizer"},
    GroupTitle{"memory", "Memory"},
    GroupTitle{"model states", "Model states, and DeepSpeed's estimate of them"},
    GroupTitle{"fine-tuning", "Fine-tuning"}};
constexpr std::array titles_after_stages{
    GroupTitle{"samples", "Samples"},
    GroupTitle{"FLOPs", "FLOPs"},
    GroupTitle{"corollaries", "Three corollaries of an even pipeline"},
    GroupTitle{"choice of b", "The choice of b"},
    GroupTitle{"ZeRO", "What ZeRO leaves of a parameter"},
    GroupTitle{"trade-offs", "One size against another, on as many devices"},
    GroupTitle{"gradients otherwise", "Gradients summed otherwise"},
    GroupTitle{"a micro-batch sharded otherwise",
               "A micro-batch's weights and gradients sharded otherwise"},
    GroupTitle{"modules partitioned", "SageMaker's tensor parallelism over data-parallel ranks"},
    GroupTitle{"tensor parallel alone", "In a tensor group beside the layers' collectives"}};

std::string groups_text(const ParallelPlan& plan, const PlacedPipelines& pipelines,
                        const Scenario& s, const ReportStyle& style) {
  const Table groups = group_table(explained_groups(pipelines), "groups");
  if (groups.rows.empty()) return "";
  return heading(s, style) + "\n" + escaped(to_string(plan), style) + "\n" +
         table_section("Groups", groups, style) + "\n";
}

std::string pipeline_text(const ParallelPlan& plan, const Scenario& s, Evaluator& evaluator,
                          const ReportStyle& style) {
  const Estimate e = evaluator.estimate(plan);
  const std::vector<Explained> all = all_rows(e, s, evaluator).rows;
  std::string text = heading(s, style) + "\n" + escaped(to_string(plan), style) + "\n";
  const auto add = [&](const std::string& title, const Table& table) {
    text += table_section(title, table, style);
  };
  const auto add_group = [&](const std::string& group, const std::string& title) {
    const Table table = group_table(all, group);
    if (!table.rows.empty()) add(title, table);
  };
  add_group("batch", "Batch");
  const auto operators = [&](const ParallelPlan& p, Evaluator& its, const std::string& of) {
    for (const auto kind : layer_kinds(s.model)) {
      add(fmt::format(
              "One {} layer{}, one micro-batch, one device (communication as far as nothing hides "
              "it)",
              describe(kind), of),
          operator_table(operator_times(kind, p, its)));
    }
  };
  each_stage(e, s, evaluator, [&](std::size_t k, const ParallelPlan& p, Evaluator& its) {
    operators(p, its, e.meshes.empty() ? "" : fmt::format(" as of stage {}", k));
    add(fmt::format("Virtual stage {}, one micro-batch", k),
        stage_table(stage_parts(evaluator.cost(plan), k, p, its)));
    const auto kernels = stage_kernels(evaluator.cost(plan), k, p, its);
    add(fmt::format("Kernels of virtual stage {}, one micro-batch", k), kernel_table(kernels));
    add("Host and device, a pass of one layer", pace_table(kernels));
  });
  for (const auto& [group, title] : titles_before_stages) add_group(group, title);
  for (std::size_t k = 0; k < e.meshes.size(); ++k)
    add_group(fmt::format("stage {}", k), fmt::format("Stage {}", k));
  for (const auto& [group, title] : titles_after_stages) add_group(group, title);
  std::string sum;
  for (const Share& share : shares(e))
    sum += fmt::format("{}{} {}", sum.empty() ? "" : " + ", format_seconds(share.time), share.name);
  return text + section_title("Iteration", style) +
         fmt::format("  {} = {}\n", format_seconds(e.iteration), sum);
}

}  // namespace

Table explanation_table(const ParallelPlan& plan, const Scenario& s, Evaluator& evaluator) {
  Table all{{left("group"), left("symbol"), "value", left("from")}};
  const auto add = [&](const std::string& of, const std::vector<Explained>& rows) {
    for (const auto& [group, symbol, value, from] : rows)
      all.rows.push_back({of + group, symbol, value, from});
  };
  const PlacedPipelines pipelines(plan, evaluator);
  add("", explained_groups(pipelines));
  for (const auto& [pipeline, its] : pipelines) {
    const Scenario own = scenario_of(pipeline, s);
    const Estimate e = its->estimate(pipeline.plan);
    Rows rows = all_rows(e, own, *its);
    kernel_rows(e, own, *its, rows);
    add(pipeline.group.empty() ? "" : pipeline.group + ": ", rows.rows);
  }
  return all;
}

std::string explanation(const ParallelPlan& plan, const Scenario& s, Evaluator& evaluator,
                        const ReportStyle& style) {
  const PlacedPipelines pipelines(plan, evaluator);
  std::string text = groups_text(plan, pipelines, s, style);
  const char* between = "";
  for (const auto& [pipeline, its] : pipelines) {
    text += between + pipeline_text(pipeline.plan, scenario_of(pipeline, s), *its, style);
    between = "\n";
  }
  return text;
}

}  // namespace planner
