#include "planner/diagnosis/priced_inputs.hpp"

#include <algorithm>
#include <cmath>

namespace planner {

using namespace costmodel;

namespace {

// Spreads where no file states one. configs/fit.yaml gives constants of the same kinds what stands
// here: shares of a peak 0.03 to 0.1, sizes at which half of a rate is reached 0.4, bandwidths of
// networks 0.08 to 0.25, host times 0.7 to 1. Attention's shares are known to 5 % (median error of
// configs/microbench/attention.yaml), and a whole step's clocks differ by a tenth.
constexpr double of_rates = 0.1, of_half_sizes = 0.4, of_networks = 0.25, of_times = 0.5,
                 of_host_times = 0.7;
// The fullest rank of experts: from forced balance to what papers show untrained routers do.
constexpr double of_imbalance = 0.15;
constexpr double no_limit = 1e18;

// What is known of a number beyond its value.
struct Fact {
  std::string key, name;
  Dimension unit = Dimension::count;
  double spread = 0;  // where no file states one
  double least = 0, most = no_limit;
  std::string from = "assumed";  // who says so
  std::string file = {},
              fit_key = {};  // where it is written, as StatedSpread says it; empty: nowhere
};

bool names(const StatedSpread& stated, const std::string& file) {
  return std::ranges::find(stated.files, file) != stated.files.end();
}

class Inputs {
 public:
  Inputs(const Scenario& scenario, const std::vector<StatedSpread>& stated)
      : scenario_(scenario), stated_(stated) {}

  // `set` may not be called for a number that is 0: then it is off or unknown.
  void add(const Fact& fact, double value, std::function<void(Scenario&, double)> set) {
    if (!(value > 0)) return;
    PricedInput input{.key = fact.key,
                      .name = fact.name,
                      .unit = fact.unit,
                      .value = value,
                      .least = std::min(value, fact.least),
                      .most = std::max(value, fact.most),
                      .spread = fact.spread,
                      .from = fact.from,
                      .set = std::move(set)};
    settle(fact, input);
    input.low = std::max(input.least, value * std::exp(-input.spread));
    input.high = std::min(input.most, value * std::exp(input.spread));
    all_.push_back(std::move(input));
  }
  std::vector<PricedInput> ended() { return std::move(all_); }
  const Scenario& scenario() const { return scenario_; }

 private:
  void settle(const Fact& fact, PricedInput& input) const {
    const StatedSpread* like = nullptr;
    const std::string kind = fact.file.substr(0, fact.file.find('/') + 1);
    for (const StatedSpread& stated : stated_) {
      if (fact.fit_key.empty() || stated.key != fact.fit_key || !(stated.spread > 0)) continue;
      if (names(stated, fact.file)) {
        take(stated, input);
        input.from = "configs/fit.yaml";
        return;
      }
      const bool alike = !stated.files.empty() && stated.files.front().starts_with(kind);
      if (alike && (like == nullptr || stated.spread > like->spread)) like = &stated;
    }
    if (like == nullptr) return;
    take(*like, input);
    input.from = "configs/fit.yaml, for " + like->files.front();
  }
  // Bounds are of the number itself; a tier's bandwidth has those of its efficiency.
  static void take(const StatedSpread& stated, PricedInput& input) {
    input.spread = stated.spread;
    if (input.unit == Dimension::bandwidth) return;
    input.least = std::min(input.value, std::max(input.least, stated.low));
    input.most = std::max(input.value, std::min(input.most, stated.high));
  }

  const Scenario& scenario_;
  const std::vector<StatedSpread>& stated_;
  std::vector<PricedInput> all_;
};

// A group of devices, the whole cluster where there is one kind.
ClusterSpec& group_at(Scenario& s, std::size_t group) {
  return s.cluster.groups.empty() ? s.cluster : s.cluster.groups[group];
}

// A number of the device of one group.
class OfDevice {
 public:
  OfDevice(Inputs& inputs, std::size_t group)
      : inputs_(inputs),
        group_(group),
        device_(groups_of(inputs.scenario().cluster)[group].device) {}

