// shardplan-calibrate, which `shardplan calibrate` hands over to.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "calibrate/command.hpp"
#include "costmodel/config_path.hpp"
#include "costmodel/error.hpp"
#include "costmodel/output_file.hpp"

namespace {

namespace po = boost::program_options;
using costmodel::ConfigError;

constexpr int failed = 4;

constexpr const char* help =
    "usage: shardplan calibrate --from FILE ... --base NAME [flags]\n\n"
    "fit a device's or a network's constants to published or imported microbenchmarks\n\n"
    "example: shardplan calibrate --from configs/microbench/gemm.yaml --device A100-PCIe-80GB "
    "--base a100-pcie-80gb --out mine.yaml\n\n"
    "flags:\n"
    "  --from FILE ...        microbenchmarks: configs/microbench, or of shardplan import "
    "nccl-tests\n"
    "  --device NAME          only measurements of this device, as the source names it "
    "(repeatable)\n"
    "  --source WORDS         only measurements whose source's title holds these words "
    "(repeatable)\n"
    "  --base NAME            the device or cluster that has all other constants: a name or a "
    "file\n"
    "  --out FILE             write the profile there and the report to standard output\n"
    "  --config-path DIR      search DIR before the installed configs (repeatable)\n"
    "  --backend cpu|cuda     measure this machine (not built yet)\n"
    "  --quiet                no report\n"
    "  --help                 this text\n";

po::variables_map parsed(int count, char** arguments) {
  using Words = std::vector<std::string>;
  po::options_description all;
  auto add = all.add_options();
  add("from", po::value<Words>()->multitoken()->composing(), "");
  add("device", po::value<Words>()->composing(), "");
  add("source", po::value<Words>()->composing(), "");
  add("config-path", po::value<Words>()->composing(), "");
  for (const char* name : {"base", "out", "backend", "color"})
    add(name, po::value<std::string>(), "");
  add("quiet", po::bool_switch(), "");
  add("help,h", po::bool_switch(), "");
  po::variables_map values;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const po::positional_options_description none;
    po::store(
        po::command_line_parser(count, arguments).options(all).positional(none).style(style).run(),
        values);
    po::notify(values);
  } catch (const po::unknown_option& fault) {
    throw ConfigError({}, "shardplan calibrate: unknown flag '" + fault.get_option_name() + "'",
                      costmodel::known_names(fault.get_option_name(),
                                             {"--from", "--device", "--source", "--base", "--out",
                                              "--config-path", "--backend", "--quiet", "--help"}));
  } catch (const po::error& fault) {
    throw ConfigError({}, std::string("shardplan calibrate: ") + fault.what(),
                      "see shardplan calibrate --help");
  }
  return values;
}

std::string word(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? "" : values[name].as<std::string>();
}

std::vector<std::string> words(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? std::vector<std::string>{}
                                 : values[name].as<std::vector<std::string>>();
}

int run(int count, char** arguments) {
  const auto values = parsed(count, arguments);
  if (values["help"].as<bool>()) {
    fmt::print("{}", help);
    return 0;
  }
  if (values.count("backend") != 0) {
    fmt::print(stderr,
               "shardplan calibrate: measuring this machine (--backend) is not built yet; --from "
               "FILE fits measurements made elsewhere\n");
    return 2;
  }
  const auto answer =
      calibrate::calibrate({.from = words(values, "from"),
                            .devices = words(values, "device"),
                            .sources = words(values, "source"),
                            .base = word(values, "base"),
                            .path = costmodel::config_path(words(values, "config-path"))});
  if (!answer.fitted) {
    fmt::print(stderr, "{}shardplan calibrate: no constant could be fitted\n", answer.report);
    return failed;
  }
  const std::string out = word(values, "out");
  const bool quiet = values["quiet"].as<bool>();
  if (out.empty()) {
    if (!quiet) fmt::print(stderr, "{}", answer.report);
    fmt::print("{}", answer.profile);
  } else {
    costmodel::write_file(out, answer.profile);
    if (!quiet) fmt::print("{}", answer.report);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const ConfigError& fault) {
    fmt::print(stderr, "{}\n", fault.what());
    return 2;
  } catch (const std::exception& fault) {
    fmt::print(stderr, "shardplan calibrate: internal fault: {}\n", fault.what());
    return 1;
  }
}
