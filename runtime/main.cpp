// The executable shardplan-run, to which `shardplan run` delegates.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/run/calibrated.hpp"
#include "runtime/run/command_line.hpp"
#include "runtime/run/comparison.hpp"
#include "runtime/run/run_command.hpp"
#include "runtime/run/run_output.hpp"

namespace {

namespace po = boost::program_options;
using costmodel::ConfigError;
using runtime::word;
using runtime::words;

constexpr const char* help =
    "usage: shardplan run SCENARIO [--backend NAME] [flags]\n"
    "       mpirun -np N shardplan run SCENARIO [flags]\n"
    "       torchrun --no-python --nproc-per-node N shardplan run SCENARIO [flags]\n\n"
    "execute a scenario's plan and hold time, memory and bytes against the prediction\n\n"
    "example: shardplan run configs/scenarios/tiny-gpt-cpu.yaml --backend threads\n\n"
    "flags:\n"
    "  --backend NAME         threads: ranks of this process compute; mpi: this process is one\n"
    "                         rank of mpirun's or srun's; tcp: it is one of torchrun's, and MPI\n"
    "                         is not needed; emulated: pipeline ranks wait the modelled time;\n"
    "                         cuda: ranks compute on GPUs (default: mpi or tcp where so started,\n"
    "                         else threads)\n"
    "  --calibrated FILE      predict by this machine's profile, a device's or a cluster's, that\n"
    "                         shardplan calibrate wrote\n"
    "  --iterations N         iterations, the first one to warm up (default 3)\n"
    "  --trace FILE           write the last iteration as a Chrome/Perfetto trace\n"
    "  --tf32                 cuda: matrix products in TF32 instead of fp32\n"
    "  --virtual-devices N    cuda: cut each GPU into so many devices, which share its memory\n"
    "  --virtual-clock        emulated: count the time instead of waiting\n"
    "  --seed N               of data, weights and dropout (default 1)\n"
    "  --memory-limit SIZE    that a rank may use, such as 512 MiB (default: none)\n"
    "  --patience SECONDS     for one message from another rank (default 60)\n"
    "  --fail-above PCT       exit with 4 when the iteration time is predicted worse than this\n"
    "  --format text|json     (default text)\n"
    "  --out FILE             write there instead of standard output, whole or not at all\n"
    "  --set KEY.PATH=VALUE   override one value of the scenario (repeatable)\n"
    "  --config-path DIR      search DIR before the installed configs (repeatable)\n"
    "  --progress             a line an iteration on standard error, terminal or not\n"
    "  --quiet                no progress\n"
    "  --help                 this text\n\n"
    "A run that ends before its time reports the iterations that were whole until then; a --out\n"
    "file has them, as they were at most a second before, even where rank 0 is killed.\n\n"
    "Ranks that torchrun starts on one host listen on loopback only. On several hosts all of them\n"
    "want the same SHARDPLAN_TOKEN in the environment, 16 characters or more that nobody guesses,\n"
    "such as openssl rand -hex 16 prints; without it they do not begin.\n\n"
    "exit status: 0 done; 1 an internal fault; 2 bad usage or bad input; 4 a rank failed, or\n"
    "--fail-above was missed; 130 after SIGINT (Ctrl-C), 143 after SIGTERM. mpirun's own are 1\n"
    "after SIGINT and SIGTERM, and 137 where a rank was ended by SIGKILL\n";

const std::vector<std::string>& flags() {
  static const std::vector<std::string> all{
      "--backend",    "--iterations", "--trace",  "--virtual-clock", "--seed", "--memory-limit",
      "--patience",   "--fail-above", "--format", "--out",           "--set",  "--config-path",
      "--calibrated", "--progress",   "--tf32",   "--quiet",         "--help", "--virtual-devices"};
  return all;
}

po::variables_map parsed(int count, char** arguments) {
  using Words = std::vector<std::string>;
  po::options_description all;
  auto add = all.add_options();
  for (const char* name : {"scenario", "set", "config-path"})
    add(name, po::value<Words>()->composing(), "");
  for (const char* name :
       {"backend", "trace", "format", "out", "color", "memory-limit", "calibrated"})
    add(name, po::value<std::string>(), "");
  add("iterations", po::value<int>()->default_value(3), "");
  add("virtual-devices", po::value<int>()->default_value(1), "");
  add("seed", po::value<std::uint64_t>()->default_value(1), "");
  for (const char* name : {"patience", "fail-above"}) add(name, po::value<double>(), "");
  for (const char* name : {"virtual-clock", "progress", "quiet", "help", "tf32"})
    add(name, po::bool_switch(), "");
  po::positional_options_description positions;
  positions.add("scenario", -1);
  return runtime::parsed(count, arguments, "shardplan run", all, positions, flags());
}

// The index of a value among `names`.
template <std::size_t N>
std::size_t chosen(const std::string& given, const char* flag,
                   const std::array<std::string_view, N>& names) {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found == names.end()) {
    const std::vector<std::string> known(names.begin(), names.end());
    throw ConfigError(
        {}, fmt::format("shardplan run: {} {} is unknown", flag, costmodel::shortened(given)),
        costmodel::known_names(given, known));
  }
  return static_cast<std::size_t>(found - names.begin());
}

