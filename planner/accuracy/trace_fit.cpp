#include "planner/accuracy/trace_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/kernel_list.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/plan/mesh.hpp"
#include "planner/traces/kernel_names.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Of a kind that takes all of an iteration, and of one that takes a hundredth, each as standard
// deviation of the logarithm: two profiles of one run differ by that.
constexpr double noise_of_all = 0.01, noise_of_hundredth = 0.1;
constexpr double not_measured = 10;
// Of the stack's time of a launch, and of what a trace has of it once the profiler's part is taken
// off: hosts differ by a tenth to a fifth, and runs on one host by a tenth (least_s and most_s of
// configs/evidence/extra/pytorch-h100.yaml where the host sets the pace).
constexpr double launch_spread = 0.15, launch_noise = 0.1;

double noise_of(double share) {
  return noise_of_all + noise_of_hundredth * 0.01 / std::max(share, 1e-6);
}

TracedRun traced_run(const Scenario& scenario, const ReadTrace& trace,
                     const PredictedTimes& predicted) {
  TracedRun run;
  run.shape = traced_shape(scenario);
  const auto steady = trace.steady();
  for (std::size_t kind = 0; kind < kernel_kind_count; ++kind) {
    const double measured = steady[kind].value, before = predicted.kinds[kind];
    constexpr double most = 20;  // as the file may have it
    const bool known =
        measured > 0 && before > 0 && measured < most * before && before < most * measured;
    run.kinds[kind] = known ? measured / before : 1;
    run.noise[kind] =
        known ? noise_of(std::min(measured, before) / trace.times.kernels.value) : not_measured;
  }
  return run;
}

Seconds iteration_of(Scenario scenario, const ParallelPlan& plan, Seconds launch) {
  scenario.training.stack.host.kernel_launch = launch;
  return estimate_of(scenario.model, scenario.cluster, scenario.training, plan).iteration;
}

// The launch with which the plan takes `iteration`: by halving, for it only grows with the launch.
// 0 where no launch gives it: what is wrong is something else.
Seconds launch_for(const Scenario& scenario, const ParallelPlan& plan, Seconds iteration) {
  constexpr Seconds least{1e-7}, most{1e-2};
  if (iteration_of(scenario, plan, least) > iteration ||
      iteration_of(scenario, plan, most) < iteration)
    return {};
  double low = std::log(least.value), high = std::log(most.value);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    const bool above = iteration_of(scenario, plan, Seconds(std::exp(middle))) > iteration;
    (above ? high : low) = middle;
  }
  return Seconds(std::exp((low + high) / 2));
}

}  // namespace

std::array<Seconds, kernel_kind_count> ReadTrace::steady() const {
  std::array<Seconds, kernel_kind_count> all = times.kinds;
  for (std::size_t kind = 0; kind < all.size(); ++kind) all[kind] *= rested[kind];
  return all;
}

namespace {

// The pipeline rank of a rank of the job; 0 where it has no such rank, or stages of other sizes.
int pipeline_rank(int rank, const ParallelPlan& plan) {
  if (plan.pp == 1 || !plan.even()) return 0;
  const Mesh mesh(plan);
  return rank >= 0 && rank < mesh.size() ? mesh.coordinates(rank).pp : 0;
}

// Of all stages of a rank.
StageKernels rank_kernels(const PlanCost& cost, int rank, const ParallelPlan& plan,
                          Evaluator& evaluator) {
  const int at = pipeline_rank(rank, plan);
  StageKernels all;
  for (std::size_t stage = 0; stage < cost.stages.size(); ++stage) {
    if (plan.even() ? rank_of(plan.schedule, plan.pp, static_cast<int>(stage)) != at : stage > 0)
      continue;
    StageKernels own = stage_kernels(cost, stage, plan, evaluator);
    // The step of the optimizer is the rank's, and listed with each of its stages.
    if (!all.kernels.empty()) {
      std::erase_if(own.kernels,
                    [](const ListedKernels& row) { return row.passes == "iteration"; });
    }
    all.kernels.insert(all.kernels.end(), own.kernels.begin(), own.kernels.end());
  }
  return all;
}

}  // namespace

PredictedTimes predicted_times(const Scenario& scenario, const ParallelPlan& plan, int rank) {
  costmodel::Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  PredictedTimes times;
  times.iteration = evaluator.estimate(plan).iteration;
  const costmodel::PlanCost& cost = evaluator.cost(plan);
  const auto m = static_cast<double>(cost.micro_batches);
  std::map<std::pair<TracedPart, bool>, PartTime> parts;
  const auto listed = rank_kernels(cost, rank, plan, evaluator);
  const auto kinds = listed.by_kind(cost.micro_batches);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) times.kinds[kind] = kinds[kind].value;
  for (const costmodel::ListedKernels& row : listed.kernels) {
    const TracedPart part = part_of_listed(row.name);
    const bool forward = row.passes == "forward" || row.passes == "recomputed";
    if (row.name == "flash attention" && forward) times.attentions += row.sum.kernels * m;
    const bool once = row.passes == "iteration", backward = !once && row.passes != "forward";
    PartTime& sum =
        parts.try_emplace({part, backward}, PartTime{part, backward, {}, 0}).first->second;
    sum.time += row.sum.time * (once ? 1 : m);
    sum.kernels += row.sum.kernels * (once ? 1 : m);
  }
  for (const auto& [key, part] : parts) times.parts.push_back(part);
  std::ranges::sort(times.parts, std::ranges::greater{}, [](const PartTime& p) { return p.time; });
  return times;
}

