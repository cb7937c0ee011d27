#include "planner/commands/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// Reads a number from 1 to 1,000; `what` is the unit for the message.
int read_number(const char* flag, const char* what, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const int n = digits && text.size() <= 4 ? std::stoi(text) : 0;
  refuse_if(n < 1 || n > 1000,
            fmt::format("--{} {} is not a number of {}", flag, shortened(text), what),
            "allowed: 1 to 1,000");
  return n;
}

double read_positive(const char* flag, const char* what, const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::count);
  refuse_if(!parsed.value || *parsed.value <= 0,
            fmt::format("--{} {} is not {}", flag, shortened(text), what),
            fmt::format("example: --{} 12", flag));
  return *parsed.value;
}

// Reads a parallel size into a field of Options::sizes.
template <int GroupSizes::*Field>
void read_size(Options& options, const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const int n = digits && text.size() <= 7 ? std::stoi(text) : 0;
  refuse_if(n < 1 || n > most_group_size, fmt::format("{} is no parallel size", shortened(text)),
            fmt::format("--tp, --pp, --dp, --cp, --ep and --etp take 1 to {}",
                        format_integer(most_group_size)));
  options.sizes.*Field = n;
}

void read_format(Options& options, const std::string& text) {
  const auto* const at = std::ranges::find(format_names, text);  // known: the command allows it
  options.format = static_cast<Format>(at - format_names.begin());
}

void read_deadline(Options& options, const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::time);
  const bool unit = text.find_first_not_of("0123456789.") != std::string::npos;
  refuse_if(!parsed.value || *parsed.value <= 0 || !unit,
            fmt::format("--deadline {} is not a time", shortened(text)),
            "example: --deadline 30d, or 12h");
  options.limits.days = *parsed.value / 86'400;
}

void read_budget(Options& options, const std::string& text) {
  const auto parsed = parse_count(text);
  refuse_if(!parsed || *parsed <= 0,
            fmt::format("--budget {} is not a number of dollars", shortened(text)),
            "example: --budget 2M");
  options.limits.usd = *parsed;
}

void read_timeout(Options& options, const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::time);
  refuse_if(!parsed.value || *parsed.value <= 0,
            fmt::format("--timeout {} is not a time", shortened(text)), "example: --timeout 30s");
  options.each.seconds = *parsed.value;
}

void read_memory(Options& options, const std::string& text) {
  constexpr double least = 16 << 20;  // below, the program does not even start
  const auto parsed = parse_quantity(text, Dimension::size);
  refuse_if(!parsed.value || *parsed.value < least || *parsed.value > 1e18,
            fmt::format("--memory {} is not a size from 16 MiB on", shortened(text)),
            "example: --memory 2GiB");
  options.each.memory = static_cast<std::size_t>(*parsed.value);
}

// A flag, and where its value goes.
struct FlagRow {
  Flag flag;
  std::variant<std::string Options::*, std::vector<std::string> Options::*, bool Options::*,
               void (*)(Options&, const std::string&)>
      into;
};

