// The executable shardplan-calibrate, to which `shardplan calibrate` delegates.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <string>

#include "calibrate/commands/compare_command.hpp"
#include "calibrate/commands/cpu_command.hpp"
#include "calibrate/commands/fit_command.hpp"
#include "calibrate/commands/gpu_command.hpp"
#include "costmodel/base/console.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/cli/command_line.hpp"
#include "costmodel/cli/help.hpp"
#include "costmodel/cli/terminal.hpp"
#include "costmodel/config/search_path.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "runtime/run/exit_status.hpp"

namespace {

using namespace costmodel;

// The records of the command and its flags. `only_for` names the values of --backend; "files" is
// none of them: --from.
const costmodel::Program& calibrate_program() {
  static const costmodel::Program all{
      .name = "shardplan",
      .commands =
          {{.name = "calibrate",
            .summary = "fit a device's or a network's constants to published or imported "
                       "microbenchmarks, or measure\nthis machine",
            .examples = {"shardplan calibrate --from configs/microbench/gemm.yaml --device "
                         "A100-PCIe-80GB --base a100-pcie-80gb --out mine.yaml",
                         "shardplan calibrate --backend cpu --out cpu.yaml --cluster-out "
                         "machine.yaml",
                         "shardplan run tiny-gpt-cpu --calibrated machine.yaml",
                         "shardplan calibrate --backend cpu --profile cpu.yaml --for tiny-gpt-cpu "
                         "--out cpu2.yaml"},
            .usages =
                {"shardplan calibrate --from FILE ... [--base NAME] [flags]",
                 "shardplan calibrate --from-log [JOB:]LOG ... [--job FILE] [--out CLUSTER.yaml]",
                 "shardplan calibrate --from-trace [JOB:]TRACE ... [--scenario FILE] [--out "
                 "CLUSTER.yaml]",
                 "shardplan calibrate --backend cpu|cuda --out DEVICE.yaml [--for SCENARIO] "
                 "[flags]",
                 "shardplan calibrate --backend cpu|cuda --profile DEVICE.yaml --for SCENARIO "
                 "[--out FILE]",
                 "shardplan calibrate --backend cpu --compare SCENARIO [--profile FILE]",
                 "shardplan calibrate --backend cpu --check DEVICE.yaml"}}},
      .flags = {
          {.name = "from",
           .value = "FILE ...",
           .help = "microbenchmarks: configs/microbench, or of shardplan import nccl-tests",
           .only_for = "files",
           .several = true},
          {.name = "device",
           .value = "NAME",
           .help = "only measurements of this device, as the source names it (repeatable)",
           .only_for = "files",
           .repeatable = true},
          {.name = "source",
           .value = "WORDS",
           .help = "only measurements whose source's title holds these words (repeatable)",
           .only_for = "files",
           .repeatable = true},
          {.name = "base",
           .value = "NAME",
           .help = "the device or cluster that has all other constants: a name or a file; without "
                   "it, how far each shipped device is from the measurements",
           .only_for = "files"},
          {.name = "stack",
           .value = "NAME",
           .help = "the framework whose experts' constants are compared",
           .only_for = "files"},
          {.name = "backend",
           .value = "cpu|cuda",
           .help = "measure this machine: one core, or the first GPU"},
          {.name = "out",
           .value = "FILE",
           .help = "write the profile there and the report to standard output; of this machine, "
                   "FILE.part holds raw measurements until all are there: a call that was ended "
                   "is taken up by the same call again",
           .output = true},
          {.name = "cluster-out",
           .value = "FILE",
           .help = "the cluster's: so many such devices as it has cores; under mpirun or srun, as "
                   "there are ranks, with the messages between processes",
           .only_for = "cpu",
           .output = true},
          {.name = "minutes",
           .value = "N",
           .help = "about how long (default 3, of a GPU 2; with --quick 0.5)",
           .only_for = "cpu cuda"},
          {.name = "quick", .help = "fewer and smaller shapes", .only_for = "cpu cuda"},
          {.name = "for",
           .value = "SCENARIO",
           .help = "also measure the scenario's operators at their very shapes, where the profile "
                   "lacks them",
           .only_for = "cpu cuda"},
          {.name = "then-run",
           .value = "SCENARIO",
           .help = "shardplan run SCENARIO --calibrated with what was written",
           .only_for = "cpu"},
          {.name = "compare",
           .value = "SCENARIO",
           .help = "time each operator of the scenario's model on one device against its "
                   "prediction; --profile FILE: by this device",
           .only_for = "cpu"},
          {.name = "profile",
           .value = "FILE",
           .help = "the device by which --compare predicts; with --for the one, measured before, "
                   "to which is added what it lacks: nothing else is measured, and without --out "
                   "only listed",
           .only_for = "cpu cuda"},
          {.name = "check",
           .value = "FILE",
           .help = "predict 20 models that no calibration measures by this device, and time them",
           .only_for = "cpu"},
          costmodel::config_path_flag,
          costmodel::allow_path_flag,
          {.name = "quiet", .help = "no report"},
          costmodel::color_flag,
          costmodel::help_flag}};
  return all;
}

[[noreturn]] void usage(const std::string& wrong, const std::string& remedy) {
  throw ConfigError({}, "shardplan calibrate: " + wrong, remedy);
}

double minutes(const CommandLine& line, bool quick, double usual) {
  if (!line.has("minutes")) return quick ? 0.5 : usual;
  const double given = costmodel::number_of(calibrate_program(), line, "minutes", usual);
  if (given > 0 && given <= 600) return given;
  usage(fmt::format("--minutes {:g}", given), "give a number above zero, 600 at most");
}

// The command line as typed in a shell, if no word needed quotes.
std::string command_line(int count, char** arguments) {
  std::string text = "shardplan calibrate";
  for (int i = 1; i < count; ++i) text += fmt::format(" {}", arguments[i]);
  return text;
}

// Shows progress only on a terminal.
void show_progress(std::size_t done, std::size_t all, const std::string& name, double left) {
  if (!costmodel::overwrites_lines(STDERR_FILENO)) return;
  costmodel::print_progress(fmt::format("{} of {}, {:.0f} s left: {}", done, all, left, name));
}

void then_run(const std::string& scenario, const std::string& profile) {
  const std::string folder = costmodel::folder_of(costmodel::program_file());
  std::string program = costmodel::joined_path(folder, "shardplan-run"), first = scenario,
              flag = "--calibrated", second = profile;
  std::array<char*, 5> words{program.data(), first.data(), flag.data(), second.data(), nullptr};
  std::fflush(nullptr);
  execv(program.c_str(), words.data());
  usage(fmt::format("{} cannot be started", program), "build or install it there");
}

// Of --for and --profile.
void set_subject(const CommandLine& line, calibrate::CpuRequest& request) {
  request.scenario = line.word("for");
  request.profile = line.word("profile");
  request.path = costmodel::config_path(line.words("config-path"), line.words("allow-path"));
  request.message = [quiet = line.has("quiet")](const std::string& text) {
    if (!quiet) costmodel::print_message(text);
  };
  if (request.profile.empty()) return;
  if (request.scenario.empty())
    usage("--profile has nothing to measure", "write --for SCENARIO, or --compare SCENARIO");
  for (const char* flag : {"cluster-out", "quick"}) {
    if (line.has(flag))
      usage(fmt::format("--{} is of a new profile", flag), "leave it out, or --profile");
  }
}

calibrate::CpuRequest request_of(const CommandLine& line, const std::string& command,
                                 const std::string& backend) {
  calibrate::CpuRequest request;
  request.out = line.word("out");
  request.cluster_out = line.word("cluster-out");
  set_subject(line, request);
  if (request.out.empty()) {
    usage(fmt::format("--backend {} has no place to write to", backend),
          "write --out FILE: the device's profile");
  }
  for (const auto& file : {request.out, request.cluster_out})
    if (!file.empty()) costmodel::require_writable(file);
  request.quick = line.has("quick");
  request.minutes = minutes(line, request.quick, backend == "cuda" ? 2 : 3);
  request.command = command;
  if (!line.has("quiet")) request.progress = show_progress;
  return request;
}

// Whether --for only lists.
bool lists(const CommandLine& line) {
  return line.has("for") && line.has("profile") && !line.has("out");
}

int list_shapes(const CommandLine& line, const char* backend) {
  calibrate::CpuRequest request;
  set_subject(line, request);
  costmodel::write_standard_output(calibrate::lacking_of(request, runtime::backend_named(backend)));
  return 0;
}

int measure_gpu(const CommandLine& line, const std::string& command) {
  if (lists(line)) return list_shapes(line, "cuda");
  const std::string report = calibrate::calibrate_gpu(request_of(line, command, "cuda"));
  if (!line.has("quiet"))
    costmodel::print_report((costmodel::overwrites_lines(STDERR_FILENO) ? "\n" : "") + report);
  return 0;
}

// Under mpirun or srun rank 0 measures, and the messages together with the others.
int measure_between_processes(const CommandLine& line, calibrate::CpuRequest& request,
                              const std::function<void()>& measure) {
  if (line.has("then-run")) {
    usage("--then-run cannot start ranks of its own here",
          "leave it out, and start shardplan run --calibrated as this was started");
  }
  if (const auto missing = runtime::mpi_missing(); !missing.empty())
    throw runtime::RunFault(0, missing);
  // The others wait while rank 0 measures its core.
  const costmodel::Seconds patience(120 * request.minutes + 600);
  return runtime::run_mpi({.patience = patience}, [&](runtime::Transport& transport) {
    calibrate::with_ranks(transport, [&](const calibrate::CollectiveTimer& time) {
      request.ranks = {.are = "processes", .count = transport.size(), .time = time};
      measure();
    });
  });
}

int measure_this_machine(const CommandLine& line, const std::string& command) {
  const bool quiet = line.has("quiet");
  const auto path = costmodel::config_path(line.words("config-path"), line.words("allow-path"));
  if (line.has("compare")) {
    costmodel::print_report(
        calibrate::compare_scenario(line.word("compare"), line.word("profile"), path));
    return 0;
  }
  if (line.has("check")) {
    costmodel::print_report(calibrate::check_profile(line.word("check"), path));
    return 0;
  }
  if (lists(line)) return list_shapes(line, "threads");
  calibrate::CpuRequest request = request_of(line, command, "cpu");
  const auto measure = [&] {
    const std::string report = calibrate::calibrate_cpu(request);
    if (!quiet)
      costmodel::print_report((costmodel::overwrites_lines(STDERR_FILENO) ? "\n" : "") + report);
  };
  if (runtime::launched()) return measure_between_processes(line, request, measure);
  measure();
  const bool cluster = !request.cluster_out.empty();
  if (line.has("then-run"))
    then_run(line.word("then-run"), cluster ? request.cluster_out : request.out);
  return 0;
}

void require_flags_of(const CommandLine& line, const std::string& mode) {
  const costmodel::Flag* wrong = misplaced(calibrate_program(), line, mode);
  if (wrong == nullptr) return;
  const std::string its = costmodel::split_words(wrong->only_for).front();
  if (its == "files") usage(fmt::format("--{} is a flag of --from", wrong->name), "leave it out");
  usage(fmt::format("--{} is a flag of --backend {}", wrong->name, its),
        mode == "files" ? fmt::format("write --backend {} as well", its) : "leave it out");
}

int run(int count, char** arguments) {
  const CommandLine line = costmodel::parse(calibrate_program(), count, arguments);
  if (line.has("help")) {
    costmodel::write_standard_output(costmodel::help_of(calibrate_program(), line.command,
                                                        costmodel::width_of_lines(STDOUT_FILENO)));
    return 0;
  }
  const std::string backend = line.word("backend");
  require_flags_of(line, backend.empty() ? "files" : backend);
  if (backend == "cpu") return measure_this_machine(line, command_line(count, arguments));
  if (backend == "cuda") return measure_gpu(line, command_line(count, arguments));
  if (!backend.empty()) {
    usage(fmt::format("there is no backend {}", costmodel::shortened(backend)),
          "choose cpu or cuda, or --from FILE: measurements made elsewhere");
  }
  const auto answer = calibrate::calibrate(
      {.from = line.words("from"),
       .devices = line.words("device"),
       .sources = line.words("source"),
       .base = line.word("base"),
       .stack = line.word("stack"),
       .writes = line.has("out"),
       .path = costmodel::config_path(line.words("config-path"), line.words("allow-path"))});
  if (!answer.fitted) {
    costmodel::print_message(answer.report + "shardplan calibrate: no constant could be fitted");
    return runtime::failed;
  }
  if (answer.profile.empty()) {
    costmodel::print_report(answer.report);
    return 0;
  }
  const std::string out = line.word("out");
  const bool quiet = line.has("quiet");
  if (out.empty()) {
    if (!quiet) costmodel::print_message(answer.report);
    costmodel::write_standard_output(answer.profile);
  } else {
    costmodel::write_file(out, answer.profile);
    if (!quiet) costmodel::print_report(answer.report);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return runtime::status_of("shardplan calibrate", [&] { return run(count, arguments); });
}
