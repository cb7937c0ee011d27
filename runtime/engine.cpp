#include "runtime/engine.hpp"

namespace runtime {

namespace {

using costmodel::Action;
using costmodel::ActionKind;

void perform(const Action& a, StageBackend& backend) {
  switch (a.kind) {
    case ActionKind::forward: return backend.forward(a.stage, a.micro_batch);
    case ActionKind::backward: return backend.backward(a.stage, a.micro_batch);
    case ActionKind::weight_gradient: return backend.weight_gradient(a.stage, a.micro_batch);
    case ActionKind::send_forward: return backend.send_forward(a.stage, a.micro_batch);
    case ActionKind::recv_forward: return backend.recv_forward(a.stage, a.micro_batch);
    case ActionKind::send_backward: return backend.send_backward(a.stage, a.micro_batch);
    case ActionKind::recv_backward: return backend.recv_backward(a.stage, a.micro_batch);
  }
}

bool computes(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::backward ||
         kind == ActionKind::weight_gradient;
}

}  // namespace

costmodel::Event execute(const Action& action, int rank, StageBackend& backend) {
  const costmodel::Seconds start = backend.now();
  perform(action, backend);
  return {rank,
          computes(action.kind) ? costmodel::Stream::compute : costmodel::Stream::pipeline_transfer,
          costmodel::to_text(action), start, backend.now()};
}

std::vector<costmodel::Event> execute(const costmodel::Schedule& lowered, int rank,
                                      StageBackend& backend,
                                      const std::function<void(const Action&)>& begins) {
  std::vector<costmodel::Event> events;
  const auto& actions = lowered.actions[static_cast<std::size_t>(rank)];
  events.reserve(actions.size());
  for (const Action& action : actions) {
    if (begins) begins(action);
    events.push_back(execute(action, rank, backend));
  }
  return events;
}

}  // namespace runtime
