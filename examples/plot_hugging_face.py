"""
A language model of Hugging Face
================================

Any causal language model of ``transformers`` can be measured on a task of decoders, at lengths far beyond its
training. Here a small GPT-2 learns which of two bits is more frequent, on inputs of up to 20 bits; positions
after those are in its table, but were never trained.
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import lengthwise as lw

task = lw.task("binary-majority")
torch.manual_seed(0)
sizes = {"vocab_size": task.vocabulary, "n_positions": task.stream_length(100)}
ends = {"bos_token_id": 0, "eos_token_id": task.vocabulary - 1}
model = GPT2LMHeadModel(GPT2Config(**sizes, **ends, n_embd=32, n_layer=1, n_head=1))
adam, random = torch.optim.AdamW(model.parameters(), 3e-3), torch.Generator().manual_seed(0)

# %%
# A batch says after which tokens something is predicted, and what; the loss is the task's.

for _ in range(500):
    batch = task.sample(64, 1, 20, random)
    logits = model(batch.tokens).logits[torch.arange(64).unsqueeze(1), batch.places]
    adam.zero_grad()
    task.loss(logits, batch).mean().backward()
    adam.step()

# %%
# The accuracy is the share of the inputs that are answered without a mistake.

curve = lw.evaluate(model, task, lengths=[(1, 20), (21, 30), (31, 50), (51, 100)])
columns = ["shortest", "test_length", "accuracy", "accuracy_error", "loss"]
print(curve.frame()[columns].to_string(index=False, float_format="{:.3f}".format))
