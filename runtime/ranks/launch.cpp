#include "runtime/ranks/launch.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

namespace runtime {

namespace {

std::optional<long> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  long value = 0;
  const auto [end, fault] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (fault != std::errc() || end != view.data() + view.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<Launched> named_by(const char* rank, const char* world) {
  const auto r = number_in(rank), w = number_in(world);
  if (!r || !w || *r >= *w) return std::nullopt;
  return Launched{static_cast<int>(*r), static_cast<int>(*w)};
}

// When srun or mpirun started torchrun, their variables are set too, but describe torchrun.
bool torchruns_word_holds() {
  return std::getenv("TORCHELASTIC_RUN_ID") != nullptr && launched_by_torchrun();
}

// The first variable with a number: torchrun's own first or last.
std::optional<long> first_told(std::vector<const char*> variables, const char* torchruns) {
  variables.insert(torchruns_word_holds() ? variables.begin() : variables.end(), torchruns);
  for (const char* const variable : variables)
    if (const auto number = number_in(variable)) return number;
  return std::nullopt;
}

std::optional<long> number_of_mpiruns_or_torchruns() {
  return first_told({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, "LOCAL_WORLD_SIZE");
}

// Parses "4(x2),3", the tasks per node of a step; empty when the text has another form.
std::vector<int> tasks_per_node() {
  const char* const text = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  std::istringstream list(text == nullptr ? "" : text);
  std::vector<int> tasks;
  for (std::string item; std::getline(list, item, ',');) {
    std::istringstream parts(item);
    int count = 0, times = 1;
    char bracket = 0, x = 0;
    if (!(parts >> count)) return {};
    if (parts >> bracket >> x && !(parts >> times)) return {};
    if (count < 1 || times < 1) return {};
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), count);
  }
  return tasks;
}

// The node of each rank, by srun's distribution.
std::vector<std::size_t> dealt_out(std::vector<int> tasks) {
  const char* const way = std::getenv("SLURM_DISTRIBUTION");
  const bool in_turn = way != nullptr && std::string_view(way).starts_with("cyclic");
  std::vector<std::size_t> nodes;
  for (bool left = true; left;) {
    left = false;
    for (std::size_t node = 0; node < tasks.size(); ++node) {
      for (int more = in_turn ? 1 : tasks[node]; more > 0 && tasks[node] > 0; --more, --tasks[node])
        nodes.push_back(node);
      left = left || tasks[node] > 0;
    }
  }
  return nodes;
}

// The ranks on this node under srun; empty when srun's variables are missing, or mpirun's or
// torchrun's count.
std::vector<int> ranks_of_sruns_node() {
  const auto node = number_in("SLURM_NODEID"), own = number_in("SLURM_PROCID");
  if (!node || !own || number_of_mpiruns_or_torchruns()) return {};
  std::vector<int> ranks;
  const auto nodes = dealt_out(tasks_per_node());
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank] == static_cast<std::size_t>(*node)) ranks.push_back(static_cast<int>(rank));
  return std::ranges::find(ranks, *own) == ranks.end() ? std::vector<int>{} : ranks;
}

}  // namespace

std::optional<Launched> launched() {
  if (torchruns_word_holds()) return std::nullopt;
  if (const auto by = named_by("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) return by;
  if (const auto by = named_by("PMI_RANK", "PMI_SIZE")) return by;
  // Slurm's batch scripts and interactive shells have the highest step numbers; they are not steps
  // of srun.
  constexpr long first_special_step = 0xfffffff0;
  const auto step = number_in("SLURM_STEP_ID");
  if (!step || *step >= first_special_step) return std::nullopt;
  return named_by("SLURM_PROCID", "SLURM_NTASKS");
}

std::optional<Launched> launched_by_torchrun() {
  if (std::getenv("MASTER_ADDR") == nullptr) return std::nullopt;
  return named_by("RANK", "WORLD_SIZE");
}

std::optional<Launched> one_of_several() {
  if (const auto by = launched()) return by;
  const auto by = launched_by_torchrun();
  return by && by->world > 1 ? by : std::nullopt;
}

int local_rank() {
  const auto rank =
      first_told({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, "LOCAL_RANK");
  return static_cast<int>(rank.value_or(0));
}

std::vector<int> ranks_here() {
  if (auto ranks = ranks_of_sruns_node(); !ranks.empty()) return ranks;
  const Launched who = one_of_several().value_or(Launched{});
  const int first = std::max(0, who.rank - local_rank());
  const long count = std::max(1L, number_of_mpiruns_or_torchruns().value_or(1));
  std::vector<int> ranks(static_cast<std::size_t>(std::min<long>(count, who.world - first)));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

int cores_per_rank(int ranks) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const int here = one_of_several() ? static_cast<int>(ranks_here().size()) : ranks;
  return std::max(1, cores / std::max(1, here));
}

void let_others_speak() {
  const auto who = one_of_several();
  if (who && who->rank > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(800 + 200 * std::min(who->rank, 10)));
}

}  // namespace runtime
