#include "runtime/run/command_line.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

namespace po = boost::program_options;
using costmodel::ConfigError;

po::variables_map parsed(int count, char** arguments, const std::string& command,
                         const po::options_description& options,
                         const po::positional_options_description& positions,
                         const std::vector<std::string>& known) {
  po::variables_map values;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(count, arguments)
                  .options(options)
                  .positional(positions)
                  .style(style)
                  .run(),
              values);
    po::notify(values);
  } catch (const po::unknown_option& fault) {
    throw ConfigError(
        {}, fmt::format("{}: unknown flag {}", command, costmodel::quote(fault.get_option_name())),
        costmodel::known_names(fault.get_option_name(), known));
  } catch (const po::error& fault) {
    throw ConfigError({}, fmt::format("{}: {}", command, fault.what()),
                      fmt::format("see {} --help", command));
  }
  return values;
}

std::string word(const po::variables_map& values, const char* name, const char* otherwise) {
  return values.count(name) == 0 ? otherwise : values[name].as<std::string>();
}

std::vector<std::string> words(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? std::vector<std::string>{}
                                 : values[name].as<std::vector<std::string>>();
}

int status_of(const std::string& command, const std::function<int()>& run) {
  try {
    return run();
  } catch (const ConfigError& fault) {
    let_others_speak();
    fmt::print(stderr, "{}\n", fault.what());
    return 2;
  } catch (const RunFault& fault) {
    fmt::print(stderr, "{}: {}\n", command, costmodel::message_text(fault.what()));
    return failed;
  } catch (const std::exception& fault) {
    fmt::print(stderr, "{}: internal fault: {}\n", command, costmodel::message_text(fault.what()));
    return 1;
  }
}

}  // namespace runtime
