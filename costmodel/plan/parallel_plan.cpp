#include "costmodel/plan/parallel_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <span>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_rules.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/plan/stage_plan.hpp"

namespace costmodel {

std::int64_t StagePlan::devices() const { return std::min(std::int64_t{tp} * dp, beyond_any) * cp; }

std::int64_t ReplicaGroup::devices(int cp) const {
  constexpr std::int64_t most = beyond_any / 1'000'000;
  const std::int64_t pipeline = std::min(std::int64_t{tp} * pp, most);
  return std::min(std::min(pipeline * dp, most) * cp, beyond_any);
}

StagePlan ParallelPlan::stage(int k) const {
  if (!stages.empty()) return stages[static_cast<std::size_t>(k)];
  return {tp, dp, recompute, zero, "", cp, cp_comm, ep, etp};
}

// Only one of the two is listed.
std::int64_t ParallelPlan::devices_of_all() const {
  std::int64_t sum = 0;
  for (const StagePlan& one : stages) sum = std::min(sum + one.devices(), beyond_any);
  for (const ReplicaGroup& group : replica_groups) sum += group.devices(cp);
  return sum;
}

namespace {

void check_devices(const ParallelPlan& p, const ClusterSpec& cluster, Rules& rules) {
  rules.require(
      p.devices() == cluster.devices, "dp",
      [&] {
        const std::string cp = p.cp > 1 ? fmt::format(" x cp {}", p.cp) : "";
        return fmt::format("tp {} x pp {}{} x dp {} = {} devices, but the cluster has {}", p.tp,
                           p.pp, cp, p.dp, format_integer(p.devices()),
                           format_integer(cluster.devices));
      },
      [&] {
        const std::int64_t model_parallel = std::int64_t{p.tp} * p.pp * p.cp;
        if (cluster.devices % model_parallel == 0)
          return fmt::format("set dp to {}, or leave it out", cluster.devices / model_parallel);
        return fmt::format("choose tp x pp{} among the divisors of {}: {}", p.cp > 1 ? " x cp" : "",
                           cluster.devices, divisors_text(cluster.devices));
      });
}

// Megatron-LM gives every tensor rank whole groups of a scan (core/ssm/mamba_mixer.py: "ngroups
// must be evenly divisible by tp_size"); another stack may copy B and C to the ranks of a group.
// Mamba-1 sums B and C over all ranks and divides the channels.
void check_recurrence(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                      Rules& rules) {
  const bool copied = training.stack.offers.copied_scan_groups && model.ssm_groups > 0 &&
                      p.tp % model.ssm_groups == 0;
  rules.require(
      model.ssm_groups % p.tp == 0 || model.dt_rank > 0 || copied, "tp",
      [&] {
        return fmt::format("tp {} does not divide the {} groups of the scan", p.tp,
                           model.ssm_groups);
      },
      [&] {
        return fmt::format(
            "set tp: 1, use a model of more ssm_groups, or say that the stack copies them: --set "
            "'training.stack={{\"base\": \"{}\", \"copied_scan_groups\": true}}'",
            training.stack.name);
      });
  // Mamba-1's heads are its channels.
  const std::int64_t heads = model.mamba_heads * (model.dt_rank > 0 ? model.mamba_head_dim : 1);
  rules.require(
      heads % p.tp == 0, "tp",
      [&] { return fmt::format("tp {} does not divide the {} heads of the scan", p.tp, heads); },
      [&] { return fmt::format("choose tp among {}", divisors_text(heads)); });
  const std::int64_t keys = model.linear_num_key_heads, values = model.linear_num_value_heads;
  rules.require(
      keys % p.tp == 0 && values % p.tp == 0, "tp",
      [&] {
        return fmt::format(
            "tp {} does not divide the delta net's {} heads of keys and {} of values", p.tp, keys,
            values);
      },
      [&] { return fmt::format("choose tp among {}", divisors_text(keys)); });
}

void check_tensor(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                  Rules& rules) {
  const std::int64_t heads = model.common_heads();
  const auto sizes = [&] { return fmt::format("choose tp among {}", divisors_text(heads)); };
  rules.require(
      heads % p.tp == 0, "tp",
      [&] {
        return fmt::format("tp {} does not divide the {} attention heads", p.tp,
                           model.heads_text());
      },
      sizes);
  for (const std::int64_t kv_heads : {model.kv_heads, model.window_kv_heads}) {
    rules.require(
        kv_heads % p.tp == 0 || p.tp % kv_heads == 0, "tp",
        [&] {
          return fmt::format("tp {} neither divides nor is divided by the {} key/value heads", p.tp,
                             kv_heads);
        },
        sizes);
  }
  check_recurrence(p, model, training, rules);
  check_adapters(p, training, rules);
  rules.require(
      model.ffn_hidden % p.tp == 0, "tp",
      [&] { return fmt::format("tp {} does not divide ffn_hidden {}", p.tp, model.ffn_hidden); },
      sizes);
  rules.require(
      model.hidden % p.tp == 0, "tp",
      [&] { return fmt::format("tp {} does not divide hidden {}", p.tp, model.hidden); }, sizes);
  rules.require(
      !p.sequence_parallel || p.tp > 1, "sequence_parallel",
      [] { return std::string("sequence_parallel needs tp > 1"); },
      [] { return std::string("set sequence_parallel: false"); });
  rules.require(
      !p.sequence_parallel || training.sequence % p.tp == 0, "sequence_parallel",
      [&] { return fmt::format("tp {} does not divide the sequence {}", p.tp, training.sequence); },
      [] { return std::string("set sequence_parallel: false, or another tp"); });
}

// What the fixed orders ask of the ranks and the micro-batches.
void check_fixed_order(const ParallelPlan& p, std::int64_t m, Rules& rules) {
  const ScheduleRow& row = row_of(p.schedule);
  rules.require(
      !row.two_way || p.pp % 2 == 0, "pp",
      [&] { return fmt::format("{} needs an even pp, not {}", row.name, p.pp); },
      [] { return std::string("choose an even pp, or schedule: dualpipe-v with vpp: 2"); });
  rules.require(
      row.takes == nullptr || (row.two_way && p.pp % 2 == 1) || row.takes(p.pp, m), "micro_batch",
      [&] {
        return fmt::format("{} needs {}2 pp = {} micro-batches at least, there are {}", row.name,
                           row.two_way ? "an even number, " : "", 2 * p.pp, m);
      },
      [] { return std::string("choose a smaller micro_batch, pp or dp, or schedule: 1f1b"); });
  rules.require(
      !overlaps(p.schedule) || p.zero <= 1, "zero",
      [&] { return fmt::format("ZeRO {} beside {} is not modelled", p.zero, row.name); },
      [] { return std::string("set zero to at most 1"); });
}

// What the plan chooses of its schedule's order.
void check_choices(const ParallelPlan& p, std::int64_t m, Rules& rules) {
  const ScheduleRow& row = row_of(p.schedule);
  rules.require(
      p.choices.group == 0 || row.whole_rounds, "micro_batch_group",
      [&] { return fmt::format("schedule {} takes no groups of micro-batches", row.name); },
      [] { return std::string("leave it out, or set schedule: interleaved"); });
  rules.require(
      p.choices.group == 0 || !row.whole_rounds || takes_groups(p.pp, m, p.choices.group),
      "micro_batch_group",
      [&] {
        return p.choices.group < p.pp
                   ? fmt::format("groups of {} are smaller than pp {}", p.choices.group, p.pp)
                   : fmt::format("{} micro-batches leave {} beside groups of {}, fewer than pp {}",
                                 m, m % p.choices.group, p.choices.group, p.pp);
      },
      [&] {
        return fmt::format(
            "choose a group of {0} or more that divides the {1} micro-batches, or leaves {0} or "
            "more",
            p.pp, m);
      });
  rules.require(
      p.choices.in_flight == 0 || p.schedule == ScheduleKind::zero_bubble_h2, "in_flight_limit",
      [&] { return fmt::format("schedule {} has no such limit", row.name); },
      [] { return std::string("leave it out, or set schedule: zero-bubble-h2"); });
  rules.require(
      p.choices.in_flight == 0 || p.choices.in_flight >= p.pp, "in_flight_limit",
      [&] {
        return fmt::format("fewer than pp {} micro-batches in flight leave a pipeline idle", p.pp);
      },
      [&] {
        return fmt::format("choose {} (as zero-bubble-h1) to {} (as -h2 without a limit)", p.pp,
                           2 * p.pp - 1);
      });
}

// What is simulated at least: eight rounds of the pipeline, or all of a shorter one.
void check_length(const ParallelPlan& p, const TrainingSpec& training, Rules& rules) {
  const std::int64_t rounds = std::min<std::int64_t>(
      std::int64_t{9} * p.pp,
      std::max<std::int64_t>(1, training.global_batch / (p.dp * p.micro_batch)));
  // A schedule with split backward is generated for every plan.
  const std::int64_t most = std::int64_t{1} << (splits_backward(p.schedule) ? 21 : 27);
  rules.require(
      std::int64_t{2} * p.pp * p.vpp * rounds <= most, "pp",
      [&] {
        return fmt::format("pp {} x vpp {} makes a schedule too long to simulate", p.pp, p.vpp);
      },
      [] { return std::string("choose fewer stages"); });
}

void check_batch(const ParallelPlan& p, const TrainingSpec& training, Rules& rules) {
  const std::int64_t share = p.dp * p.micro_batch;
  const bool divides = rules.require(
      training.global_batch % share == 0, "micro_batch",
      [&] {
        return fmt::format("global_batch {} is not divisible by dp {} x micro_batch {} = {}",
                           training.global_batch, p.dp, p.micro_batch, share);
      },
      [&] {
        if (training.global_batch % p.dp != 0 && p.micro_batch > 1) {
          return fmt::format(
              "choose a global_batch that is a multiple of {}, or of dp {} with a "
              "smaller micro_batch",
              share, p.dp);
        }
        if (training.global_batch % p.dp != 0)
          return fmt::format("choose a global_batch that is a multiple of dp {}", p.dp);
        return fmt::format("choose micro_batch among {}",
                           divisors_text(training.global_batch / p.dp));
      });
  rules.require(
      !training.stack.offers.batch_by_pipeline || training.global_batch % p.pp == 0, "pp",
      [&] {
        return fmt::format("{} takes no global_batch {} that is not a multiple of pp {}",
                           training.stack.name, training.global_batch, p.pp);
      },
      [&] {
        return fmt::format("choose pp among {}, or another global_batch",
                           divisors_text(training.global_batch));
      });
  rules.require(
      p.zero <= most_zero(training.optimizer), "zero",
      [&] {
        return fmt::format("ZeRO {} cuts the matrices that {} takes as a whole", p.zero,
                           to_string(training.optimizer));
      },
      [&] {
        return fmt::format("set zero: {}, or training.optimizer: adam",
                           most_zero(training.optimizer));
      });
  check_length(p, training, rules);
  if (!divides) return;
  const std::int64_t m = p.micro_batches(training.global_batch);
  check_fixed_order(p, m, rules);
  check_choices(p, m, rules);
  if (!row_of(p.schedule).whole_rounds || p.choices.group > 0) return;
  rules.require(
      m % p.pp == 0, "vpp",
      [&] {
        return fmt::format(
            "the interleaved schedule needs micro-batches in multiples of pp {}, there are {}",
            p.pp, m);
      },
      [] { return std::string("set vpp: 1, or another micro_batch"); });
}

// A schedule from a file is for one number of ranks, chunks and micro-batches.
void check_listed(const ParallelPlan& p, const TrainingSpec& training, Rules& rules) {
  rules.require(
      is_listed(p.schedule) == (p.listed != nullptr), "schedule",
      [] { return std::string("a schedule from a file comes with the file"); },
      [] { return std::string("write schedule: {file: my.csv}"); });
  if (p.listed == nullptr) return;
  const Schedule& s = p.listed->schedule;
  const auto same = [&](std::int64_t listed, std::int64_t planned, const char* what,
                        const std::string& remedy) {
    rules.require(
        listed == planned, "schedule",
        [&] {
          return fmt::format("{} is a schedule of {} {}, the plan has {}", quote(p.listed->file),
                             listed, what, planned);
        },
        [&] { return remedy + ", or give another schedule"; });
  };
  same(s.ranks, p.pp, "pipeline ranks, one a row", fmt::format("set pp: {}", s.ranks));
  same(s.chunks, p.vpp, "stages a rank", fmt::format("set vpp: {}", s.chunks));
  same(s.micro_batches, p.micro_batches(training.global_batch), "micro-batches",
       fmt::format("set training.global_batch: {} (dp x micro_batch x {})",
                   p.dp * p.micro_batch * s.micro_batches, s.micro_batches));
}

void check_virtual_stages(const ParallelPlan& p, Rules& rules) {
  rules.require(
      takes_chunks(p.schedule, p.vpp), "schedule",
      [&] { return fmt::format("schedule {} with vpp {}", schedule_name(p.schedule), p.vpp); },
      [&] {
        const ScheduleRow& row = row_of(p.schedule);
        if (row.fewest_chunks > 1 && row.fewest_chunks == row.most_chunks)
          return fmt::format("{} goes with vpp: {}", row.name, row.fewest_chunks);
        if (splits_backward(p.schedule))
          return std::string("zero-bubble-h1 and -h2 go with vpp: 1");
        return std::string("vpp > 1 goes with schedule: interleaved, and the other way round");
      });
  rules.require(
      p.vpp == 1 || p.pp > 1, "vpp", [] { return std::string("virtual stages need pp > 1"); },
      [] { return std::string("set vpp: 1"); });
}

// The numbers of stages that the layers divide into, embedding and loss counted where that helps.
std::vector<int> stage_counts(const ModelSpec& model) {
  constexpr std::int64_t most = 512;
  std::vector<int> counts;
  for (ParallelPlan p; p.pp <= std::min(model.layers, most); ++p.pp) {
    const UnevenSplit split = uneven_split(p, model);
    if (split != UnevenSplit::balanced && split != UnevenSplit::impossible) counts.push_back(p.pp);
  }
  return counts;
}

// What of them is a multiple of pp, where chunks were asked for.
std::string chunk_counts(const ParallelPlan& p, std::span<const int> stage_counts) {
  std::vector<int> chunks;
  for (const int stages : stage_counts)
    if (stages % p.pp == 0) chunks.push_back(stages / p.pp);
  if (p.vpp == 1 || chunks.empty()) return "";
  return fmt::format(" (with pp {}: vpp {})", p.pp, fmt::join(chunks, ", "));
}

// Of the stacks that divide layers evenly, and take no list.
std::string no_lists(const StackSpec& stack) {
  return stack.offers.any_layers() || stack.name.empty()
             ? ""
             : fmt::format(", which {} has no setting for", stack.name);
}

std::string example_layout(const ModelSpec& model, std::int64_t stages) {
  constexpr std::int64_t readable = 24;
  const auto layout = stages <= readable ? rest_on_last(model.layers, stages) : std::vector<int>();
  return layout.empty() ? "" : fmt::format(", such as [{}]", fmt::join(layout, ", "));
}

void check_stages(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                  Rules& rules) {
  const std::int64_t stages = std::int64_t{p.pp} * p.vpp;  // as written: may be beyond an int
  if (p.stage_layers.empty()) {
    const UnevenSplit split = uneven_split(p, model);
    const bool placed = split == UnevenSplit::balanced ? training.stack.offers.uneven_stages
                                                       : split != UnevenSplit::impossible;
    rules.require(
        placed, p.vpp > 1 ? "vpp" : "pp",
        [&] {
          return fmt::format("{} layers do not divide into pp {} x vpp {} = {} stages",
                             model.layers, p.pp, p.vpp, stages);
        },
        [&] {
          const std::vector<int> counts = stage_counts(model);
          return fmt::format("choose pp x vpp among {}{}, or give stage_layers{}{}",
                             fmt::join(counts, ", "), chunk_counts(p, counts),
                             example_layout(model, stages), no_lists(training.stack));
        });
  } else {
    const std::int64_t sum =
        std::accumulate(p.stage_layers.begin(), p.stage_layers.end(), std::int64_t{0});
    rules.require(
        static_cast<std::int64_t>(p.stage_layers.size()) == stages, "stage_layers",
        [&] {
          return fmt::format("stage_layers lists {} stages, pp {} x vpp {} is {}",
                             p.stage_layers.size(), p.pp, p.vpp, stages);
        },
        [] { return std::string("list one count for each virtual stage"); });
    rules.require(
        sum == model.layers, "stage_layers",
        [&] {
          return fmt::format("stage_layers add up to {}, the model has {} layers", sum,
                             model.layers);
        },
        [] { return std::string("make them add up"); });
  }
  check_virtual_stages(p, rules);
  check_listed(p, training, rules);
}

void check_recompute(const ParallelPlan& p, const ModelSpec& model, Rules& rules) {
  rules.require(
      p.recompute.layers == 0 || p.recompute.granularity == Recomputation::full, "recompute",
      [] { return std::string("a number of layers goes with granularity full only"); },
      [] { return std::string("write recompute: {granularity: full, layers: N}"); });
  rules.require(
      p.recompute.layers <= model.layers, "recompute",
      [&] {
        return fmt::format("recompute layers {} exceed the model's {}", p.recompute.layers,
                           model.layers);
      },
      [] { return std::string("count the layers of one (virtual) stage"); });
  // Megatron-LM, transformer_config.py: both are refused there too.
  const auto lacks = [&](RecomputeModule module, bool has, const char* what) {
    rules.require(
        has || (p.recompute.modules & bit_of(module)) == 0, "recompute",
        [&] {
          return fmt::format("recompute {}, and the model has no {}",
                             recompute_module_names[static_cast<std::size_t>(module)], what);
        },
        [] { return std::string("leave the module out"); });
  };
  lacks(RecomputeModule::mla_up_proj, model.latent_attention(), "latent attention");
  lacks(RecomputeModule::moe_act, model.experts > 0, "experts");
}

constexpr const char* other_stack = "choose another training.stack (see `shardplan list stacks`)";

void check_data_parallel_only(const ParallelPlan& p, const StackSpec& stack, Rules& rules) {
  rules.require(
      p.zero != 1, "zero",
      [&] { return fmt::format("stack {} shards gradients too, or nothing", stack.name); },
      [] { return std::string("set zero to 0, 2 or 3"); });
  const auto alone = [&](const char* key, int ranks) {
    rules.require(
        ranks == 1, key,
        [&] { return fmt::format("stack {} has data parallelism alone", stack.name); },
        [key] { return fmt::format("set {}: 1, or training.stack: megatron-bridge", key); });
  };
  alone("tp", p.tp);
  alone("pp", p.pp);
  alone("cp", p.cp);
  alone("ep", p.ep);
}

void check_offered_recompute(const Recompute& asked, const StackSpec& stack, Rules& rules) {
  const auto require = [&](bool offered, const char* lack, const char* remedy) {
    rules.require(
        offered, "recompute", [&] { return fmt::format("stack {} {}", stack.name, lack); },
        [&] { return std::string(remedy); });
  };
  const unsigned core = bit_of(RecomputeModule::core_attn);
  require(asked.layers == 0 || stack.offers.partial_recompute, "recomputes all layers or none",
          "write recompute: full, or none");
  require(asked.granularity != Recomputation::selective || stack.offers.selective_recompute,
          "has no selective recomputation", other_stack);
  require((asked.modules & ~core) == 0 || stack.offers.recompute_modules,
          "has no recomputation by modules", other_stack);
}

// The features that the framework's version offers: a plan that it cannot run is invalid.
void check_offered(const ParallelPlan& p, const StackSpec& stack, Rules& rules) {
  const auto other = [] { return std::string(other_stack); };
  rules.require(
      p.zero <= stack.offers.max_zero, "zero",
      [&] {
        return fmt::format("stack {} offers ZeRO up to stage {}", stack.name,
                           stack.offers.max_zero);
      },
      [&] {
        return fmt::format("set zero to at most {}, or choose another stack",
                           stack.offers.max_zero);
      });
  if (p.pp > 1 && stack.offers.pipeline) {
    const int most = stack.offers.max_zero_in_pipeline;
    rules.require(
        p.zero <= most, "zero",
        [&] {
          return fmt::format("stack {} offers ZeRO up to stage {} with pipeline stages", stack.name,
                             most);
        },
        [&] { return fmt::format("set zero to at most {}, or pp: 1", most); });
  }
  if (stack.offers.data_parallel_only) check_data_parallel_only(p, stack, rules);
  rules.require(
      p.pp == 1 || stack.offers.pipeline, "pp",
      [&] { return fmt::format("stack {} has no pipeline", stack.name); },
      [] { return std::string("set pp: 1, or choose another stack"); });
  check_offered_recompute(p.recompute, stack, rules);
  rules.require(
      !p.sequence_parallel || stack.offers.sequence_parallel, "sequence_parallel",
      [&] { return fmt::format("stack {} has no sequence parallelism", stack.name); }, other);
  rules.require(
      !row_of(p.schedule).whole_rounds || stack.offers.interleaved, "vpp",
      [&] { return fmt::format("stack {} has no interleaved schedule", stack.name); }, other);
  rules.require(
      !splits_backward(p.schedule) || is_listed(p.schedule) || overlaps(p.schedule) ||
          stack.offers.zero_bubble,
      "schedule", [&] { return fmt::format("stack {} has no zero-bubble schedules", stack.name); },
      other);
  rules.require(
      !overlaps(p.schedule) || stack.offers.dualpipe, "schedule",
      [&] {
        return fmt::format("stack {} has no schedule {}", stack.name, schedule_name(p.schedule));
      },
      other);
}

void check_stack(const ParallelPlan& p, const TrainingSpec& training, Rules& rules) {
  check_offered(p, training.stack, rules);
  // Megatron: with two pipeline ranks the interleaved order needs overlapped transfers.
  rules.require(
      !row_of(p.schedule).whole_rounds || p.pp > 2 || training.overlap.pp_overlap, "vpp",
      [] { return std::string("vpp > 1 with pp 2 needs overlapped pipeline transfers"); },
      [] { return std::string("set vpp: 1, pp > 2, or training.overlap.pp_overlap: true"); });
}

// What the exchange of experts takes of the devices.
void check_dispatcher(const ParallelPlan& p, const ClusterSpec& cluster, Rules& rules) {
  const ExpertRecipe& recipe = p.experts;
  rules.require(
      !recipe.overlap || !recipe.shared_overlap, "shared_expert_overlap",
      [] {
        return std::string(
            "the exchange is hidden by another micro-batch (expert_overlap) or by the shared "
            "experts, not by both");
      },
      [] { return std::string("set one of the two to false"); });
  if (!sends_once_a_rank(recipe.dispatcher) || (p.ep == 1 && !by_stage(p, cluster))) return;
  const auto name = dispatcher_names[static_cast<std::size_t>(recipe.dispatcher)];
  rules.require(
      runs_flex_dispatcher(cluster), "dispatcher",
      [&] { return fmt::format("{} has no kernels for device {}", name, cluster.device.name); },
      [] {
        return std::string(
            "set dispatcher: alltoall, or flex_dispatcher of a device that has them");
      });
  for (const ClusterSpec& group : groups_of(cluster)) {
    rules.require(
        recipe.multiprocessors < group.device.multiprocessors, "dispatcher_multiprocessors",
        [&] {
          return fmt::format("the kernels of {} take {} of the {} multiprocessors of device {}",
                             name, recipe.multiprocessors, group.device.multiprocessors,
                             group.device.name);
        },
        [] { return std::string("leave some for the products: some 32"); });
  }
}

// Checks every stage as a plan of its own; the reason names the stage.
void check_each_stage(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                      Rules& rules) {
  for (int k = 0; k < p.different_stages() && !rules.stop(); ++k) {
    const ParallelPlan own = stage_plan(p, k);
    const std::size_t before = rules.found.size();
    check_tensor(own, model, training, rules);
    check_context(own, model, training, rules);
    check_experts(own, model, rules);
    check_two_stacks(own, model, training, rules);
    check_recompute(own, model, rules);
    check_stack(own, training, rules);
    for (std::size_t i = before; i < rules.found.size(); ++i) blame_stage(p, k, rules.found[i]);
  }
}

void check_all(const ParallelPlan& p, const ModelSpec& model, const ClusterSpec& cluster,
               const TrainingSpec& training, Rules& rules) {
  if (p.dp_replicate > 1 || p.outer_sharding != OuterSharding::no_shard)
    check_hybrid(p, model, training, rules);
  if (p.zero_plus_plus.any()) {
    check_zero_plus_plus(p, model, training, rules);
    check_hybrid_offered(p, training.stack, rules);
  }
  if (p.offload.any() || p.offload.names_drives())
    check_offload(p, model, cluster, training, rules);
  check_dispatcher(p, cluster, rules);
  if (!p.replica_groups.empty()) {
    check_replicas(p, model, cluster, training, rules);
    return;
  }
  if (by_stage(p, cluster)) {
    if (!check_submeshes(p, cluster, rules) || rules.stop()) return;
    check_batch(p, training, rules);
    check_stages(p, model, training, rules);
    check_each_stage(p, model, training, rules);
    return;
  }
  check_devices(p, cluster, rules);
  if (rules.stop()) return;
  check_tensor(p, model, training, rules);
  check_context(p, model, training, rules);
  check_experts(p, model, rules);
  check_two_stacks(p, model, training, rules);
  if (rules.stop()) return;
  check_batch(p, training, rules);
  check_stages(p, model, training, rules);
  check_recompute(p, model, rules);
  if (training.stack.lineage == "megatron") check_overlapped_exchange(p, rules);
  check_stack(p, training, rules);
}

}  // namespace

std::vector<Violation> violations(const ParallelPlan& plan, const ModelSpec& model,
                                  const ClusterSpec& cluster, const TrainingSpec& training) {
  Rules rules(true);
  check_all(plan, model, cluster, training, rules);
  return rules.found;
}

std::vector<Violation> overlap_violations(const ParallelPlan& plan) {
  Rules rules(true);
  check_overlapped_exchange(plan, rules);
  return rules.found;
}

std::vector<Violation> not_offered(const ParallelPlan& plan, const StackSpec& stack) {
  Rules rules(true);
  check_offered(plan, stack, rules);
  check_context_offered(plan, stack, rules);
  check_hybrid_offered(plan, stack, rules);
  check_offload_offered(plan, stack, rules);
  return rules.found;
}

bool is_valid(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
              const TrainingSpec& training) {
  Rules rules(false);
  check_all(plan, model, cluster, training, rules);
  return !rules.broken;
}

UnevenSplit uneven_split(const ParallelPlan& plan, const ModelSpec& model) {
  const std::int64_t stages = std::int64_t{plan.pp} * plan.vpp;
  if (model.layers % stages == 0) return UnevenSplit::none;
  // A chunk at an end may have no layers, but not an entire rank.
  if (plan.pp == 1 || (plan.vpp == 1 && model.layers < stages)) return UnevenSplit::impossible;
  if ((model.layers + 2) % stages == 0) return UnevenSplit::embedding_and_loss;
  if ((model.layers + 1) % stages == 0) return UnevenSplit::loss;
  return model.layers < stages ? UnevenSplit::impossible : UnevenSplit::balanced;
}

bool leaves_rest(std::int64_t layers, std::int64_t stages) {
  return (stages - 1) * ceil_div(layers, stages) < layers;
}

std::vector<int> rest_on_last(std::int64_t layers, std::int64_t stages) {
  if (stages < 1 || layers < stages) return {};
  const std::int64_t each = ceil_div(layers, stages), rest = layers - (stages - 1) * each;
  std::vector<int> list(static_cast<std::size_t>(stages), static_cast<int>(each));
  if (rest >= 1) {
    list.back() = static_cast<int>(rest);
  } else {
    const auto larger = layers % stages;
    std::fill(list.begin() + larger, list.end(), static_cast<int>(layers / stages));
  }
  return list;
}

int layers_of(const ParallelPlan& plan, const ModelSpec& model, int virtual_stage) {
  if (!plan.stage_layers.empty()) return plan.stage_layers[static_cast<std::size_t>(virtual_stage)];
  const int stages = plan.virtual_stages();
  const bool first = virtual_stage == 0, last = virtual_stage == stages - 1;
  switch (uneven_split(plan, model)) {
    case UnevenSplit::none:
    case UnevenSplit::impossible: return static_cast<int>(model.layers / stages);
    case UnevenSplit::loss: return static_cast<int>((model.layers + 1) / stages) - (last ? 1 : 0);
    case UnevenSplit::embedding_and_loss:
      return static_cast<int>((model.layers + 2) / stages) - (first ? 1 : 0) - (last ? 1 : 0);
    case UnevenSplit::balanced: {
      // With fewer than two layers per stage the ends do not count as layers, so none has zero
      // layers.
      const bool ends_count = model.layers + 2 >= std::int64_t{2} * stages;
      const std::int64_t counted = model.layers + (ends_count ? 2 : 0);
      const int extra = virtual_stage < counted % stages ? 1 : 0;
      const int less = ends_count && (first || last) ? 1 : 0;
      return static_cast<int>(counted / stages) + extra - less;
    }
  }
  return 0;
}

std::vector<int> layers_by_cost(const ModelSpec& m, int stages) {
  const double layer = 4.0 * static_cast<double>(m.query_size() * m.hidden) +
                       static_cast<double>((m.gates() + 1) * m.ffn_hidden * m.hidden);
  const double all =
      layer * static_cast<double>(m.layers) + static_cast<double>(m.vocab * m.embedding_width());
  std::vector<int> counts(static_cast<std::size_t>(stages), 0);
  std::size_t stage = 0;
  for (std::int64_t i = 1; i <= m.layers; ++i) {
    ++counts[stage];
    const double share = all * static_cast<double>(stage + 1) / stages;
    if (layer * static_cast<double>(i) > share && stage + 1 < counts.size()) ++stage;
  }
  for (std::size_t k = 1; k + 1 < counts.size(); ++k) {
    if (counts[k] > 0) continue;
    --*std::max_element(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(k));
    ++counts[k];
  }
  return counts;
}

std::int64_t padded_vocab(std::int64_t vocab, int tp) {
  const std::int64_t unit = std::int64_t{128} * tp;
  return ceil_div(vocab, unit) * unit;
}

}  // namespace costmodel
