#include "runtime/launch.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

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

// srun's and mpirun's variables are there too where they started torchrun, of which they speak.
bool torchruns_word_holds() {
  return std::getenv("TORCHELASTIC_RUN_ID") != nullptr && launched_by_torchrun();
}

// The first that says a number: torchrun's own before or behind the others.
std::optional<long> first_told(std::vector<const char*> variables, const char* torchruns) {
  variables.insert(torchruns_word_holds() ? variables.begin() : variables.end(), torchruns);
  for (const char* const variable : variables)
    if (const auto number = number_in(variable)) return number;
  return std::nullopt;
}

}  // namespace

std::optional<Launched> launched() {
  if (torchruns_word_holds()) return std::nullopt;
  if (const auto by = named_by("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) return by;
  if (const auto by = named_by("PMI_RANK", "PMI_SIZE")) return by;
  // A batch script and an interactive shell of Slurm have the highest step numbers, and are none.
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

int local_world() {
  const auto ranks =
      first_told({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, "LOCAL_WORLD_SIZE");
  return static_cast<int>(std::max(1L, ranks.value_or(1)));
}

void let_others_speak() {
  const auto who = one_of_several();
  if (who && who->rank > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(800 + 200 * std::min(who->rank, 10)));
}

}  // namespace runtime
