#include "calibrate/op_recorder.hpp"

namespace calibrate {

using costmodel::Pass;
using runtime::OpCall;

void OpRecorder::begin() {
  pace_.begin();
  mark_ = clock_();
}

void OpRecorder::forget() { entries_.clear(); }

std::vector<OpRecorder::Entry> OpRecorder::entries() const {
  std::vector<Entry> all;
  all.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) all.push_back(entry);
  return all;
}

void OpRecorder::note(const OpCall& call, Pass pass) {
  const costmodel::Seconds now = clock_();
  const auto [at, fresh] = entries_.try_emplace({&call.node, pass});
  if (fresh) at->second = {std::string(call.node.name), call.node.op, pass, {}, {}};
  at->second.times.push_back((now - mark_).value);
  at->second.slowdowns.push_back(pace_.slowdown());
  mark_ = clock_();
}

void OpRecorder::forward(const OpCall& call) {
  device_.forward(call);
  note(call, Pass::forward);
}

void OpRecorder::input_gradient(const OpCall& call) {
  device_.input_gradient(call);
  note(call, Pass::input_gradient);
}

void OpRecorder::weight_gradient(const OpCall& call) {
  device_.weight_gradient(call);
  note(call, Pass::weight_gradient);
}

// Three parts of one forward pass.
void OpRecorder::logits_maximum(const OpCall& call) { device_.logits_maximum(call); }

void OpRecorder::logits_exponentials(const OpCall& call) { device_.logits_exponentials(call); }

void OpRecorder::logits_loss(const OpCall& call) {
  device_.logits_loss(call);
  note(call, Pass::forward);
}

}  // namespace calibrate
