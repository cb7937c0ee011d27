// What each program needs before it reads anything.
#pragma once

#include <string>

namespace costmodel {

// Throws ConfigError for a stack too small for the price of a plan, with which a process would end
// without a word. `program` starts the message.
void require_process(const std::string& program);

}  // namespace costmodel
