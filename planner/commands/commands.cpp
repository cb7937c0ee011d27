#include "planner/commands/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/batch_command.hpp"
#include "planner/commands/collective_command.hpp"
#include "planner/commands/compare_command.hpp"
#include "planner/commands/completions.hpp"
#include "planner/commands/doctor_command.hpp"
#include "planner/commands/evaluate_command.hpp"
#include "planner/commands/export_command.hpp"
#include "planner/commands/from_log_command.hpp"
#include "planner/commands/groups_command.hpp"
#include "planner/commands/help_command.hpp"
#include "planner/commands/import_command.hpp"
#include "planner/commands/init_command.hpp"
#include "planner/commands/json_schema.hpp"
#include "planner/commands/listing.hpp"
#include "planner/commands/plan_command.hpp"
#include "planner/commands/scenario_words.hpp"
#include "planner/commands/simulate_command.hpp"
#include "planner/commands/sweep.hpp"
#include "planner/commands/validate_command.hpp"
#include "planner/frameworks/read_job.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Perform = CommandResult (*)(const Session& session);

struct CommandRow {
  Command command;
  Perform perform;                    // of a scenario of training, or of none
  Perform perform_serving = nullptr;  // of a scenario of serving; none: `perform` refuses it
  bool own_program = false;           // unless fits_from_logs()
  bool verbatim = false;              // its text is another program's input: no line is broken
};

CommandResult list_command(const Session& session) {
  const Options& options = session.options;
  const std::vector<std::string> words(options.operands.begin() + 1, options.operands.end());
  if (options.operands.front() == "schema")
    return {0, schema_text(words.empty() ? "scenario" : words.front(), options.config_path), {}};
  const Listing found = listing(options.operands.front(), words, session.path);
  return {0, printed(found.table, options.format, session.style.style.width), found.warnings};
}

CommandResult help_command(const Session& session) {
  return {0, help_on(shardplan(), session.options.operands), {}};
}

CommandResult completions_command(const Session& session) {
  return {0, completions(shardplan(), session.options.operands.front()), {}};
}

CommandResult version_command(const Session&) { return {0, version_text(), {}}; }

