#include "costmodel/estimate/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace costmodel {

namespace {

std::string routing_note(const TrainingSpec& t, const ParallelPlan& plan) {
  std::string note = fmt::format("expert_load ({}): ", t.expert_load.form);
  note += plan.ep == 1
              ? "with ep 1 every rank has all experts, so no rank has more rows than another"
              : fmt::format("of {} ranks the fullest computes {:.3g} times the mean of routed rows",
                            plan.ep, fullest_load(plan, t));
  if (t.capacity_factor > 0) {
    note += fmt::format(
        "; rows of an expert beyond {:g} times the mean, {:.2g} % of all, are "
        "dropped",
        t.capacity_factor, 100 * t.expert_load.dropped);
  }
  return note;
}

// How far this run is from those that were traced: a trace of equal shapes counts in full.
std::string traced_note(const OwnRuns& own) {
  const auto [trace, nearest] = nearest_trace(own.traces, own.shape);
  const TracedShape& of = trace->shape;
  const bool same =
      nearest == 1 && of.layers == own.shape.layers && of.global_batch == own.shape.global_batch;
  const std::string how_near =
      same ? "this job, whose plan may differ"
           : fmt::format("{:.0f} % as near in shapes as a job is to itself", 100 * nearest);
  return fmt::format(
      "cluster.measured: kernels by {} trace{} of this stack; the nearest is of {} layers of width "
      "{}, {} x {} tokens, {}compiled: {}",
      own.traces.size(), own.traces.size() == 1 ? "" : "s", of.layers, format_integer(of.hidden),
      format_integer(of.global_batch), format_integer(of.sequence), of.compiled ? "" : "not ",
      how_near);
}

// What is assumed of what leaves the device.
void add_offload(const Workload& on, const ParallelPlan& plan, const Offload& offload,
                 std::vector<std::string>& notes) {
  if (offload.layers > 0) {
    notes.push_back(fmt::format("activations of {} of {} layers wait in host memory",
                                offload.layers, on.model.layers));
  }
  if (plan.offload.modules != 0) {
    notes.push_back(fmt::format(
        "activations of {} wait in host memory, {} to each device; no published run decides their "
        "time: {} a micro-batch of the transfers are not hidden",
        fmt::join(offload_modules(plan.offload.modules), ", "),
        format_bandwidth(on.cluster.device.host_bandwidth), format_seconds(offload.exposed())));
  }
  if (plan.offload.states()) {
    const bool known = on.cluster.host_memory_bandwidth.value > 0;
    notes.push_back(fmt::format(
        "offload: no published run decides its time: CPU-Adam's rate (arXiv:2101.06840, table 4) "
        "at {} of a node's processors{}, {} to each device",
        format_bandwidth(host_memory_bandwidth(on.cluster)),
        known ? "" : " (assumed, as in a DGX-2: host.memory_bandwidth_bytes_per_s)",
        format_bandwidth(on.cluster.device.host_bandwidth)));
  }
  if (plan.offload.on_drives()) {
    const DriveSpec drives = drives_of(on.cluster);
    notes.push_back(fmt::format(
        "NVMe: a node's drives read {} and write {}{}; the step reads, updates and writes a group "
        "of parameters at a time, with nothing overlapped (pipeline_read and pipeline_write off)",
        format_bandwidth(drives.read), format_bandwidth(drives.write),
        on.cluster.drives.read.value > 0
            ? ""
            : " (assumed, four PCIe 4 drives: host.nvme_read_bytes_per_s)"));
  }
}

// What reads a model before it is sharded may need more than the training does: every process of
// Transformers has all of it in host memory, and on its device where a device_map puts it there
// (modeling_utils.py, from_pretrained), unless DeepSpeed's zero.Init or FSDP's
// cpu_ram_efficient_loading keeps it from that.
void add_loading(const Workload& on, const ParallelPlan& plan, std::vector<std::string>& notes) {
  const TrainingSpec& t = on.training;
  if (plan.zero < 3 || !t.stack.offers.data_parallel_only ||
      t.fine_tuning.base == BasePrecision::nf4)
    return;
  const Bytes all(parameter_count(on.model) * storage_bytes(t.precision));
  const Bytes node = all * static_cast<double>(ranks_on_a_node(on.cluster));
  const Bytes host = on.cluster.host_memory;
  const bool too_much = host.value > 0 && node > host;
  if (all <= on.cluster.device.memory && !too_much) return;
  std::string note =
      fmt::format("loading: a process that reads all weights before they are sharded holds {}",
                  format_bytes(all));
  if (all > on.cluster.device.memory)
    note += fmt::format(", more than a device's {}", format_bytes(on.cluster.device.memory));
  note += fmt::format(", and a node's {} in host memory", format_bytes(node));
  if (too_much) note += fmt::format(", of {}: too much", format_bytes(host));
  notes.push_back(note +
                  "; DeepSpeed's zero.Init (HfDeepSpeedConfig before from_pretrained) or FSDP's "
                  "cpu_ram_efficient_loading read it once, and no device_map");
}

}  // namespace

