// Uneven layouts: the layers of each (virtual) stage of a plan. Embedding and loss count as layers,
// so the first and the last stage may hold nothing else; every other stage holds at least one
// layer. Same rules as Megatron's --pipeline-model-parallel-layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/effort.hpp"
#include "planner/solvers/pipeline_cut.hpp"

namespace planner {

// The most even layout, embedding and loss counted as layers; larger shares first.
std::vector<int> balanced_layout(std::int64_t layers, int stages);

// The stages of any layout of a plan into p stages of one chunk that fits below `limit` bytes, by
// what they hold and whether they are the first, the last or between; each is priced once. The
// evaluator must outlive this.
class LayoutStages {
 public:
  LayoutStages(const costmodel::ParallelPlan& plan, costmodel::Bytes limit,
               costmodel::Evaluator& evaluator);

  const costmodel::ParallelPlan& plan() const { return plan_; }
  costmodel::Evaluator& evaluator() const { return *evaluator_; }

  // The stage of layers first .. end - 1; null: there is none. Layer 0 is the embedding, the last
  // one the loss.
  const CutStage* stage(int first, int end);

  // The effort since the last call.
  std::uint64_t spent();

 private:
  using Places = std::array<CutStage, 3>;

  const Places* places(int from, int layers);
  Places priced(const costmodel::LayerMix& content);
  CutStage stage(const costmodel::PlanCost& cost, int from, int to) const;

  costmodel::ParallelPlan plan_;
  costmodel::Recompute recompute_;
  costmodel::Bytes limit_;
  costmodel::Evaluator* evaluator_;
  std::uint64_t spent_ = 0;
  std::map<costmodel::LayerMix, Places> priced_;
  std::vector<std::vector<const Places*>> known_;  // by first layer, where that matters, and number
};

// A cut of the plan's layers into its stages, and what no layout of the plan that fits undercuts:
// the bound of pipeline_cut with the cost model's own times, and what follows the pipeline. Layouts
// whose bound is larger than `longest` are left out.
struct LayoutCut {
  std::vector<int> stage_layers;  // empty: none fits, or none is quick enough
  std::vector<int> least_work;    // likewise, of the layout whose stages take least together
  costmodel::Seconds bound;       // of an iteration; infinite without a layout
  bool too_slow = false;          // no layout is quick enough, whatever fits
  bool expired = false;           // there may be a layout
};
LayoutCut cut_layout(
    LayoutStages& stages,
    costmodel::Seconds longest = costmodel::Seconds(std::numeric_limits<double>::infinity()),
    const Spend& spend = {});

// The layers of the cut of least bound whatever memory it takes. Empty: effort is over.
std::vector<int> cut_by_time(LayoutStages& stages, const Spend& spend);

// All layouts of the plan that fit and whose bound, as above, is at most `longest`. Nothing when
// there are more than `most`, or too much to look at.
std::optional<std::vector<std::vector<int>>> layouts_within(LayoutStages& stages,
                                                            costmodel::Seconds longest,
                                                            std::size_t most);

// Whether some layout of the plan fits.
bool some_layout_fits(LayoutStages& stages);

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
