// Uneven layouts: the layers of each (virtual) stage of a plan. Embedding and loss count as layers,
// so the first and the last stage may hold nothing else; every other stage holds at least one
// layer. Same rules as Megatron's --pipeline-model-parallel-layout.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/effort.hpp"

namespace planner {

// The most even layout, embedding and loss counted as layers; larger shares first.
std::vector<int> balanced_layout(std::int64_t layers, int stages);

// A cut of the plan's layers into p stages of one chunk, and what no layout of the plan that fits
// below `limit` bytes undercuts: the bound of pipeline_cut with the cost model's own times, and
// what follows the pipeline. Layouts whose bound is larger than `longest` are left out.
struct LayoutCut {
  std::vector<int> stage_layers;  // empty: none fits, or none is quick enough
  std::vector<int> least_work;    // likewise, of the layout whose stages take least together
  costmodel::Seconds bound;       // of an iteration; infinite without a layout
  bool too_slow = false;          // no layout is quick enough, whatever fits
  bool expired = false;           // there may be a layout
};
LayoutCut cut_layout(
    const costmodel::ParallelPlan& plan, costmodel::Bytes limit, costmodel::Evaluator& evaluator,
    costmodel::Seconds longest = costmodel::Seconds(std::numeric_limits<double>::infinity()),
    const Spend& spend = {});

// All layouts of the plan into p stages of one chunk that fit and whose bound, as above, is at most
// `longest`. Nothing when there are more than `most`, or too much to look at.
std::optional<std::vector<std::vector<int>>> layouts_within(const costmodel::ParallelPlan& plan,
                                                            costmodel::Bytes limit,
                                                            costmodel::Evaluator& evaluator,
                                                            costmodel::Seconds longest,
                                                            std::size_t most);

// Whether some layout of the plan into p stages of one chunk fits below `limit` bytes.
bool some_layout_fits(const costmodel::ParallelPlan& plan, costmodel::Bytes limit,
                      costmodel::Evaluator& evaluator);

// The layers of ranks with one chunk each, dealt to `chunks` chunks a rank as evenly as they
// divide, larger shares first. Empty where a chunk between the ends would hold no layer.
std::vector<int> dealt_to_chunks(const std::vector<int>& rank_layers, int chunks);

struct Layout {
  std::vector<int> stage_layers;
  costmodel::Seconds iteration;  // simulated
  costmodel::Bytes peak;
};

// Local search: moves one layer at a time between stages while the simulated iteration gets
// shorter. It tries moves to or from the busiest rank, the least busy rank and the ends; with many
// stages, only moves among these. `start` must fit below `limit`.
Layout improved_layout(costmodel::ParallelPlan plan, const std::vector<int>& start,
                       costmodel::Bytes limit, costmodel::Evaluator& evaluator,
                       const Spend& spend = {});

}  // namespace planner
