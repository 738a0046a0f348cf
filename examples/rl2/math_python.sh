#!/usr/bin/env bash
set -e
here=$(dirname "$0") model=${1:-Qwen/Qwen3-0.6B} gpus=${GPUS:-1}
mkdir -p runs/rl2
python "$here/tasks.py" runs/rl2/train.jsonl --env math:Arithmetic --wrappers python_tool,concat_chat
python "$here/tasks.py" runs/rl2/test.jsonl --env math:Arithmetic --wrappers python_tool,concat_chat --tasks 128 --seed 1
exec torchrun --nproc_per_node="$gpus" -m RL2.trainer.ppo actor.model_name="$model" actor.max_length_per_device=8192 \
  rollout.env_path="$here/env.py" rollout.train.path=runs/rl2/train.jsonl rollout.test.path=runs/rl2/test.jsonl \
  rollout.train.prompts_per_rollout=32 rollout.train.responses_per_prompt=8 \
  rollout.train.sampling_params.max_new_tokens=512 adv.norm_var=true trainer.use_wandb=false \
  trainer.experiment_name=gem-rl2 "${@:2}"
