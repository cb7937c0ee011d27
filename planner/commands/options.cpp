#include "planner/commands/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/commands/export_targets.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int most_group_size = 1'000'000;

constexpr std::array<std::string_view, 7> format_names{"text", "json", "yaml", "csv",
                                                       "md",   "html", "svg"};

[[noreturn]] void usage(const std::string& wrong, const std::string& remedy) {
  throw ConfigError({}, "shardplan: " + wrong, remedy);
}

// Reads a number from 1 to 1,000; `what` is the unit for the message.
int read_number(const char* flag, const char* what, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const int n = digits && text.size() <= 4 ? std::stoi(text) : 0;
  if (n < 1 || n > 1000) {
    usage(fmt::format("--{} {} is not a number of {}", flag, shortened(text), what),
          "allowed: 1 to 1,000");
  }
  return n;
}

double read_positive(const char* flag, const char* what, const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::count);
  if (!parsed.value || *parsed.value <= 0) {
    usage(fmt::format("--{} {} is not {}", flag, shortened(text), what),
          fmt::format("example: --{} 12", flag));
  }
  return *parsed.value;
}

// Reads a parallel size into a field of Options::sizes.
template <int GroupSizes::*Field>
void read_size(Options& options, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const int n = digits && text.size() <= 7 ? std::stoi(text) : 0;
  if (n < 1 || n > most_group_size) {
    usage(fmt::format("{} is no parallel size", shortened(text)),
          fmt::format("--tp, --pp, --dp, --cp, --ep and --etp take 1 to {}",
                      format_integer(most_group_size)));
  }
  options.sizes.*Field = n;
}

void read_format(Options& options, const std::string& text) {
  const auto* const at = std::ranges::find(format_names, text);  // known: the command allows it
  options.format = static_cast<Format>(at - format_names.begin());
}

void read_deadline(Options& options, const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::time);
  const bool unit = text.find_first_not_of("0123456789.") != std::string::npos;
  if (!parsed.value || *parsed.value <= 0 || !unit) {
    usage(fmt::format("--deadline {} is not a time", shortened(text)),
          "example: --deadline 30d, or 12h");
  }
  options.limits.days = *parsed.value / 86'400;
}

void read_budget(Options& options, const std::string& text) {
  const auto parsed = parse_count(text);
  if (!parsed || *parsed <= 0) {
    usage(fmt::format("--budget {} is not a number of dollars", shortened(text)),
          "example: --budget 2M");
  }
  options.limits.usd = *parsed;
}

void read_timeout(Options& options, const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::time);
  if (!parsed.value || *parsed.value <= 0)
    usage(fmt::format("--timeout {} is not a time", shortened(text)), "example: --timeout 30s");
  options.each.seconds = *parsed.value;
}

void read_memory(Options& options, const std::string& text) {
  constexpr double least = 16 << 20;  // below, the program does not even start
  const auto parsed = parse_quantity(text, Dimension::size);
  if (!parsed.value || *parsed.value < least || *parsed.value > 1e18) {
    usage(fmt::format("--memory {} is not a size from 16 MiB on", shortened(text)),
          "example: --memory 2GiB");
  }
  options.each.memory = static_cast<std::size_t>(*parsed.value);
}

// A flag, and where its value goes.
struct FlagRow {
  Flag flag;
  std::variant<std::string Options::*, std::vector<std::string> Options::*, bool Options::*,
               void (*)(Options&, const std::string&)>
      into;
};

