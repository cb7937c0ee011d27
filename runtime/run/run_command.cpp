#include "runtime/run/run_command.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "runtime/backend/cuda_library.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/devices/graph_rules.hpp"
#include "runtime/devices/graphed_device.hpp"
#include "runtime/devices/paced_device.hpp"
#include "runtime/devices/virtual_devices.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "runtime/ranks/tcp_transport.hpp"
#include "runtime/ranks/tensor_route.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/run/agreement.hpp"
#include "runtime/run/early_end.hpp"
#include "runtime/run/emulated_run.hpp"
#include "runtime/run/free_memory.hpp"
#include "runtime/run/interrupt.hpp"
#include "runtime/run/supported.hpp"
#include "runtime/training/training_run.hpp"

namespace runtime {

using costmodel::ConfigError;
using costmodel::Evaluator;
using costmodel::format_bytes;
using costmodel::ParallelPlan;
using costmodel::Precision;
using costmodel::Scenario;

namespace {

void require_supported(const Scenario& s, const ParallelPlan& plan) {
  const auto faults = unsupported(s.model, s.training, plan);
  if (faults.empty()) return;
  throw ConfigError(s.plan.mark_of(faults.front().key), faults.front().reason,
                    faults.front().remedy);
}

void require_alike_on_gpus(const RunRequest& request, const ParallelPlan& plan) {
  if (request.backend != BackendKind::cuda || plan.replica_groups.empty()) return;
  throw ConfigError(request.scenario.plan.mark_of("replicas"),
                    "replicas of unequal shares run on CPUs and emulated ranks only",
                    "use --backend threads, mpi, tcp or emulated");
}

std::string_view products_in(const RunRequest& request) {
  const Precision precision = request.scenario.training.precision;
  return precision == Precision::fp32 && request.tf32 ? "TF32" : to_string(precision);
}

// Ranks take the machine's GPUs in turn, or fill one after the other where they are cut.
VirtualPlace place_of(const RunRequest& request, const Transport& transport) {
  const int number = one_of_several() ? local_rank() : transport.rank();
  return virtual_place(number, static_cast<int>(cuda_plugin().report().gpus.size()),
                       request.virtual_devices);
}

SmSplit split_of(const RunRequest& request, const Gpu& gpu) {
  return split_multiprocessors(sm_rule(gpu.compute_major, gpu.multiprocessors),
                               request.virtual_devices);
}

// Throws RunFault where the machine's GPUs cannot be cut, or are too few, for the ranks.
void require_virtual_devices(const RunRequest& request, const ParallelPlan& plan,
                             const CudaReport& report) {
  if (request.virtual_devices == 1) return;
  if (one_of_several()) {
    throw RunFault(
        0,
        "virtual devices are parts of one process's GPU: start it without mpirun, srun or "
        "torchrun");
  }
  for (const Gpu& gpu : report.gpus) {
    if (const SmSplit split = split_of(request, gpu); !split.refused.empty())
      throw RunFault(0, fmt::format("{}: {}", gpu.name, split.refused));
  }
  const std::string refused =
      too_many_ranks(plan.devices(), static_cast<int>(report.gpus.size()), request.virtual_devices);
  if (!refused.empty()) throw RunFault(0, refused);
}

std::vector<std::string> notes_on_gpus(const RunRequest& request, const ParallelPlan& plan) {
  const CudaReport report = cuda_plugin().report();
  require_virtual_devices(request, plan, report);
  if (request.scenario.training.precision == Precision::fp8) {
    if (const std::string missing = fp8_missing(report.gpus); !missing.empty())
      throw RunFault(0, missing);
  }
  std::vector<std::string> notes;
  const auto gpus = static_cast<std::int64_t>(report.gpus.size());
  const std::int64_t here = one_of_several() ? 1 : plan.devices();
  if (request.virtual_devices > 1) {
    const SmSplit split = split_of(request, report.gpus.front());
    notes.push_back(
        fmt::format("a GPU is {} virtual devices of {} multiprocessors, which share its "
                    "memory's bandwidth; {} multiprocessors are left out",
                    split.devices, split.each, split.left));
  } else if (here > gpus) {
    notes.push_back(
        fmt::format("{} ranks share {} GPUs: times are those of taking turns", here, gpus));
  }
  notes.push_back(fmt::format("on {}; matrix products by cuBLASLt {} in {}",
                              report.gpus.front().name, report.versions.cublas,
                              products_in(request)));
  return notes;
}

std::vector<std::string> notes_on_ranks(const RunRequest& request, const ParallelPlan& plan) {
  if (request.backend == BackendKind::cuda) return notes_on_gpus(request, plan);
  std::vector<std::string> notes;
  if (!plan.replica_groups.empty()) {
    notes.emplace_back(
        "every group runs on this machine's cores, whatever devices it is predicted for; its "
        "gradients are reduced after the backward");
  }
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  if (cores > 0 && plan.devices() > cores) {
    notes.push_back(fmt::format("{} ranks share {} cores: times are those of taking turns",
                                plan.devices(), cores));
  }
  notes.push_back(fmt::format("matrix products by {}", cpu::gemm_provider()));
  return notes;
}

std::unique_ptr<Device> device_of(const RunRequest& request, const Transport& transport) {
  if (request.backend != BackendKind::cuda) return std::make_unique<CpuDevice>();
  const CudaPlugin& cuda = cuda_plugin();
  const VirtualPlace at = place_of(request, transport);
  const SmSplit split = split_of(request, cuda.report().gpus[static_cast<std::size_t>(at.gpu)]);
  return cuda.make_device({.index = at.gpu,
                           .number = format_of(request.scenario.training.precision),
                           .tf32 = request.tf32,
                           .fp8 = request.scenario.training.precision == Precision::fp8,
                           .parts = split.devices,
                           .multiprocessors = split.each,
                           .part = at.part});
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// `seen` is the device as the engine has it, around the GPU's own.
TensorWay way_of_tensors(const RunRequest& request, const ParallelPlan& plan, Transport& transport,
                         Device& device, Device& seen) {
  if (request.backend != BackendKind::cuda) return {};
  const CudaPlugin& cuda = cuda_plugin();
  const Gpu gpu = cuda.report().gpus[static_cast<std::size_t>(place_of(request, transport).gpu)];
  const auto& s = request.scenario;
  const std::string host = host_name();
  return tensor_way(
      {cuda.nccl_missing, cuda.make_fabric_id,
       [&](Device&, const FabricRequest& asked) { return cuda.make_fabric(device, asked); }},
      transport, seen, {host, machine_id(host), gpu.bus},
      FabricPlan(plan, lowered_schedule(plan, plan.micro_batches(s.training.global_batch)),
                 s.model.tie_embeddings),
      request.patience);
}

// Before the run: what its backend cannot replay is not predicted as replayed.
void replay_as_can_be(const RunRequest& request, costmodel::TrainingSpec& t,
                      std::vector<std::string>& notes) {
  if (!t.overlap.cuda_graph) return;
  const std::string refused = graphs_refused({.on_gpus = request.backend == BackendKind::cuda,
                                              .virtual_devices = request.virtual_devices});
  if (refused.empty()) return;
  notes.push_back(refused);
  t.overlap.cuda_graph = false;
}

// The device, with its launches replayed where the scenario asks for it: an iteration has as many
// sets of addresses as it has micro-batches, at most.
std::unique_ptr<GraphedDevice> graphed(Device& device, const RunRequest& request,
                                       const ParallelPlan& plan) {
  const auto& training = request.scenario.training;
  if (!training.overlap.cuda_graph || device.graphs() == nullptr) return nullptr;
  return std::make_unique<GraphedDevice>(
      device, *device.graphs(),
      static_cast<std::size_t>(plan.micro_batches(training.global_batch)));
}

// A core's pace is measured where its calibrated one is known.
bool is_paced(const RunRequest& request) {
  return request.backend != BackendKind::cuda &&
         request.scenario.cluster.device.yardstick > costmodel::Seconds(0);
}

// Why gradients are not reduced beside the backward, although they were to be; "" where they are.
std::string not_beside(const Evaluator& evaluator, const ParallelPlan& plan, const TensorWay& way,
                       Transport& transport) {
  const bool can = way.transport != nullptr || !reduces_beside(evaluator.training(), plan) ||
                   transport.beside() != nullptr;
  return can ? ""
             : "gradients are reduced after the backward and not beside it: this MPI lets one "
               "thread call it, and not several (MPI_THREAD_MULTIPLE)";
}

// One rank's part; what all saw goes to `end`, on rank 0.
void train_rank(const Evaluator& evaluator, const RunResult& begun, const RunRequest& request,
                Transport& transport, EarlyEnd& end) {
  require_agreement(transport, statements(request, begun.plan), begun.plan.devices(),
                    to_string(begun.plan));
  const std::unique_ptr<Device> device = device_of(request, transport);
  PacedDevice paced(*device);
  std::unique_ptr<GraphedDevice> replaying = graphed(*device, request, begun.plan);
  Device& whole = replaying ? static_cast<Device&>(*replaying) : *device;
  const TensorWay way = way_of_tensors(request, begun.plan, transport, *device, whole);
  const std::string one_by_one =
      replaying
          ? graphs_refused({.on_gpus = true,
                            .reducing_thread = way.transport == nullptr &&
                                               reduces_beside(evaluator.training(), begun.plan) &&
                                               transport.beside() != nullptr})
          : "";
  const std::string alone = not_beside(evaluator, begun.plan, way, transport);
  if (transport.rank() == 0) {
    end.note(way.note);
    end.note(alone);
    end.note(one_by_one);
  }
  TrainingOptions options;
  const bool pace = is_paced(request);
  if (pace)
    options.pace = [&] { return paced.slowdown(request.scenario.cluster.device.yardstick); };
  options.iterations = request.iterations;
  options.executor.fabric = way.transport.get();
  options.executor.seed = request.seed;
  options.executor.memory_limit = request.memory_limit;
  options.each = [&](const RankMeasurement& one) {
    auto all = gather_measurements(transport, one);
    if (!all.empty()) end.add(std::move(all));
    if (replaying) replaying->warmed_up();
  };
  if (transport.rank() == 0) options.progress = request.progress;
  const bool replays = replaying != nullptr && one_by_one.empty();
  if (replays) options.executor.reuse = Reuse::lowest;
  train(evaluator, begun.plan, transport, pace ? paced : replays ? whole : *device, options);
  if (replays && transport.rank() == 0) end.note(graphs_note(replaying->counts()));
}

void train_under_mpi(const RunRequest& request, const ParallelPlan& plan, EarlyEnd& end,
                     const std::function<void(Transport&)>& program) {
  if (const auto missing = mpi_missing(); !missing.empty()) throw RunFault(0, missing);
  const bool alone = !launched();
  if (alone && plan.devices() > 1)
    throw RunFault(0, wrong_world(plan.devices(), to_string(plan), 1));
  const bool speaks = alone || launched()->rank == 0;
  MpiOptions options{.patience = request.patience,
                     .beside = reduces_beside(request.scenario.training, plan)};
  if (speaks) options.on_fault = [&end](const std::string& cause) { end.tell(cause); };
  // MPI ends rank 0 where it finds another rank gone: they give it time to speak. mpirun kills a
  // second after SIGTERM.
  const OnInterrupt on_interrupt([&end, speaks](int number) {
    if (speaks) return end.tell_signal(number);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  });
  if (run_mpi(options, program) != 0) throw RunFault(0, "MPI did not start");
}

// Rank 0 hears what ends the run, and then the caller.
void tell_faults(bool speaks, EarlyEnd& end, const std::function<void()>& all) {
  try {
    all();
  } catch (const RunFault& fault) {
    if (speaks) end.tell(fault.what());
    throw;
  }
}

void train_over_tcp(const RunRequest& request, const ParallelPlan&, EarlyEnd& end,
                    const std::function<void(Transport&)>& program) {
  const auto who = launched_by_torchrun();
  const bool speaks = !who || who->rank == 0;
  // torchrun ends all where one rank is gone, perhaps before the others have come to find that. Who
  // finds another rank gone says so: rank 0 speaks of the signal first. Where all cores compute,
  // the thread that finds it may have to wait for one.
  const OnInterrupt on_interrupt([&end, speaks](int number) {
    if (speaks) return end.tell_signal(number, costmodel::Seconds(0.4));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
    const std::string cause = end.noted_cause(costmodel::Seconds(0.7));
    if (!cause.empty()) fmt::print(stderr, "shardplan run: {}\n", cause);
    std::this_thread::sleep_until(until);
  });
  const TcpOptions options{.patience = request.patience,
                           .on_cause = [&end](const std::string& cause) { end.note_cause(cause); },
                           .on_fault =
                               [&end, speaks](const std::string& cause) {
                                 end.note_cause(cause);
                                 if (speaks) end.tell(cause);
                               }};
  tell_faults(speaks, end, [&] { run_tcp(options, program); });
}

void train_on_threads(const RunRequest& request, const ParallelPlan& plan, EarlyEnd& end,
                      const std::function<void(Transport&)>& program) {
  const OnInterrupt on_interrupt([&end](int number) { end.tell_signal(number); });
  tell_faults(true, end, [&] {
    run_ranks(static_cast<int>(plan.devices()), {.patience = request.patience}, program);
  });
}

// Neighbours and clocks are nobody's model: the same prediction at the pace the ranks had.
void predict_at_pace(Scenario scenario, RunResult& result) {
  const double pace = result.measured.pace;
  auto& device = scenario.cluster.device;
  if (pace == 0 || device.together.empty()) return;
  result.notes.push_back(
      fmt::format("at its pace: operators took {:.2f} times as long as in the "
                  "profile's tables; when it was measured, {:.2f} times",
                  pace, device.together.front().pace));
  device = costmodel::at_pace(device, pace);
  Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  result.at_pace = evaluator.estimate(result.plan);
}

// How the ranks are started and find one another.
auto way_to_train(BackendKind backend) {
  const bool apart = backend == BackendKind::cuda && one_of_several();
  if (backend == BackendKind::mpi || (apart && launched())) return train_under_mpi;
  return backend == BackendKind::tcp || apart ? train_over_tcp : train_on_threads;
}

// torchrun's ranks run as ranks or not at all.
void require_start(BackendKind backend) {
  const bool kept = backend == BackendKind::threads || backend == BackendKind::mpi;
  if (!kept || launched() || !one_of_several()) return;
  const Launched by = *one_of_several();
  throw RunFault(
      by.rank,
      fmt::format("torchrun started this process as rank {} of {}, and {}: leave --backend out, or "
                  "write --backend tcp",
                  by.rank, by.world,
                  backend == BackendKind::mpi
                      ? "--backend mpi wants ranks that mpirun or srun started"
                      : "--backend threads runs all ranks in one process"));
}

// A machine that runs out of memory ends whatever it likes, not only the run that is too large.
void require_memory(BackendKind backend, const costmodel::Estimate& predicted) {
  if (backend == BackendKind::cuda) return;
  std::vector<int> here = ranks_here();
  if (backend == BackendKind::threads) {
    here.resize(static_cast<std::size_t>(predicted.plan.devices()));
    std::iota(here.begin(), here.end(), 0);
  }
  const costmodel::Bytes needed = memory_of_ranks(predicted, here);
  const auto free = free_memory();
  if (!free || needed <= *free) return;
  throw RunFault(0, fmt::format("{} of this plan {}, and this machine has {} left; choose a "
                                "smaller model or batch, more machines, or --backend emulated, "
                                "which waits where others compute",
                                here.size() == 1 ? "1 rank" : fmt::format("{} ranks", here.size()),
                                (here.size() == 1 ? "holds " : "hold ") + format_bytes(needed),
                                format_bytes(*free)));
}

std::optional<RunResult> trained(RunRequest request) {
  require_start(request.backend);
  RunResult begun;
  begun.backend = backend_names[static_cast<std::size_t>(request.backend)];
  begun.plan = executed_plan(request.scenario);
  begun.iterations = 0;
  require_supported(request.scenario, begun.plan);
  require_alike_on_gpus(request, begun.plan);
  if (auto note = compute_as_can_be(request.backend, request.scenario.training); !note.empty())
    begun.notes.push_back(std::move(note));
  replay_as_can_be(request, request.scenario.training, begun.notes);
  const Scenario& s = request.scenario;
  Evaluator evaluator(s.model, s.cluster, s.training);
  begun.predicted = evaluator.estimate(begun.plan);
  require_memory(request.backend, begun.predicted);
  for (auto& note : notes_on_ranks(request, begun.plan)) begun.notes.push_back(std::move(note));
  EarlyEnd end(request, begun);
  const auto program = [&](Transport& transport) {
    train_rank(evaluator, begun, request, transport, end);
  };
  way_to_train(request.backend)(request, begun.plan, end, program);
  RunResult result = end.result();
  if (result.iterations == 0) return std::nullopt;  // another rank has it
  predict_at_pace(s, result);
  return result;
}

}  // namespace

ParallelPlan executed_plan(const Scenario& s) {
  if (!s.plan.automatic.empty()) {
    throw ConfigError(
        s.plan.mark_of(s.plan.automatic.front()),
        fmt::format("plan.{} is auto, and run executes one plan", s.plan.automatic.front()),
        "settle it first: shardplan evaluate SCENARIO --format yaml --out FILE");
  }
  if (s.model.encoder_decoder()) {  // emulated ranks pass on as much at every boundary
    throw ConfigError({s.file, 0, 0}, "run executes no encoder-decoder models",
                      "take a gpt or llama model, or `shardplan simulate` this one");
  }
  ParallelPlan plan = costmodel::resolve_plan(s);
  if (plan.replica_groups.empty() && by_stage(plan, s.cluster)) {
    const bool written = !plan.stages.empty();
    throw ConfigError(s.plan.mark_of("stages"),
                      written ? "run executes stages that are all alike"
                              : "run executes on devices that are all alike",
                      written ? "leave plan.stages out" : "choose a cluster of one kind of device");
  }
  return plan;
}

std::string compute_as_can_be(BackendKind backend, costmodel::TrainingSpec& t) {
  const Precision precision = computed_in(backend, t.precision);
  const bool wide = precision == Precision::fp32, narrow = is_narrow(precision);
  auto& stack = t.stack;
  const bool as_said =
      t.precision == precision && t.gradient_precision == Precision::fp32 &&
      (wide || (stack.master_weights && !stack.fp32_shards && !stack.bf16_optimizer)) &&
      !(narrow && stack.narrow_saved_inputs);
  if (as_said) return "";
  t.precision = precision;
  t.gradient_precision = Precision::fp32;
  if (!wide) {
    stack.master_weights = true;
    stack.fp32_shards = stack.bf16_optimizer = stack.narrow_saved_inputs = false;
  }
  return fmt::format("computed in {}{}{}, and predicted so; the scenario says otherwise",
                     to_string(precision), wide ? "" : " with fp32 gradients and optimizer weights",
                     narrow ? " and bf16 inputs kept for backward" : "");
}

std::optional<RunResult> run(const RunRequest& request) {
  return request.backend == BackendKind::emulated ? emulate(request) : trained(request);
}

}  // namespace runtime
