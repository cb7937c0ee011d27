#include "planner/report/explain_exchanges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/mesh.hpp"
#include "planner/report/collective_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

class Exchanges {
 public:
  Exchanges(const Estimate& e, const Scenario& s, Evaluator& evaluator)
      : s_(s),
        p_(e.plan),
        gradients_(evaluator.cost(e.plan).gradient_bytes),
        parameters_(evaluator.cost(e.plan).ranks.front().weights.all) {}

  std::vector<Explained> all() {
    if (p_.replicas() > 1) {
      all_.group = "gradients otherwise";
      sums();
      buckets();
      data_parallel();
      if (!s_.training.fine_tuning.adapts()) sharded();
      partitioned_modules();
    }
    if (p_.tp > 1) {
      all_.group = "tensor parallel alone";
      inputs();
      linears();
    }
    return std::move(all_.rows);
  }

 private:
  void add(const std::string& symbol, Seconds time, const std::string& from) {
    all_.add(symbol, format_seconds(time), from);
  }

  void sums() {
    const CollectiveGroup group{s_.cluster, costmodel::Mesh(p_).replica_layout(s_.cluster)};
    for (const SumWay& way : ways_to_sum(gradients_, group)) {
      add(way.name, way.time,
          fmt::format("{} of gradients: {}", format_bytes(gradients_), way.from));
    }
  }

  // Gradients in the pieces that frameworks reduce while backward makes the next ones: torch's DDP
  // of bucket_cap_mb 25, Megatron-LM's of max(40,000,000, 1,000,000 d) parameters
  // (core/distributed, DistributedDataParallelConfig.bucket_size). Only the last one has nothing
  // beside it.
  void buckets() {
    const auto group = costmodel::Mesh(p_).replica_layout(s_.cluster);
    const double parameter = gradient_bytes_per_parameter(s_.training);
    const double of_megatron = std::max(40e6, 1e6 * p_.replicas());
    const auto row = [&](const char* symbol, Bytes most, const std::string& of) {
      const double count = std::max(1.0, std::ceil(gradients_ / most));
      const Seconds one =
          collective_time(CollectiveKind::all_reduce, gradients_ / count, group, s_.cluster);
      add(symbol, count * one,
          fmt::format("{} buckets of {}: {} each, the last beside nothing", std::llround(count), of,
                      format_seconds(one)));
    };
    row("DDP buckets", Bytes(25.0 * (1 << 20)), "torch's 25 MiB (bucket_cap_mb)");
    row("Megatron buckets", Bytes(of_megatron * parameter),
        fmt::format("max(40 M, 1 M d) = {} parameters", costmodel::format_count(of_megatron)));
  }

