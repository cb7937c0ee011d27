// The module shardplan._core: commands of `shardplan` as functions, by their command line, and
// plans by arrays. What is made of it for people is in the package's files of Python.
#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <thread>

#include "costmodel/base/error.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/commands/commands.hpp"
#include "planner/commands/listing.hpp"
#include "planner/commands/options.hpp"
#include "planner/search/many_plans.hpp"

namespace py = pybind11;

namespace {

using Documents = std::map<std::string, std::string>;

// The exceptions of the package; they live as long as the interpreter.
PyObject *input_error = nullptr, *internal_error = nullptr;

std::string own_file() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&own_file), &info) != 0 ? info.dli_fname : "";
}

[[noreturn]] void raise(PyObject* type, const py::object& value) {
  PyErr_SetObject(type, value.ptr());
  throw py::error_already_set();
}

// The package's exception for what a command threw.
[[noreturn]] void raise(const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const costmodel::ConfigError& error) {
    const auto& [where, wrong, remedy] = error.parts();
    raise(input_error,
          py::make_tuple(error.what(), where.file, where.line, where.column, wrong, remedy));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    raise(internal_error, py::str(error.what()));
  }
}

// Does the work on a thread of its own, without the interpreter's lock, while this one looks for
// signals and says how far it is. Once a signal has come (Ctrl-C), or `progress` has thrown, the
// work is to end soon; returns whether that was so, with Python's error still set.
bool work_on(planner::Caller& caller, const py::object& progress,
             const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  std::mutex mutex;
  std::condition_variable ended;
  bool over = false;
  std::exception_ptr fault;
  std::thread worker([&] {
    try {
      work();
    } catch (...) {
      fault = std::current_exception();
    }
    const std::scoped_lock lock(mutex);
    over = true;
    ended.notify_one();
  });
  const auto start = Clock::now();
  bool stopped = false;
  for (bool done = false; !done;) {
    {
      const py::gil_scoped_release unlocked;
      std::unique_lock lock(mutex);
      done = ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return over; });
    }
    if (stopped) continue;
    stopped = PyErr_CheckSignals() != 0;
    if (!stopped && !progress.is_none()) {
      const std::chrono::duration<double> seconds = Clock::now() - start;
      stopped = PyObject_CallFunction(progress.ptr(), "dkk", seconds.count(),
                                      static_cast<unsigned long>(caller.done),
                                      static_cast<unsigned long>(caller.points)) == nullptr;
    }
    if (stopped) caller.signal = SIGINT;
  }
  worker.join();
  if (fault) {
    if (stopped) PyErr_Clear();
    raise(fault);
  }
  return stopped;
}

// A command by its command line, as a process of its own would answer.
py::dict run(const std::vector<std::string>& words, const Documents& documents, bool page,
             const py::object& progress) {
  planner::Caller caller;
  caller.documents = documents;
  caller.program = own_file();
  caller.page = page;
  planner::CommandResult result;
  const bool stopped = work_on(caller, progress, [&] {
    std::vector<const char*> arguments{"shardplan"};
    for (const auto& word : words) arguments.push_back(word.c_str());
    planner::Options options = planner::parse_command_line(
        planner::shardplan(), static_cast<int>(arguments.size()), arguments.data());
    options.caller = &caller;
    result = planner::run_command(options, {});
  });
  // What was found before Ctrl-C is the answer; where nothing was, the interruption is, and so is
  // what else `progress` has thrown.
  if (stopped && (result.text.empty() || result.status < 128 ||
                  PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0))
    throw py::error_already_set();
  PyErr_Clear();
  py::dict answer;
  answer["status"] = result.status;
  answer["text"] = py::bytes(result.text);
  answer["page"] = result.page;
  answer["warnings"] = result.warnings;
  answer["failure"] = result.failure;
  return answer;
}

// The values of a column, whatever array they come in.
std::vector<std::int64_t> values_of(const py::buffer& column) {
  const py::buffer_info info = column.request();
  if (info.ndim != 1 || info.format != py::format_descriptor<std::int64_t>::format())
    throw py::type_error("a column is a one-dimensional array of 64-bit integers");
  std::vector<std::int64_t> values(static_cast<std::size_t>(info.size));
  const auto* const bytes = static_cast<const char*>(info.ptr);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(&values[i], bytes + static_cast<py::ssize_t>(i) * info.strides[0],
                sizeof(std::int64_t));
  return values;
}

py::bytes bytes_of(const std::vector<double>& column) {
  return {reinterpret_cast<const char*>(column.data()), column.size() * sizeof(double)};
}

py::dict evaluate_many(const std::string& operand, const Documents& documents,
                       const std::vector<std::string>& config_path,
                       const std::vector<std::string>& assignments, const py::dict& columns,
                       int threads, const py::object& progress) {
  std::vector<std::vector<std::int64_t>> values;
  std::vector<planner::PlanColumn> keyed;
  values.reserve(columns.size());
  for (const auto& [key, column] : columns) {
    values.push_back(values_of(py::cast<py::buffer>(column)));
    keyed.push_back({py::cast<std::string>(key), values.back()});
  }
  planner::Caller caller;
  planner::ManyPlans all;
  const bool stopped = work_on(caller, progress, [&] {
    const auto path = costmodel::config_path(config_path);
    for (const auto& [name, text] : documents)
      path.loaded->emplace(name, costmodel::parse_yaml(text, "scenario"));
    const std::string file = documents.empty() ? costmodel::scenario_file(operand, path) : operand;
    all = planner::evaluate_many(costmodel::load_scenario(file, path, assignments), keyed, threads,
                                 [&] { return caller.signal != 0; });
  });
  if (stopped) throw py::error_already_set();
  py::dict figures;
  for (std::size_t f = 0; f < all.figures.size(); ++f)
    figures[planner::plan_figures()[f].name] = bytes_of(all.figures[f]);
  py::dict answer;
  answer["figures"] = figures;
  answer["errors"] = all.errors;
  answer["distinct"] = all.distinct;
  return answer;
}

// The records of commands and of their flags.
py::list commands() {
  const costmodel::Program& all = planner::shardplan();
  py::list list;
  for (const costmodel::Command& command : all.commands) {
    py::list flags;
    for (const costmodel::Flag& flag : all.flags) {
      if (!costmodel::admits(flag.only_for, command.name)) continue;
      py::dict one;
      one["name"] = std::string(flag.name);
      one["value"] = std::string(flag.value);
      one["help"] = std::string(flag.help);
      one["words"] = std::string(flag.words);
      one["repeatable"] = flag.repeatable || flag.several;
      flags.append(one);
    }
    py::dict row;
    row["name"] = std::string(command.name);
    row["summary"] = std::string(command.summary);
    row["formats"] = std::string(command.formats);
    row["flags"] = flags;
    list.append(row);
  }
  return list;
}

// The records of keys: (name, what it may be, what it means).
std::vector<std::array<std::string, 3>> keys() {
  std::vector<std::array<std::string, 3>> all;
  for (const auto& row : planner::listing("keys", {}, {}).table.rows)
    all.push_back({row[0], row[2], row[1]});
  return all;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.attr("version") = SHARDPLAN_VERSION;
  module.def("set_configs", &costmodel::set_installed_configs);
  module.def("set_errors", [](const py::object& input, const py::object& internal) {
    input_error = py::object(input).release().ptr();
    internal_error = py::object(internal).release().ptr();
  });
  module.def("document_name", &planner::document_name);
  module.def("run", &run);
  module.def("evaluate_many", &evaluate_many);
  module.def("commands", &commands);
  module.def("keys", &keys);
}