// Flags by what they take: a value, which help calls `value`, or nothing. `commands`: that take it.
constexpr Flag valued(std::string_view name, std::string_view value, std::string_view commands,
                      std::string_view help) {
  return {.name = name, .value = value, .help = help, .only_for = commands};
}
constexpr Flag switched(std::string_view name, std::string_view commands, std::string_view help) {
  return {.name = name, .help = help, .only_for = commands};
}
constexpr Flag one_of(std::string_view words, Flag flag) {
  flag.words = words;
  return flag;
}
constexpr Flag repeatable(Flag flag) {
  flag.repeatable = true;
  return flag;
}
constexpr Flag with_all_words(Flag flag) {  // that follow
  flag.several = true;
  return flag;
}
constexpr Flag written(Flag flag) {  // its file is
  flag.output = true;
  return flag;
}

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
    {valued("gpus", "NxDEVICE", scenario_commands,
            "the devices by their everyday name, as 64xh100 or 2xrtx-4090; N alone: how many"),
     &Options::gpus},
    {valued("batch", "N", scenario_commands, "sequences of an iteration (training.global_batch)"),
     &Options::batch},
    {valued("sequence", "N", scenario_commands,
            "tokens of a sequence, as 8192 or 128k (training.sequence)"),
     &Options::sequence},
    {valued("precision", "P", scenario_commands, "bf16, fp8, ... (training.precision)"),
     &Options::precision},
    {valued("framework", "NAME", scenario_commands,
            "a stack, or megatron, nemo, torchtitan, deepspeed, ... (training.stack)"),
     &Options::framework},
    {valued("model", "NAME", "init", "the model of the scenario that is written"), &Options::model},
    {written(valued("placement", "FILE", "plan evaluate",
                    "write the group, node and device of every rank, as YAML or (.json) JSON")),
     &Options::placement},
    {written(valued("page", "FILE", "plan evaluate explain sweep compare simulate",
                    "write the report as a page of HTML too, whatever the format")),
     &Options::page},
    {valued("top", "N", "plan", "how many rows the ranking has"),
     [](Options& options, const std::string& text) {
       options.top = read_number("top", "plans", text);
     }},
    {valued("tokens", "N", "plan evaluate",
            "of the whole training run, as 300B or 15T: its days, device hours and cost"),
     [](Options& options, const std::string& text) {
       options.assignments.push_back("training.tokens=" + text);
     }},
    {valued("deadline", "TIME", "plan",
            "of the run (30d, 12h): the fewest of the cluster's devices that keep it"),
     &read_deadline},
    {valued("budget", "DOLLARS", "plan",
            "of the run (2M): the number of devices for which it costs least, within that"),
     &read_budget},
    {switched("reproducible", "plan",
              "leave out what the search took, so that equal answers are equal reports"),
     &Options::reproducible},
    {written(valued("list-inputs", "FILE", "plan evaluate explain sweep compare simulate",
                    "write which files were read, one a line")),
     &Options::list_inputs},
    {valued("command", "WORDS", "batch",
            "what is done with a scenario that has no command of its own: plan (default), "
            "evaluate, explain, sweep, compare or simulate, with its flags in quotes"),
     &Options::command_words},
    {valued("jobs", "N", "batch", "scenarios at a time (default: one a core)"),
     [](Options& options, const std::string& text) {
       options.jobs = read_number("jobs", "scenarios at a time", text);
     }},
    {valued("shard", "K/N", "batch sweep",
            "the K-th of N parts alone, for N machines or tasks; the same command without it then "
            "joins them (sweep: with --journal)"),
     [](Options& options, const std::string& text) { options.shard = read_shard(text); }},
    {valued("journal", "DIR", "sweep",
            "keep the points there as they are done, and take up those that are kept"),
     &Options::journal},
    {valued("timeout", "TIME", "batch",
            "that a scenario may take, as 30s or 10min; one that takes longer has failed"),
     &read_timeout},
    {valued("memory", "SIZE", "batch",
            "that a scenario may use, as 2GiB; one that needs more has failed"),
     &read_memory},
    {switched("fail-fast", "batch", "begin no other scenario after one that failed"),
     &Options::fail_fast},
    {switched("force", "batch", "do again what is done and unchanged"), &Options::force},
    {switched("all", "plan",
              "also the next best members of each row's family, as many as the ranking has rows "
              "(text, json, csv, md, html)"),
     &Options::all},
    {switched("front", "plan",
              "also the fastest plans that need less memory, fewer devices or less money "
              "(text, json, md, html)"),
     &Options::front},
    {switched("sensitivity", "plan evaluate",
              "also which input the answer hangs on, each moved by its own uncertainty, and where "
              "the best plan changes (text, json, md, html)"),
     &Options::sensitivity},
    {switched("upgrades", "plan",
              "also what faster links, more memory, more or other devices buy, the plan searched "
              "again for each (text, json, md, html)"),
     &Options::upgrades},
    {one_of(
         "grid layouts alpa both meshes",
         valued(
             "strategy", "NAME", "plan validate",
             "grid: even stages (default of validate, and of plan where the stack takes no other); "
             "layouts: any number of layers a stage too (plan's default); alpa, both: these, "
             "sharding "
             "in a stage, and stages of own sizes "
             "side by side; meshes: each stage its own devices and sizes (alone where devices "
             "differ)")),
     &Options::strategy},
    {valued("time-limit", "SECONDS", "plan",
            "not grid: stop then with the best so far and the proved gap (default: after a "
            "counted effort, some seconds)"),
     [](Options& options, const std::string& text) {
       options.time_limit = read_positive("time-limit", "a time in seconds", text);
     }},
    {valued("threads", "N", "plan validate",
            "not grid, --against-planner, --fit, --leave-one-source-out: threads (default: one "
            "a core)"),
     [](Options& options, const std::string& text) {
       options.threads = read_number("threads", "threads", text);
     }},
    {repeatable(valued("over", "KEY=A,B,...", "sweep",
                       "values to try for a key of the plan, or a dotted path (repeatable)")),
     &Options::over},
    {switched("weak", "sweep",
              "with --over cluster.devices: the batch grows with them, from the scenario's at the "
              "first (weak scaling)"),
     &Options::weak},
    {repeatable(
         valued("with", "KEY=VALUE", "compare",
                "another column: the first scenario with this, or with several of them between "
                "semicolons (repeatable)")),
     &Options::with},
    {written(valued("trace", "FILE.json", "simulate", "write the timeline as a Chrome trace")),
     &Options::trace},
    {written(valued("write-schedule", "FILE", "simulate",
                    "write the schedule, which plan.schedule: {file: FILE} reads: as PyTorch's "
                    "pipeline runtime reads it (.csv), or as text")),
     &Options::write_schedule},
    {switched("compare", "simulate",
              "all schedules for the plan's sizes instead: bubble, memory and time of each, drawn "
              "on one scale"),
     &Options::compare_schedules},
    {valued("to", "FRAMEWORK", "export import", export_target_names), &Options::to},
    {one_of("torchrun slurm kubernetes",
            valued("launcher", "NAME", "export",
                   "what starts the exported script on its nodes: torchrun (the default), slurm, "
                   "kubernetes")),
     &Options::launcher},
    {repeatable(valued(
         "site", "KEY=VALUE", "export",
         "what the site calls its own, for slurm and kubernetes: queue, account, time, image, "
         "folder, rdma; REPLACE where it is not given (repeatable)")),
     &Options::site},
    {valued("save-dir", "DIR", "export",
            "a folder instead: the script, the scenario with its plan, the settings, a README "
            "with what was chosen and why, and a smoke test of ten iterations"),
     &Options::save_dir},
    {valued(
         "for-version", "NAME", "export",
         "the framework's release (core-0.14 to core-0.20 of Megatron-LM, 0.18 and 0.26 of vLLM, "
         "0.5.9 and 0.5.17 of SGLang; the default: the newest): its words, and what it has not "
         "is refused"),
     &Options::for_version},
    {valued("recipe", "NAME", "import explain-job evaluate plan",
            "which function of a Python file is the job, where several are"),
     &Options::recipe},
    {switched("partial", "import",
              "read the config.json of an unknown family as far as its fields are a llama's, and "
              "name the others (hf)"),
     &Options::partial},
    {valued("cluster", "NAME",
            "plan evaluate explain sweep compare batch simulate groups export init import "
            "explain-job collective calibrate",
            "the cluster; of an imported job too, whose file does not name it"),
     &Options::cluster},
    {valued("tp", "N", "groups", "tensor parallel size"), &read_size<&GroupSizes::tp>},
    {valued("pp", "N", "groups", "pipeline parallel size"), &read_size<&GroupSizes::pp>},
    {valued("dp", "N", "groups", "data parallel size"), &read_size<&GroupSizes::dp>},
    {valued("cp", "N", "groups", "context parallel size"), &read_size<&GroupSizes::cp>},
    {valued("ep", "N", "groups", "expert parallel size"), &read_size<&GroupSizes::ep>},
    {valued("etp", "N", "groups",
            "tensor parallel size inside an expert (default: tp, as in Megatron-LM)"),
     &read_size<&GroupSizes::etp>},
    {one_of("megatron vllm",
            valued("layout", "NAME", "groups", "whose groups: megatron (default) or vllm")),
     &Options::layout},
    {valued("order", "AXES", "groups",
            "of the ranks, the fastest axis first (default tp-cp-ep-dp-pp)"),
     &Options::order},
    {valued("bytes", "SIZE", "collective", "of the message, or FROM:TO:FACTOR, as 8:8GiB:2"),
     &Options::bytes},
    {valued("ranks", "N", "collective", "of the group (default: all of the cluster)"),
     &Options::ranks},
    {valued("stride", "N", "collective", "how many ranks its neighbours are apart (default 1)"),
     &Options::stride},
    {switched("table", "collective", "a row a size, from 8 B to 8 GiB, as nccl-tests prints them"),
     &Options::table},
    {with_all_words(
         valued("from-log", "LOG ...", "calibrate",
                "logs of your own runs on one cluster by one stack, each behind its job, which is "
                "what explain-job takes (a scenario, a launch script, arguments): "
                "run1.yaml:run1.log; LOG alone where it prints its arguments, as Megatron-LM's do, "
                "or with --job")),
     &Options::from_log},
    {with_all_words(valued(
         "from-trace", "TRACE ...", "calibrate",
         "traces of your own runs on one cluster by one stack (torch.profiler's, packed by gzip "
         "or not, or an SQLite export of Nsight Systems), each behind its job as a log, or "
         "with --scenario; of several ranks of a run the mean counts")),
     &Options::from_trace},
    {valued("job", "FILE", "calibrate", "the job of every log and trace that is given without one"),
     &Options::job},
    {valued("scenario", "FILE", "calibrate", "the same as --job"), &Options::job},
    {valued("calibrated", "FILE", "plan evaluate explain sweep compare simulate explain-job",
            "the cluster as shardplan calibrate wrote it of your own runs, in place of the "
            "scenario's"),
     &Options::calibrated},
    {with_all_words(valued(
         "traces", "TRACE ...", "validate",
         "how much better the other runs of a stack are predicted once the trace of one is "
         "known, as calibrate --from-trace takes it: a row a trace, named as its run's id ends "
         "(text, json, csv, md)")),
     &Options::traces},
    {valued("fail-above", "PCT", "validate",
            "exit status 4 when the mean over sources (--against-planner: the largest loss) "
            "is above"),
     [](Options& options, const std::string& text) {
       options.fail_above = read_positive("fail-above", "a per cent", text);
     }},
    {written(valued("write-residuals", "FILE", "validate",
                    "write the table that prediction intervals rest on (configs/residuals.yaml)")),
     &Options::write_residuals},
    {with_all_words(
         valued("peaks", "FILE", "validate",
                "with --write-residuals: more evidence, of which peaks of memory alone count")),
     &Options::peaks},
    {switched("against-planner", "validate",
              "hold each run's plan against the planner's best for it (--strategy grid or alpa)"),
     &Options::against_planner},
    {switched("memory", "explain",
              "memory over an iteration instead, allocation by allocation, with its peak"),
     &Options::memory},
    {switched("rows", "validate", "every run, not only the summary (text, md, html)"),
     &Options::rows},
    {valued("notes", "FILE", "validate", "end the report with this file (md, html)"),
     &Options::notes},
    {valued("fit", "FILE", "validate",
            "refit the constants that FILE names on the runs, and show them"),
     &Options::fit},
    {switched("leave-one-source-out", "validate",
              "each source, model family and device by constants fitted on all others (--fit: "
              "which constants; default: fit.yaml of the configs)"),
     &Options::leave_one_source_out},
    {valued("runs-known", "N", "validate",
            "how much better a source is predicted once N of its runs are known, as calibrate "
            "--from-log takes them (text, json, csv, md)"),
     [](Options& options, const std::string& text) {
       options.runs_known = read_number("runs-known", "runs", text);
     }},
    {switched("quiet", "", "no progress and no warnings"), &Options::quiet},
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
      refuse_if(line.has(flag) && !fits, fmt::format("--{} is of no use to validate alone", flag),
                "add --against-planner");
    }
    return;
  }
  for (const char* flag : {"fit", "leave-one-source-out", "runs-known", "write-residuals"}) {
    refuse_if(line.has(flag), fmt::format("--{} does not go with --against-planner", flag),
              "leave one out");
  }
  refuse_if(!options.strategy.empty() && options.strategy != "grid" && options.strategy != "alpa",
            fmt::format("--against-planner has no --strategy {}", shortened(options.strategy)),
            "allowed: grid, alpa");
}

