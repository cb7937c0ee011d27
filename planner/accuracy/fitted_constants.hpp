// Constants of devices, networks and frameworks that are fitted to measured runs: configs/fit.yaml.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace planner {

// A number in one or several configuration files that is fitted to evidence: a constant of a
// device, a network or a framework version.
struct FittedConstant {
  std::string name;
  std::vector<std::string> files;  // "devices/a100-sxm4-80gb", found like any configuration
  std::vector<double> ratio;       // each file's value relative to the first one's; kept constant
  std::string key;                 // "gemm.efficiency", "tiers.nvlink.efficiency"
  double low = 0, high = 0;        // bounds
  double prior = 0;                // the prior value (data sheet, microbenchmark)
  double spread = 0;               // relative width of the prior; 0: no prior
  std::string from;                // source of the prior
  std::string is;                  // what it stands for
  double value = 0;
  int runs = 0;  // runs whose prediction depends on it
};

// The file of constants: `given`, or the first fit.yaml in the directories of `path`. Throws
// ConfigError when there is none.
std::string constants_file(const std::string& given, const costmodel::ConfigPath& path);

// Reads `constants: [{name, is, in: [...], key, low, high, prior, spread, from}]`. `value` becomes
// the current value in the first file.
std::vector<FittedConstant> read_constants(const std::string& file,
                                           const costmodel::ConfigPath& path);

// The places of the constants in the loaded configurations of a path.
class ConstantPlaces {
 public:
  ConstantPlaces(const std::vector<FittedConstant>& constants, const costmodel::ConfigPath& path);

  // Files with different values of a constant keep their ratio.
  void set(std::size_t constant, double value);

 private:
  struct Place {
    costmodel::Value* at;
    double ratio;
  };
  std::vector<std::vector<Place>> places_;  // by constant
};

}  // namespace planner
