#include "calibrate/measure/op_recorder.hpp"

namespace calibrate {

using namespace costmodel;
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
  const Seconds now = clock_();
  const auto [at, fresh] = entries_.try_emplace({&call.node, pass});
  if (fresh) at->second = {std::string(call.node.name()), call.node.op, pass, {}, {}};
  at->second.times.push_back((now - mark_).value);
  at->second.slowdowns.push_back(pace_.slowdown());
  mark_ = clock_();
}

void OpRecorder::around(Work work, const OpCall& call) {
  through(work, call);
  // The loss is the last of three calls that make one pass.
  if (work == Work::logits_maximum || work == Work::logits_exponentials) return;
  note(call, pass_of(work));
}

}  // namespace calibrate