// The flags of several commands, then those of plan, sweep, compare, simulate, export, import and
// validate.
// No vector: what allocates before main() can report no fault.
const FlagRow flag_rows[]{
    {{.name = "format",
      .letter = 'f',
      .value = "FORMAT",
      .help = "text, json, and where it makes sense yaml, csv, md, html, svg"},
     &read_format},
    {out_flag, &Options::out},
    {config_path_flag, &Options::config_path},
    {allow_path_flag, &Options::allow_path},
    {set_flag, &Options::assignments},
    {{.name = "gpus",
      .value = "NxDEVICE",
      .help = "the devices by their everyday name, as 64xh100 or 2xrtx-4090; N alone: how many",
      .only_for = scenario_commands},
     &Options::gpus},
    {{.name = "batch",
      .value = "N",
      .help = "sequences of an iteration (training.global_batch)",
      .only_for = scenario_commands},
     &Options::batch},
    {{.name = "sequence",
      .value = "N",
      .help = "tokens of a sequence, as 8192 or 128k (training.sequence)",
      .only_for = scenario_commands},
     &Options::sequence},
    {{.name = "precision",
      .value = "P",
      .help = "bf16, fp8, ... (training.precision)",
      .only_for = scenario_commands},
     &Options::precision},
    {{.name = "framework",
      .value = "NAME",
      .help = "a stack, or megatron, nemo, torchtitan, deepspeed, ... (training.stack)",
      .only_for = scenario_commands},
     &Options::framework},
    {{.name = "model",
      .value = "NAME",
      .help = "the model of the scenario that is written",
      .only_for = "init"},
     &Options::model},
    {{.name = "placement",
      .value = "FILE",
      .help = "write the group, node and device of every rank, as YAML or (.json) JSON",
      .only_for = "plan evaluate",
      .output = true},
     &Options::placement},
    {{.name = "page",
      .value = "FILE",
      .help = "write the report as a page of HTML too, whatever the format",
      .only_for = "plan evaluate explain sweep compare simulate",
      .output = true},
     &Options::page},
    {{.name = "top", .value = "N", .help = "how many rows the ranking has", .only_for = "plan"},
     [](Options& options, const std::string& text) {
       options.top = read_number("top", "plans", text);
     }},
    {{.name = "tokens",
      .value = "N",
      .help = "of the whole training run, as 300B or 15T: its days, device hours and cost",
      .only_for = "plan evaluate"},
     [](Options& options, const std::string& text) {
       options.assignments.push_back("training.tokens=" + text);
     }},
    {{.name = "deadline",
      .value = "TIME",
      .help = "of the run (30d, 12h): the fewest of the cluster's devices that keep it",
      .only_for = "plan"},
     &read_deadline},
    {{.name = "budget",
      .value = "DOLLARS",
      .help = "of the run (2M): the number of devices for which it costs least, within that",
      .only_for = "plan"},
     &read_budget},
    {{.name = "reproducible",
      .help = "leave out what the search took, so that equal answers are equal reports",
      .only_for = "plan"},
     &Options::reproducible},
    {{.name = "list-inputs",
      .value = "FILE",
      .help = "write which files were read, one a line",
      .only_for = "plan evaluate explain sweep compare simulate",
      .output = true},
     &Options::list_inputs},
    {{.name = "command",
      .value = "WORDS",
      .help = "what is done with a scenario that has no command of its own: plan (default), "
              "evaluate, explain, sweep, compare or simulate, with its flags in quotes",
      .only_for = "batch"},
     &Options::command_words},
    {{.name = "jobs",
      .value = "N",
      .help = "scenarios at a time (default: one a core)",
      .only_for = "batch"},
     [](Options& options, const std::string& text) {
       options.jobs = read_number("jobs", "scenarios at a time", text);
     }},
    {{.name = "shard",
      .value = "K/N",
      .help =
          "the K-th of N parts alone, for N machines or tasks; the same command without it then "
          "joins them (sweep: with --journal)",
      .only_for = "batch sweep"},
     [](Options& options, const std::string& text) { options.shard = read_shard(text); }},
    {{.name = "journal",
      .value = "DIR",
      .help = "keep the points there as they are done, and take up those that are kept",
      .only_for = "sweep"},
     &Options::journal},
    {{.name = "timeout",
      .value = "TIME",
      .help = "that a scenario may take, as 30s or 10min; one that takes longer has failed",
      .only_for = "batch"},
     &read_timeout},
    {{.name = "memory",
      .value = "SIZE",
      .help = "that a scenario may use, as 2GiB; one that needs more has failed",
      .only_for = "batch"},
     &read_memory},
    {{.name = "fail-fast",
      .help = "begin no other scenario after one that failed",
      .only_for = "batch"},
     &Options::fail_fast},
    {{.name = "force", .help = "do again what is done and unchanged", .only_for = "batch"},
     &Options::force},
    {{.name = "all",
      .help = "also the next best members of each row's family, as many as the ranking has rows "
              "(text, json, csv, md, html)",
      .only_for = "plan"},
     &Options::all},
    {{.name = "front",
      .help = "also the fastest plans that need less memory, fewer devices or less money "
              "(text, json, md, html)",
      .only_for = "plan"},
     &Options::front},
    {{.name = "sensitivity",
      .help = "also which input the answer hangs on, each moved by its own uncertainty, and where "
              "the best plan changes (text, json, md, html)",
      .only_for = "plan evaluate"},
     &Options::sensitivity},
    {{.name = "upgrades",
      .help = "also what faster links, more memory, more or other devices buy, the plan searched "
              "again for each (text, json, md, html)",
      .only_for = "plan"},
     &Options::upgrades},
    {{.name = "strategy",
      .value = "NAME",
      .help =
          "grid: even stages (default of validate, and of plan where the stack takes no other); "
          "layouts: any number of layers a stage too (plan's default); alpa, both: these, sharding "
          "in a stage, and stages of own sizes "
          "side by side; meshes: each stage its own devices and sizes (alone where devices "
          "differ)",
      .only_for = "plan validate",
      .words = "grid layouts alpa both meshes"},
     &Options::strategy},
    {{.name = "time-limit",
      .value = "SECONDS",
      .help = "not grid: stop then with the best so far and the proved gap (default: after a "
              "counted effort, some seconds)",
      .only_for = "plan"},
     [](Options& options, const std::string& text) {
       options.time_limit = read_positive("time-limit", "a time in seconds", text);
     }},
    {{.name = "threads",
      .value = "N",
      .help = "not grid, --against-planner, --fit, --leave-one-source-out: threads (default: one "
              "a core)",
      .only_for = "plan validate"},
     [](Options& options, const std::string& text) {
       options.threads = read_number("threads", "threads", text);
     }},
    {{.name = "over",
      .value = "KEY=A,B,...",
      .help = "values to try for a key of the plan, or a dotted path (repeatable)",
      .only_for = "sweep",
      .repeatable = true},
     &Options::over},
    {{.name = "weak",
      .help = "with --over cluster.devices: the batch grows with them, from the scenario's at the "
              "first (weak scaling)",
      .only_for = "sweep"},
     &Options::weak},
    {{.name = "with",
      .value = "KEY=VALUE",
      .help = "another column: the first scenario with this, or with several of them between "
              "semicolons (repeatable)",
      .only_for = "compare",
      .repeatable = true},
     &Options::with},
    {{.name = "trace",
      .value = "FILE.json",
      .help = "write the timeline as a Chrome trace",
      .only_for = "simulate",
      .output = true},
     &Options::trace},
    {{.name = "write-schedule",
      .value = "FILE",
      .help = "write the schedule, which plan.schedule: {file: FILE} reads: as PyTorch's "
              "pipeline runtime reads it (.csv), or as text",
      .only_for = "simulate",
      .output = true},
     &Options::write_schedule},
    {{.name = "compare",
      .help = "all schedules for the plan's sizes instead: bubble, memory and time of each, drawn "
              "on one scale",
      .only_for = "simulate"},
     &Options::compare_schedules},
    {{.name = "to", .value = "FRAMEWORK", .help = export_target_names, .only_for = "export import"},
     &Options::to},
    {{.name = "launcher",
      .value = "NAME",
      .help = "what starts the exported script on its nodes: torchrun (the default), slurm, "
              "kubernetes",
      .only_for = "export",
      .words = "torchrun slurm kubernetes"},
     &Options::launcher},
    {{.name = "site",
      .value = "KEY=VALUE",
      .help = "what the site calls its own, for slurm and kubernetes: queue, account, time, image, "
              "folder, rdma; REPLACE where it is not given (repeatable)",
      .only_for = "export",
      .repeatable = true},
     &Options::site},
    {{.name = "save-dir",
      .value = "DIR",
      .help = "a folder instead: the script, the scenario with its plan, the settings, a README "
              "with what was chosen and why, and a smoke test of ten iterations",
      .only_for = "export"},
     &Options::save_dir},
    {{.name = "for-version",
      .value = "NAME",
      .help = "the framework's release (core-0.14 to core-0.20 of Megatron-LM, the default the "
              "newest): its words, and what it has not is refused",
      .only_for = "export"},
     &Options::for_version},
    {{.name = "recipe",
      .value = "NAME",
      .help = "which function of a Python file is the job, where several are",
      .only_for = "import explain-job"},
     &Options::recipe},
    {{.name = "partial",
      .help = "read the config.json of an unknown family as far as its fields are a llama's, and "
              "name the others (hf)",
      .only_for = "import"},
     &Options::partial},
    {{.name = "cluster",
      .value = "NAME",
      .help = "the cluster; of an imported job too, whose file does not name it",
      .only_for = "plan evaluate explain sweep compare batch simulate groups export init import "
                  "explain-job collective calibrate"},
     &Options::cluster},
    {{.name = "tp", .value = "N", .help = "tensor parallel size", .only_for = "groups"},
     &read_size<&GroupSizes::tp>},
    {{.name = "pp", .value = "N", .help = "pipeline parallel size", .only_for = "groups"},
     &read_size<&GroupSizes::pp>},
    {{.name = "dp", .value = "N", .help = "data parallel size", .only_for = "groups"},
     &read_size<&GroupSizes::dp>},
    {{.name = "cp", .value = "N", .help = "context parallel size", .only_for = "groups"},
     &read_size<&GroupSizes::cp>},
    {{.name = "ep", .value = "N", .help = "expert parallel size", .only_for = "groups"},
     &read_size<&GroupSizes::ep>},
    {{.name = "etp",
      .value = "N",
      .help = "tensor parallel size inside an expert (default: tp, as in Megatron-LM)",
      .only_for = "groups"},
     &read_size<&GroupSizes::etp>},
    {{.name = "layout",
      .value = "NAME",
      .help = "whose groups: megatron (default) or vllm",
      .only_for = "groups",
      .words = "megatron vllm"},
     &Options::layout},
    {{.name = "order",
      .value = "AXES",
      .help = "of the ranks, the fastest axis first (default tp-cp-ep-dp-pp)",
      .only_for = "groups"},
     &Options::order},
    {{.name = "bytes",
      .value = "SIZE",
      .help = "of the message, or FROM:TO:FACTOR, as 8:8GiB:2",
      .only_for = "collective"},
     &Options::bytes},
    {{.name = "ranks",
      .value = "N",
      .help = "of the group (default: all of the cluster)",
      .only_for = "collective"},
     &Options::ranks},
    {{.name = "stride",
      .value = "N",
      .help = "how many ranks its neighbours are apart (default 1)",
      .only_for = "collective"},
     &Options::stride},
    {{.name = "table",
      .help = "a row a size, from 8 B to 8 GiB, as nccl-tests prints them",
      .only_for = "collective"},
     &Options::table},
    {{.name = "from-log",
      .value = "LOG ...",
      .help = "logs of your own runs on one cluster by one stack, each behind its job, which is "
              "what explain-job takes (a scenario, a launch script, arguments): "
              "run1.yaml:run1.log; LOG alone where it prints its arguments, as Megatron-LM's do, "
              "or with --job",
      .only_for = "calibrate",
      .several = true},
     &Options::from_log},
    {{.name = "from-trace",
      .value = "TRACE ...",
      .help =
          "traces of your own runs on one cluster by one stack (torch.profiler's, packed by gzip "
          "or not, or an SQLite export of Nsight Systems), each behind its job as a log, or "
          "with --scenario; of several ranks of a run the mean counts",
      .only_for = "calibrate",
      .several = true},
     &Options::from_trace},
    {{.name = "job",
      .value = "FILE",
      .help = "the job of every log and trace that is given without one",
      .only_for = "calibrate"},
     &Options::job},
    {{.name = "scenario", .value = "FILE", .help = "the same as --job", .only_for = "calibrate"},
     &Options::job},
    {{.name = "calibrated",
      .value = "FILE",
      .help = "the cluster as shardplan calibrate wrote it of your own runs, in place of the "
              "scenario's",
      .only_for = "plan evaluate explain sweep compare simulate explain-job"},
     &Options::calibrated},
    {{.name = "traces",
      .value = "TRACE ...",
      .help =
          "how much better the other runs of a stack are predicted once the trace of one is "
          "known, as calibrate --from-trace takes it: a row a trace, named as its run's id ends "
          "(text, json, csv, md)",
      .only_for = "validate",
      .several = true},
     &Options::traces},
    {{.name = "fail-above",
      .value = "PCT",
      .help = "exit status 4 when the mean over sources (--against-planner: the largest loss) "
              "is above",
      .only_for = "validate"},
     [](Options& options, const std::string& text) {
       options.fail_above = read_positive("fail-above", "a per cent", text);
     }},
    {{.name = "write-residuals",
      .value = "FILE",
      .help = "write the table that prediction intervals rest on (configs/residuals.yaml)",
      .only_for = "validate",
      .output = true},
     &Options::write_residuals},
    {{.name = "peaks",
      .value = "FILE",
      .help = "with --write-residuals: more evidence, of which peaks of memory alone count",
      .only_for = "validate",
      .several = true},
     &Options::peaks},
    {{.name = "against-planner",
      .help = "hold each run's plan against the planner's best for it (--strategy grid or alpa)",
      .only_for = "validate"},
     &Options::against_planner},
    {{.name = "memory",
      .help = "memory over an iteration instead, allocation by allocation, with its peak",
      .only_for = "explain"},
     &Options::memory},
    {{.name = "rows",
      .help = "every run, not only the summary (text, md, html)",
      .only_for = "validate"},
     &Options::rows},
    {{.name = "notes",
      .value = "FILE",
      .help = "end the report with this file (md, html)",
      .only_for = "validate"},
     &Options::notes},
    {{.name = "fit",
      .value = "FILE",
      .help = "refit the constants that FILE names on the runs, and show them",
      .only_for = "validate"},
     &Options::fit},
    {{.name = "leave-one-source-out",
      .help = "each source, model family and device by constants fitted on all others (--fit: "
              "which constants; default: fit.yaml of the configs)",
      .only_for = "validate"},
     &Options::leave_one_source_out},
    {{.name = "runs-known",
      .value = "N",
      .help = "how much better a source is predicted once N of its runs are known, as calibrate "
              "--from-log takes them (text, json, csv, md)",
      .only_for = "validate"},
     [](Options& options, const std::string& text) {
       options.runs_known = read_number("runs-known", "runs", text);
     }},
    {{.name = "quiet", .help = "no progress and no warnings"}, &Options::quiet},
    {color_flag, &Options::color},
    {help_flag, &Options::help},
    {{.name = "version", .letter = 'V', .help = "the version"}, &Options::version}};

