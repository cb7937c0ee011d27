// A decorator that records the time of every pass of every operator on the wrapped device.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/measure/measurement.hpp"
#include "costmodel/operators/op_list.hpp"
#include "runtime/devices/device_wrapper.hpp"

namespace calibrate {

class OpRecorder : public runtime::DeviceAround {
 public:
  struct Entry {
    std::string node;
    costmodel::Op op;
    costmodel::Pass pass = costmodel::Pass::forward;
    std::vector<double> times;      // seconds, one per call
    std::vector<double> slowdowns;  // one per call
    Timing timing() const { return at_reference(times, slowdowns); }
  };

  // `device` outlives this.
  OpRecorder(runtime::Device& device, Clock clock, Pace pace)
      : DeviceAround(device), clock_(std::move(clock)), pace_(std::move(pace)) {}

  // Time between two operators (allocation, random ids, copies) counts for the second; for the
  // first operator after this call, from the call on.
  void begin();
  void forget();  // discards all times so far
  // One entry per node and pass, by position within a layer; the op lists may be gone by now.
  std::vector<Entry> entries() const;

 private:
  void around(Work work, const runtime::OpCall& call) override;
  void note(const runtime::OpCall& call, costmodel::Pass pass);

  Clock clock_;
  PaceAround pace_;
  costmodel::Seconds mark_;
  std::map<std::pair<const costmodel::Node*, costmodel::Pass>, Entry> entries_;
};

}  // namespace calibrate
