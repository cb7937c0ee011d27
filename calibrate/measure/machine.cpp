#include "calibrate/measure/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "costmodel/base/input_file.hpp"
#include "runtime/cpu/gemm.hpp"

namespace calibrate {

namespace {

std::string today() {
  const time_t now = ::time(nullptr);
  tm day{};
  gmtime_r(&now, &day);
  std::array<char, 16> text{};
  const std::size_t size = strftime(text.data(), text.size(), "%Y-%m-%d", &day);
  return {text.data(), size};
}

std::string system_name() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : "unknown";
}

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

}  // namespace

std::string processor_in(const std::string& cpuinfo) {
  const std::string key = "model name";
  const auto at = cpuinfo.find(key);
  if (at == std::string::npos) return "unknown";
  const auto colon = cpuinfo.find(':', at);
  const auto end = std::min(cpuinfo.find('\n', at), cpuinfo.size());
  if (colon == std::string::npos || colon >= end) return "unknown";
  const auto first = cpuinfo.find_first_not_of(" \t", colon + 1);
  return first < end ? cpuinfo.substr(first, end - first) : "unknown";
}

Machine this_machine() {
  Machine machine;
  machine.date = today();
  machine.processor = processor_in(costmodel::system_text("/proc/cpuinfo"));
  machine.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  machine.system = system_name();
  machine.compiler = compiler_name();
  machine.products = runtime::cpu::gemm_provider();
  machine.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return machine;
}

std::vector<std::pair<std::string, std::string>> Machine::listed() const {
  return {{"date", date},     {"processor", processor}, {"cores", fmt::format("{}", cores)},
          {"system", system}, {"compiler", compiler},   {"products", products}};
}

}  // namespace calibrate
