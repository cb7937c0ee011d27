// The command-line parsing that `shardplan run` and `shardplan calibrate` share.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <vector>

namespace runtime {

// Exit status when a rank failed or a limit was missed.
inline constexpr int failed = 4;

// Parses flags and positional words. `command` ("shardplan run") starts error messages; an unknown
// flag is answered with the nearest of `known`. Throws ConfigError.
boost::program_options::variables_map parsed(
    int count, char** arguments, const std::string& command,
    const boost::program_options::options_description& options,
    const boost::program_options::positional_options_description& positions,
    const std::vector<std::string>& known);

// The value of a flag, or `otherwise`.
std::string word(const boost::program_options::variables_map& values, const char* name,
                 const char* otherwise = "");
// The values of a repeatable flag.
std::vector<std::string> words(const boost::program_options::variables_map& values,
                               const char* name);

// The exit status of `run`; exceptions are reported on standard error.
int status_of(const std::string& command, const std::function<int()>& run);

}  // namespace runtime