std::vector<std::string> notes_of(const Workload& on, const ParallelPlan& plan,
                                  const Offload& offload) {
  std::vector<std::string> notes;
  if (on.training.expert_load.given()) notes.push_back(routing_note(on.training, plan));
  add_offload(on, plan, offload, notes);
  add_loading(on, plan, notes);
  if (!on.model.assumed.empty()) {
    notes.push_back(fmt::format("model: the {} family's usual {}",
                                model_kind_names[static_cast<std::size_t>(on.model.kind)],
                                fmt::join(on.model.assumed, ", ")));
  }
  if (!on.model.questioned.empty()) notes.push_back("model: " + on.model.questioned);
  if (on.training.overlap.cuda_graph) {
    const Seconds each = on.cluster.device.graph_kernel_launch;
    notes.push_back(fmt::format(
        "cuda_graph: launches are replayed, {}",
        each > Seconds(0) ? fmt::format("{} a kernel at least", format_seconds(each))
                          : "and cost nothing: the device's file has no launch.graph_kernel_s"));
  }
  const auto& kernels = on.training.stack.kernels;
  if (on.training.overlap.compile && !kernels.eager.empty() && kernels.compiled.empty()) {
    notes.push_back(fmt::format(
        "compile: {} has no compiled kernels here: priced as without torch.compile, with which it "
        "takes less time and memory",
        on.training.stack.name));
  }
  if (on.training.fine_tuning.adapts()) {
    notes.push_back(
        "fine-tuning: model FLOPs and MFU count what is computed, two thirds of a frozen product's "
        "(no weight gradient) and the adapters");
  }
  for (const TowerSpec& tower : towers_of(on.model)) {
    const auto name = tower_names[static_cast<std::size_t>(tower.input)];
    notes.push_back(fmt::format(
        "{} tower: on the first stage, for all {} of a micro-batch{}; no published run decides its "
        "time",
        name, tower.input == TowerInput::vision ? "images" : "clips",
        plan.cp > 1 ? ", on every rank of a context-parallel group" : ""));
  }
  for (const auto& assumption : on.training.assumed) notes.push_back("training: " + assumption);
  for (const auto& assumption : on.cluster.assumed) notes.push_back("cluster: " + assumption);
  if (const OwnRuns& own = on.cluster.measured; own.time_factor != 1) {
    notes.push_back(
        fmt::format("cluster.measured: all times are {:.4g} times what the formulas say, by {} "
                    "run{} of its own",
                    own.time_factor, own.runs, own.runs == 1 ? "" : "s"));
  }
  if (!on.cluster.measured.traces.empty()) notes.push_back(traced_note(on.cluster.measured));
  notes.push_back(on.training.error_band.basis);
  notes.push_back(on.training.peak_errors.basis);
  return notes;
}

}  // namespace costmodel
