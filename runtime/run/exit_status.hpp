// The exit statuses that `shardplan run` and `shardplan calibrate` share.
#pragma once

#include <functional>
#include <string>

namespace runtime {

// Exit status when a rank failed or a limit was missed.
inline constexpr int failed = 4;

// The exit status of `run`; exceptions are reported on standard error. `command` ("shardplan run")
// starts messages.
int status_of(const std::string& command, const std::function<int()>& run);

}  // namespace runtime
