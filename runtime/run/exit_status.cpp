#include "runtime/run/exit_status.hpp"

#include <csignal>
#include <exception>

#include "costmodel/base/console.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/cli/process.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

int status_of(const std::string& command, const std::function<int()>& run) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the shell's limit on files fails with a message
  try {
    costmodel::require_process(command);
    return run();
  } catch (const costmodel::ConfigError& fault) {
    let_others_speak();
    costmodel::print_message(fault.what());
    return 2;
  } catch (const RunFault& fault) {
    costmodel::print_message(command + ": " + costmodel::message_text(fault.what()));
    return failed;
  } catch (const std::exception& fault) {
    costmodel::print_message(command +
                             ": internal fault: " + costmodel::message_text(fault.what()));
    return 1;
  }
}

}  // namespace runtime
