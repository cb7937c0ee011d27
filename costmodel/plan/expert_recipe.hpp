// How tokens reach their experts: the recipe of a mixture of experts that no size of the plan says.
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

// alltoall: every token is sent once per chosen expert, and permuted before and after. allgather:
// every rank of the expert group gets all tokens. deepep, hybridep: every token is sent once per
// node that has a chosen expert, and inside it once per rank; the kernels permute as they copy
// (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.2; Megatron-LM, core/transformer/moe/
// token_dispatcher.py and fused_a2a.py).
enum class Dispatcher { alltoall, allgather, deepep, hybridep };
inline constexpr std::array<std::string_view, 4> dispatcher_names{"alltoall", "allgather", "deepep",
                                                                  "hybridep"};
constexpr bool sends_once_a_rank(Dispatcher d) {
  return d == Dispatcher::deepep || d == Dispatcher::hybridep;
}

struct ExpertRecipe {
  Dispatcher dispatcher = Dispatcher::alltoall;
  int multiprocessors = 0;  // that the dispatcher's kernels take from others beside them
  bool overlap = false;     // the exchange of a micro-batch beside the computation of another one
                            // (Megatron-LM, core/pipeline_parallel/combined_1f1b.py)
  bool delayed_weight_gradient = false;  // ... which then has the weight gradients as well
  bool shared_overlap = false;           // the shared experts compute beside the exchange
  bool routed = false;                   // whether the model has experts at all
  bool operator==(const ExpertRecipe&) const = default;
};

}  // namespace costmodel
