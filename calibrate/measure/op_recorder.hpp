// A device that notes how long each pass of each operator takes on the device behind it.
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
    std::vector<double> times;      // seconds, one a call
    std::vector<double> slowdowns;  // of each
    Timing timing() const { return at_reference(times, slowdowns); }
  };

  // `device` outlives this.
  OpRecorder(runtime::Device& device, Clock clock, Pace pace)
      : DeviceAround(device), clock_(std::move(clock)), pace_(std::move(pace)) {}

  // What passes between two operators (memory taken, ids drawn, data copied) belongs to the second;
  // of the first after this, from here on.
  void begin();
  void forget();  // all times so far
  // By layer and position; the op lists they came from need not live any more.
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
