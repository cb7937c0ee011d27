#include "planner/report/explain_exchanges.hpp"

#include <fmt/format.h>

#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/plan/mesh.hpp"
#include "planner/report/collective_report.hpp"

namespace planner {

using costmodel::Bytes;
using costmodel::CollectiveKind;
using costmodel::Estimate;
using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::Seconds;

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
      group_ = "gradients otherwise";
      sums();
      data_parallel();
    }
    if (p_.tp > 1) {
      group_ = "tensor parallel alone";
      inputs();
      linears();
    }
    return std::move(rows_);
  }

 private:
  void add(const std::string& symbol, Seconds time, const std::string& from) {
    rows_.push_back({group_, symbol, format_seconds(time), from});
  }

  void sums() {
    const CollectiveGroup group{s_.cluster, costmodel::Mesh(p_).replica_layout(s_.cluster)};
    for (const SumWay& way : ways_to_sum(gradients_, group)) {
      add(way.name, way.time,
          fmt::format("{} of gradients: {}", format_bytes(gradients_), way.from));
    }
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
  std::string group_;
  std::vector<Explained> rows_;
};

}  // namespace

std::vector<Explained> other_exchanges(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  return Exchanges(e, s, evaluator).all();
}

}  // namespace planner
