// What launchers say of the number of processes.
#include "planner/frameworks/launcher_words.hpp"

#include <doctest/doctest.h>

#include <string>

namespace launcher_words_test {

namespace {

planner::Launched launched(const std::string& text) {
  const auto script = planner::read_shell(text, "x.sh");
  return planner::launched_by(
      script, script.commands.empty() ? planner::ShellWords{} : script.commands.back());
}

}  // namespace

TEST_CASE("torchrun, Slurm's lines, and WORLD_SIZE") {
  CHECK(launched("torchrun --nproc-per-node 8 --nnodes=4 x.py\n").world_size == 32);
  CHECK(launched("torchrun --nproc_per_node 8 x.py\n").world_size == 8);
  CHECK(launched("#SBATCH -N4\n#SBATCH --gres=gpu:8\nsrun x.py\n").world_size == 32);
  CHECK(launched("#SBATCH -N4\n#SBATCH --gres=gpu:8\nsrun x.py\n").per_node == 8);
  CHECK(launched("WORLD_SIZE=12\npython x.py\n").world_size == 12);
  CHECK(launched("WORLD_SIZE=12\npython x.py\n").by_variable);
  CHECK_FALSE(launched("torchrun --nproc_per_node 8 x.py\n").by_variable);
  CHECK(launched("SLURM_NNODES=4\nSLURM_GPUS_PER_NODE=h100:8\n").world_size == 32);
  CHECK(launched("SLURM_JOB_NUM_NODES=2\nSLURM_GPUS_ON_NODE=4\nsrun x.py\n").per_node == 4);
  CHECK(launched("python x.py\n").world_size == 0);
}

}  // namespace launcher_words_test
