// The executable shardplan-calibrate, to which `shardplan calibrate` delegates.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/program_options.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/commands/compare_command.hpp"
#include "calibrate/commands/cpu_command.hpp"
#include "calibrate/commands/fit_command.hpp"
#include "calibrate/commands/gpu_command.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/config/search_path.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "runtime/run/command_line.hpp"

namespace {

namespace po = boost::program_options;
using costmodel::ConfigError;
using runtime::word;
using runtime::words;

constexpr const char* help =
    "usage: shardplan calibrate --from FILE ... [--base NAME] [flags]\n"
    "       shardplan calibrate --backend cpu|cuda --out DEVICE.yaml [flags]\n"
    "       shardplan calibrate --backend cpu --compare SCENARIO [--profile FILE]\n"
    "       shardplan calibrate --backend cpu --check DEVICE.yaml\n\n"
    "fit a device's or a network's constants to published or imported microbenchmarks, or measure\n"
    "this machine\n\n"
    "example: shardplan calibrate --from configs/microbench/gemm.yaml --device A100-PCIe-80GB "
    "--base a100-pcie-80gb --out mine.yaml\n"
    "example: shardplan calibrate --backend cpu --out cpu.yaml --cluster-out machine.yaml\n"
    "example: shardplan run tiny-gpt-cpu --calibrated machine.yaml\n\n"
    "flags, from files:\n"
    "  --from FILE ...        microbenchmarks: configs/microbench, or of shardplan import "
    "nccl-tests\n"
    "  --device NAME          only measurements of this device, as the source names it "
    "(repeatable)\n"
    "  --source WORDS         only measurements whose source's title holds these words "
    "(repeatable)\n"
    "  --base NAME            the device or cluster that has all other constants: a name or a "
    "file;\n"
    "                         without it, how far each shipped device is from the measurements\n"
    "  --stack NAME           the framework whose experts' constants are compared\n"
    "  --out FILE             write the profile there and the report to standard output\n"
    "flags, of this machine:\n"
    "  --backend cpu|cuda     measure it: one core, or the first GPU\n"
    "  --out FILE             the device's profile; FILE.part holds raw measurements until all "
    "are\n"
    "                         there: a call that was ended is taken up by the same call again\n"
    "  --cluster-out FILE     the cluster's: so many such devices as it has cores; under mpirun or "
    "srun,\n"
    "                         as there are ranks, with the messages between processes\n"
    "  --minutes N            about how long (default 3, of a GPU 2; with --quick 0.5)\n"
    "  --quick                fewer and smaller shapes\n"
    "  --then-run SCENARIO    shardplan run SCENARIO --calibrated with what was written\n"
    "  --compare SCENARIO     time each operator of the scenario's model on one device against "
    "its\n"
    "                         prediction; --profile FILE: by this device\n"
    "  --check FILE           predict 20 models that no calibration measures by this device, and\n"
    "                         time them\n"
    "flags, both:\n"
    "  --config-path DIR      search DIR before the installed configs (repeatable)\n"
    "  --quiet                no report\n"
    "  --help                 this text\n";

const std::vector<std::string>& flags() {
  static const std::vector<std::string> all{
      "--from",        "--device",  "--source",  "--base",  "--out",     "--config-path",
      "--backend",     "--stack",   "--quiet",   "--help",  "--quick",   "--minutes",
      "--cluster-out", "--compare", "--profile", "--check", "--then-run"};
  return all;
}

po::variables_map parsed(int count, char** arguments) {
  using Words = std::vector<std::string>;
  po::options_description all;
  auto add = all.add_options();
  add("from", po::value<Words>()->multitoken()->composing(), "");
  add("device", po::value<Words>()->composing(), "");
  add("source", po::value<Words>()->composing(), "");
  add("config-path", po::value<Words>()->composing(), "");
  for (const char* name : {"base", "stack", "out", "backend", "color", "cluster-out", "then-run",
                           "compare", "profile", "check"})
    add(name, po::value<std::string>(), "");
  add("minutes", po::value<double>(), "");
  for (const char* name : {"quiet", "quick", "help,h"}) add(name, po::bool_switch(), "");
  return runtime::parsed(count, arguments, "shardplan calibrate", all, {}, flags());
}

double minutes(const po::variables_map& values, bool quick, double usual) {
  if (values.count("minutes") == 0) return quick ? 0.5 : usual;
  const double given = values["minutes"].as<double>();
  if (given > 0 && given <= 600) return given;
  throw ConfigError({}, fmt::format("shardplan calibrate: --minutes {:g}", given),
                    "give a number above zero, 600 at most");
}

// The command line as typed in a shell, if no word needed quotes.
std::string command_line(int count, char** arguments) {
  std::string text = "shardplan calibrate";
  for (int i = 1; i < count; ++i) text += fmt::format(" {}", arguments[i]);
  return text;
}

// Shows progress only on a terminal.
void show_progress(std::size_t done, std::size_t all, const std::string& name, double left) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r{} of {}, {:.0f} s left: {:<48}", done, all, left, name);
}