double positive(const po::variables_map& values, const char* name, double otherwise) {
  if (values.count(name) == 0) return otherwise;
  const double value = values[name].as<double>();
  if (std::isfinite(value) && value > 0) return value;
  throw ConfigError({}, fmt::format("shardplan run: --{} {:g} is not positive", name, value),
                    "give a number above zero");
}

std::size_t memory_limit(const po::variables_map& values) {
  const std::string text = word(values, "memory-limit", "0");
  const auto bytes = costmodel::parse_quantity(text, costmodel::Dimension::size);
  if (!bytes.value || *bytes.value < 0) {
    throw ConfigError({},
                      fmt::format("shardplan run: --memory-limit {}: {}", costmodel::quote(text),
                                  bytes.value ? "it is below zero" : bytes.why),
                      "write a size, such as 512 MiB");
  }
  return static_cast<std::size_t>(*bytes.value);
}

costmodel::Scenario scenario_of(const po::variables_map& values, runtime::BackendKind backend) {
  const auto operands = words(values, "scenario");
  if (operands.size() != 1) {
    throw ConfigError({}, fmt::format("shardplan run takes one scenario, not {}", operands.size()),
                      "see shardplan run --help");
  }
  const auto path = costmodel::config_path(words(values, "config-path"));
  auto scenario = costmodel::load_scenario(costmodel::scenario_file(operands.front(), path), path,
                                           words(values, "set"));
  const std::string profile = word(values, "calibrated", "");
  if (profile.empty()) return scenario;
  const auto said = scenario.training.precision;
  runtime::use_calibrated(
      scenario, profile, path,
      backend == runtime::BackendKind::emulated ? said : computed_in(backend, said));
  return scenario;
}

// A switch that only one backend has; an error with any other.
bool switch_of(const po::variables_map& values, const std::string& name, runtime::BackendKind given,
               runtime::BackendKind its) {
  const bool set = values[name].as<bool>();
  if (!set || given == its) return set;
  const auto named = [](runtime::BackendKind kind) {
    return runtime::backend_names[static_cast<std::size_t>(kind)];
  };
  throw ConfigError(
      {}, fmt::format("shardplan run: --{} means nothing to --backend {}", name, named(given)),
      fmt::format("leave it out, or write --backend {}", named(its)));
}

int virtual_devices(const po::variables_map& values, runtime::BackendKind backend) {
  const int count = values["virtual-devices"].as<int>();
  if (count < 1) {
    throw ConfigError({}, fmt::format("shardplan run: --virtual-devices {}", count),
                      "one at least");
  }
  if (count == 1 || backend == runtime::BackendKind::cuda) return count;
  throw ConfigError({}, "shardplan run: --virtual-devices cuts GPUs, which --backend cuda has",
                    "leave it out, or write --backend cuda");
}

runtime::RunRequest request_of(const po::variables_map& values) {
  runtime::RunRequest request;
  const char* apart = runtime::launched() ? "mpi" : "tcp";
  const char* usual = runtime::one_of_several() ? apart : "threads";
  const std::string backend = word(values, "backend", usual);
  request.backend =
      static_cast<runtime::BackendKind>(chosen(backend, "--backend", runtime::backend_names));
  request.iterations = values["iterations"].as<int>();
  if (request.iterations < 1) {
    throw ConfigError({}, fmt::format("shardplan run: --iterations {}", request.iterations),
                      "one at least");
  }
  request.seed = values["seed"].as<std::uint64_t>();
  request.memory_limit = memory_limit(values);
  using enum runtime::BackendKind;
  request.virtual_clock = switch_of(values, "virtual-clock", request.backend, emulated);
  request.virtual_devices = virtual_devices(values, request.backend);
  request.tf32 = switch_of(values, "tf32", request.backend, cuda);
  request.patience = costmodel::Seconds(positive(values, "patience", 60));
  request.scenario = scenario_of(values, request.backend);
  return request;
}

int run(int count, char** arguments) {
  const auto values = parsed(count, arguments);
  if (values["help"].as<bool>()) {
    costmodel::write_standard_output(help);
    return 0;
  }
  constexpr std::array<std::string_view, 2> formats{"text", "json"};
  const runtime::OutputOptions output{
      .json = chosen(word(values, "format", "text"), "--format", formats) == 1,
      .out = word(values, "out", ""),
      .trace = word(values, "trace", "")};
  const bool limited = values.count("fail-above") > 0;
  const double limit = positive(values, "fail-above", 0);
  runtime::RunRequest request = request_of(values);
  for (const auto& file : {output.out, output.trace})
    if (!file.empty()) costmodel::require_writable(file);
  const bool lines = values["progress"].as<bool>();
  if (lines || (!values["quiet"].as<bool>() && isatty(STDERR_FILENO) == 1))
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
  fmt::print(stderr, "{}\n", missed);
  return runtime::failed;
}

}  // namespace

int main(int count, char** arguments) {
  return runtime::status_of("shardplan run", [&] { return run(count, arguments); });
}
