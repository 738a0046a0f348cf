"""Images as inputs of vision-language models in the form of Qwen2-VL: placeholder tokens, and patches of pixels.

In a context, an image is a start token, one placeholder per patch that the model sees, and an end token. Contexts stay
lists of ids; the pixels are computed from the images of the observations whenever the model is called.

Axes: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gem.conversation.history import shown_observations
from gem.conversation.observations import images_of
from gem.policies import Request

_NEVER = -1e4  # logit of placeholders in replies; an infinite one would make the entropy NaN


class ImageInputs:
    """Converts images to the inputs of a model. The model never samples a placeholder.

    Args:
        model: a vision-language model; see has_vision().
        tokenizer: knows the tokens of the model's configuration.
        processor: image processor of transformers that gives pixel_values and image_grid_thw.
    """

    def __init__(self, model: Any, tokenizer: Any, processor: Any) -> None:
        self.processor = processor
        config = model.config
        self.placeholder: int = config.image_token_id
        ids = (config.vision_start_token_id, config.image_token_id, config.vision_end_token_id)
        self._start, self._image, self._end = (str(tokenizer.convert_ids_to_tokens(id)) for id in ids)
        never = [id for id in (*ids, getattr(config, "video_token_id", None)) if id is not None]

        def forbid(module: Any, args: Any, logits: Tensor) -> Tensor:
            return logits.index_fill(-1, torch.tensor(never, device=logits.device), _NEVER)

        model.get_output_embeddings().register_forward_hook(forbid)

    def text(self, image: Any) -> str:
        """Return the text of an image in a prompt."""
        patches: int = self.processor.get_number_of_image_patches(image.height, image.width, {})
        return f"{self._start}{self._image * (patches // self.processor.merge_size**2)}{self._end}"

    def tensors(self, model: Any, ids_BT: Tensor, attend_BT: Tensor, images: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Return the arguments of the model's forward() besides ids and attention mask; none without images.

        Args:
            images: those of each sequence, in the order of their placeholders.
        """
        shown = [image for row in images for image in row]
        if not shown:
            return {}
        pixels = [self._pixels(image) for image in shown]
        found = {name: torch.cat([p[name] for p in pixels]).to(ids_BT.device) for name in pixels[0]}
        kinds_BT = (ids_BT == self.placeholder).int()
        core = next(module for module in model.modules() if hasattr(module, "get_rope_index"))
        grid = found["image_grid_thw"]
        position_3BT, _ = core.get_rope_index(ids_BT, kinds_BT, image_grid_thw=grid, attention_mask=attend_BT)
        return {**found, "mm_token_type_ids": kinds_BT, "position_ids": position_3BT}

    def _pixels(self, image: Any) -> dict[str, Tensor]:
        return dict(self.processor(images=[image.convert("RGB")], return_tensors="pt"))


def context_images(request: Request) -> list[Any]:
    """Return the images in the context of a request."""
    seen = shown_observations(request.turns, request.observation, request.dropped)
    return [image for observation in seen for image in images_of(observation)]


def has_vision(config: Any) -> bool:
    """Return whether a configuration of transformers is that of a vision-language model in the form of Qwen2-VL."""
    return all(hasattr(config, f"{name}_token_id") for name in ("image", "vision_start", "vision_end"))