Attributor attributor_of(const Scenario& scenario, const ParallelPlan& plan) {
  const std::int64_t tokens = plan.micro_batch * scenario.training.sequence / plan.cp;
  costmodel::ModelSpec local = scenario.model;
  for (std::int64_t* size : {&local.ffn_hidden, &local.vocab, &local.heads, &local.kv_heads})
    if (*size % plan.tp == 0) *size /= plan.tp;
  return {std::move(local), scenario.training, tokens};
}

Scenario with_constants(Scenario scenario, const OwnRuns& own) {
  scenario.cluster.measured = own;
  settle_own_runs(scenario);
  return scenario;
}

FittedTrace fit_trace(const Scenario& scenario, const ParallelPlan& plan, ReadTrace trace) {
  FittedTrace fitted;
  fitted.read = std::move(trace);
  const TraceTimes& times = fitted.read.times;
  fitted.before = predicted_times(scenario, plan, fitted.read.rank);
  fitted.run = traced_run(scenario, fitted.read, fitted.before);
  const Seconds fixed = scenario.training.stack.host.iteration;
  Seconds device = times.busy + fixed;
  const auto steady = fitted.read.steady();
  for (std::size_t kind = 0; kind < kernel_kind_count; ++kind)
    device += steady[kind] - times.kinds[kind];
  const Seconds recorded = times.host_records * record_cost,
                host = costmodel::max(times.least_wall - recorded, Seconds(0));
  fitted.host_bound = (host - device) / host > waiting_share;
  fitted.unprofiled = fitted.host_bound ? host : device;
  OwnRuns own{1, scenario.training.stack.name};
  own.traces = {fitted.run};
  const Scenario by_kernels = with_constants(scenario, own);
  // A device that did not wait bounds the launch, where the stack's would have made it wait.
  constexpr double surely = 1.02;
  const Seconds expected =
      iteration_of(by_kernels, plan, scenario.training.stack.host.kernel_launch);
  if (fitted.host_bound || expected > fitted.unprofiled * surely)
    fitted.launch = launch_for(by_kernels, plan, fitted.unprofiled);
  return fitted;
}

namespace {

// Words of a name that distinguish devices, as "h100", "4090", "mi300x".
std::set<std::string> models_in(std::string_view name) {
  std::set<std::string> words;
  std::string word;
  const auto end = [&] {
    const auto digits = std::ranges::count_if(word, [](char c) { return c >= '0' && c <= '9'; });
    const bool memory = word.ends_with("gb") || word.starts_with("hbm") || word.starts_with("sxm");
    if (digits >= 2 && !memory) words.insert(word);
    word.clear();
  };
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter || (c >= '0' && c <= '9')) {
      word += static_cast<char>(letter ? c | 0x20 : c);
    } else {
      end();
    }
  }
  end();
  return words;
}

void refuse_other_device(const FittedTrace& trace, const Scenario& scenario) {
  const auto recorded = models_in(trace.read.device),
             given = models_in(scenario.cluster.device.name);
  const bool shared =
      std::ranges::any_of(recorded, [&](const std::string& word) { return given.contains(word); });
  if (recorded.empty() || given.empty() || shared) return;
  throw ConfigError({trace.read.file, 0, 0},
                    fmt::format("was recorded on {}, and the scenario's devices are {}",
                                quote(trace.read.device), scenario.cluster.device.name),
                    "give the cluster of the run (cluster.base)");
}

// Of another precision, and of a compiled model for an eager one or the other way round.
void refuse_other_kernels(const FittedTrace& trace, const Scenario& scenario) {
  const TraceTimes& times = trace.read.times;
  const Seconds half = times.kinds[static_cast<std::size_t>(KernelKind::products)] * 0.5;
  const Precision precision = scenario.training.precision;
  const bool full = precision == Precision::fp32,
             eight = precision == Precision::fp8 || precision == Precision::mxfp8;
  const Mark file{trace.read.file, 0, 0};
  const char* type = full && times.in_16_bits > half    ? "16 bits"
                     : !full && times.in_fp32 > half    ? "fp32"
                     : eight && times.in_16_bits > half ? "16 bits"
                     : !eight && times.in_8_bits > half ? "8 bits"
                                                        : nullptr;
  if (type != nullptr) {
    throw ConfigError(
        file,
        fmt::format("multiplies matrices of {}, and this job is in {}", type, to_string(precision)),
        "set training.precision as the run had it");
  }
  const bool compiled = traced_shape(scenario).compiled;
  if (compiled && times.compiled.value <= 0) {
    throw ConfigError(file, "has no kernel of torch.compile, and this job is compiled",
                      "set training.overlap.compile as the run had it");
  }
  const auto elementwise = static_cast<std::size_t>(KernelKind::elementwise);
  if (!compiled && times.compiled > 0.5 * times.kinds[elementwise]) {
    throw ConfigError(file, "has kernels of torch.compile, and this job is not compiled",
                      "set training.overlap.compile as the run had it");
  }
}

