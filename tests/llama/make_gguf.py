"""A language model of a few megabytes that knows one answer, in the format of llama.cpp.

The next token depends on nothing but the last one: embeddings are one-hot, the only block
adds nothing, and the output matrix says what follows what. So what it says is known, but it
is sampled, constrained by grammars, counted and served like the words of any other model.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = "Paris."
"""What it says to every question: no letter twice, so that each decides the next."""

_UNKNOWN, _BEGIN, _TURN, _END, _CALL, _CALLED = (
    "<unk>",
    "<s>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
)
_SPACE, _LINE = "\u2581", "<0x0A>"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_CHARACTERS = [_SPACE, *map(chr, range(33, 127))]
_TOKENS = [_UNKNOWN, _BEGIN, _TURN, _END, _CALL, _CALLED, *_BYTES, *_CHARACTERS]
_IDS = {token: id for id, token in enumerate(_TOKENS)}

_TEMPLATE = """\
{%- if tools %}<|im_start|>system
Functions that may be called:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
To call one, answer
<tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
_HABITS = {'"': 4.0, "}": 3.0, "]": 3.0, "t": 2.0, ",": 1.0, ":": 1.0, _SPACE: -3.0}
"""Where a grammar leaves a choice, texts are short and booleans are true."""
_WIDTH, _HEADS, _INNER = 384, 4, 64
_GAIN = 12 / _WIDTH**0.5
"""Normalising makes the square root of the width of the 1 in an embedding."""


def write_model(path: Path, *, calls: bool) -> None:
    """Write the model that says `ANSWER`, or one that begins with a call of a tool."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(_TOKENS))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer)
    embedding = np.zeros((len(_TOKENS), _WIDTH), np.float32)
    embedding[np.arange(len(_TOKENS)), np.arange(len(_TOKENS))] = 1
    ones = np.ones(_WIDTH, np.float32)
    tensors = {
        "token_embd": embedding,
        "output_norm": ones,
        "output": _followers(calls=calls),
        "blk.0.attn_norm": ones,
        "blk.0.ffn_norm": ones,
        "blk.0.ffn_gate": np.zeros((_INNER, _WIDTH), np.float32),
        "blk.0.ffn_up": np.zeros((_INNER, _WIDTH), np.float32),
        "blk.0.ffn_down": np.zeros((_WIDTH, _INNER), np.float32),
    }
    for name in ("q", "k", "v", "output"):
        tensors[f"blk.0.attn_{name}"] = np.zeros((_WIDTH, _WIDTH), np.float32)
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    """One token for each printable character; bytes stand for all others."""
    kinds = dict.fromkeys(_TOKENS, gguf.TokenType.NORMAL)
    kinds |= dict.fromkeys(_BYTES, gguf.TokenType.BYTE)
    kinds |= dict.fromkeys((_BEGIN, _TURN, _END), gguf.TokenType.CONTROL)
    kinds |= dict.fromkeys((_CALL, _CALLED), gguf.TokenType.USER_DEFINED)
    kinds[_UNKNOWN] = gguf.TokenType.UNKNOWN
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(_TOKENS)
    writer.add_token_scores([0.0] * len(_TOKENS))
    writer.add_token_types([kinds[token] for token in _TOKENS])
    writer.add_bos_token_id(_IDS[_BEGIN])
    writer.add_eos_token_id(_IDS[_END])
    writer.add_unk_token_id(_IDS[_UNKNOWN])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    # The server feeds its prompt to the grammar, which knows of no space at the start.
    writer.add_add_space_prefix(False)
    writer.add_chat_template(_TEMPLATE)


def _followers(*, calls: bool) -> np.ndarray:
    """Which token follows which: one row for each that may come, one column for the last one."""
    output = np.zeros((len(_TOKENS), _WIDTH), np.float32)

    def follow(last: str, token: str, weight: float = 1) -> None:
        output[_IDS[token], _IDS[last]] += weight * _GAIN

    # The assistant's turn begins behind a line end, and so does what a tool is called with.
    follow(_LINE, _CALL if calls else ANSWER[0])
    for last, token in pairwise(ANSWER):
        follow(last, token)
    follow(ANSWER[-1], _END, 2)
    follow(_CALL, _LINE, 2)
    for last in (_LINE, "}"):
        follow(last, _CALLED, 0.5)
    follow(_CALLED, _END, 2)
    never = [_UNKNOWN, _BEGIN, _TURN, *_BYTES]
    output[[_IDS[token] for token in never]] -= _GAIN
    for token, weight in _HABITS.items():
        output[_IDS[token]] += weight * _GAIN / 12
    output[_IDS[_END]] += 3 * _GAIN / 12
    return output