// A table, made when it is asked for: before main() nothing would answer for want of memory.
// NOLINTNEXTLINE(readability-function-size)
const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> all{
      {{.name = "plan",
        .operands = "SCENARIO",
        .least = 1,
        .most = 1,
        .formats = "text json yaml csv md html",
        .summary = "search for the best plans; the reason for each, and what one step away costs",
        .examples =
            {"shardplan plan llama-3-70b --gpus 64xh100",
             "shardplan plan configs/scenarios/gpt3-175b-selene.yaml",
             "shardplan plan my.yaml --set plan.tp=8 --top 3 --format html --out plans.html",
             "shardplan plan my.yaml --strategy alpa --time-limit 60"},
        .usages = {"shardplan plan SCENARIO [flags]",
                   "shardplan plan MODEL --gpus NxDEVICE [flags]"}},
       plan_command,
       plan_serving},
      {{.name = "evaluate",
        .operands = "SCENARIO",
        .least = 1,
        .most = 1,
        .formats = "text json yaml md html",
        .summary = "predict time, memory and communication of the scenario's own plan",
        .examples = {"shardplan evaluate my.yaml --set plan.tp=8 --set plan.pp=16",
                     "shardplan evaluate gpt3-175b-selene --format json --placement ranks.yaml"},
        .usages = {"shardplan evaluate SCENARIO [flags]",
                   "shardplan evaluate MODEL --gpus NxDEVICE [flags]"}},
       evaluate_command,
       evaluate_serving},
      {{.name = "explain",
        .operands = "SCENARIO",
        .least = 1,
        .most = 1,
        .formats = "text json md html",
        .summary = "the same prediction as worked formulas: symbol, value, where it comes from",
        .examples = {"shardplan explain my.yaml",
                     "shardplan explain gpt3-175b-selene --format md --out why.md",
                     "shardplan explain gpt3-175b-selene --memory"},
        .usages = {"shardplan explain SCENARIO [flags]",
                   "shardplan explain MODEL --gpus NxDEVICE [flags]"}},
       explain_command,
       explain_serving},
      {{.name = "explain-job",
        .operands = "ARGS [LOG]",
        .least = 1,
        .most = 65,
        .formats = "text json md html",
        .summary =
            "why a job is slow: its log, or its profiler's traces, next to the prediction, likely "
            "causes, what would help (of this machine and build: doctor)",
        .examples = {"shardplan explain-job my.yaml train.log",
                     "shardplan explain-job train.sh train.log --cluster dgx-h100",
                     "shardplan explain-job my.yaml rank0.json.gz rank1.json.gz",
                     "shardplan explain-job my.yaml"},
        .usages = {"shardplan explain-job ARGS [LOG] [flags]",
                   "shardplan explain-job ARGS TRACE ... [flags]"}},
       explain_job_command},
      {{.name = "sweep",
        .operands = "SCENARIO",
        .least = 1,
        .most = 1,
        .formats = "text json csv md html svg",
        .summary =
            "evaluate every combination of --over values, one row a point; exit status 2 when "
            "values of one cannot be read",
        .examples = {"shardplan sweep my.yaml --over tp=1,2,4,8 --over micro_batch=1,2,4 "
                     "--format csv",
                     "shardplan sweep my.yaml --over training.global_batch=256,512,1024"},
        .usages = {"shardplan sweep SCENARIO --over KEY=A,B [flags]",
                   "shardplan sweep MODEL --gpus NxDEVICE --over KEY=A,B [flags]"}},
       sweep_command,
       sweep_serving_command},
      {{.name = "compare",
        .operands = "SCENARIO ...",
        .least = 1,
        .most = 100,
        .formats = "text json csv md html",
        .summary = "scenarios side by side: what differs, and why one is faster",
        .examples = {"shardplan compare before.yaml after.yaml",
                     "shardplan compare my.yaml --with plan=auto --with 'plan.tp=4; plan.pp=2'"}},
       compare_command,
       compare_serving},
      {{.name = "batch",
        .operands = "SCENARIO ...",
        .least = 1,
        .most = 10'000,
        .formats = "text json csv md",
        .summary =
            "many scenarios in (files, folders, patterns), one report each and an index out; goes "
            "on where it ended",
        .examples =
            {"shardplan batch scenarios --out reports",
             "shardplan batch 'runs/*.yaml' --out reports --command 'sweep --over tp=1,2,4'"}},
       batch_command},
      {{.name = "simulate",
        .operands = "SCENARIO",
        .least = 1,
        .most = 1,
        .formats = "text json html",
        .summary = "event by event: a chart, and with --trace a Chrome or Perfetto trace",
        .examples = {"shardplan simulate my.yaml --trace trace.json",
                     "shardplan simulate my.yaml --set plan.schedule=gpipe",
                     "shardplan simulate my.yaml --compare --page schedules.html"},
        .usages = {"shardplan simulate SCENARIO [flags]",
                   "shardplan simulate MODEL --gpus NxDEVICE [flags]"}},
       simulate_command},
      {{.name = "groups",
        .operands = "[SCENARIO]",
        .least = 0,
        .most = 1,
        .formats = "text json csv md",
        .summary = "which ranks form which groups, as Megatron-LM or vLLM make them",
        .examples = {"shardplan groups --tp 2 --pp 4 --dp 2",
                     "shardplan groups my.yaml --set plan.rank_order=tp-cp-ep-pp-dp",
                     "shardplan groups --tp 4 --pp 2 --layout vllm --format json"}},
       groups_command,
       groups_serving},
      {{.name = "collective",
        .operands = "PRIMITIVE|all",
        .least = 1,
        .most = 1,
        .formats = "text json csv md",
        .summary = "the price of one primitive (broadcast, scatter, gather, reduce, all-reduce, "
                   "all-gather, reduce-scatter, all-to-all, send): time, bus bandwidth, formula",
        .examples =
            {"shardplan collective all-reduce --bytes 1GiB --ranks 64 --cluster dgx-h100",
             "shardplan collective all-gather --bytes 8:8GiB:2 --ranks 8 --cluster dgx-a100",
             "shardplan collective all --bytes 64MiB --ranks 16 --stride 8 --cluster "
             "dgx-h100 --format csv"}},
       collective_command},
      {{.name = "validate",
        .operands = "EVIDENCE ...",
        .least = 1,
        .most = 10'000,
        .formats = "text json csv md html svg",
        .summary = "predict measured runs; the error of each source, device, framework, and of all",
        .examples = {"shardplan validate configs/evidence --fail-above 12",
                     "shardplan validate configs/evidence --rows --format html --out errors.html",
                     "shardplan validate configs/evidence --against-planner --strategy alpa"}},
       validate_command},
      {{.name = "calibrate",
        .operands = "--from FILE",
        .formats = "text json",
        .summary = "measure this machine, or fit constants to measurements (a program of its own); "
                   "--from-log LOG, --from-trace TRACE: to your own runs",
        .examples =
            {"shardplan calibrate --from log.yaml --base dgx-h100 --out mine.yaml",
             "shardplan calibrate --from-log a.yaml:a.log b.yaml:b.log --out mine.yaml",
             "shardplan calibrate --from-trace t.json.gz --scenario my.yaml --out mine.yaml"}},
       from_log_command,
       nullptr,
       true},
      {{.name = "run",
        .operands = "SCENARIO",
        .most = 1,
        .formats = "text json",
        .summary = "execute the scenario's plan and hold it against the prediction (a program of "
                   "its own)",
        .examples = {"shardplan run configs/scenarios/tiny-gpt-cpu.yaml --backend threads"}},
       nullptr,
       nullptr,
       true},
      {{.name = "import",
        .operands =
            "[hf|nccl-tests|megatron|megatron-bridge|nemo|torchtitan|deepspeed|accelerate|"
            "axolotl|llama-factory|ms-swift|trainer|nanotron|gpt-neox|verl|slime|vllm|sglang|"
            "topo|slurm|trace] FILE",
        .least = 1,
        .most = 2,
        .formats = "text json yaml",
        .summary =
            "a foreign description in, YAML of ours out; a model's and a job's need no name of a "
            "format "
            "hold (hf: a Hugging Face config.json; "
            "nccl-tests: a log; megatron: a launch script, arguments or log; "
            "megatron-bridge, nemo: overrides, or Python that sets fields; torchtitan: its TOML "
            "or Python configuration; deepspeed: a ds_config.json; accelerate, axolotl, "
            "llama-factory, nanotron, gpt-neox: their YAML; llama-factory, ms-swift, trainer, "
            "verl: a "
            "command with their arguments (trainer: those of transformers and TRL); vllm, sglang: "
            "engine "
            "arguments; topo: nvidia-smi topo -m as a cluster; slurm: env | grep SLURM; "
            "trace: a profiler's, as microbenchmarks of its kernels by shape)",
        .examples = {"shardplan import hf config.json --out configs/models/mine.yaml",
                     "shardplan import nccl-tests all_reduce.log --out network.yaml",
                     "shardplan import trace t.json.gz --to microbench --out kernels.yaml",
                     "shardplan import megatron train.sh --cluster dgx-h100 --out my.yaml",
                     "shardplan import axolotl lora.yaml --cluster dgx-h100 --out my.yaml"}},
       import_command,
       nullptr,
       false,
       true},
      {{.name = "export",
        .operands = "SCENARIO",
        .least = 1,
        .most = 1,
        .formats = "text json",
        .summary = "the plan as a framework's own configuration and launch",
        .examples = {"shardplan export my.yaml --to megatron --out launch.sh",
                     "shardplan export my.yaml --to megatron-bridge --launcher slurm --out job.sh",
                     "shardplan export my.yaml --to megatron --set plan.tp=8 --format json"},
        .usages = {"shardplan export SCENARIO --to FRAMEWORK [flags]",
                   "shardplan export MODEL --gpus NxDEVICE --to FRAMEWORK [flags]"}},
       export_command,
       export_serving,
       false,
       true},
      {{.name = "list",
        .operands = "models|devices|clusters|stacks|engines|scenarios|keys|schema [WORD ...]",
        .least = 1,
        .most = 100,
        .formats = "text json csv md",
        .summary = "what the configurations offer, and the keys of all files; further words choose "
                   "the lines that hold them all. schema KIND: JSON Schema of scenario, model, "
                   "cluster, device, stack, engine, evidence, answer",
        .examples = {"shardplan list clusters", "shardplan list models llama 8b",
                     "shardplan list keys recompute",
                     "shardplan list schema scenario --out shardplan.schema.json",
                     "shardplan list models --config-path mine --format csv"}},
       list_command},
      {{.name = "doctor",
        .formats = "text json csv md",
        .summary = "what this machine and this build can do: configs, programs, backends, a "
                   "self-test (of a slow job: explain-job)",
        .examples = {"shardplan doctor --format json", "shardplan doctor --config-path mine"}},
       doctor_command},
      {{.name = "init",
        .operands = "[FILE] ...",
        .most = 3,
        .formats = "text",
        .summary = "write a commented scenario to start from: of flags, or of what is typed where "
                   "nothing is given on a terminal; overwrites nothing",
        .examples = {"shardplan init my.yaml --model llama-3-70b --gpus 64xh100",
                     "shardplan init llama-3-8b 64xh100 > my.yaml"},
        .usages = {"shardplan init [FILE.yaml] [MODEL] [NxDEVICE] [flags]"}},
       init_command,
       nullptr,
       false,
       true},
      {{.name = "completions",
        .operands = "bash|zsh|fish",
        .least = 1,
        .most = 1,
        .formats = "text",
        .summary = "a shell's completion script: of commands, flags, their words, and names",
        .examples = {"shardplan completions bash > shardplan.bash",
                     "shardplan completions zsh > _shardplan"}},
       completions_command,
       nullptr,
       false,
       true},
      {{.name = "help",
        .operands = "[TOPIC]",
        .most = 2,
        .formats = "text",
        .summary = "of all commands and the topics there are, of a command or of a topic",
        .examples = {"shardplan help plan", "shardplan help exit-status",
                     "shardplan help man > shardplan.1"}},
       help_command},
      {{.name = "version",
        .operands = "",
        .formats = "text",
        .summary = "the version, as --version",
        .examples = {"shardplan version --format text", "shardplan version --out version.txt"}},
       version_command}};
  return all;
}

