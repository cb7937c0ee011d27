// The strategies of one operator on a mesh: how each axis splits it, where weights, gradients and
// optimizer states are stored, the required collectives, and the cost per device and iteration.
//
// Communication counts as far as the cost model leaves it exposed (exposure.hpp). Kernel launches
// count nothing, as in Alpa, because they belong to a layer, not to an operator. Ranks with the
// same weights combine the reductions and gathers of many operators in one message (per layer
// within a micro-batch, per stage at its end), so an operator pays its share of such a message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/estimate/pricing.hpp"
#include "planner/sharding/device_mesh.hpp"
#include "planner/sharding/local_op.hpp"
#include "planner/solvers/sharding_problem.hpp"

namespace planner {

// The prices of all operators of a stage. Valid as long as the objects it points to.
struct StagePrices {
  MeshPrices mesh;
  const costmodel::TrainingSpec* training;
  // Without launches; pricing_zero3 is for ZeRO-3, which does not accumulate gradients.
  costmodel::Pricing pricing, pricing_zero3;
  double slowdown = 1;  // factor for devices that compute concurrently
  std::int64_t micro_batches = 1;
  double in_flight = 1;                  // micro-batches in flight
  double layer_operators = 1;            // with weights, per message in a micro-batch
  double stage_operators = 1;            // and at the end of the iteration
  double layers = 1;                     // of the stage
  costmodel::Seconds forward, backward;  // a micro-batch's passes over the stage; 0: nothing beside
};

// A tensor kept for backward, in the layout of an input (by index) or of the output (-1).
struct KeptTensor {
  int input = -1;
  costmodel::Bytes bytes;
};

// An unsharded operator of the stage.
struct OperatorSite {
  costmodel::Node node;
  LocalOp op;
  std::vector<costmodel::Bytes> inputs;  // unsharded tensors
  costmodel::Bytes output;
  std::vector<KeptTensor> kept;
  bool again = false;  // recomputed in backward
  // Columns of the rows that the operator exchanges with the experts and that must be sorted by
  // expert, because the exchange groups them by sender; 0: none.
  std::int64_t sorted_columns = 0;
};

struct OperatorStrategy {
  std::array<Split, 2> split{Split::whole, Split::whole};
  int zero = 0;  // over axes that split rows: 1 optimizer states, 2 also gradients, 3 also weights
  TensorLayout input{}, gradient{}, output{};  // gradient: of the input, as computed
  std::vector<Exchange> forward, backward;     // per micro-batch
  std::vector<Exchange> ending;  // once per iteration, with ZeRO-2 and 3 also per micro-batch:
                                 // weights and their gradients
  costmodel::Seconds compute, communication, optimizer;  // per iteration; communication: exposed
  costmodel::Seconds weight_gradient;  // of a product, per micro-batch: what a sum runs beside
  costmodel::Bytes states, activations;
  ShardingChoice choice() const {
    return {(compute + communication + optimizer).value, (states + activations).value};
  }
};

// All strategies that the operator and the mesh allow; an axis of size 1 splits nothing. A strategy
// whose collectives the network cannot carry has infinite time.
std::vector<OperatorStrategy> strategies_of(const OperatorSite& site, const StagePrices& prices);

// The layout in which a strategy reads an input, or computes its gradient. All inputs have the same
// layout, except the rotary key of latent attention, which all heads share.
TensorLayout input_layout(const OperatorSite& site, const OperatorStrategy& strategy, int input);
TensorLayout gradient_layout(const OperatorSite& site, const OperatorStrategy& strategy, int input);

// "columns over axis 1, rows over axis 0 with ZeRO-3"; "replicated" when no axis splits it.
std::string to_string(const OperatorStrategy& strategy, const DeviceMesh& mesh);

}  // namespace planner
