#include "planner/batch/json_points_kept.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/error.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/path.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using namespace costmodel;

namespace {

SweptPoint point_of(const Json& json) {
  SweptPoint point{.cells = json.at("cells"),
                   .plan = json.at("plan"),
                   .error = json.at("error"),
                   .searched = json.at("searched"),
                   .none_fits = json.at("none_fits")};
  point.scales.devices = json.at("devices");
  point.scales.tokens_per_s = json.at("tokens_per_s");
  return point;
}

Json json_of(const std::string& key, const SweptPoint& point) {
  return {{"key", key},
          {"cells", point.cells},
          {"plan", point.plan},
          {"error", point.error},
          {"searched", point.searched},
          {"none_fits", point.none_fits},
          {"devices", point.scales.devices},
          {"tokens_per_s", point.scales.tokens_per_s}};
}

// Files, and their fingerprints then, stand for what they are now.
bool stand(const std::map<std::string, std::string>& inputs) {
  return std::ranges::all_of(inputs, [](const auto& input) {
    return file_fingerprint(input.first, measurement_limits.bytes) == input.second;
  });
}

}  // namespace

KeptPoints::KeptPoints(const std::string& folder, const Shard& shard) {
  make_folder(folder);
  std::vector<std::string> names{journal_name(shard)};
  if (shard.is_all()) {
    for (const FolderEntry& entry : entries_of(folder))
      if (is_part_of_journal(entry.name)) names.push_back(entry.name);
  }
  for (const std::string& name : names) read(files_.emplace_back(joined_path(folder, name)), name);
}

void KeptPoints::read(const LineFile& file, const std::string& name) {
  bool valid = false;  // the files that the lines above name are what they were
  file.read([&](const std::string& line) {
    try {
      const Json json = parse_json(line, name);
      if (json.contains("inputs")) {
        valid = stand(json.at("inputs"));
      } else if (valid) {
        points_[json.at("key")] = point_of(json);
      }
    } catch (const ConfigError&) {      // the line that a kill cut short
    } catch (const Json::exception&) {  // another's
    }
  });
}

const SweptPoint* KeptPoints::find(const std::string& key) const {
  const auto found = points_.find(key);
  return found == points_.end() ? nullptr : &found->second;
}

void KeptPoints::add(const std::vector<std::pair<std::string, const SweptPoint*>>& points) {
  if (points.empty()) return;
  std::string lines;
  const auto files = files_read();
  if (files.size() != inputs_written_) {
    std::map<std::string, std::string> inputs;
    for (const std::string& file : files) inputs[file] = file_fingerprint(file);
    lines = json_line({{"inputs", inputs}}) + "\n";
    inputs_written_ = files.size();
  }
  for (const auto& [key, point] : points) lines += json_line(json_of(key, *point)) + "\n";
  lines.pop_back();
  files_.front().add(lines);
}

}  // namespace planner
