// The executable shardplan-run, to which `shardplan run` delegates.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/console.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/cli/command_line.hpp"
#include "costmodel/cli/help.hpp"
#include "costmodel/cli/terminal.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "runtime/run/backends.hpp"
#include "runtime/run/calibrated.hpp"
#include "runtime/run/comparison.hpp"
#include "runtime/run/exit_status.hpp"
#include "runtime/run/json_run.hpp"
#include "runtime/run/run_command.hpp"
#include "runtime/run/run_output.hpp"
#include "runtime/run/run_report.hpp"

namespace {

using namespace costmodel;

std::string backend_help() {
  std::vector<std::string> each;
  for (const runtime::Backend& backend : runtime::backends())
    each.push_back(fmt::format("{}: {}", backend.name, backend.help));
  return fmt::format("{} (default: mpi or tcp where so started, else threads)",
                     fmt::join(each, "; "));
}

std::string backend_words() {
  std::vector<std::string_view> names;
  for (const runtime::Backend& backend : runtime::backends()) names.push_back(backend.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// The records of the command and its flags. What only some backends take names them in `only_for`.
const costmodel::Program& run_program() {
  static const std::string help = backend_help(), words = backend_words();
  static const costmodel::Program all{
      .name = "shardplan",
      .commands = {{.name = "run",
                    .operands = "SCENARIO",
                    .least = 1,
                    .most = 1,
                    .formats = "text json",
                    .summary = "execute a scenario's plan and hold time, memory and bytes against "
                               "the prediction",
                    .examples = {"shardplan run configs/scenarios/tiny-gpt-cpu.yaml --backend "
                                 "threads",
                                 "shardplan run tiny-gpt-cpu --backend emulated --virtual-clock",
                                 "shardplan run serve-small-llama-cpu --set plan.pp=1",
                                 "mpirun -np 4 shardplan run tiny-gpt-cpu --format json --out "
                                 "run.json"},
                    .usages = {"shardplan run SCENARIO [--backend NAME] [flags]",
                               "mpirun -np N shardplan run SCENARIO [flags]",
                               "torchrun --no-python --nproc-per-node N shardplan run SCENARIO "
                               "[flags]"}}},
      .flags =
          {{.name = "backend", .value = "NAME", .help = help, .words = words},
           {.name = "calibrated",
            .value = "FILE",
            .help = "predict by this machine's profile, a device's or a cluster's, that shardplan "
                    "calibrate wrote"},
           {.name = "iterations",
            .value = "N",
            .help = "iterations, of serving batches; the first one warms up (default 3)"},
           {.name = "trace",
            .value = "FILE",
            .help = "write the last iteration as a Chrome/Perfetto trace",
            .output = true},
           {.name = "tf32", .help = "matrix products in TF32 instead of fp32", .only_for = "cuda"},
           {.name = "virtual-devices",
            .value = "N",
            .help = "cut each GPU into so many devices, which share its memory",
            .only_for = "cuda"},
           {.name = "virtual-clock",
            .help = "count the time instead of waiting",
            .only_for = "emulated"},
           {.name = "seed",
            .value = "N",
            .help = "of data or prompts, weights and dropout (default 1)"},
           {.name = "memory-limit",
            .value = "SIZE",
            .help = "that a rank may use, such as 512 MiB (default: none)"},
           {.name = "patience",
            .value = "SECONDS",
            .help = "for one message from another rank (default 60)"},
           {.name = "fail-above",
            .value = "PCT",
            .help = "exit with 4 when the iteration time, of serving the time of a token at its "
                    "pace, is predicted worse than this"},
           {.name = "format", .letter = 'f', .value = "FORMAT", .help = "text or json"},
           costmodel::out_flag,
           costmodel::set_flag,
           costmodel::config_path_flag,
           costmodel::allow_path_flag,
           {.name = "progress", .help = "a line an iteration on standard error, terminal or not"},
           {.name = "quiet", .help = "no progress"},
           costmodel::color_flag,
           costmodel::help_flag},
      .ending =
          "A run that ends before its time reports the iterations that were whole until then; a "
          "--out\n"
          "file has them, as they were at most a second before, even where rank 0 is killed.\n\n"
          "Ranks that torchrun starts on one host listen on loopback only. On several hosts all of "
          "them\n"
          "want the same SHARDPLAN_TOKEN in the environment, 16 characters or more that nobody "
          "guesses,\n"
          "such as openssl rand -hex 16 prints; without it they do not begin.\n\n"
          "exit status: 0 done; 1 an internal fault; 2 bad usage or bad input; 4 a rank failed, "
          "or\n"
          "--fail-above was missed; 130 after SIGINT (Ctrl-C), 143 after SIGTERM. mpirun's own are "
          "1\n"
          "after SIGINT and SIGTERM, and 137 where a rank was ended by SIGKILL\n"};
  return all;
}

[[noreturn]] void usage(const std::string& wrong, const std::string& remedy) {
  throw ConfigError({}, "shardplan run: " + wrong, remedy);
}

double positive(const CommandLine& line, const char* flag, double otherwise) {
  if (!line.has(flag)) return otherwise;
  const double value = number_of(run_program(), line, flag, otherwise);
  if (std::isfinite(value) && value > 0) return value;
  usage(fmt::format("--{} {:g} is not positive", flag, value), "give a number above zero");
}

int at_least_one(const CommandLine& line, const char* flag, int otherwise) {
  const int value = number_of(run_program(), line, flag, otherwise);
  if (value < 1) usage(fmt::format("--{} {}", flag, value), "one at least");
  return value;
}

std::size_t memory_limit(const CommandLine& line) {
  const std::string text = line.word("memory-limit", "0");
  const auto bytes = costmodel::parse_quantity(text, costmodel::Dimension::size);
  if (!bytes.value || *bytes.value < 0) {
    usage(fmt::format("--memory-limit {}: {}", costmodel::quote(text),
                      bytes.value ? "it is below zero" : bytes.why),
          "write a size, such as 512 MiB");
  }
  return static_cast<std::size_t>(*bytes.value);
}

costmodel::Scenario scenario_of(const CommandLine& line, const runtime::Backend& backend) {
  const auto path = costmodel::config_path(line.words("config-path"), line.words("allow-path"));
  auto scenario = costmodel::load_scenario(costmodel::scenario_file(line.operands.front(), path),
                                           path, line.words("set"));
  const std::string profile = line.word("calibrated");
  if (profile.empty()) return scenario;
  runtime::use_calibrated(scenario, profile, path,
                          backend.computed_in(scenario.training.precision));
  return scenario;
}

void require_flags_of(const CommandLine& line, const runtime::Backend& backend) {
  const costmodel::Flag* wrong = misplaced(run_program(), line, backend.name);
  if (wrong == nullptr) return;
  usage(fmt::format("--{} means nothing to --backend {}", wrong->name, backend.name),
        fmt::format("leave it out, or write --backend {}", wrong->only_for));
}

runtime::RunRequest request_of(const CommandLine& line) {
  runtime::RunRequest request;
  request.backend = &runtime::backend_named(line.word("backend", runtime::usual_backend().name));
  require_flags_of(line, *request.backend);
  request.iterations = at_least_one(line, "iterations", 3);
  request.seed = number_of(run_program(), line, "seed", std::uint64_t{1});
  request.memory_limit = memory_limit(line);
  request.virtual_clock = line.has("virtual-clock");
  request.virtual_devices = at_least_one(line, "virtual-devices", 1);
  request.tf32 = line.has("tf32");
  request.patience = costmodel::Seconds(positive(line, "patience", 60));
  request.scenario = scenario_of(line, *request.backend);
  return request;
}

// The scenario of the command line when it is one of serving.
std::optional<costmodel::Value> serving_root(const CommandLine& line) {
  const auto path = costmodel::config_path(line.words("config-path"), line.words("allow-path"));
  costmodel::Value root = costmodel::scenario_tree(
      costmodel::scenario_file(line.operands.front(), path), path, line.words("set"));
  if (!costmodel::is_serving(root)) return std::nullopt;
  return root;
}

void refuse_training_flags(const CommandLine& line, const runtime::Backend& backend) {
  if (!runtime::serves(backend)) {
    usage(fmt::format("--backend {} does not serve", backend.name),
          "write --backend threads, mpi or tcp: serving runs on CPUs");
  }
  require_flags_of(line, backend);
  if (line.has("calibrated")) {
    usage("--calibrated means nothing to a scenario of serving",
          "leave it out: such a run times its own operators");
  }
  if (line.has("trace")) usage("--trace means nothing to a scenario of serving", "leave it out");
}

// `workload: inference`.
int serve(const CommandLine& line, const costmodel::Value& root) {
  const runtime::Backend& backend =
      runtime::backend_named(line.word("backend", runtime::usual_backend().name));
  refuse_training_flags(line, backend);
  const auto path = costmodel::config_path(line.words("config-path"), line.words("allow-path"));
  const std::string file = costmodel::scenario_file(line.operands.front(), path);
  runtime::ServeRequest request{
      .root = root,
      .scenario = costmodel::read_serving(root, costmodel::stem_of(file), path),
      .backend = &backend,
      .iterations = at_least_one(line, "iterations", 3),
      .seed = number_of(run_program(), line, "seed", std::uint64_t{1}),
      .memory_limit = memory_limit(line),
      .patience = costmodel::Seconds(positive(line, "patience", 60)),
      .progress = {}};
  const bool limited = line.has("fail-above");
  const double limit = positive(line, "fail-above", 0);
  const std::string out = line.word("out");
  if (!out.empty()) costmodel::require_writable(out);
  const bool lines = line.has("progress");
  if (lines || (!line.has("quiet") && costmodel::overwrites_lines(STDERR_FILENO)))
    request.progress = runtime::progress(request.iterations, lines);
  const auto result = runtime::serve_plan(request);
  if (!result) return 0;  // another rank reports
  const bool json = line.word("format") == "json";
  const std::string text = json ? costmodel::versioned_json(runtime::serve_json(*result))
                                : runtime::serve_report(*result);
  if (out.empty()) {
    json ? costmodel::write_standard_output(text) : costmodel::print_report(text);
  } else {
    costmodel::write_file(out, text);
  }
  const std::string missed = limited ? limit_missed(*result, limit) : "";
  if (missed.empty()) return 0;
  costmodel::print_message(missed);
  return runtime::failed;
}

int run(int count, char** arguments) {
  const CommandLine line = costmodel::parse(run_program(), count, arguments);
  if (line.has("help")) {
    costmodel::write_standard_output(
        costmodel::help_of(run_program(), line.command, costmodel::width_of_lines(STDOUT_FILENO)));
    return 0;
  }
  if (const auto root = serving_root(line)) return serve(line, *root);
  const runtime::OutputOptions output{
      .json = line.word("format") == "json", .out = line.word("out"), .trace = line.word("trace")};
  const bool limited = line.has("fail-above");
  const double limit = positive(line, "fail-above", 0);
  runtime::RunRequest request = request_of(line);
  for (const auto& file : {output.out, output.trace})
    if (!file.empty()) costmodel::require_writable(file);
  const bool lines = line.has("progress");
  if (lines || (!line.has("quiet") && costmodel::overwrites_lines(STDERR_FILENO)))
    request.progress = runtime::progress(request.iterations, lines);
  request.ended_early = [&](const runtime::RunResult& result) {
    write_early_end(result, request, output);
  };
  // When the report overwrites a file, that file also survives the death of rank 0.
  if (!output.out.empty() && !costmodel::is_stream(output.out)) {
    request.so_far = [&](const runtime::RunResult& result) {
      write_report(result, request.scenario, output);
    };
  }
  const auto result = runtime::run(request);
  if (!result) return 0;  // another rank reports
  write_report(*result, request.scenario, output);
  if (!limited) return 0;
  const std::string missed = limit_missed(*result, limit);
  if (missed.empty()) return 0;
  costmodel::print_message(missed);
  return runtime::failed;
}

}  // namespace

int main(int count, char** arguments) {
  return runtime::status_of("shardplan run", [&] { return run(count, arguments); });
}
