// What the programs behind `shardplan run` and `shardplan calibrate` share of their command lines.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <vector>

namespace runtime {

// Exit status where a rank failed, or a limit was missed.
inline constexpr int failed = 4;

// Flags as they are written, and words without a flag where they have a position. `command`
// ("shardplan run") begins what is said of wrong ones; of `known` flags the nearest to one that
// does not exist is named. Throws ConfigError.
boost::program_options::variables_map parsed(
    int count, char** arguments, const std::string& command,
    const boost::program_options::options_description& options,
    const boost::program_options::positional_options_description& positions,
    const std::vector<std::string>& known);

// What was given of a flag, or `otherwise`.
std::string word(const boost::program_options::variables_map& values, const char* name,
                 const char* otherwise = "");
// Of one that may be repeated.
std::vector<std::string> words(const boost::program_options::variables_map& values,
                               const char* name);

// The exit status of `run`; what it throws is told on standard error.
int status_of(const std::string& command, const std::function<int()>& run);

}  // namespace runtime
