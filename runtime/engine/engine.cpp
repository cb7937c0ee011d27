#include "runtime/engine/engine.hpp"

#include <utility>

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

costmodel::Stream stream_of(ActionKind kind) {
  return computes(kind) ? costmodel::Stream::compute : costmodel::Stream::pipeline_transfer;
}

}  // namespace

costmodel::Event execute(const Action& action, int rank, StageBackend& backend) {
  const costmodel::Seconds start = backend.now();
  perform(action, backend);
  return {rank, stream_of(action.kind), costmodel::to_text(action), start, backend.now()};
}

std::vector<costmodel::Event> execute(const costmodel::Schedule& lowered, int rank,
                                      StageBackend& backend,
                                      const std::function<void(const Action&)>& begins) {
  const auto& actions = lowered.actions[static_cast<std::size_t>(rank)];
  std::vector<std::pair<Moment, Moment>> moments;
  moments.reserve(actions.size());
  for (const Action& action : actions) {
    if (begins) begins(action);
    const Moment start = backend.moment();
    perform(action, backend);
    moments.emplace_back(start, backend.moment());
  }
  std::vector<costmodel::Event> events;
  events.reserve(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    events.push_back({rank, stream_of(actions[i].kind), costmodel::to_text(actions[i]),
                      backend.time_of(moments[i].first), backend.time_of(moments[i].second)});
  }
  return events;
}

}  // namespace runtime
