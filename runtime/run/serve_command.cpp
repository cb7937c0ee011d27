#include "runtime/run/serve_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "runtime/cpu/gemm.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/devices/paced_device.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/run/free_memory.hpp"

namespace runtime {

using costmodel::Bytes;
using costmodel::Seconds;
using costmodel::ServedBatch;
using costmodel::ServingScenario;

namespace {

constexpr double element = sizeof(float);
constexpr int timed_rounds = 30;

// Of one rank, by batch.
struct RankRecord {
  std::vector<ServedMeasurement> batches;
  DecodePace alone;
};

// Of the ranks as the serving model has them: weights and cache by its formulas, bytes by its op
// lists.
std::vector<StageCounts> ledger_of(const ServedJob& job) {
  using costmodel::CacheFormat;
  std::vector<StageCounts> stages;
  for (int p = 0; p < job.sizes.pp; ++p) {
    const costmodel::ServedStage stage = served_stage(job.model, job.sizes.pp, p);
    StageCounts counts;
    counts.weights =
        stage_weights(job.model, costmodel::WeightFormat::fp32, job.sizes, stage).value;
    const Bytes token = cache_bytes_per_layer(job.model, job.sizes.tp, CacheFormat::fp32);
    counts.cache = token.value * static_cast<double>(stage.layers * job.block_size *
                                                     cache_blocks(job.batch, job.block_size));
    counts.traffic = served_traffic(job.model, job.engine, job.sizes, p, job.batch, element);
    stages.push_back(counts);
  }
  return stages;
}

ServeTimes predicted_times(const ServingScenario& s, const ServedJob& job) {
  const costmodel::StepTimes steps(s.model, s.cluster, s.serving, job.sizes);
  const auto requests = static_cast<double>(job.batch.requests);
  const auto input = static_cast<double>(job.batch.input);
  const auto output = static_cast<double>(job.batch.output);
  costmodel::StepLoad prompts;
  prompts.prefill_tokens = requests * input;
  prompts.prefill_pairs = requests * costmodel::prefill_pairs(input, 0);
  prompts.prompts = requests;
  costmodel::StepLoad decode;
  decode.decodes = requests;
  decode.decode_context = requests * (input + output / 2);
  ServeTimes times{steps.of(prompts).total(), {}};
  if (job.batch.output > 1) times.token = steps.of(decode).total();
  return times;
}

void require_free(const ServedJob& job, const std::vector<StageCounts>& ledger) {
  double needed = 0;
  for (const StageCounts& stage : ledger)
    needed += (stage.weights + stage.cache) * job.sizes.tp * job.sizes.dp;
  const auto free = free_memory();
  if (!free || needed <= free->value) return;
  throw RunFault(0, fmt::format("weights and caches of {} ranks hold {}, and this machine has {} "
                                "left; choose a smaller model or batch",
                                job.sizes.devices(), costmodel::format_bytes(Bytes(needed)),
                                costmodel::format_bytes(*free)));
}

// Serves the batches as one rank. After the first, what a round is made of is timed, beside the
// yardstick that later batches are held against.
void serve_rank(const ServedJob& job, const ServeRequest& request, Transport& transport,
                RankRecord& record) {
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
    if (i > 0 || request.iterations == 1 || job.batch.output == 1) continue;
    paced.slowdown(Seconds(1));  // settles how often it takes a yardstick
    record.alone = rank.timed(timed_rounds, [&] {
      sticks += yardstick.now();
      ++taken;
    });
    paced.slowdown(sticks / taken);
  }
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
  Summary(const std::vector<RankRecord>& ranks, ServeResult& result)
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
  const RankRecord& of(int replica, int stage, int tensor) const {
    return ranks_[static_cast<std::size_t>((replica * sizes_.pp + stage) * sizes_.tp + tensor)];
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

  // Of one part of the batch on a stage: means over its ranks.
  Seconds part_on(int stage) const {
    Seconds sum;
    for (int replica = 0; replica < sizes_.dp; ++replica) {
      for (int tensor = 0; tensor < sizes_.tp; ++tensor) {
        const DecodePace& alone = of(replica, stage, tensor).alone;
        sum += alone.operators + alone.collectives;
      }
    }
    return sum / (static_cast<double>(sizes_.dp) * sizes_.tp);
  }

  // A round takes pp times the slowest stage, as in costmodel/serving/step_time.hpp.
  void add_pace() {
    if (result_.iterations < 2 || result_.job.batch.output < 2) return;
    Seconds slowest, around;
    double pace = 0;
    for (int p = 0; p < sizes_.pp; ++p) slowest = max(slowest, part_on(p));
    for (const RankRecord& rank : ranks_) {
      around += rank.alone.transfers / static_cast<double>(ranks_.size());
      pace += median(rank.batches, [](const ServedMeasurement& m) { return m.pace; }) /
              static_cast<double>(ranks_.size());
    }
    result_.pace = pace;
    result_.at_pace = (sizes_.pp * slowest + around) * pace;
  }

  const std::vector<RankRecord>& ranks_;
  ServeResult& result_;
  costmodel::ServingSizes sizes_;
};

// CPUs compute in fp32 whatever is said, and send between stages as this runtime does.
void compute_as_can_be(ServeResult& result) {
  auto& serving = result.scenario.serving;
  const bool as_said = serving.weights == costmodel::WeightFormat::fp32 &&
                       serving.kv_cache == costmodel::CacheFormat::fp32;
  serving.weights = costmodel::WeightFormat::fp32;
  serving.kv_cache = costmodel::CacheFormat::fp32;
  serving.engine = result.job.engine;
  if (!as_said)
    result.notes.emplace_back("computed in fp32, and predicted so; the scenario says otherwise");
}

void note_machine(ServeResult& result) {
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t ranks = result.job.sizes.devices();
  if (cores > 0 && ranks > cores) {
    result.notes.push_back(
        fmt::format("{} ranks share {} cores: times are those of taking turns", ranks, cores));
  }
  result.notes.push_back(fmt::format("matrix products by {}", cpu::gemm_provider()));
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

ServeResult serve_job(const ServedJob& job, const ServeRequest& request) {
  ServeResult result;
  result.job = job;
  result.iterations = request.iterations;
  std::vector<RankRecord> ranks(static_cast<std::size_t>(job.sizes.devices()));
  run_ranks(
      static_cast<int>(ranks.size()), {.patience = request.patience}, [&](Transport& transport) {
        serve_rank(job, request, transport, ranks[static_cast<std::size_t>(transport.rank())]);
      });
  Summary(ranks, result).fill();
  return result;
}

ServeResult serve_plan(const ServeRequest& request) {
  const ServedJob job =
      served_job(request.root, request.scenario, request.seed, request.memory_limit);
  const std::vector<StageCounts> ledger = ledger_of(job);
  require_free(job, ledger);
  ServeResult result = serve_job(job, request);
  result.scenario = request.scenario;
  result.ledger = ledger;
  compute_as_can_be(result);
  result.predicted = predicted_times(result.scenario, job);
  note_machine(result);
  if (!result.at_pace) return result;
  result.notes.push_back(
      fmt::format("at its pace: operators, collectives and transfers of a round timed alone, {} "
                  "times each; in the batches operators took {:.2f} times as long",
                  timed_rounds, result.pace));
  return result;
}

std::vector<Compared> compare(const ServeResult& r) {
  ServeRows rows;
  if (r.job.batch.output > 1)
    rows.times("token_s", "time a token", r.predicted.token, r.measured.token);
  if (r.at_pace) {
    rows.all.back().at_pace = r.at_pace->value;
    rows.all.back().at_pace_error_pct =
        ServeRows::error_of(r.at_pace->value, r.measured.token.value);
  }
  rows.times("first_token_s", "first token", r.predicted.first_token, r.measured.first_token);
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