void put(Options& options, const FlagRow& row, const CommandLine& line) {
  if (!line.has(row.flag.name)) return;
  if (const auto* text = std::get_if<std::string Options::*>(&row.into)) {
    options.** text = line.word(row.flag.name);
  } else if (const auto* list = std::get_if<std::vector<std::string> Options::*>(&row.into)) {
    options.** list = line.words(row.flag.name);
  } else if (const auto* is_set = std::get_if<bool Options::*>(&row.into)) {
    options.** is_set = true;
  } else {
    std::get<void (*)(Options&, const std::string&)>(row.into)(options, line.word(row.flag.name));
  }
}

// Checks the options of --against-planner.
void check_comparison(const CommandLine& line, const Options& options) {
  if (!options.against_planner) {
    for (const char* flag : {"strategy", "threads"}) {
      const bool fits = flag == std::string("threads") && options.fits_constants();
      if (line.has(flag) && !fits)
        usage(fmt::format("--{} is of no use to validate alone", flag), "add --against-planner");
    }
    return;
  }
  for (const char* flag : {"fit", "leave-one-source-out", "runs-known", "write-residuals"}) {
    if (line.has(flag))
      usage(fmt::format("--{} does not go with --against-planner", flag), "leave one out");
  }
  if (!options.strategy.empty() && options.strategy != "grid" && options.strategy != "alpa") {
    usage(fmt::format("--against-planner has no --strategy {}", shortened(options.strategy)),
          "allowed: grid, alpa");
  }
}