Seconds of_parts(const std::vector<PartTime>& parts, TracedPart part) {
  Seconds sum;
  for (const PartTime& each : parts)
    if (each.part == part) sum += each.time;
  return sum;
}

// Of another micro-batch, by its products' rows; of other numbers of micro-batches or of passes, by
// how often attention runs forward, which is one kernel whatever computes it.
void refuse_other_batch(const FittedTrace& trace) {
  const TraceTimes& times = trace.read.times;
  const Seconds dense = of_parts(times.parts, TracedPart::mlp_products) +
                        of_parts(times.parts, TracedPart::attention_products);
  if (2 * times.other_rows > dense) {
    throw ConfigError({trace.read.file, 0, 0},
                      "has products of other rows than this job's micro-batch has tokens",
                      "set plan.micro_batch and training.sequence as the run had them");
  }
  const double ran = times.numbers[static_cast<std::size_t>(KernelKind::attention_forward)],
               expected = trace.before.attentions;
  constexpr double much = 0.2;
  if (ran <= 0 || expected <= 0 || std::abs(ran - expected) <= much * expected) return;
  const double iterations = ran / expected;
  if (!trace.read.marked && iterations > 1.5 &&
      std::abs(iterations - std::round(iterations)) < much) {
    throw ConfigError(
        {trace.read.file, 0, 0},
        fmt::format("has no marks of iterations, and attention as often as {:.0f} of them have",
                    iterations),
        "record the CPU too and call profiler.step() after each iteration, or with Nsight push "
        "NVTX ranges \"iteration N\"");
  }
  throw ConfigError(
      {trace.read.file, 0, 0},
      fmt::format("runs attention forward {:.0f} times an iteration, and this job {:.0f} times: "
                  "for each layer and micro-batch, and once more where it is recomputed",
                  ran, expected),
      "set training.global_batch, plan.micro_batch and plan.recompute as the run had them");
}

}  // namespace

void refuse_other_job(const FittedTrace& trace, const Scenario& scenario) {
  refuse_other_device(trace, scenario);
  refuse_other_kernels(trace, scenario);
  const TraceTimes& times = trace.read.times;
  const Seconds products = times.kinds[static_cast<std::size_t>(KernelKind::products)];
  Seconds strange;
  for (const LeftOver& left : times.left_over)
    if (kind_of_kernel(left.kernel) == KernelKind::products) strange += left.time;
  std::string lacks;
  if (2 * strange > products) lacks = "has products of sizes that this model does not have";
  if (products.value <= 0 && trace.before.kinds[0] > 0) {
    throw ConfigError({trace.read.file, 0, 0},
                      fmt::format("has no kernel that is known as a product of matrices; {} of its "
                                  "kernels have no known name",
                                  format_seconds(times.no_kind)),
                      "give the trace of a training; for a library whose kernels are not known "
                      "calibrate --from-log");
  }
  const auto by_sizes = {TracedPart::mlp_products, TracedPart::attention_products,
                         TracedPart::logits_products};
  Seconds known = of_parts(times.parts, TracedPart::expert_products);
  for (const TracedPart part : by_sizes) known += of_parts(times.parts, part);
  for (const TracedPart part : by_sizes) {
    constexpr double much = 0.2;
    const Seconds predicted = of_parts(trace.before.parts, part);
    const Seconds measured = of_parts(times.parts, part);
    const bool large = costmodel::max(measured, predicted).value > much * trace.before.kinds[0];
    if (2 * known <= products || !large || !lacks.empty()) continue;
    // In nine traces of an H100 these parts take 0.89 to 1.15 of what is predicted.
    constexpr double most = 2;
    if (measured.value <= 0) {
      lacks = fmt::format("has no {}, of which this job has {}", name_of(part),
                          format_seconds(predicted));
    } else if (measured > most * predicted || predicted > most * measured) {
      lacks = fmt::format("has {} of {}, of which this job has {}", format_seconds(measured),
                          name_of(part), format_seconds(predicted));
    }
  }
  if (!lacks.empty()) {
    throw ConfigError({trace.read.file, 0, 0}, lacks, "give the scenario of the run that it is of");
  }
  refuse_other_batch(trace);
}

OwnRuns traced_constants(const std::vector<FittedTrace>& traces, const std::string& stack,
                         Seconds prior) {
  OwnRuns own{static_cast<int>(traces.size()), stack};
  double precision = 1 / (launch_spread * launch_spread), sum = 0;
  bool decided = false;
  for (const FittedTrace& trace : traces) {
    own.traces.push_back(trace.run);
    if (trace.launch.value <= 0 || prior.value <= 0) continue;
    decided = true;
    constexpr double weight = 1 / (launch_noise * launch_noise);
    precision += weight;
    sum += weight * std::log(trace.launch / prior);
  }
  if (decided) own.kernel_launch = prior * std::exp(sum / precision);
  return own;
}

}  // namespace planner
