// The strategies of one operator on a mesh: what each axis divides, where weights, gradients and
// optimizer states lie, the collectives that needs, and what it costs one device in an iteration.
//
// Communication counts in full, as Alpa counts it: nothing is hidden behind computation. Nor are
// kernel launches: they belong to a layer, not to an operator. What ranks with the same weights sum
// or gather goes in one message with other operators' (of the layer within a micro-batch, of the
// stage at its end), so an operator pays its share of such a message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/sharding/device_mesh.hpp"
#include "planner/sharding/local_op.hpp"
#include "planner/solvers/sharding_problem.hpp"

namespace planner {

// What prices all operators of a stage. Good as long as what it points at.
struct StagePrices {
  MeshPrices mesh;
  const costmodel::TrainingSpec* training;
  costmodel::Pricing pricing, pricing_zero3;  // without launches; ZeRO-3 adds no gradients up
  double slowdown = 1;                        // of devices that compute together
  std::int64_t micro_batches = 1;
  double in_flight = 1;        // micro-batches whose activations are kept at once
  double layer_operators = 1;  // with weights, in one message within a micro-batch
  double stage_operators = 1;  // and at the end of the iteration
};

// A tensor kept for backward: at the layout of an input (by index), or of the output (-1).
struct KeptTensor {
  int input = -1;
  costmodel::Bytes bytes;
};

// An operator of the whole stage, before it is cut.
struct OperatorSite {
  costmodel::Node node;
  LocalOp op;
  std::vector<costmodel::Bytes> inputs;  // whole tensors
  costmodel::Bytes output;
  std::vector<KeptTensor> kept;
  bool again = false;  // computed again in backward
  // Columns of the rows that, dealt out to experts, come or go by sender and have to be sorted by
  // expert; 0: no such rows come or go.
  std::int64_t sorted_columns = 0;
};

struct OperatorStrategy {
  std::array<Split, 2> split{Split::whole, Split::whole};
  int zero = 0;  // over the axes that cut rows: 1 optimizer states, 2 and gradients, 3 and weights
  TensorLayout input{}, gradient{}, output{};  // gradient: of the input, where it is made
  std::vector<Exchange> forward, backward;     // in a micro-batch
  std::vector<Exchange> ending;                // once in an iteration, and with ZeRO-2 and 3 also
                                               // each micro-batch: weights and their gradients
  costmodel::Seconds compute, communication, optimizer;  // in an iteration
  costmodel::Bytes states, activations;
  ShardingChoice choice() const {
    return {(compute + communication + optimizer).value, (states + activations).value};
  }
};

// All that the operator and the mesh allow; an axis of one device divides nothing. Where a network
// cannot carry what a strategy needs, its time is infinite.
std::vector<OperatorStrategy> strategies_of(const OperatorSite& site, const StagePrices& prices);

// The layout in which a strategy wants an input, or makes its gradient: as its others, but for the
// rotary key of latent attention, which all heads share.
TensorLayout input_layout(const OperatorSite& site, const OperatorStrategy& strategy, int input);
TensorLayout gradient_layout(const OperatorSite& site, const OperatorStrategy& strategy, int input);

// "columns over axis 1, rows over axis 0 with ZeRO-3"; "replicated" where no axis divides it.
std::string to_string(const OperatorStrategy& strategy, const DeviceMesh& mesh);

}  // namespace planner
