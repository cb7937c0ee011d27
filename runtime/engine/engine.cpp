#include "runtime/engine/engine.hpp"

#include <utility>

namespace runtime {

namespace {

using namespace costmodel;

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

void perform(std::span<const Action> cell, StageBackend& backend) {
  if (cell.size() == 1) return perform(cell.front(), backend);
  backend.together(cell);
}

bool computes(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::backward ||
         kind == ActionKind::weight_gradient;
}

costmodel::Stream stream_of(ActionKind kind) {
  return computes(kind) ? costmodel::Stream::compute : costmodel::Stream::pipeline_transfer;
}

}  // namespace

void StageBackend::together(std::span<const Action> cell) {
  for (const Action& action : cell) perform(action, *this);
}

costmodel::Event execute(std::span<const Action> cell, int rank, StageBackend& backend) {
  const Seconds start = backend.now();
  perform(cell, backend);
  return {rank, stream_of(cell.front().kind), to_text(cell), start, backend.now()};
}

std::vector<costmodel::Event> execute(const Schedule& lowered, int rank, StageBackend& backend,
                                      const std::function<void(const Action&)>& begins) {
  const auto& actions = lowered.actions[static_cast<std::size_t>(rank)];
  std::vector<std::pair<Moment, Moment>> moments;
  moments.reserve(actions.size());
  for (std::size_t at = 0; at < actions.size();) {
    const auto cell = cell_at(actions, at);
    if (begins) begins(cell.front());
    const Moment start = backend.moment();
    perform(cell, backend);
    moments.emplace_back(start, backend.moment());
    at += cell.size();
  }
  std::vector<costmodel::Event> events;
  events.reserve(moments.size());
  std::size_t at = 0;
  for (const auto& [start, end] : moments) {
    const auto cell = cell_at(actions, at);
    events.push_back({rank, stream_of(cell.front().kind), to_text(cell), backend.time_of(start),
                      backend.time_of(end)});
    at += cell.size();
  }
  return events;
}

}  // namespace runtime
