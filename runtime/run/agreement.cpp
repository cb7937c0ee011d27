#include "runtime/run/agreement.hpp"

#include <fmt/format.h>

#include "costmodel/plan/plan_text.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

using namespace costmodel;

namespace {

std::string model_text(const ModelSpec& m) {
  std::string text = fmt::format(
      "{}: {} layers, hidden {}, {} heads ({} of keys) of {}, MLP {}{} {}, vocabulary {}{}, {} "
      "positions up to {}, {}, biases {}{}{}{}",
      m.name, m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.ffn_hidden,
      m.gated_mlp ? " gated" : "", activation_names[static_cast<std::size_t>(m.activation)],
      m.vocab, m.tie_embeddings ? " tied" : "",
      positions_names[static_cast<std::size_t>(m.positions)], m.max_positions,
      normalization_names[static_cast<std::size_t>(m.normalization)],
      m.linear_bias ? "linear" : "-", m.qkv_bias ? " qkv" : "", m.qk_norm ? ", q and k norm" : "",
      m.embedding_norm ? ", embedding norm" : "");
  return text + fmt::format(", dropout {:g}", m.dropout);
}

// The switches are those that change what is computed, kept or sent.
std::string stack_text(const StackSpec& s) {
  std::string switches;
  for (const bool on :
       {s.kernels.attention == AttentionKernel::flash, s.kernels.fused_softmax,
        s.kernels.fused_bias_activation, s.kernels.fused_bias_dropout_add,
        s.collectives.scatter_gather, s.collectives.embedding_all_reduce, s.memory.selective_half})
    switches += on ? '1' : '0';
  return fmt::format("{} (switches {}, loss {})", s.name, switches,
                     loss_kernel_names[static_cast<std::size_t>(s.kernels.loss)]);
}

constexpr int answer = 2, begin = 3;  // control messages

}  // namespace

Statements statements(const RunRequest& request, const ParallelPlan& plan) {
  const auto& t = request.scenario.training;
  return {
      {"backend", std::string(request.backend->name)},
      {"plan", to_string(plan)},
      {"rank order", plan.rank_order},
      {"model", model_text(request.scenario.model)},
      {"training", fmt::format("batch {} of {} tokens", t.global_batch, t.sequence)},
      {"precision", std::string(to_string(t.precision))},
      {"products", request.tf32 ? "in TF32" : "without TF32"},
      {"reductions", t.overlap.overlap_grad_reduce ? "beside the backward" : "after the backward"},
      {"stack", stack_text(t.stack)},
      {"seed", fmt::format("{}", request.seed)},
      {"iterations", fmt::format("{}", request.iterations)}};
}

std::string wrong_world(std::int64_t wanted, const std::string& plan, int started) {
  const bool by_torchrun = !launched() && one_of_several();
  return fmt::format(
      "the plan {} has {} ranks, and {} {} started: start {}, or change the plan", plan, wanted,
      started, started == 1 ? "was" : "were",
      fmt::format(fmt::runtime(by_torchrun ? "{} by torchrun" : "it by mpirun -np {}"), wanted));
}

namespace {

void compare_with(Transport& transport, int rank, const Statements& own) {
  for (const auto& [name, value] : own) {
    const std::string theirs = recv_text(transport, rank, control_tag(answer));
    if (theirs == value) continue;
    throw RunFault(rank, fmt::format("rank {} runs {} {}, rank 0 runs {} {}: start all ranks with "
                                     "the same scenario and flags",
                                     rank, name, theirs, name, value));
  }
}

}  // namespace

void require_agreement(Transport& transport, const Statements& own, std::int64_t ranks,
                       const std::string& plan) {
  if (transport.rank() != 0) {
    for (const auto& [name, value] : own) send_text(transport, 0, control_tag(answer), value);
    transport.recv(0, control_tag(begin), {});
    return;
  }
  if (transport.size() != ranks) throw RunFault(0, wrong_world(ranks, plan, transport.size()));
  for (int rank = 1; rank < transport.size(); ++rank) compare_with(transport, rank, own);
  for (int rank = 1; rank < transport.size(); ++rank) transport.send(rank, control_tag(begin), {});
}

}  // namespace runtime
