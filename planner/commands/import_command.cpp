#include "planner/commands/import_command.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "planner/exchange/nccl_tests.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using costmodel::ConfigError;

CommandResult import_command(const Session& session) {
  const auto& operands = session.options.operands;
  if (operands[0] == "nccl-tests") {
    const bool json = session.options.format == Format::json;
    return {0, to_microbenchmarks(read_nccl_tests(operands[1]), operands[1], json), {}};
  }
  if (operands[0] != "hf") {
    throw ConfigError({}, fmt::format("shardplan: cannot import {}", costmodel::quote(operands[0])),
                      "allowed: hf FILE, nccl-tests FILE");
  }
  const costmodel::Value config = costmodel::load_yaml(operands[1]);
  if (!costmodel::is_hf_config(config)) {
    throw ConfigError({operands[1], 0, 0}, "is not a Hugging Face config.json",
                      "it names no model_type");
  }
  const auto model = costmodel::read_model(costmodel::from_hf_config(config),
                                           std::filesystem::path(operands[1]).stem().string());
  const costmodel::Value map = to_value(model);
  if (session.options.format != Format::json) return {0, to_yaml(map), {}};
  Table row;
  row.rows.emplace_back();
  for (const auto& entry : map.entries) {
    row.columns.push_back({entry.key});
    row.rows.front().push_back(entry.value.text);
  }
  return {0, rows_json(row), {}};
}

}  // namespace planner
