// A file piece by piece, unpacked where gzip has packed it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace planner {

// What gives the file's next piece, valid until the next call; empty at the end. Throws ConfigError
// for a file that cannot be read, one that was cut short, and one of more than 4 GiB unpacked.
std::function<std::string_view()> unpacked_file(const std::string& path);

// Whether this build unpacks.
bool unpacks_files();

}  // namespace planner
