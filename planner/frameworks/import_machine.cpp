#include "planner/frameworks/import_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/launcher_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

// From the nearest to the farthest.
constexpr std::array<std::string_view, 6> paths{"NV", "PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr std::array<std::string_view, 6> tier_names{"nvlink",      "pcie-switch", "pcie-switches",
                                                     "host-bridge", "numa-node",   "sockets"};
constexpr std::size_t most_devices = 1024;

struct Matrix {
  std::vector<std::vector<std::string>> gpus;  // paths of a GPU to each GPU
  std::size_t nics = 0;                        // as rows of their own
  std::size_t near_nics = 0;                   // behind one PCIe switch with a GPU
};

std::vector<std::string> words_in(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

// nvidia-smi underlines its headings with escape sequences.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool is_path(const std::string& word) {
  return word == "X" || (word.starts_with("NV") && word.size() > 2) ||
         std::find(paths.begin() + 1, paths.end(), word) != paths.end();
}

// Rows begin with GPU0 or a NIC's name, and go on with as many paths as there are columns.
Matrix read_matrix(const std::string& text, const std::string& file) {
  Matrix matrix;
  std::size_t columns = 0;
  std::istringstream lines(without_escapes(text));
  for (std::string line; std::getline(lines, line);) {
    const auto words = words_in(line);
    const bool gpu = !words.empty() && words.front().starts_with("GPU");
    if (columns == 0) {
      if (gpu) {
        columns = static_cast<std::size_t>(std::ranges::count_if(
            words, [](const auto& word) { return word.starts_with("GPU") && word.size() > 3; }));
      }
      continue;
    }
    if (words.size() <= columns || !is_path(words[1])) continue;
    if (gpu) {
      matrix.gpus.emplace_back(words.begin() + 1,
                               words.begin() + 1 + static_cast<std::ptrdiff_t>(columns));
    } else {
      ++matrix.nics;
      matrix.near_nics +=
          std::any_of(words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(columns),
                      [](const std::string& word) { return word == "PIX" || word == "PXB"; })
              ? 1
              : 0;
    }
  }
  if (columns == 0 || columns > most_devices || matrix.gpus.size() != columns) {
    throw ConfigError({file, 0, 0}, "is no matrix of nvidia-smi topo -m",
                      "a line of column names GPU0 GPU1 ..., then a row a GPU");
  }
  return matrix;
}

// How far a path is: the place in the list of paths.
std::size_t distance(const std::string& path) {
  if (path.starts_with("NV")) return 0;
  return static_cast<std::size_t>(std::ranges::find(paths, path) - paths.begin());
}

// Sizes of the groups of devices that paths up to this distance join, each device's.
std::vector<std::size_t> group_sizes(const Matrix& matrix, std::size_t farthest) {
  const std::size_t count = matrix.gpus.size();
  std::vector<std::size_t> group(count);
  std::iota(group.begin(), group.end(), 0U);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b || distance(matrix.gpus[a][b]) > farthest || group[a] == group[b]) continue;
      const std::size_t from = group[b], to = group[a];
      std::ranges::replace(group, from, to);
    }
  }
  std::vector<std::size_t> sizes;
  for (const std::size_t mine : group)
    sizes.push_back(static_cast<std::size_t>(std::ranges::count(group, mine)));
  return sizes;
}

// The fewest links between two devices that NVLink joins.
int fewest_links(const Matrix& matrix) {
  int fewest = 0;
  for (const auto& row : matrix.gpus) {
    for (const auto& path : row) {
      if (!path.starts_with("NV")) continue;
      int links = 0;
      std::from_chars(path.data() + 2, path.data() + path.size(), links);
      if (links > 0) fewest = fewest == 0 ? links : std::min(fewest, links);
    }
  }
  return fewest;
}

