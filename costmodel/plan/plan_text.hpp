// A plan as one line of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

// The names of RecomputeModule bits, in the order of the enumeration.
std::vector<std::string> module_names(unsigned modules);
// ... and of HostOffload::modules.
std::vector<std::string> offload_modules(unsigned modules);

std::string to_string(
    const Recompute& recompute);  // "none", "selective", "full", "full of first 3 layers"

// The context- and expert-parallel part of a plan, or of one stage: "c 2 (p2p) · e 4 · etp 2",
// joined by `between`; empty without either. Experts that take another way than one copy a chosen
// expert say so: "e 64 (hybridep, overlapped)".
std::string context_and_experts_text(const ParallelPlan& plan, std::string_view between);

// The layers of each stage, neighbours that hold as many together: "20+12", "1x94+2".
std::string stage_layers_text(const std::vector<int>& layers);

// "1f1b", or the file that lists the schedule.
std::string schedule_text(const ParallelPlan& plan);

// What is kept in host memory: "50 % of optimizer", "activations of 4 layers"; "" for nothing.
std::string offload_text(const HostOffload& offload);

// The plan in one line: "t 8 · p 16 · d 12 · b 1 · v 2 · interleaved · sequence parallel ·
// recompute full · ZeRO 1". With heterogeneous stages, recomputation and ZeRO stage are omitted.
// Context and expert parallelism appear only when used, per stage when stages differ in them.
std::string to_string(const ParallelPlan& plan);

}  // namespace costmodel