void then_run(const std::string& scenario, const std::string& profile) {
  namespace fs = std::filesystem;
  std::error_code status;
  const fs::path folder = fs::read_symlink("/proc/self/exe", status).parent_path();
  std::string program = (folder / "shardplan-run").string(), first = scenario,
              flag = "--calibrated", second = profile;
  std::array<char*, 5> words{program.data(), first.data(), flag.data(), second.data(), nullptr};
  std::fflush(nullptr);
  execv(program.c_str(), words.data());
  throw ConfigError({}, fmt::format("shardplan calibrate: {} cannot be started", program),
                    "build or install it there");
}

calibrate::CpuRequest request_of(const po::variables_map& values, const std::string& command,
                                 const std::string& backend) {
  calibrate::CpuRequest request;
  request.out = word(values, "out");
  request.cluster_out = word(values, "cluster-out");
  if (request.out.empty()) {
    throw ConfigError(
        {}, fmt::format("shardplan calibrate: --backend {} has no place to write to", backend),
        "write --out FILE: the device's profile");
  }
  for (const auto& file : {request.out, request.cluster_out})
    if (!file.empty()) costmodel::require_writable(file);
  request.quick = values["quick"].as<bool>();
  request.minutes = minutes(values, request.quick, backend == "cuda" ? 2 : 3);
  request.command = command;
  if (!values["quiet"].as<bool>()) request.progress = show_progress;
  return request;
}

int measure_gpu(const po::variables_map& values, const std::string& command) {
  for (const char* name : {"cluster-out", "compare", "profile", "check", "then-run"}) {
    if (values.count(name) == 0) continue;
    throw ConfigError({}, fmt::format("shardplan calibrate: --{} is a flag of --backend cpu", name),
                      "leave it out");
  }
  const std::string report = calibrate::calibrate_gpu(request_of(values, command, "cuda"));
  if (!values["quiet"].as<bool>())
    costmodel::write_standard_output((isatty(STDERR_FILENO) == 1 ? "\n" : "") + report);
  return 0;
}

// Under mpirun or srun rank 0 measures, and the messages together with the others.
int measure_between_processes(const po::variables_map& values, calibrate::CpuRequest& request,
                              const std::function<void()>& measure) {
  if (values.count("then-run") != 0) {
    throw ConfigError({}, "shardplan calibrate: --then-run cannot start ranks of its own here",
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

int measure_this_machine(const po::variables_map& values, const std::string& command) {
  const bool quiet = values["quiet"].as<bool>();
  const auto path = costmodel::config_path(words(values, "config-path"));
  if (values.count("compare") != 0) {
    costmodel::write_standard_output(
        calibrate::compare_scenario(word(values, "compare"), word(values, "profile"), path));
    return 0;
  }
  if (values.count("check") != 0) {
    costmodel::write_standard_output(calibrate::check_profile(word(values, "check"), path));
    return 0;
  }
  calibrate::CpuRequest request = request_of(values, command, "cpu");
  const auto measure = [&] {
    const std::string report = calibrate::calibrate_cpu(request);
    if (!quiet) costmodel::write_standard_output((isatty(STDERR_FILENO) == 1 ? "\n" : "") + report);
  };
  if (runtime::launched()) return measure_between_processes(values, request, measure);
  measure();
  const bool cluster = !request.cluster_out.empty();
  if (values.count("then-run") != 0)
    then_run(word(values, "then-run"), cluster ? request.cluster_out : request.out);
  return 0;
}

int run(int count, char** arguments) {
  const auto values = parsed(count, arguments);
  if (values["help"].as<bool>()) {
    costmodel::write_standard_output(help);
    return 0;
  }
  const std::string backend = word(values, "backend");
  if (backend == "cpu") return measure_this_machine(values, command_line(count, arguments));
  if (backend == "cuda") return measure_gpu(values, command_line(count, arguments));
  if (!backend.empty()) {
    throw ConfigError(
        {},
        fmt::format("shardplan calibrate: there is no backend {}", costmodel::shortened(backend)),
        "choose cpu or cuda, or --from FILE: measurements made elsewhere");
  }
  for (const char* name : {"cluster-out", "minutes", "compare", "profile", "check", "then-run"}) {
    if (values.count(name) == 0) continue;
    throw ConfigError({}, fmt::format("shardplan calibrate: --{} is a flag of --backend cpu", name),
                      "write --backend cpu as well");
  }
  const auto answer =
      calibrate::calibrate({.from = words(values, "from"),
                            .devices = words(values, "device"),
                            .sources = words(values, "source"),
                            .base = word(values, "base"),
                            .stack = word(values, "stack"),
                            .writes = values.count("out") != 0,
                            .path = costmodel::config_path(words(values, "config-path"))});
  if (!answer.fitted) {
    fmt::print(stderr, "{}shardplan calibrate: no constant could be fitted\n", answer.report);
    return runtime::failed;
  }
  if (answer.profile.empty()) {
    costmodel::write_standard_output(answer.report);
    return 0;
  }
  const std::string out = word(values, "out");
  const bool quiet = values["quiet"].as<bool>();
  if (out.empty()) {
    if (!quiet) fmt::print(stderr, "{}", answer.report);
    costmodel::write_standard_output(answer.profile);
  } else {
    costmodel::write_file(out, answer.profile);
    if (!quiet) costmodel::write_standard_output(answer.report);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return runtime::status_of("shardplan calibrate", [&] { return run(count, arguments); });
}
