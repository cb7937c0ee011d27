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

TEST_CASE("variables of programs that launch themselves") {
  const auto of = [](const std::string& text) {
    return planner::launched_by_variables(planner::read_shell(text, "x.sh"), 0).world_size;
  };
  CHECK(of("NPROC_PER_NODE=4 run\n") == 4);
  CHECK(of("export NNODES=2\nNPROC_PER_NODE=8 run\n") == 16);
  CHECK(of("CUDA_VISIBLE_DEVICES=0,1,3 run\n") == 3);
  CHECK(of("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=1 run\n") == 1);
  CHECK(of("run\n") == 0);
  // A later command's own are not those of the first.
  CHECK(of("NPROC_PER_NODE=2 \\\nrun\nCUDA_VISIBLE_DEVICES=0 NPROC_PER_NODE=1 save\n") == 2);
}

}  // namespace launcher_words_test