// --peaks adds to the table that is written.
void check_peaks(const Options& options) {
  if (!options.peaks.empty() && options.write_residuals.empty())
    usage("--peaks is of no use without --write-residuals", "leave it out, or name both");
}

// Checks the options that add a part to the report.
void check_parts(const CommandLine& line, const Options& options) {
  for (const std::string_view flag : {"all", "front", "sensitivity", "upgrades"}) {
    if (!line.has(flag)) continue;
    const bool table = flag == "all";
    if (options.format == Format::yaml || (options.format == Format::csv && !table)) {
      usage(fmt::format("--{} does not go with --format {}", flag, line.word("format")),
            table ? "allowed: text, json, csv, md, html" : "allowed: text, json, md, html");
    }
    if (options.strategy == "meshes") {
      usage(fmt::format("--{} does not go with --strategy meshes", flag), "leave one of them out");
    }
  }
}

// Checks the options of --runs-known, which is a report of its own.
void check_runs_known(const CommandLine& line, const Options& options) {
  if (options.runs_known == 0) return;
  for (const char* flag : {"write-residuals", "rows", "notes"}) {
    if (line.has(flag))
      usage(fmt::format("--{} does not go with --runs-known", flag), "leave one out");
  }
}

// A part of a sweep is of use to the others by its journal alone.
void check_shard(const Options& options) {
  if (options.command == "sweep" && !options.shard.is_all() && options.journal.empty()) {
    usage("--shard of a sweep lacks --journal DIR, where its points are kept",
          "add --journal points");
  }
}

