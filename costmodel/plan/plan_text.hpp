// A plan in one line.
#pragma once

#include <string>
#include <string_view>

#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

std::string to_string(
    const Recompute& recompute);  // "none", "selective", "full", "full of first 3 layers"

// What a plan, or a stage by itself, has of context and expert parallelism: "c 2 (p2p) · e 4 · etp
// 2"; empty where it has none.
std::string context_and_experts_text(const ParallelPlan& plan, std::string_view between);

// One line; where stages differ without their recomputation and ZeRO stage. Of context and expert
// parallelism only when there is any, at each stage where stages differ in it: "t 8 · p 16 · d 12 ·
// b 1 · v 2 · interleaved · sequence parallel · recompute full · ZeRO 1".
std::string to_string(const ParallelPlan& plan);

}  // namespace costmodel
