// Hybrids of pretrain_hybrid.py, which was pretrain_mamba.py: one letter a layer, in and out. The
// language is that of Megatron-LM, core/models/hybrid/hybrid_layer_allocation.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "planner/frameworks/import_megatron.hpp"

namespace planner {

struct HybridPattern {
  std::string letters;      // of the layers, as Megatron-LM writes them, without bars
  std::vector<int> stages;  // layers between bars; empty: no bars
  std::string prediction;   // the layers of one depth of multi-token prediction; empty: none
  std::int64_t depths = 0;  // of it
  bool latent() const { return letters.find('+') != std::string::npos; }
};

// Whether a pattern, deprecated ratios of layers, or the program's own switches make it a hybrid.
bool is_hybrid(const MegatronArguments& arguments);

// The pattern of a hybrid, which is written or follows from its ratios. Throws
// costmodel::ConfigError at the flag for a text that is no pattern, and for a letter without a
// key.
HybridPattern hybrid_pattern(MegatronImport& in);

// The layers of a model, a hybrid's by its letters; 0: not given.
std::int64_t layers_of_model(MegatronImport& in);

// The letters of layers that ratios of attention and MLPs spread evenly among scans.
std::string pattern_of_ratios(std::int64_t layers, double attention, double mlp);

// The sizes of gated delta nets, those usual to transformer_config.py where no flag gives them.
void read_delta_nets(MegatronImport& in, bool scans);

// The keys of a hybrid's layers.
void read_hybrid_model(MegatronImport& in);

// The value of --hybrid-layer-pattern: bars between the plan's stages, and the layers of
// multi-token prediction after slashes.
std::string hybrid_layer_pattern(const costmodel::ParallelPlan& plan,
                                 const costmodel::ModelSpec& model);

}  // namespace planner