// --calibrated: the file takes the place of the base that a scenario's cluster stands on, so that
// the number of devices stays.
Options with_calibration(Options options, const ConfigPath& path) {
  if (options.calibrated.empty()) return options;
  find_config(path, "clusters", options.calibrated,
              mark_of_argument("--calibrated", options.calibrated));
  const std::string file = scenario_operand(options.operands.front(), options, path);
  bool named = false;
  // What scenario_operand() made of a model or of a framework's job is no file.
  if (path.loaded->contains(file) || format_of(file) == JobFormat::scenario) {
    Value root = loaded(path, file);
    for (const auto& assignment : options.assignments)
      assign_path(root, assignment, mark_of_argument("--set", assignment));
    const Value* cluster = root.find("cluster");
    named = cluster != nullptr && cluster->is_scalar();
  }
  const std::string key = named ? "cluster=" : "cluster.base=";
  options.assignments.insert(
      options.assignments.begin() + static_cast<std::ptrdiff_t>(options.derived),
      key + options.calibrated);
  ++options.derived;
  return options;
}

// With what the words of a scenario set, and standard input where an operand is a dash.
Options with_words(Options options, const ConfigPath& path) {
  std::ranges::replace(options.operands, std::string("-"), std::string("/dev/stdin"));
  if (options.command == "explain-job") return with_calibration(std::move(options), path);
  if (!admits(scenario_commands, options.command) || options.command == "init") return options;
  const std::string cluster = options.cluster;
  if (options.operands.empty()) options.cluster.clear();  // of groups' sizes
  const auto words = word_assignments(options, path);
  options.cluster = cluster;
  options.assignments.insert(options.assignments.begin(), words.begin(), words.end());
  options.derived = words.size();
  return with_calibration(std::move(options), path);
}