class ClusterFile {
 public:
  void put(const std::string& key, std::string text) {
    job.scenario.set(key, scalar_value(std::move(text)));
  }
  void miss(const std::string& key, std::string remedy) {
    put(key, std::string(to_be_replaced));
    job.missing.push_back({key, std::move(remedy)});
  }
  void add_tier(std::string_view name, const std::string& devices, std::string remedy) {
    Value tier;
    const std::string replace(to_be_replaced);
    tier.set("name", scalar_value(std::string(name)));
    tier.set("devices", scalar_value(devices));
    for (const char* key : {"bandwidth_bytes_per_s", "latency_s"})
      tier.set(key, scalar_value(replace));
    job.missing.push_back({fmt::format("tiers.{}", tiers_.items.size()), std::move(remedy)});
    tiers_.items.push_back(std::move(tier));
  }
  ImportedJob finish() {
    tiers_.kind = Value::Kind::sequence;
    job.scenario.set("tiers", tiers_);
    return std::move(job);
  }

  ImportedJob job;

 private:
  Value tiers_;
};

std::string remedy_of(const Matrix& matrix, std::size_t path) {
  if (path > 0) {
    return fmt::format("bandwidth and latency a device of paths {}, which the matrix does not say",
                       paths[path]);
  }
  return fmt::format(
      "bandwidth and latency of {} links a pair of devices: 25 GB/s a link and direction for "
      "NVLink "
      "2 to 4, 50 GB/s for NVLink 5",
      fewest_links(matrix));
}

void add_tiers(const Matrix& matrix, ClusterFile& file) {
  std::size_t before = 1;
  for (std::size_t path = 0; path < paths.size(); ++path) {
    const auto sizes = group_sizes(matrix, path);
    const auto [least, most] = std::ranges::minmax(sizes);
    if (least != most) {
      file.job.notes.push_back(fmt::format("groups of {} to {} devices by {}: no tier of one size",
                                           least, most, paths[path]));
    } else if (least > before) {
      file.add_tier(tier_names[path], fmt::format("{}", least), remedy_of(matrix, path));
      before = least;
    }
  }
}

}  // namespace

ImportedJob import_topology(const std::string& text, const std::string& file) {
  const Matrix matrix = read_matrix(text, file);
  const std::size_t count = matrix.gpus.size();
  ClusterFile cluster;
  cluster.put("title", fmt::format("{} GPUs a node, by nvidia-smi topo -m", count));
  cluster.miss("device",
               "which devices they are, the matrix does not say: --set device=NAME (see `shardplan "
               "list devices`)");
  cluster.put("devices_per_node", fmt::format("{}", count));
  add_tiers(matrix, cluster);
  if (matrix.nics > 0) {
    cluster.add_tier("network", std::string(to_be_replaced),
                     fmt::format("{} NICs a node, {} of them behind a PCIe switch of a GPU: the "
                                 "devices of the network, and bandwidth and latency a device",
                                 matrix.nics, matrix.near_nics));
  }
  ImportedJob job = cluster.finish();
  job.scenario.set("source", scalar_value("nvidia-smi topo -m: devices and tiers"));
  return job;
}

ImportedJob import_slurm(const std::string& text, const std::string& file) {
  const Launched launched = launched_by(read_shell(text, file), {});
  if (launched.world_size == 0) {
    throw ConfigError({file, 0, 0}, "says no number of nodes and GPUs of a Slurm job",
                      "known: SLURM_JOB_NUM_NODES or SLURM_NNODES, and SLURM_GPUS_ON_NODE or "
                      "SLURM_GPUS_PER_NODE; #SBATCH lines");
  }
  ImportedJob job;
  Value cluster;
  cluster.set("base", scalar_value(std::string(to_be_replaced)));
  cluster.set("devices", scalar_value(fmt::format("{}", launched.world_size)));
  if (launched.per_node > 0) {
    cluster.set("devices_per_node", scalar_value(fmt::format("{}", launched.per_node)));
  }
  job.scenario.set("cluster", std::move(cluster));
  job.missing.push_back({"cluster.base",
                         "which devices they are, no variable says: add --cluster NAME (see "
                         "`shardplan list clusters`)"});
  if (launched.by_variable) job.notes.emplace_back(world_size_note);
  return job;
}

}  // namespace planner