// --peaks adds to the table that is written.
void check_peaks(const Options& options) {
  refuse_if(!options.peaks.empty() && options.write_residuals.empty(),
            "--peaks is of no use without --write-residuals", "leave it out, or name both");
}

// Checks the options that add a part to the report.
void check_parts(const CommandLine& line, const Options& options) {
  for (const std::string_view flag : {"all", "front", "sensitivity", "upgrades"}) {
    if (!line.has(flag)) continue;
    const bool table = flag == "all";
    refuse_if(options.format == Format::yaml || (options.format == Format::csv && !table),
              fmt::format("--{} does not go with --format {}", flag, line.word("format")),
              table ? "allowed: text, json, csv, md, html" : "allowed: text, json, md, html");
    refuse_if(options.strategy == "meshes",
              fmt::format("--{} does not go with --strategy meshes", flag),
              "leave one of them out");
  }
}

// Checks the options of --runs-known, which is a report of its own.
void check_runs_known(const CommandLine& line, const Options& options) {
  if (options.runs_known == 0) return;
  for (const char* flag : {"write-residuals", "rows", "notes"}) {
    refuse_if(line.has(flag), fmt::format("--{} does not go with --runs-known", flag),
              "leave one out");
  }
}

// A part of a sweep is of use to the others by its journal alone.
void check_shard(const Options& options) {
  refuse_if(options.command == "sweep" && !options.shard.is_all() && options.journal.empty(),
            "--shard of a sweep lacks --journal DIR, where its points are kept",
            "add --journal points");
}

// Checks the options of `plan`'s search and its limits.
void check_search(const CommandLine& line, const Options& options) {
  if (options.strategy != "grid") return;
  for (const char* flag : {"time-limit", "threads"}) {
    refuse_if(line.has(flag), fmt::format("--{} does not go with --strategy grid", flag),
              "leave one out");
  }
}

}  // namespace

void refuse_if(bool wrong, const std::string& what, const std::string& remedy) {
  if (wrong) throw ConfigError({}, "shardplan: " + what, remedy);
}

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
      refuse_if(!options.out.empty(), "init has two files to write", "leave --out out");
      options.out = *file;
      options.operands.erase(file);
    }
  }
  if (options.command == "calibrate") options.profile = std::exchange(options.out, std::string());
  if (options.command == "batch") {
    options.folder = std::exchange(options.out, std::string());
    refuse_if(options.folder.empty(), "batch lacks --out DIR, the folder of its reports",
              "add --out reports");
  }
  return options;
}

}  // namespace planner