  // What a micro-batch sends of M bytes of parameters and of as many of gradients where all is
  // sharded, by ZeRO-3 over all ranks; by ZeRO++ (Wang et al. 2023, arXiv:2306.10209, section 3);
  // and by MiCS (arXiv:2205.00119) or HSDP within a node.
  void sharded() {
    const costmodel::Mesh mesh(p_);
    const auto all = mesh.replica_layout(s_.cluster);
    const int inside = ranks_nearby(all, s_.cluster);
    if (p_.pp > 1 || p_.cp > 1 || all.tiers < 2 || inside < 2 || inside >= p_.dp ||
        p_.dp % inside != 0)
      return;
    all_.group = "a micro-batch sharded otherwise";
    const int nodes = p_.dp / inside;
    const auto node = mesh.shard_layout(nodes, s_.cluster),
               between = mesh.between_shards(nodes, s_.cluster);
    const Bytes m(parameters_ * 2);
    using enum CollectiveKind;
    const auto time = [&](CollectiveKind kind, Bytes bytes, const costmodel::GroupLayout& group) {
      return collective_time(kind, bytes, group, s_.cluster);
    };
    add("ZeRO 3", 2 * time(all_gather, m, all) + time(reduce_scatter, m, all),
        fmt::format("over {} ranks: M = {} gathered for forward and for backward, gradients "
                    "scattered",
                    p_.dp, format_bytes(m)));
    add("qwZ", time(all_gather, m / 2, all), "ZeRO++: forward's gather in 8 bits, M / 2");
    add("hpZ", time(all_gather, m, node),
        fmt::format("ZeRO++: backward's gather within {} ranks of a node, of a second copy that "
                    "takes M / {} = {} on each",
                    inside, inside, format_bytes(m / inside)));
    add("qgZ", time(all_to_all, m / 4, node) + time(all_to_all, m / (4.0 * inside), between),
        fmt::format("ZeRO++: gradients in 4 bits, an all-to-all within the node, summed, then one "
                    "of M / (4 x {}) between nodes",
                    inside));
    add("ZeRO++",
        time(all_gather, m / 2, all) + time(all_gather, m, node) + time(all_to_all, m / 4, node) +
            time(all_to_all, m / (4.0 * inside), between),
        "all three: between nodes M / 2 + 0 + M / 4 in place of 3 M");
    add("MiCS, HSDP", 2 * time(all_gather, m, node) + time(reduce_scatter, m, node),
        fmt::format(
            "plan.dp_replicate={}: within the node; all is kept {} times, and an all-reduce "
            "of M / {} between nodes, {}, comes once an iteration",
            nodes, nodes, inside, format_seconds(time(all_reduce, m / inside, between))));
  }

  // SageMaker's tensor parallelism: chosen modules are partitioned over ranks of the data-parallel
  // group; each gathers the samples of all, computes its part for them, and returns what is others'
  // (AWS, "How tensor parallelism works", SageMaker model parallelism library v1).
  void partitioned_modules() {
    if (p_.tp > 1 || p_.pp > 1 || p_.cp > 1 || s_.model.experts > 0 || p_.dp < 2) return;
    all_.group = "modules partitioned";
    const int t = std::gcd(p_.dp, static_cast<int>(s_.cluster.devices_per_node));
    if (t < 2) return;
    const auto group =
        costmodel::layout_of(t, costmodel::Mesh(p_).stride(costmodel::Axis::data), s_.cluster);
    const double tokens = static_cast<double>(t) * static_cast<double>(p_.micro_batch) *
                          static_cast<double>(s_.training.sequence);
    const Bytes samples(tokens * static_cast<double>(s_.model.hidden) *
                        storage_bytes(s_.training.precision));
    using enum CollectiveKind;
    const Seconds one = collective_time(all_gather, samples, group, s_.cluster) +
                        collective_time(reduce_scatter, samples, group, s_.cluster);
    add("a module", one,
        fmt::format(
            "forward of attention or of an MLP partitioned over t {} of the {} data-parallel "
            "ranks: all-gather of their samples, t b s h = {}, and a reduce-scatter of its "
            "results; backward the same",
            t, p_.dp, format_bytes(samples)));
    add("all layers", static_cast<double>(s_.model.layers) * 4 * one,
        fmt::format("both modules of {} layers, forward and backward, for a micro-batch of b {}: "
                    "the batch stays d b = {}, the rest plain data parallel",
                    s_.model.layers, p_.micro_batch, p_.dp * p_.micro_batch));
    add("gradients",
        collective_time(all_reduce, gradients_ / t, layout_of(p_.dp / t, t, s_.cluster),
                        s_.cluster),
        fmt::format(
            "an all-reduce of 1 / {} of those modules' gradients over {} ranks, in place of "
            "all over {}",
            t, p_.dp / t, p_.dp));
  }

