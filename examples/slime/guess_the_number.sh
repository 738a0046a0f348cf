#!/usr/bin/env bash
# Start it in a checkout of slime.
set -e
here=$(cd "$(dirname "$0")" && pwd) name=${1:?name in scripts/models} model=${2:?model} checkpoint=${3:?checkpoint}
source "scripts/models/$name.sh"  # MODEL_ARGS
mkdir -p runs
python "$here/tasks.py" runs/slime.jsonl --env "${ENV:-game:GuessTheNumber-v0-easy}" --wrappers "${WRAPPERS:-}"
exec python train.py "${MODEL_ARGS[@]}" --hf-checkpoint "$model" --ref-load "$checkpoint" --load runs/slime --save runs/slime \
  --save-interval 50 --actor-num-nodes 1 --actor-num-gpus-per-node "${GPUS:-1}" --colocate --num-rollout 200 \
  --prompt-data runs/slime.jsonl --input-key prompt --metadata-key metadata --rollout-shuffle \
  --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 256 --rollout-max-response-len 512 \
  --custom-generate-function-path gem.integrations.slime.generate --gamma 0.9 \
  --custom-reward-post-process-path gem.integrations.slime.turn_rewards \
  --custom-advantage-function-path gem.integrations.slime.turn_advantages \
  --use-dynamic-batch-size --max-tokens-per-gpu 8192 --optimizer adam --lr 1e-6 "${@:4}"
