#include "runtime/training/stage_executor.hpp"

// StageExecutor's pipeline transfers: a micro-batch's activations and their gradients, of which
// each tensor rank sends its part when they are split over the tensor ranks (scatter-gather).
#include <cstddef>
#include <cstdint>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

int StageExecutor::rank_of_stage(int stage) const {
  Coordinates there = at_;
  there.pp = costmodel::rank_of(plan_.schedule, plan_.pp, stage);
  return static_cast<int>(mesh_.rank(there));
}

bool StageExecutor::splits_transfers() const {
  return plan_.tp > 1 && !plan_.sequence_parallel &&
         evaluator_.training().stack.collectives.scatter_gather;
}

// The part of a stage's result that this rank sends or receives.
Vector StageExecutor::transferred(const Vector& all) const {
  if (!splits_transfers()) return all;
  const Chunk chunk = chunk_of(all.size, plan_.tp, at_.tp);
  return all.subspan(chunk.begin, chunk.size);
}

void StageExecutor::send(const Block& block, int to_stage, int tag) {
  const Vector values = transferred({block.data(), block.bytes() / bytes_of(number_), number_});
  transport_.send(rank_of_stage(to_stage), tag,
                  {static_cast<const std::byte*>(values.data), values.bytes()});
  traffic_.add(CollectiveKind::send, values.bytes());
}

std::size_t StageExecutor::result_elements() const {
  const std::int64_t tokens = plan_.micro_batch * evaluator_.training().sequence;
  const std::int64_t rows = plan_.sequence_parallel ? tokens / plan_.tp : tokens;
  return static_cast<std::size_t>(rows * evaluator_.model().hidden);
}

Block StageExecutor::receive(int from_stage, int tag) {
  const std::size_t elements = result_elements();
  Block block = arena_.take(MemoryKind::activations, elements * bytes_of(number_));
  const Vector values = transferred({block.data(), elements, number_});
  transport_.recv(rank_of_stage(from_stage), tag,
                  {static_cast<std::byte*>(values.data), values.bytes()});
  if (splits_transfers())
    tensor_.all_gather({block.data(), elements, number_}, collective_tag(tensor_channel));
  return block;
}

void StageExecutor::announce(const std::vector<Action>& actions) {
  const std::size_t bytes =
      transferred({nullptr, result_elements(), number_}).size * bytes_of(number_);
  for (const Action& a : actions) {
    if (a.kind == ActionKind::recv_forward)
      transport_.expect(rank_of_stage(a.stage), forward_tag(a.stage, a.micro_batch), bytes);
    if (a.kind == ActionKind::recv_backward)
      transport_.expect(rank_of_stage(a.stage), backward_tag(a.stage, a.micro_batch), bytes);
  }
}

void StageExecutor::send_forward(int stage, int micro_batch) {
  const auto found = results_.find({stage, micro_batch});
  send(found->second, stage + 1, forward_tag(stage, micro_batch));
  results_.erase(found);
}

void StageExecutor::recv_forward(int stage, int micro_batch) {
  results_[{stage, micro_batch}] = receive(stage, forward_tag(stage, micro_batch));
}

void StageExecutor::send_backward(int stage, int micro_batch) {
  const auto found = gradients_.find({stage, micro_batch});
  send(found->second, stage - 1, backward_tag(stage, micro_batch));
  gradients_.erase(found);
}

void StageExecutor::recv_backward(int stage, int micro_batch) {
  gradients_[{stage, micro_batch}] = receive(stage, backward_tag(stage, micro_batch));
}

}  // namespace runtime
