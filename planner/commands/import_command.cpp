#include "planner/commands/import_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "planner/commands/scenario_words.hpp"
#include "planner/exchange/json_imported.hpp"
#include "planner/frameworks/engine_arguments.hpp"
#include "planner/frameworks/import_machine.hpp"
#include "planner/frameworks/read_job.hpp"
#include "planner/logs/nccl_tests.hpp"
#include "planner/report/json_report.hpp"
#include "planner/traces/trace_file.hpp"
#include "planner/traces/trace_rows.hpp"

namespace planner {

using namespace costmodel;

namespace {

CommandResult import_hf(const Session& session, const std::string& file) {
  const Value config = load_yaml(file);
  if (!is_hf_config(config)) {
    throw ConfigError({file, 0, 0}, "is not a Hugging Face config.json", "it names no model_type");
  }
  std::vector<std::string> notes;
  const auto model =
      read_model(from_hf_config(config, notes, session.options.partial), stem_of(file));
  std::string comments;
  for (std::string& note : notes) {
    comments += fmt::format("# {}\n", printable(note));
    note = fmt::format("warning: {}", note);
  }
  const Value map = to_value(model);
  if (const Value* slices = config.find("pretraining_tp");
      slices != nullptr && slices->text != "1") {
    notes.push_back(fmt::format(
        "note: pretraining_tp {}: transformers then cuts each product of a layer into as many "
        "slices on one device, to sum in the order of a tensor parallel training; the same "
        "products, smaller: nothing is gained, and the model here is the same",
        quote(slices->text)));
  }
  if (session.options.format != Format::json) return {0, comments + to_yaml(map), notes};
  Table row;
  row.rows.emplace_back();
  for (const auto& entry : map.entries) {
    row.columns.push_back({entry.key});
    row.rows.front().push_back(entry.value.text);
  }
  return {0, rows_json(row), notes};
}

CommandResult finished(const Session& session, ImportedJob job) {
  complete_job(session.options, session.path, job);
  CommandResult result{0, {}, {}};
  for (const auto& key : job.missing)
    result.warnings.push_back(fmt::format("missing: {}: {}", key.key, key.remedy));
  result.text = session.options.format == Format::json ? to_json(job) : to_yaml(job);
  return result;
}

CommandResult import_trace(const Session& session, const std::string& file) {
  const std::string& to = session.options.to;
  refuse_if(!to.empty() && to != "microbench", fmt::format("a trace is no {}", quote(to)),
            "allowed: --to microbench");
  return {0, trace_rows(read_trace(file), session.options.format == Format::json), {}};
}

// A job's own format may be named, or found out.
CommandResult import_job(const Session& session, const std::string& format,
                         const std::string& file) {
  const JobFormat found = format_of(file);
  if (job_format_names[static_cast<std::size_t>(found)] != format) {
    throw ConfigError(
        {file, 0, 0}, fmt::format("holds nothing of {}", format),
        fmt::format("it looks like: {}", job_format_names[static_cast<std::size_t>(found)]));
  }
  return finished(session, read_job(file, session.options.recipe));
}

// A file whose format nobody names: a model's, or a job's.
CommandResult import_found(const Session& session, const std::string& file) {
  refuse_if(!path_exists(file), fmt::format("no file {}", quote(file)),
            "shardplan import FILE, or with its format: import hf FILE");
  if (file.ends_with(".json") && is_hf_config(load_yaml(file))) return import_hf(session, file);
  return finished(session, read_job(file, session.options.recipe));
}

}  // namespace

CommandResult import_command(const Session& session) {
  const auto& operands = session.options.operands;
  if (operands.size() == 1) return import_found(session, operands[0]);
  refuse_if(!session.options.to.empty() && operands[0] != "trace",
            "--to goes with import trace alone", "leave it out");
  if (operands[0] == "nccl-tests") {
    const bool json = session.options.format == Format::json;
    return {0, to_microbenchmarks(read_nccl_tests(operands[1]), operands[1], json), {}};
  }
  if (operands[0] == "trace") return import_trace(session, operands[1]);
  if (operands[0] == "hf") return import_hf(session, operands[1]);
  if (operands[0] == "topo" || operands[0] == "slurm") {
    const std::string text = read_file(operands[1], measurement_limits);
    return finished(session, operands[0] == "topo" ? import_topology(text, operands[1])
                                                   : import_slurm(text, operands[1]));
  }
  if (operands[0] == "vllm" || operands[0] == "sglang") {
    const std::string text = read_file(operands[1], config_limits);
    return finished(
        session, import_engine(text, operands[1], operands[0], config_names(session.path, "models"),
                               config_names(session.path, "engines")));
  }
  // All but a scenario of ours.
  const std::span jobs = std::span(job_format_names).subspan(1);
  if (std::ranges::find(jobs, operands[0]) != jobs.end())
    return import_job(session, operands[0], operands[1]);
  throw ConfigError({}, fmt::format("shardplan: cannot import {}", quote(operands[0])),
                    fmt::format("allowed: hf FILE, nccl-tests FILE, {} FILE, vllm FILE, sglang "
                                "FILE, topo FILE, slurm FILE, trace FILE",
                                fmt::join(jobs, " FILE, ")));
}

}  // namespace planner
