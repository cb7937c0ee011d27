// Runs of Megatron-LM as people keep them.
#pragma once

#include <string>

namespace megatron_runs {

// In the manner of its examples: arrays, variables, a string of words.
inline const std::string script =
    "#!/bin/bash\n"
    "GPUS_PER_NODE=8\n"
    "NUM_NODES=${SLURM_NNODES:-16}\n"
    "DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES)\n"
    "MODEL=(\n  --num-layers 96 # l\n  --hidden-size 12288\n  --num-attention-heads 96\n"
    "  --seq-length 2048\n  --max-position-embeddings 2048\n)\n"
    "PARALLEL=\"--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16\n"
    "  --sequence-parallel\"\n"
    "torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${MODEL[@]} $PARALLEL \\\n"
    "  --micro-batch-size 1 --global-batch-size 1536 --bf16 --lr 1e-4 \\\n"
    "  --tokenizer-type GPT2BPETokenizer --data-path $DATA --window-size 128 --foo 3 \"$@\"\n";

// The table of a log, a rank before each line.
inline const std::string log =
    "0: using world size: 32\n"
    "0: ------------------------ arguments ------------------------\n"
    "0:   add_bias_linear ................................. False\n"
    "0:   bf16 ............................................ True\n"
    "0:   bias_gelu_fusion ................................ False\n"
    "0:   consumed_train_samples .......................... 0\n"
    "0:   ffn_hidden_size ................................. 14336\n"
    "0:   fp8 ............................................. None\n"
    "0:   global_batch_size ............................... 128\n"
    "0:   group_query_attention ........................... True\n"
    "0:   hidden_dropout .................................. 0.0\n"
    "0:   attention_dropout ............................... 0.0\n"
    "0:   hidden_size ..................................... 4096\n"
    "0:   kv_channels ..................................... 128\n"
    "0:   kv_lora_rank .................................... 32\n"
    "0:   max_position_embeddings ......................... 8192\n"
    "0:   micro_batch_size ................................ 1\n"
    "0:   normalization ................................... RMSNorm\n"
    "0:   num_attention_heads ............................. 32\n"
    "0:   num_layers ...................................... 32\n"
    "0:   num_query_groups ................................ 8\n"
    "0:   overlap_grad_reduce ............................. True\n"
    "0:   overlap_p2p_comm ................................ True\n"
    "0:   padded_vocab_size ............................... 128256\n"
    "0:   pipeline_model_parallel_size .................... 2\n"
    "0:   position_embedding_type ......................... rope\n"
    "0:   rotary_base ..................................... 500000\n"
    "0:   seq_length ...................................... 8192\n"
    "0:   sequence_parallel ............................... True\n"
    "0:   swiglu .......................................... True\n"
    "0:   tensor_model_parallel_size ...................... 2\n"
    "0:   untie_embeddings_and_output_weights ............. True\n"
    "0:   use_distributed_optimizer ....................... True\n"
    "0:   window_size ..................................... None\n"
    "0:   world_size ...................................... 32\n"
    "0: -------------------- end of arguments ---------------------\n";

}  // namespace megatron_runs
