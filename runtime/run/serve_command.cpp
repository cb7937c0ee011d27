#include "runtime/run/serve_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/devices/paced_device.hpp"
#include "runtime/run/agreement.hpp"
#include "runtime/run/compute_backend.hpp"
#include "runtime/run/early_end.hpp"
#include "runtime/run/free_memory.hpp"

namespace runtime {

using namespace costmodel;

namespace {

constexpr double element = sizeof(float);
constexpr int timed_rounds = 30, timed_prefills = 4;

// Of the ranks as the serving model has them: weights and cache by its formulas, bytes by its op
// lists.
std::vector<StageCounts> ledger_of(const ServedJob& job) {
  using costmodel::CacheFormat;
  std::vector<StageCounts> stages;
  for (int p = 0; p < job.sizes.pp; ++p) {
    const ServedStage stage = served_stage(job.model, job.sizes.pp, p);
    StageCounts counts;
    counts.weights = stage_weights(job.model, WeightFormat::fp32, job.sizes, stage).value;
    const Bytes token = cache_bytes_per_layer(job.model, job.sizes.tp, CacheFormat::fp32);
    counts.cache = token.value * static_cast<double>(stage.layers * job.block_size *
                                                     cache_blocks(job.batch, job.block_size));
    counts.traffic = served_traffic(job.model, job.engine, job.sizes, p, job.batch, element);
    stages.push_back(counts);
  }
  return stages;
}

ServeTimes predicted_times(const ServingScenario& s, const ServedJob& job) {
  const StepTimes steps(s.model, s.cluster, s.serving, job.sizes);
  const auto requests = static_cast<double>(job.batch.requests);
  const auto input = static_cast<double>(job.batch.input);
  const auto output = static_cast<double>(job.batch.output);
  StepLoad prompts;
  prompts.prefill_tokens = requests * input;
  prompts.prefill_pairs = requests * prefill_pairs(input, 0);
  prompts.prompts = requests;
  StepLoad decode;
  decode.decodes = requests;
  decode.decode_context = requests * (input + output / 2);
  ServeTimes times{steps.of(prompts).total(), {}};
  if (job.batch.output > 1) times.token = steps.of(decode).total();
  return times;
}

ParallelPlan plan_of(const ServedJob& job) {
  ParallelPlan plan;
  plan.tp = job.sizes.tp;
  plan.pp = job.sizes.pp;
  plan.dp = job.sizes.dp;
  return plan;
}

// Of the ranks whose memory is this machine's.
void require_free(const ServedJob& job, const std::vector<StageCounts>& ledger,
                  const std::vector<int>& here) {
  double needed = 0;
  for (const int rank : here) {
    const StageCounts& stage = ledger[static_cast<std::size_t>(rank / job.sizes.tp % job.sizes.pp)];
    needed += stage.weights + stage.cache;
  }
  const auto free = free_memory();
  if (!free || needed <= free->value) return;
  throw RunFault(0, fmt::format("weights and caches of {} ranks hold {}, and this machine has {} "
                                "left; choose a smaller model or batch, or more machines",
                                here.size(), format_bytes(Bytes(needed)), format_bytes(*free)));
}

std::string plan_text(const ServingSizes& sizes) {
  return fmt::format("t {} · p {} · d {}", sizes.tp, sizes.pp, sizes.dp);
}

// What the other parts of a run ask of a request of training.
RunRequest as_run(const ServedJob& job, const ServeRequest& request) {
  RunRequest run;
  run.backend = request.backend;
  run.scenario.model = job.model;
  run.iterations = request.iterations;
  run.seed = request.seed;
  run.patience = request.patience;
  return run;
}

Statements statements_of(const ServedJob& job, const RunRequest& run) {
  Statements all = statements(run, plan_of(job));
  all.emplace_back(
      "batch", fmt::format("{} prompts of {} tokens and {} more, {} a pass, blocks of {}",
                           job.batch.requests, job.batch.input, job.batch.output, job.batch.budget,
                           job.block_size));
  return all;
}

// Serves the batches as one rank. After the first, what a round is made of is timed, beside the
// yardstick that later batches are held against.
ServedRecord serve_rank(const ServedJob& job, const ServeRequest& request, Transport& transport) {
  ServedRecord record;
  CpuDevice device;
  PacedDevice paced(device);
  ServedRank rank(job, transport, paced);
  Yardstick yardstick;
  Seconds sticks;
  int taken = 0;
  for (int i = 0; i < request.iterations; ++i) {
    ServedMeasurement one = rank.serve();
    if (i > 0) one.pace = paced.slowdown(sticks / taken);
    const Seconds end = one.end;
    record.batches.push_back(std::move(one));
    if (transport.rank() == 0 && request.progress) request.progress(i, end);
    if (i > 0 || request.iterations == 1) continue;
    paced.slowdown(Seconds(1));  // settles how often it takes a yardstick
    const auto between = [&] {
      sticks += yardstick.now();
      ++taken;
    };
    record.decode = rank.timed(decode_pass(job), timed_rounds, between);
    if (const auto prompts = prefill_pass(job))
      record.prefill = rank.timed(*prompts, timed_prefills, between);
    paced.slowdown(sticks / taken);
  }
  return record;
}

template <class Part>
double median(const std::vector<ServedMeasurement>& batches, Part part) {
  std::vector<double> values;
  for (std::size_t i = batches.size() > 1 ? 1 : 0; i < batches.size(); ++i)
    values.push_back(part(batches[i]));
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class Summary {
 public:
  Summary(const std::vector<ServedRecord>& ranks, ServeResult& result)
      : ranks_(ranks), result_(result), sizes_(result.job.sizes) {}

  void fill() {
    for (int p = 0; p < sizes_.pp; ++p) add_stage(p);
    add_times();
    add_pace();
    for (int replica = 0; replica < sizes_.dp; ++replica) {
      const auto& tokens = of(replica, sizes_.pp - 1, 0).batches.back().tokens;
      result_.tokens.insert(result_.tokens.end(), tokens.begin(), tokens.end());
    }
  }

 private:
  const ServedRecord& of(int replica, int stage, int tensor) const {
    const std::int64_t rank = (std::int64_t{replica} * sizes_.pp + stage) * sizes_.tp + tensor;
    return ranks_[static_cast<std::size_t>(rank)];
  }

  void add_stage(int stage) {
    StageCounts counts;
    double ranks = 0, activations = 0;
    for (int replica = 0; replica < sizes_.dp; ++replica) {
      for (int tensor = 0; tensor < sizes_.tp; ++tensor) {
        const ServedMeasurement& one = of(replica, stage, tensor).batches.back();
        counts.weights = std::max(counts.weights, static_cast<double>(one.weights));
        counts.cache = std::max(counts.cache, static_cast<double>(one.cache));
        activations = std::max(activations, static_cast<double>(one.activations));
        counts.traffic.all_reduce += Bytes(static_cast<double>(one.traffic.all_reduce));
        counts.traffic.all_gather += Bytes(static_cast<double>(one.traffic.all_gather));
        counts.traffic.send += Bytes(static_cast<double>(one.traffic.send));
        ++ranks;
      }
    }
    counts.traffic = counts.traffic * (1 / ranks);
    result_.counted.push_back(counts);
    result_.activations.push_back(std::llround(activations));
  }

  // Of the last stage's ranks, where tokens are made; the slowest replica's.
  void add_times() {
    const auto output = static_cast<double>(result_.job.batch.output);
    for (int replica = 0; replica < sizes_.dp; ++replica) {
      const auto& batches = of(replica, sizes_.pp - 1, 0).batches;
      const auto first =
          Seconds(median(batches, [](const ServedMeasurement& m) { return m.first_token.value; }));
      result_.measured.first_token = max(result_.measured.first_token, first);
      if (output < 2) continue;
      const auto token = Seconds(median(batches, [&](const ServedMeasurement& m) {
        return (m.end - m.first_token).value / (output - 1);
      }));
      result_.measured.token = max(result_.measured.token, token);
    }
  }

  using Kind = PassPace ServedRecord::*;

  // Of one part of the batch on a stage: means over its ranks.
  Seconds part_on(int stage, Kind kind) const {
    Seconds sum;
    for (int replica = 0; replica < sizes_.dp; ++replica) {
      for (int tensor = 0; tensor < sizes_.tp; ++tensor) {
        const PassPace& alone = of(replica, stage, tensor).*kind;
        sum += alone.operators + alone.collectives;
      }
    }
    return sum / (static_cast<double>(sizes_.dp) * sizes_.tp);
  }

  // All parts' way through the stages, pp of them unless requests are fewer. In a round of decoding
  // they follow those of the round before, and it takes as many times the slowest stage
  // (costmodel/serving/step_time.hpp), and at least a part's way through all; prompts come into
  // empty stages, as in a pipeline's forward passes.
  Seconds all_parts(Kind kind) const {
    Seconds slowest, once, around;
    for (int p = 0; p < sizes_.pp; ++p) {
      slowest = max(slowest, part_on(p, kind));
      once += part_on(p, kind);
    }
    for (const ServedRecord& rank : ranks_)
      around += (rank.*kind).transfers / static_cast<double>(ranks_.size());
    const auto parts =
        static_cast<double>(std::min<std::int64_t>(sizes_.pp, result_.job.batch.requests));
    if (kind == &ServedRecord::prefill) return once + (parts - 1) * slowest + around;
    return max(parts * slowest, once) + around;
  }

  void add_pace() {
    if (result_.iterations < 2) return;
    for (const ServedRecord& rank : ranks_) {
      result_.pace += median(rank.batches, [](const ServedMeasurement& m) { return m.pace; }) /
                      static_cast<double>(ranks_.size());
    }
    result_.at_pace = ServeTimes{{}, all_parts(&ServedRecord::decode) * result_.pace};
    if (prefill_pass(result_.job))
      result_.at_pace->first_token = all_parts(&ServedRecord::prefill) * result_.pace;
  }

  const std::vector<ServedRecord>& ranks_;
  ServeResult& result_;
  ServingSizes sizes_;
};

// CPUs compute in fp32 whatever is said, and send between stages as this runtime does.
void compute_as_can_be(ServeResult& result) {
  auto& serving = result.scenario.serving;
  const bool as_said =
      serving.weights == WeightFormat::fp32 && serving.kv_cache == costmodel::CacheFormat::fp32;
  serving.weights = WeightFormat::fp32;
  serving.kv_cache = costmodel::CacheFormat::fp32;
  serving.engine = result.job.engine;
  if (!as_said)
    result.notes.emplace_back("computed in fp32, and predicted so; the scenario says otherwise");
}

class ServeRows {
 public:
  void times(const char* key, const char* title, Seconds predicted, Seconds measured) {
    add(key, title, Unit::seconds, predicted.value, measured.value);
  }
  void bytes(int stage, const char* key, const char* title, double predicted, double measured) {
    if (predicted == 0 && measured == 0) return;
    add(fmt::format("stages.{}.{}_bytes", stage, key), fmt::format("stage {} {}", stage, title),
        Unit::bytes, predicted, measured);
  }
  std::vector<Compared> all;

 private:
  void add(std::string key, std::string title, Unit unit, double predicted, double measured) {
    Compared row{std::move(key), std::move(title), unit, predicted, measured, {}, {}, {}};
    row.error_pct = error_of(predicted, measured);
    all.push_back(std::move(row));
  }

 public:
  static std::optional<double> error_of(double predicted, double measured) {
    if (!std::isfinite(predicted)) return std::nullopt;
    if (measured == 0) return predicted == 0 ? std::optional(0.0) : std::nullopt;
    return 100 * (predicted - measured) / measured;
  }
};

}  // namespace

bool serves(const Backend& backend) {
  return backend.devices != nullptr && !backend.devices().on_gpus;
}

std::optional<ServeResult> serve_job(const ServedJob& job, const ServeRequest& request) {
  const RunRequest run = as_run(job, request);
  const ParallelPlan plan = plan_of(job);
  const RunResult nothing;
  EarlyEnd end(run, nothing);
  std::vector<ServedRecord> ranks;
  request.backend->start(run, plan, end, [&](Transport& transport) {
    require_agreement(transport, statements_of(job, run), plan.devices(), plan_text(job.sizes));
    auto all = gather_records(transport, serve_rank(job, request, transport));
    if (transport.rank() == 0) ranks = std::move(all);
  });
  if (ranks.empty()) return std::nullopt;  // another process has them
  ServeResult result;
  result.backend = request.backend->name;
  result.job = job;
  result.iterations = request.iterations;
  Summary(ranks, result).fill();
  return result;
}

std::optional<ServeResult> serve_plan(const ServeRequest& request) {
  require_start(*request.backend);
  const ServedJob job =
      served_job(request.root, request.scenario, request.seed, request.memory_limit);
  const std::vector<StageCounts> ledger = ledger_of(job);
  require_free(job, ledger, request.backend->ranks_of_machine(plan_of(job)));
  std::optional<ServeResult> served = serve_job(job, request);
  if (!served) return served;
  ServeResult& result = *served;
  result.scenario = request.scenario;
  result.ledger = ledger;
  compute_as_can_be(result);
  result.predicted = predicted_times(result.scenario, job);
  const auto notes = request.backend->devices().notes_on_ranks(as_run(job, request), plan_of(job));
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  if (!result.at_pace) return served;
  result.notes.push_back(
      fmt::format("at its pace: operators, collectives and transfers of a round timed alone, {} "
                  "times each, of prompts {} times; in the batches operators took {:.2f} times as "
                  "long",
                  timed_rounds, timed_prefills, result.pace));
  return served;
}

std::vector<Compared> compare(const ServeResult& r) {
  ServeRows rows;
  const auto at_pace = [&](Seconds ServeTimes::*time) {
    if (!r.at_pace || ((*r.at_pace).*time).value == 0) return;
    Compared& row = rows.all.back();
    row.at_pace = ((*r.at_pace).*time).value;
    row.at_pace_error_pct = ServeRows::error_of(*row.at_pace, row.measured);
  };
  if (r.job.batch.output > 1) {
    rows.times("token_s", "time a token", r.predicted.token, r.measured.token);
    at_pace(&ServeTimes::token);
  }
  rows.times("first_token_s", "first token", r.predicted.first_token, r.measured.first_token);
  at_pace(&ServeTimes::first_token);
  for (int p = 0; p < r.job.sizes.pp; ++p) {
    const StageCounts& said = r.ledger[static_cast<std::size_t>(p)];
    const StageCounts& seen = r.counted[static_cast<std::size_t>(p)];
    rows.bytes(p, "weights", "weights", said.weights, seen.weights);
    rows.bytes(p, "kv_cache", "keys and values", said.cache, seen.cache);
    rows.bytes(p, "all_reduce", "all-reduce", said.traffic.all_reduce.value,
               seen.traffic.all_reduce.value);
    rows.bytes(p, "all_gather", "all-gather", said.traffic.all_gather.value,
               seen.traffic.all_gather.value);
    rows.bytes(p, "send", "sent to stages", said.traffic.send.value, seen.traffic.send.value);
  }
  return std::move(rows.all);
}

std::string limit_missed(const ServeResult& r, double limit_pct) {
  const Compared time = compare(r).front();
  const auto error = time.at_pace ? time.at_pace_error_pct : time.error_pct;
  if (error && std::abs(*error) <= limit_pct) return "";
  return fmt::format("{} is predicted {} wrong{}, above --fail-above {:g}", time.title,
                     error ? fmt::format("{:.1f} %", std::abs(*error)) : "infinitely",
                     time.at_pace ? " at its pace" : "", limit_pct);
}

}  // namespace runtime