const CommandRow& row_of(std::string_view command) {
  const auto at = std::ranges::find(command_rows(), command,
                                    [](const CommandRow& r) { return r.command.name; });
  SHARDPLAN_CHECK(at != command_rows().end());
  return *at;
}

// The one place that tells a scenario of serving from one of training.
Perform performer(const CommandRow& row, const Session& session) {
  if (row.perform_serving == nullptr || session.options.operands.empty()) return row.perform;
  const Value scenario = scenario_tree(file_of(session), session.path, session.options.assignments);
  const bool serves = workload_kind(scenario) == WorkloadKind::inference;
  return serves ? row.perform_serving : row.perform;
}

}  // namespace

const Program& shardplan() {
  static const Program all = [] {
    Program made{
        .name = "shardplan",
        .summary =
            "How to train a transformer on many accelerators: time, memory and traffic of a "
            "parallel plan, and the best plan.",
        .flags = flags(),
        .ending =
            "exit status: 0 done; 1 an internal fault; 2 bad usage or bad input; 3 no plan "
            "fits, or the\nscenario's own does not; 4 a run failed or missed its limit\n"};
    for (const CommandRow& row : command_rows()) made.commands.push_back(row.command);
    return made;
  }();
  return all;
}

bool is_handed_over(std::string_view command) {
  return std::ranges::any_of(command_rows(), [&](const CommandRow& row) {
    return row.own_program && row.command.name == command;
  });
}

