#!/bin/bash
# T5-11B as Megatron-LM's pretrain_t5.py is started, with the encoder on the first two pipeline ranks.
torchrun --nproc-per-node 8 --nnodes 2 pretrain_t5.py \
  --encoder-num-layers 24 --decoder-num-layers 24 --hidden-size 1024 --num-attention-heads 128 \
  --kv-channels 128 --ffn-hidden-size 65536 --encoder-seq-length 512 --decoder-seq-length 128 \
  --max-position-embeddings 512 --vocab-size 32128 --vocab-extra-ids 100 --bf16 \
  --tensor-model-parallel-size 4 --sequence-parallel --pipeline-model-parallel-size 4 \
  --pipeline-model-parallel-split-rank 2 --micro-batch-size 4 --global-batch-size 128
