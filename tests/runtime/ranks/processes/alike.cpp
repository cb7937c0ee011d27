// alike ALONE.json RUN.json [after TRACE.json]: whether a run over several processes learned what
// one device alone did, to 1e-5, sent and held the bytes that were predicted, and, where a trace is
// given, whether no rank's gradients were being summed before its last backward ended. Says what is
// not so; 1 then.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

using nlohmann::json;

namespace {

int faults = 0;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::cout << "FAULT: " << what << "\n";
  ++faults;
}

json read(const char* name) {
  std::ifstream file(name);
  return json::parse(file);
}

void compare_losses(const json& alone, const json& run) {
  expect(!alone.empty() && alone.size() == run.size(), "there are not as many losses");
  for (std::size_t i = 0; i < std::min(alone.size(), run.size()); ++i) {
    const double one = alone[i], other = run[i];
    expect(std::abs(other - one) <= 1e-5 * std::abs(one),
           "the loss of iteration " + std::to_string(i) + " is " + run[i].dump() + ", and " +
               alone[i].dump() + " on one device");
  }
}

void compare_bytes(const json& errors) {
  int compared = 0;
  for (const auto& [name, error] : errors.items()) {
    if (!name.ends_with("_bytes") || name.ends_with("buffers_bytes")) continue;
    ++compared;
    expect(error.is_number() && error.get<double>() == 0, name + " is not as predicted");
  }
  expect(compared >= 5, "too few bytes were counted");
}

bool reduced_beside(const json& trace) {
  std::map<int, double> first, last_backward;  // by pipeline rank
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts");
    const int rank = event.at("pid");
    if (event.at("name") == "gradient reduction")
      first[rank] = std::min(first.try_emplace(rank, start).first->second, start);
    const std::string name = event.at("name");
    if (name.starts_with("backward"))
      last_backward[rank] = std::max(last_backward[rank], start + event.at("dur").get<double>());
  }
  expect(!first.empty() && first.size() == last_backward.size(),
         "the trace has no reduction or no backward of some rank");
  return std::ranges::any_of(
      first, [&](const auto& begun) { return begun.second < last_backward[begun.first]; });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 2;
  const json alone = read(argv[1]), run = read(argv[2]);
  compare_losses(alone.at("loss"), run.at("loss"));
  compare_bytes(run.at("error_pct"));
  if (argc == 5) expect(!reduced_beside(read(argv[4])), "gradients were not reduced after");
  return faults > 0 ? 1 : 0;
}