bool fits_from_logs(int count, const char* const* arguments) {
  const auto asks = [](std::string_view word) {
    return word == "--from-log" || word.starts_with("--from-log=") || word == "--from-trace" ||
           word.starts_with("--from-trace=");
  };
  return count > 2 && std::string_view(arguments[1]) == "calibrate" &&
         std::any_of(arguments + 2, arguments + count, asks);
}

CommandResult run_command(const Options& options, const Style& style) {
  const CommandRow& row = row_of(options.command);
  refuse_if(row.own_program && options.from_log.empty() && options.from_trace.empty(),
            fmt::format("flags stand before '{}'", options.command),
            fmt::format("write shardplan {} first, then its flags", options.command));
  const Markup markup = options.format == Format::md ? Markup::markdown : Markup::text;
  const ConfigPath path = costmodel::config_path(options.config_path, options.allow_path);
  if (options.caller != nullptr) {
    for (const auto& [name, text] : options.caller->documents)
      path.loaded->emplace(name, parse_yaml(text, stem_of(name)));
  }
  const Options complete = with_words(options, path);
  const Session session{complete, {markup, style}, path};
  CommandResult result = performer(row, session)(session);
  for (const std::string& sentence : *path.left_out)
    result.warnings.push_back("warning: " + sentence);
  if (!options.page.empty() && !result.page.empty()) write_file(options.page, result.page);
  if (options.format == Format::html && !result.page.empty()) result.text = result.page;
  // What is another program's input, or read back, has its own form.
  const bool schema = options.command == "list" && options.operands.front() == "schema";
  if (options.format == Format::json && !row.verbatim && !schema)
    result.text = versioned_json(result.text);
  if (options.format == Format::text && !row.verbatim)
    result.text = wrapped(result.text, style.width);
  return result;
}

}  // namespace planner
