// The backend that trains: one rank of a plan with its stages' layers, forward and backward, ZeRO's
// gathers and reductions, the pipeline transfers, and the end of an iteration.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/plan/mesh.hpp"
#include "runtime/backend/arena.hpp"
#include "runtime/backend/device.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/fabric_transport.hpp"
#include "runtime/ranks/staged_transport.hpp"
#include "runtime/training/gradient_reducer.hpp"
#include "runtime/training/layer_runner.hpp"
#include "runtime/training/loss_scale.hpp"
#include "runtime/training/replica_gradient_sum.hpp"

namespace runtime {

struct ExecutorOptions {
  // For direct transfers between devices; null: staged through host memory.
  FabricTransport* fabric = nullptr;
  // The pipeline whose plan and transport the executor gets; null: the plan's only one.
  const costmodel::Pipeline* pipeline = nullptr;
  GroupSum* across = nullptr;  // over all pipelines; null: there is one
  std::uint64_t seed = 1;
  Reuse reuse = Reuse::latest;   // lowest when launches are replayed from graphs
  std::size_t memory_limit = 0;  // bytes; 0: none
  cpu::AdamW optimizer{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  LossScale::Rule loss_scale = {};  // in fp16
};

// Whether the plan reduces gradients concurrently with the backward. ZeRO 2 and 3 reduce within
// each micro-batch instead; several pipelines reduce after the backward.
bool reduces_beside(const costmodel::TrainingSpec& training, const costmodel::ParallelPlan& plan);

class StageExecutor : public StageBackend {
 public:
  // Takes a valid plan that unsupported() accepts, with training in fp32, bf16 or fp16; `evaluator`
  // provides the op lists. All arguments outlive this. Throws OutOfMemory when weights and states
  // do not fit.
  StageExecutor(const costmodel::Evaluator& evaluator, const costmodel::ParallelPlan& plan,
                Transport& transport, Device& device, const ExecutorOptions& options);

  const costmodel::Coordinates& coordinates() const { return at_; }
  void begin_iteration(std::int64_t number);  // from 0
  // Announces the iteration's receives, in order (Transport::expect).
  void announce(const std::vector<costmodel::Action>& actions);
  // Reduces gradients over all ranks that hold the same weights; returns each layer's start and
  // end, in the time of now().
  std::vector<TimeSpan> reduce_gradients();
  // In fp16: whether gradients in this rank's shard are infinite or NaN; otherwise false.
  bool overflowed();
  // The optimizer step; skipped when gradients overflowed on any rank.
  void step(bool overflowed_anywhere = false);
  // Null unless training in fp16.
  const LossScale* loss_scale() const { return number_ == Number::f16 ? &scale_ : nullptr; }
  // On the last stage: the sum of the iteration's losses over this rank's tokens; else 0.
  double loss_sum() const { return runner_.loss_sum(); }

  void forward(int stage, int micro_batch) override;
  void backward(int stage, int micro_batch) override;
  void weight_gradient(int stage, int micro_batch) override;
  void send_forward(int stage, int micro_batch) override;
  void recv_forward(int stage, int micro_batch) override;
  void send_backward(int stage, int micro_batch) override;
  void recv_backward(int stage, int micro_batch) override;
  costmodel::Seconds now() const override;
  Moment moment() override;
  costmodel::Seconds time_of(const Moment& moment) override;

  const Arena& arena() const { return arena_; }
  TrafficCount traffic() const;
  void restart_counts();  // high-water marks and traffic

 private:
  struct Layer {
    const LayerProgram* program;
    LayerState* state;
    LayerState* table;  // the tied token table of its output projection, or nullptr
    std::uint64_t number;
    std::map<int, HeldTensors> held;     // by micro-batch
    std::map<int, HeldTensors> pending;  // of a split backward: gradients for weight gradients
  };
  using Key = std::pair<int, int>;  // stage, micro-batch

  GroupOperations* at_once(FabricUse use) const;
  std::size_t result_elements() const;  // of a stage, of one micro-batch on this rank
  void wait_for_action();
  Group group_along(costmodel::Axis axis) const;
  Group ends() const;
  void build_stage(int stage);
  void add_layer(int stage, costmodel::LayerKind kind, std::int64_t number, bool recomputed);
  std::vector<AdamTensor> updated();
  const LayerProgram& program_of(costmodel::LayerKind kind, bool recomputed);
  Place place_of(const Layer& layer, int micro_batch) const;
  // Gathers and releases the layer's weights around a pass.
  void enter(Layer& layer);
  void leave(Layer& layer, bool backward);
  // Call when all gradients of a micro-batch in a layer are in.
  void end_micro_batch(Layer& layer);
  void note_gradients(LayerState& state);
  Vector transferred(const Vector& result) const;
  void send(const Block& block, int to_stage, int tag);
  Block receive(int from_stage, int tag);
  int rank_of_stage(int stage) const;
  bool splits_transfers() const;
  // Sums over the tensor ranks the gradients of parameters that all of them hold and that each
  // computes from a part of the tokens.
  void reduce_partial(LayerState& state);
  void reduce_tied_table();
  // Call when the iteration's gradients of a layer are complete.
  void finish_layer(LayerState& state);
  // Reduces over the replicas of all groups.
  std::vector<TimeSpan> reduce_across();
  bool is_tied_end(const LayerState& state) const;

  const costmodel::Evaluator& evaluator_;
  costmodel::ParallelPlan plan_;
  Number number_;  // of weights and activations
  Memory& memory_;
  Streams* streams_;
  StagedTransport staged_;
  Transport& transport_;  // for tensors
  ExecutorOptions options_;
  Transport* beside_;  // of the reducing thread; null when there is none
  StagedTransport staged_beside_;
  costmodel::Mesh mesh_;
  costmodel::Coordinates at_;
  TrafficCount traffic_, replica_traffic_;  // of two threads when reductions run concurrently
  Group tensor_group_, replica_group_, ends_group_;
  Communicator tensor_, replicas_, ends_;
  Arena arena_;
  LayerRunner runner_;
  std::map<std::pair<costmodel::LayerKind, bool>, LayerProgram> programs_;
  std::deque<LayerState> states_;                                     // of each layer, in order
  std::vector<std::pair<costmodel::LayerKind, std::int64_t>> names_;  // of states_
  LayerState* table_ = nullptr;  // this rank's token table, when it is tied
  LayerState* table_copy_ = nullptr;
  bool borrowed_ = false;  // table_ is the output projection's too, on this rank
  std::map<const LayerState*, std::int64_t> summed_;  // micro-batches of the iteration, by user
  std::map<int, std::vector<Layer>> stages_;
  std::map<Key, Block> results_, gradients_;  // received, or to be sent
  GradientReducer reducer_;
  LossScale scale_;
  std::int64_t iteration_ = 0, micro_batches_ = 0;
  std::int64_t first_sequence_ = 0;      // first sequence of its group's share of the batch
  std::vector<Streams::Event> moments_;  // of the iteration; the first is its start
  std::size_t used_moments_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace runtime