  // torch.nn.DataParallel: replicate, scatter, parallel_apply, gather; the loss on card 0;
  // gradients reduced onto it. One process drives all cards, so only within a node, and only d is
  // more than 1.
  void data_parallel() {
    const bool plain = p_.tp == 1 && p_.pp == 1 && p_.cp == 1;
    if (!plain || p_.dp > s_.cluster.devices_per_node) return;
    using enum CollectiveKind;
    const auto group = costmodel::Mesh(p_).replica_layout(s_.cluster);
    const auto time = [&](CollectiveKind kind, Bytes bytes) {
      return collective_time(kind, bytes, group, s_.cluster);
    };
    const std::int64_t steps = p_.micro_batches(s_.training.global_batch);
    const double tokens =
        static_cast<double>(p_.dp * p_.micro_batch * s_.training.sequence);  // of a step, all cards
    const Bytes weights(parameters_ * weight_bytes_per_parameter(s_.training));
    const Bytes logits(tokens * static_cast<double>(s_.model.vocab) *
                       storage_bytes(s_.training.precision));
    const Bytes ids(tokens * 8);
    const Seconds replicate = time(broadcast, weights), sent = time(scatter, ids),
                  gathered = time(gather, logits), returned = time(scatter, logits),
                  reduced = time(reduce, gradients_);
    add("DataParallel",
        static_cast<double>(steps) * (replicate + sent + gathered + returned + reduced),
        fmt::format("torch's, for each of {} micro-batches of {} sequences: replicate {}, scatter "
                    "inputs {}, gather logits on card 0 {} ({}, which it must hold, for the loss), "
                    "scatter their gradients {}, reduce gradients onto it {}; nothing overlaps, "
                    "and one process drives all cards",
                    steps, p_.dp * p_.micro_batch, format_seconds(replicate), format_seconds(sent),
                    format_seconds(gathered), format_bytes(logits), format_seconds(returned),
                    format_seconds(reduced)));
    add("DDP", time(all_reduce, gradients_),
        "an all-reduce of gradients, in buckets beside the backward; no weights, inputs or logits "
        "travel");
  }

  // megatron/training/utils.py, get_batch_on_this_tp_rank.
  void inputs() {
    const auto group = layout_of(costmodel::Axis::tensor, p_, s_.cluster);
    const double tokens = static_cast<double>(p_.micro_batch * s_.training.sequence);
    const Bytes bytes(tokens * (8 + 8 + 4 + 8));
    add("inputs", collective_time(CollectiveKind::broadcast, bytes, group, s_.cluster),
        fmt::format(
            "broadcast to the tensor group for a micro-batch: tokens 8, labels 8, loss mask "
            "4, positions 8 bytes a token = {}; rank 0 alone reads the data, and the whole "
            "sequence",
            format_bytes(bytes)));
  }

  // A pair of linears splits its first by columns and its second by rows, and needs one all-reduce.
  void linears() {
    const auto group = layout_of(costmodel::Axis::tensor, p_, s_.cluster);
    const double tokens = static_cast<double>(p_.micro_batch * s_.training.sequence) / p_.cp;
    const double bytes = storage_bytes(s_.training.precision);
    const Bytes wide(tokens * static_cast<double>(s_.model.ffn_hidden) * bytes);
    const Bytes narrow(tokens * static_cast<double>(s_.model.hidden) * bytes);
    const Seconds gathered = collective_time(CollectiveKind::all_gather, wide, group, s_.cluster);
    const Seconds summed = collective_time(CollectiveKind::all_reduce, narrow, group, s_.cluster);
    add("columns alone", gathered,
        fmt::format("a column-parallel linear with gathered output (gather_output): an all-gather "
                    "of b s f = {} forward",
                    format_bytes(wide)));
    add("rows alone", summed,
        fmt::format("a row-parallel linear: an all-reduce of b s h = {} forward",
                    format_bytes(narrow)));
    add("columns, rows", summed,
        "the two in a row, nothing gathered between: the row-parallel one's all-reduce is all");
  }

  const Scenario& s_;
  const ParallelPlan p_;
  Bytes gradients_;
  double parameters_;
  Explanation all_;
};

}  // namespace

std::vector<Explained> other_exchanges(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  return Exchanges(e, s, evaluator).all();
}

}  // namespace planner