  const DeviceSpec& device() const { return device_; }
  void add(Fact fact, double DeviceSpec::*at) const {
    place(fact);
    inputs_.add(fact, device_.*at, [group = group_, at](Scenario& s, double value) {
      group_at(s, group).device.*at = value;
    });
  }
  template <class Unit>
  void add(Fact fact, Quantity<Unit> DeviceSpec::*at) const {
    place(fact);
    inputs_.add(fact, (device_.*at).value, [group = group_, at](Scenario& s, double value) {
      (group_at(s, group).device.*at).value = value;
    });
  }
  void add(Fact fact, double value, const std::function<void(DeviceSpec&, double)>& set) const {
    place(fact);
    inputs_.add(fact, value, [group = group_, set](Scenario& s, double to) {
      set(group_at(s, group).device, to);
    });
  }

 private:
  void place(Fact& fact) const {
    fact.fit_key = fact.key;
    fact.file = "devices/" + device_.name;
    fact.key = "device." + fact.key;
    if (!inputs_.scenario().cluster.groups.empty()) {
      const std::string& group = inputs_.scenario().cluster.groups[group_].name;
      fact.key = group + "." + fact.key;
      fact.name += " of " + group;
    }
  }

  Inputs& inputs_;
  std::size_t group_;
  const DeviceSpec& device_;
};

// A part of a peak, and a time.
Fact share(const std::string& key, const std::string& name) {
  return {.key = key, .name = name, .spread = of_rates, .most = 1};
}

Fact duration(const std::string& key, const std::string& name) {
  return {.key = key, .name = name, .unit = Dimension::time, .spread = of_times};
}

void add_products(const OfDevice& of, Precision precision) {
  of.add(share("gemm.efficiency", "rate of products"), &DeviceSpec::gemm_efficiency);
  const auto at = static_cast<std::size_t>(precision);
  const std::string word(to_string(precision));
  of.add(share("gemm.precision_efficiency." + word, "rate of products in " + word),
         of.device().gemm_precision_efficiency.at(at), [at](DeviceSpec& device, double value) {
           device.gemm_precision_efficiency.at(at) = value;
         });
  of.add({.key = "gemm.half_k", .name = "inner size of half that rate", .spread = of_half_sizes},
         &DeviceSpec::gemm_half_k);
  of.add(duration("gemm.start_s", "start of a product"), &DeviceSpec::gemm_start);
}

void add_attention(const OfDevice& of, AttentionKernel kernel) {
  const bool older = kernel == AttentionKernel::flash2;
  const std::string key = older ? "attention.flash2_" : "attention.";
  of.add(share(key + "forward_efficiency", "rate of attention, forward"),
         older ? &DeviceSpec::attention2_forward : &DeviceSpec::attention_forward);
  of.add(share(key + "backward_efficiency", "rate of attention, backward"),
         older ? &DeviceSpec::attention2_backward : &DeviceSpec::attention_backward);
}

void add_kernels(const OfDevice& of) {
  of.add(share("memory_efficiency.large", "memory bandwidth reached"),
         &DeviceSpec::memory_efficiency);
  of.add({.key = "memory_efficiency.half_bytes",
          .name = "bytes of half that bandwidth",
          .unit = Dimension::size,
          .spread = of_half_sizes},
         &DeviceSpec::memory_half);
  of.add(duration("launch.kernel_s", "launch of a kernel"), &DeviceSpec::kernel_launch);
  of.add(duration("launch.graph_kernel_s", "launch of a kernel from a graph"),
         &DeviceSpec::graph_kernel_launch);
  of.add(share("power.idle_boost", "clock gained by idling"), &DeviceSpec::idle_boost);
  of.add({.key = "host.bandwidth_bytes_per_s",
          .name = "bandwidth to the host",
          .unit = Dimension::bandwidth,
          .spread = of_networks},
         &DeviceSpec::host_bandwidth);
  if (of.device().measured.empty()) return;
  of.add({.key = "measured", .name = "measured operators, their rate", .spread = of_rates}, 1,
         [](DeviceSpec& device, double factor) {
           for (auto& table : device.measured)
             for (double& rate : table.rates) rate *= factor;
         });
}

// Its size is known; how much a plan needs is predicted, and that is what less or more of it means.
void add_memory(const OfDevice& of) {
  of.add({.key = "memory.bytes",
          .name = "device memory",
          .unit = Dimension::size,
          .spread = usual_memory_margin,
          .from = "published peaks (docs/accuracy.md)"},
         &DeviceSpec::memory);
}

void scale_bandwidth(Tier& tier, double factor) {
  tier.bandwidth *= factor;
  tier.single *= factor;
  for (auto& group : tier.groups) group.bandwidth *= factor;
  for (auto& table : tier.measured)
    for (double& rate : table.curve.rates) rate *= factor;
}

// The tiers of a group, or with `join` those that join groups.
void add_tiers(Inputs& inputs, const ClusterSpec& cluster, bool join, std::size_t group) {
  const auto tier_at = [join, group](Scenario& s, std::size_t i) -> Tier& {
    return (join ? s.cluster : group_at(s, group)).tiers[i];
  };
  const std::string path = (join ? "cluster" : cluster.name) + ".tiers.";
  for (std::size_t i = 0; i < cluster.tiers.size(); ++i) {
    const Tier& tier = cluster.tiers[i];
    const std::string key = path + tier.name + ".";
    const auto fact = [&](const char* last, const std::string& name, Dimension unit,
                          double spread) {
      return Fact{.key = key + last,
                  .name = name + tier.name + (join ? "" : " of " + cluster.name),
                  .unit = unit,
                  .spread = spread,
                  .file = "clusters/" + cluster.name,
                  .fit_key = "tiers." + tier.name + "." + last};
    };
    Fact bandwidth =
        fact("bandwidth_bytes_per_s", "bandwidth of ", Dimension::bandwidth, of_networks);
    bandwidth.fit_key = "tiers." + tier.name + ".efficiency";
    bandwidth.most = tier.bandwidth.value / tier.efficiency;  // all of what is nominal
    inputs.add(bandwidth, tier.bandwidth.value, [tier_at, i](Scenario& s, double value) {
      Tier& at = tier_at(s, i);
      scale_bandwidth(at, value / at.bandwidth.value);
    });
    inputs.add(fact("latency_s", "latency of ", Dimension::time, of_times), tier.latency.value,
               [tier_at, i](Scenario& s, double value) { tier_at(s, i).latency.value = value; });
    inputs.add(fact("fixed_s", "start of a collective on ", Dimension::time, of_times),
               tier.fixed.value,
               [tier_at, i](Scenario& s, double value) { tier_at(s, i).fixed.value = value; });
  }
}

void add_network(Inputs& inputs) {
  const ClusterSpec& cluster = inputs.scenario().cluster;
  for (std::size_t g = 0; g < cluster.groups.size(); ++g)
    add_tiers(inputs, cluster.groups[g], false, g);
  add_tiers(inputs, cluster, true, 0);
  inputs.add({.key = "cluster.straggler.per_doubling",
              .name = "wait for the slowest node",
              .spread = of_times,
              .file = "clusters/" + cluster.name,
              .fit_key = "straggler.per_doubling"},
             cluster.straggler_per_doubling,
             [](Scenario& s, double value) { s.cluster.straggler_per_doubling = value; });
  inputs.add({.key = "cluster.launch_blocking.kernel_s",
              .name = "idle time behind a kernel",
              .unit = Dimension::time,
              .spread = of_host_times,
              .file = "clusters/" + cluster.name,
              .fit_key = "launch_blocking.kernel_s"},
             cluster.launch_blocked.value,
             [](Scenario& s, double value) { s.cluster.launch_blocked.value = value; });
}

// A number of the framework's: `at` finds it.
void add_stack(Inputs& inputs, const char* key, const char* name, Dimension unit, double spread,
               double& (*at)(StackSpec&)) {
  StackSpec stack = inputs.scenario().training.stack;
  const double value = at(stack);
  const std::string_view last(key);
  const bool part = last.ends_with("eager_overlap") || last.ends_with("exchange_efficiency");
  const bool slowdown = last.ends_with(".factor");
  inputs.add({.key = std::string("stack.") + key,
              .name = name,
              .unit = unit,
              .spread = spread,
              .least = slowdown ? 1.0 : 0.0,
              .most = part ? 1 : no_limit,
              .file = "stacks/" + stack.name,
              .fit_key = key},
             value, [at](Scenario& s, double to) { at(s.training.stack) = to; });
}

void add_framework(Inputs& inputs) {
  using S = StackSpec;
  constexpr auto time = Dimension::time, count = Dimension::count;
  add_stack(inputs, "launch.kernel_s", "host time of a kernel", time, of_host_times,
            [](S& s) -> double& { return s.host.kernel_launch.value; });
  add_stack(inputs, "launch.collective_s", "wait at a collective", time, of_host_times,
            [](S& s) -> double& { return s.host.collective_wait.value; });
  add_stack(inputs, "launch.micro_batch_s", "host time of a micro-batch", time, of_host_times,
            [](S& s) -> double& { return s.host.micro_batch.value; });
  add_stack(inputs, "launch.iteration_s", "host time of an iteration", time, of_host_times,
            [](S& s) -> double& { return s.host.iteration.value; });
  add_stack(inputs, "launch.tensor_collective_s", "host time of a tensor-parallel collective", time,
            of_host_times, [](S& s) -> double& { return s.host.tensor_collective.value; });
  add_stack(inputs, "elementwise.factor", "element-wise kernels", count, of_half_sizes,
            [](S& s) -> double& { return s.kernels.elementwise_factor; });
  add_stack(inputs, "fused_attention.factor", "attention kernel", count, of_rates,
            [](S& s) -> double& { return s.kernels.attention_factor; });
  add_stack(inputs, "beside_sharding.factor", "computation beside sharding's collectives", count,
            of_rates, [](S& s) -> double& { return s.zero.slowdown; });
  // No file has it: plan/stack_spec.hpp, overlap_slowdown.
  inputs.add({.key = "overlap_slowdown",
              .name = "computation beside collectives",
              .spread = of_rates,
              .least = 1},
             inputs.scenario().training.overlap.slowdown,
             [](Scenario& s, double value) { s.training.overlap.slowdown = value; });
}

void add_calls(Inputs& inputs) {
  if (!inputs.scenario().training.stack.host.counts_calls) return;
  for (std::size_t g = 0; g < groups_of(inputs.scenario().cluster).size(); ++g) {
    OfDevice(inputs, g).add({.key = "launch.call_s",
                             .name = "host time of a call",
                             .unit = Dimension::time,
                             .spread = of_host_times},
                            &DeviceSpec::host_call);
  }
}

void add_experts(Inputs& inputs) {
  using S = StackSpec;
  if (inputs.scenario().model.experts == 0) return;
  constexpr auto time = Dimension::time, count = Dimension::count;
  if (!inputs.scenario().training.expert_load.given()) {
    inputs.add({.key = "training.expert_imbalance",
                .name = "load of the fullest rank of experts",
                .spread = of_imbalance,
                .least = 1},
               inputs.scenario().training.expert_imbalance,
               [](Scenario& s, double value) { s.training.expert_imbalance = value; });
  }
  add_stack(inputs, "experts.start_s", "start of an expert's product", time, of_times,
            [](S& s) -> double& { return s.experts.start.value; });
  add_stack(inputs, "experts.narrow_start_s", "start of an expert's narrow product", time, of_times,
            [](S& s) -> double& { return s.experts.start_narrow.value; });
  add_stack(inputs, "experts.fused_start_s", "start of an expert in the fused kernel", time,
            of_times, [](S& s) -> double& { return s.experts.start_fused.value; });
  add_stack(inputs, "experts.dropless_host_s", "host time of an expert", time, of_host_times,
            [](S& s) -> double& { return s.experts.dropless_host.value; });
  add_stack(inputs, "experts.permute_factor", "kernels that sort tokens", count, of_half_sizes,
            [](S& s) -> double& { return s.experts.permute_factor; });
  add_stack(inputs, "experts.exchange_efficiency", "rate of the expert exchange", count,
            of_networks, [](S& s) -> double& { return s.experts.exchange_efficiency; });
  add_stack(inputs, "experts.eager_overlap", "hidden part of the expert exchange", count,
            of_networks, [](S& s) -> double& { return s.experts.eager_overlap; });
}

}  // namespace

std::vector<PricedInput> priced_inputs(const Scenario& scenario,
                                       const std::vector<StatedSpread>& stated) {
  Inputs inputs(scenario, stated);
  for (std::size_t g = 0; g < groups_of(scenario.cluster).size(); ++g) {
    const OfDevice of(inputs, g);
    add_products(of, scenario.training.precision);
    add_attention(of, scenario.training.stack.kernels.attention);
    add_kernels(of);
    add_memory(of);
  }
  add_network(inputs);
  add_framework(inputs);
  add_calls(inputs);
  add_experts(inputs);
  return inputs.ended();
}

}  // namespace planner