// Checks the options of `plan`'s search and its limits.
void check_search(const CommandLine& line, const Options& options) {
  if (options.strategy != "grid") return;
  for (const char* flag : {"time-limit", "threads"}) {
    if (line.has(flag))
      usage(fmt::format("--{} does not go with --strategy grid", flag), "leave one out");
  }
}

}  // namespace

std::vector<Flag> flags() {
  std::vector<Flag> all;
  for (const FlagRow& row : flag_rows) all.push_back(row.flag);
  return all;
}

std::string scenario_text(const Options& options) {
  std::string text = options.operands.empty() ? "" : shell_word(options.operands.front());
  for (const FlagRow& row : flag_rows) {
    const bool words = row.flag.only_for == scenario_commands || row.flag.name == "cluster";
    if (!words) continue;
    const std::string& value = options.*std::get<std::string Options::*>(row.into);
    if (!value.empty()) text += fmt::format(" --{} {}", row.flag.name, shell_word(value));
  }
  for (std::size_t i = options.derived; i < options.assignments.size(); ++i)
    text += " --set " + shell_word(options.assignments[i]);
  return text;
}

Options parse_command_line(const Program& program, int count, const char* const* arguments) {
  const CommandLine line = parse(program, count, arguments);
  Options options;
  options.operands = line.operands;
  if (line.command != nullptr) options.command = line.command->name;
  if (line.has("help")) {
    options.help = true;
    return options;
  }
  for (const FlagRow& row : flag_rows) {
    if (admits(row.flag.only_for, options.command)) put(options, row, line);
  }
  check_parts(line, options);
  if (options.command == "plan") check_search(line, options);
  if (options.command == "validate") check_comparison(line, options);
  if (options.command == "validate") check_runs_known(line, options);
  check_peaks(options);
  check_shard(options);
  if (options.command == "init") {  // its file is where the scenario goes
    const auto is_file = [](const std::string& word) {
      return word.ends_with(".yaml") || word.ends_with(".yml");
    };
    const auto file = std::ranges::find_if(options.operands, is_file);
    if (file != options.operands.end()) {
      if (!options.out.empty()) usage("init has two files to write", "leave --out out");
      options.out = *file;
      options.operands.erase(file);
    }
  }
  if (options.command == "calibrate") options.profile = std::exchange(options.out, std::string());
  if (options.command == "batch") {
    options.folder = std::exchange(options.out, std::string());
    if (options.folder.empty())
      usage("batch lacks --out DIR, the folder of its reports", "add --out reports");
  }
  return options;
}

}  // namespace planner
