#!/usr/bin/env python3
"""Keeps the lower part of knowledge/models/*.toml: `harvest.py LITGPT_WHEEL`, then look at the diff.

What stands above the marker of a file is kept by hand and wins. Below it this script writes what litgpt's configuration
table (`pip download --no-deps litgpt`) says of models whose architecture plans know, more models whose shapes public sources
name (MORE), and quantised siblings (SIBLINGS). Each entry is checked: the parameters that its shapes add up to must be those
that its name or its publisher says.
"""
import json, re, sys, tomllib, types, zipfile
from pathlib import Path

HERE = Path(__file__).parent
MARKER = "# Below: written by harvest.py."
HEAD = ("# Facts of config.json that decide memory: shapes, kinds of layers, quantisation. Token ids and settings of training\n"
        "# and generation are left out.\n")

def table(wheel):
    text = zipfile.ZipFile(wheel).read("litgpt/config.py").decode()
    for name, what in (("yaml", {}), ("typing_extensions", {"Self": object})):
        if name not in sys.modules:
            sys.modules[name] = types.SimpleNamespace(**what)
    module = types.ModuleType("litgpt_config")
    sys.modules["litgpt_config"] = module
    exec(compile(text, "litgpt/config.py", "exec"), module.__dict__)
    return module.configs

TIED = re.compile(r"gemma|Llama-3\.2|Qwen2\.5(-Coder)?-(0\.5|1\.5|3)B|Qwen2\.5-Math-1\.5B|Qwen3-(0\.6|1\.7|4)B|SmolLM2|Phi-4-mini|OLMo-1B|falcon-(7|40)b", re.I)
# Positions that config.json says and litgpt's table does not, which keeps the length of training or of the tokenizer.
POSITIONS = [
    ("gemma-3-1b", 32768),
    (r"Qwen2\.5-[\d.]+B-Instruct-1M$", 1010000), (r"Qwen2\.5-(Coder-)?[\d.]+B-Instruct$", 32768), (r"Qwen2\.5-(Coder-)?(0\.5|1\.5|3)B$", 32768),
    (r"Qwen2\.5-Math", 4096), (r"QwQ-32B$", 40960), (r"QwQ-32B-Preview$", 32768), (r"Mistral-7B-(Instruct-)?v0\.[123]$", 32768),
    (r"mathstral", 32768), (r"-2507$", 262144), (r"Mistral-Large-Instruct-2407", 131072), (r"Qwen3-(0\.6|1\.7|4|8|14|30).*Base$", 32768),
]

def litgpt(c, known):
    """config.json of an entry of litgpt's table, or None where plans do not know its architecture."""
    org, name = c["hf_config"]["org"], c["hf_config"]["name"]
    get = c.get
    heads, layers, hidden = get("n_head", 32), get("n_layer", 16), get("n_embd", 4096)
    vocab = get("padded_vocab_size")
    if vocab is None:
        multiple = get("padding_multiple", 512)
        vocab = -(-get("vocab_size", 50254) // multiple) * multiple
        # Gemma and Llama pad nothing: their vocabularies divide already.
    mlp = get("mlp_class_name", "GptNeoxMLP")
    positions = get("block_size", 4096)
    for pattern, n in POSITIONS:
        if re.search(pattern, name):
            positions = n
    config = {
        "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": get("intermediate_size", 4 * hidden),
        "num_attention_heads": heads, "num_key_value_heads": get("n_query_groups") or heads,
        "head_dim": get("head_size") or hidden // heads, "vocab_size": vocab,
        "tie_word_embeddings": bool(TIED.search(name)), "torch_dtype": "bfloat16", "max_position_embeddings": positions,
    }
    window = get("sliding_window_size")
    if get("norm_class_name") != "RMSNorm" or get("parallel_residual", True):
        arch = ("FalconForCausalLM" if "falcon-" in name else "GPTNeoXForCausalLM" if re.search("pythia|alpha", name)
                else "StableLmForCausalLM" if "stab" in name else "PhiForCausalLM" if name.startswith("phi-") else "OlmoForCausalLM")
        config["rotary_pct" if arch == "GPTNeoXForCausalLM" else "partial_rotary_factor"] = get("rotary_percentage", 0.25)
        if arch == "FalconForCausalLM":
            groups = config.pop("num_key_value_heads")
            config |= {"num_kv_heads": groups, "multi_query": True, "new_decoder_architecture": groups > 1,
                       "parallel_attn": True, "bias": False, "alibi": False}
    elif get("n_expert"):
        arch = "MixtralForCausalLM" if "Mixtral" in name else "Qwen3MoeForCausalLM"
        if arch == "MixtralForCausalLM":
            config |= {"num_local_experts": get("n_expert"), "num_experts_per_tok": get("n_expert_per_token")}
        else:
            config |= {"num_experts": get("n_expert"), "num_experts_per_tok": get("n_expert_per_token"),
                       "moe_intermediate_size": get("moe_intermediate_size"), "decoder_sparse_step": 1, "mlp_only_layers": []}
    elif mlp == "GemmaMLP":
        arch = "Gemma3ForCausalLM" if "gemma-3" in name else "Gemma2ForCausalLM" if "gemma-2-" in name else "GemmaForCausalLM"
        if window:
            config["sliding_window"] = window
            config["layer_types"] = ["sliding_attention" if i else "full_attention" for i in get("sliding_window_indices")][:layers]
        if arch == "Gemma3ForCausalLM" and not "-1b" in name:
            # The embedding of the models with an encoder has 64 entries more for images.
            config["vocab_size"] = 262208
            config = {
                "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "mm_tokens_per_image": 256,
                "text_config": config | {"model_type": "gemma3_text"}, "torch_dtype": "bfloat16",
                "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
                                  "image_size": 896, "patch_size": 14, "model_type": "siglip_vision_model"},
            }
            return f"{org}/{name}", config
    elif "OLMo-2" in name:
        arch = "Olmo2ForCausalLM"
    elif name.startswith(("Qwen2", "QwQ")):
        arch = "Qwen2ForCausalLM"
    elif name.startswith("Qwen3"):
        arch = "Qwen3ForCausalLM"
    elif name.lower().startswith("phi-"):
        arch = "Phi3ForCausalLM"
        config["partial_rotary_factor"] = get("rotary_percentage", 1.0)
        if positions > 100_000:
            config |= {"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 4096}
    elif org == "mistralai" or "Mistral-7B" in name:
        arch = "MistralForCausalLM"
        if window:
            config["sliding_window"] = window
    else:
        arch = "LlamaForCausalLM"
        rope = get("rope_adjustments")
        if rope and "low_freq_factor" in rope:
            config["rope_scaling"] = {"rope_type": "llama3", "factor": rope["factor"], "low_freq_factor": rope["low_freq_factor"],
                                      "high_freq_factor": rope["high_freq_factor"],
                                      "original_max_position_embeddings": rope["original_max_seq_len"]}
    if arch not in known:
        return None
    return f"{org}/{name}", {"architectures": [arch], **config}

def parameters(config):
    """Billions, from shapes: embeddings, attention, feed-forward; norms and biases are less than the tolerance."""
    t = config.get("text_config", config)
    h, d, v = t["hidden_size"], t.get("head_dim") or t["hidden_size"] // t["num_attention_heads"], t["vocab_size"]
    attention = 2 * h * d * t["num_attention_heads"] + 2 * h * d * (t.get("num_key_value_heads") or t["num_kv_heads"])
    experts = t.get("num_local_experts") or t.get("num_experts")
    width = t.get("moe_intermediate_size") or t["intermediate_size"]
    matrices = 2 if config["architectures"][0] in ("GPTNeoXForCausalLM", "PhiForCausalLM", "FalconForCausalLM", "Starcoder2ForCausalLM") else 3
    mlp = matrices * h * width * (experts or 1)
    total = t["num_hidden_layers"] * (attention + mlp) + v * h * (1 if t.get("tie_word_embeddings", True) else 2)
    e = config.get("vision_config")
    if e and "num_hidden_layers" in e:
        total += e["num_hidden_layers"] * (4 * e["hidden_size"] ** 2 + 2 * e["hidden_size"] * e["intermediate_size"])
    elif e and "depth" in e:
        n = e.get("hidden_size", 1280)
        total += e["depth"] * (4 * n * n + 3 * n * e["intermediate_size"])
    return total / 1e9

# Names round: what the publisher counts, in billions.
PUBLISHED = {"gemma-2b": 2.51, "gemma-7b": 8.54, "gemma-2-2b": 2.61, "gemma-2-9b": 9.24, "gemma-3-1b": 1.0, "gemma-3-4b": 4.3,
             "gemma-3-12b": 12.2, "gemma-3-27b": 27.4, "codegemma-7b": 8.54, "Mixtral-8x7B": 46.7, "Mixtral-8x22B": 140.6,
             "Falcon3-1B": 1.67, "Falcon3-3B": 3.23, "Falcon3-7B": 7.46, "Qwen2.5-1.5B": 1.54, "Qwen2.5-3B": 3.09, "Qwen2.5-7B": 7.62,
             "Qwen2.5-Coder-1.5B": 1.54, "Qwen2.5-Coder-3B": 3.09, "Qwen2.5-Coder-7B": 7.62, "Qwen2.5-Math-1.5B": 1.54,
             "Qwen2.5-Math-7B": 7.62, "Qwen2.5-VL-3B": 3.75, "Qwen2.5-VL-7B": 8.29, "Qwen2.5-VL-32B": 33.5, "Qwen2.5-VL-72B": 73.4,
             "DeepSeek-R1-Distill-Qwen-1.5B": 1.78, "Phi-4-mini": 3.84, "phi-4": 14.7, "Phi-4-reasoning": 14.7, "phi-1_5": 1.42,
             "phi-2": 2.78, "Phi-3-mini": 3.82, "Phi-3.5-mini": 3.82, "salamandra-2b": 2.25, "salamandra-7b": 7.77,
             "Mistral-Large-Instruct": 123.0, "mathstral-7B": 7.25, "Llama-3.2-1B": 1.24, "Llama-3.2-3B": 3.21, "open_llama_3b": 3.43,
             "Qwen3-1.7B": 1.72, "Platypus-30B": 32.5, "MicroLlama": 0.3, "Qwen2-1.5B": 1.54, "Qwen2-7B": 7.62, "Qwen2-VL": None,
             "Mistral-Nemo": 12.25, "Small-24B": 23.6, "Small-3": 23.6, "Devstral": 23.6, "FreeWilly2": 69.0, "Phi-3-medium": 14.0,
             "SmolLM2-1.7B": 1.71, "granite-3.1-8b": 8.1, "granite-3.2-8b": 8.1, "granite-3.3-8b": 8.1, "granite-3.1-2b": 2.5, "granite-3.2-2b": 2.5, "granite-3.3-2b": 2.5, "command-r-v01": 35.0, "command-r-plus": 104.0, "Qwen1.5-0.5B": 0.46, "Qwen1.5-7B": 7.72, "starcoder2-7b": 7.17, "starcoder2-15b": 15.96, "aya-expanse-8b": 8.03, "SmolLM3-3B": 3.08, "QwQ-32B": 32.8}

def check(name, config):
    said = None
    hits = [k for k in PUBLISHED if k in name]
    if hits:
        said = PUBLISHED[max(hits, key=len)]
        if said is None:
            return
    elif m := re.search(r"(?<![\d.])(\d+(?:\.\d+)?)[bB](?![a-z])", name):
        said = float(m[1])
    elif m := re.search(r"(\d+)[mM]\b", name):
        said = float(m[1]) / 1000
    assert said, f"{name}: no published count"
    have = parameters(config)
    assert abs(have - said) <= 0.09 * said, f"{name}: shapes add up to {have:.2f} billion parameters, {said} are published"

def dense(arch, layers, hidden, inter, heads, kv, vocab, positions, tied=False, head_dim=None, **more):
    return {"architectures": [arch], "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": inter,
            "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": head_dim or hidden // heads, "vocab_size": vocab,
            "tie_word_embeddings": tied, "torch_dtype": "bfloat16", "max_position_embeddings": positions, **more}

LLAMA31 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
L8 = dense("LlamaForCausalLM", 32, 4096, 14336, 32, 8, 128256, 131072, rope_scaling=LLAMA31)
L70 = dense("LlamaForCausalLM", 80, 8192, 28672, 64, 8, 128256, 131072, rope_scaling=LLAMA31)
MISTRAL7 = dense("MistralForCausalLM", 32, 4096, 14336, 32, 8, 32000, 32768)
def q2(size, positions, **kw):
    shape = {"0.5B": (24, 896, 4864, 14, 2, 151936, True), "1.5B": (28, 1536, 8960, 12, 2, 151936, True),
             "3B": (36, 2048, 11008, 16, 2, 151936, True), "7B": (28, 3584, 18944, 28, 4, 152064, False),
             "14B": (48, 5120, 13824, 40, 8, 152064, False), "32B": (64, 5120, 27648, 40, 8, 152064, False),
             "72B": (80, 8192, 29568, 64, 8, 152064, False)}[size]
    l, h, i, a, k, v, tied = shape
    return dense("Qwen2ForCausalLM", l, h, i, a, k, v, positions, tied=tied) | kw
def vl(size, positions=128000):
    text = q2(size, positions)
    e = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3456 if size in ("32B", "72B") else 3420, "num_heads": 16,
         "in_chans": 3, "out_hidden_size": text["hidden_size"], "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
         "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}
    return text | {"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
                   "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vision_config": e}

# (ids with the same configuration, the configuration, where it is from)
MORE = [
    (["deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"], q2("1.5B", 131072, tie_word_embeddings=False), "distilled from Qwen/Qwen2.5-Math-1.5B (README of deepseek-ai/DeepSeek-R1): its shapes, an output head of its own"),
    (["deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"], q2("7B", 131072), "distilled from Qwen/Qwen2.5-Math-7B (README of deepseek-ai/DeepSeek-R1): its shapes"),
    (["deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "agentica-org/DeepCoder-14B-Preview"], q2("14B", 131072), "distilled from Qwen/Qwen2.5-14B (README of deepseek-ai/DeepSeek-R1): its shapes"),
    (["deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"], q2("32B", 131072), "distilled from Qwen/Qwen2.5-32B (README of deepseek-ai/DeepSeek-R1): its shapes"),
    (["deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"], dense("Qwen3ForCausalLM", 36, 4096, 12288, 32, 8, 151936, 131072, head_dim=128, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}), "distilled into Qwen/Qwen3-8B-Base (its card): its shapes"),
    (["Qwen/Qwen2.5-VL-3B-Instruct"], vl("3B"), "text as Qwen/Qwen2.5-3B; encoder: Qwen2_5_VLVisionConfig of transformers' documentation; acproject/duorou docs/qwen2.5vl_graph.md"),
    (["Qwen/Qwen2.5-VL-7B-Instruct"], vl("7B"), "acproject/duorou docs/qwen2.5vl_graph.md (printed module tree); text as Qwen/Qwen2.5-7B"),
    (["Qwen/Qwen2.5-VL-32B-Instruct"], vl("32B"), "text as Qwen/Qwen2.5-32B; encoder as Qwen2.5-VL-7B with its own width of 3,456 (Qwen2.5-VL report, table 1)"),
    (["Qwen/Qwen2.5-VL-72B-Instruct"], vl("72B"), "text as Qwen/Qwen2.5-72B; encoder as Qwen2.5-VL-7B with its own width of 3,456 (Qwen2.5-VL report, table 1)"),
    (["Qwen/Qwen2-1.5B", "Qwen/Qwen2-1.5B-Instruct"], q2("1.5B", 32768), "shapes as Qwen/Qwen2.5-1.5B, which kept them (Qwen2.5 report, table 1)"),
    (["Qwen/Qwen2-0.5B-Instruct"], q2("0.5B", 32768), "shapes as Qwen/Qwen2-0.5B"),
    (["Qwen/Qwen2-7B", "Qwen/Qwen2-7B-Instruct"], q2("7B", 32768), "shapes as Qwen/Qwen2.5-7B, which kept them (Qwen2 report, table 1)"),
    (["Qwen/Qwen2-72B", "Qwen/Qwen2-72B-Instruct"], q2("72B", 32768), "shapes as Qwen/Qwen2.5-72B, which kept them (Qwen2 report, table 1)"),
    (["NousResearch/Hermes-3-Llama-3.1-8B", "NousResearch/DeepHermes-3-Llama-3-8B-Preview", "allenai/Llama-3.1-Tulu-3-8B", "nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "meta-llama/Llama-Guard-3-8B", "cognitivecomputations/Dolphin3.0-Llama3.1-8B", "unsloth/Meta-Llama-3.1-8B-Instruct", "NousResearch/Meta-Llama-3.1-8B-Instruct"], L8, "tuned from meta-llama/Llama-3.1-8B (their cards): its configuration"),
    (["NousResearch/Hermes-3-Llama-3.1-70B", "allenai/Llama-3.1-Tulu-3-70B", "nvidia/Llama-3.1-Nemotron-70B-Instruct", "nvidia/Llama-3.1-Nemotron-70B-Reward", "NousResearch/Hermes-4-70B", "unsloth/Llama-3.3-70B-Instruct"], L70, "tuned from meta-llama/Llama-3.1-70B (their cards): its configuration"),
    (["NousResearch/Meta-Llama-3-8B-Instruct", "NousResearch/Hermes-2-Pro-Llama-3-8B", "cognitivecomputations/dolphin-2.9-llama3-8b", "gradientai/Llama-3-8B-Instruct-Gradient-262k"], dense("LlamaForCausalLM", 32, 4096, 14336, 32, 8, 128256, 8192), "tuned from meta-llama/Meta-Llama-3-8B (their cards): its shapes"),
    (["HuggingFaceH4/zephyr-7b-beta", "teknium/OpenHermes-2.5-Mistral-7B", "Intel/neural-chat-7b-v3-1", "Open-Orca/Mistral-7B-OpenOrca", "berkeley-nest/Starling-LM-7B-alpha", "openchat/openchat-3.5-0106"], MISTRAL7 | {"sliding_window": 4096}, "tuned from mistralai/Mistral-7B-v0.1 (their cards): its shapes"),
    (["mistralai/Mistral-Nemo-Instruct-2407", "mistralai/Mistral-Nemo-Base-2407"], dense("MistralForCausalLM", 40, 5120, 14336, 32, 8, 131072, 131072, head_dim=128), "mistral.ai/news/mistral-nemo and the model's params.json: 40 layers of 5,120, head size 128"),
    (["mistralai/Mistral-Small-24B-Instruct-2501", "mistralai/Mistral-Small-24B-Base-2501"], dense("MistralForCausalLM", 40, 5120, 32768, 32, 8, 131072, 32768, head_dim=128), "the model's params.json: 40 layers of 5,120 and 32,768"),
    (["mistralai/Devstral-Small-2505"], dense("MistralForCausalLM", 40, 5120, 32768, 32, 8, 131072, 131072, head_dim=128), "tuned from Mistral-Small-3.1-24B without its encoder (its card)"),
    (["01-ai/Yi-34B", "01-ai/Yi-34B-Chat"], dense("LlamaForCausalLM", 60, 7168, 20480, 56, 8, 64000, 4096), "Yi report, table 2; card of 01-ai/Yi-34B"),
    (["01-ai/Yi-6B", "01-ai/Yi-6B-Chat"], dense("LlamaForCausalLM", 32, 4096, 11008, 32, 4, 64000, 4096), "Yi report, table 2; card of 01-ai/Yi-6B"),
    (["01-ai/Yi-1.5-34B-Chat"], dense("LlamaForCausalLM", 60, 7168, 20480, 56, 8, 64000, 4096), "shapes as 01-ai/Yi-34B, on which it was trained further (its card)"),
    (["01-ai/Yi-1.5-9B-Chat", "01-ai/Yi-1.5-9B"], dense("LlamaForCausalLM", 48, 4096, 11008, 32, 4, 64000, 4096), "Yi report: Yi-6B with 48 layers"),
    (["deepseek-ai/deepseek-llm-7b-chat", "deepseek-ai/deepseek-llm-7b-base"], dense("LlamaForCausalLM", 30, 4096, 11008, 32, 32, 102400, 4096), "DeepSeek LLM report, table 2"),
    (["deepseek-ai/deepseek-llm-67b-chat", "deepseek-ai/deepseek-llm-67b-base"], dense("LlamaForCausalLM", 95, 8192, 22016, 64, 8, 102400, 4096), "DeepSeek LLM report, table 2"),
    (["deepseek-ai/deepseek-coder-6.7b-instruct", "deepseek-ai/deepseek-coder-6.7b-base"], dense("LlamaForCausalLM", 32, 4096, 11008, 32, 32, 32256, 16384), "DeepSeek-Coder report, table 2"),
    (["deepseek-ai/deepseek-coder-33b-instruct", "deepseek-ai/deepseek-coder-33b-base"], dense("LlamaForCausalLM", 62, 7168, 19200, 56, 8, 32256, 16384), "DeepSeek-Coder report, table 2"),
    (["deepseek-ai/deepseek-coder-1.3b-instruct", "deepseek-ai/deepseek-coder-1.3b-base"], dense("LlamaForCausalLM", 24, 2048, 5504, 16, 16, 32256, 16384), "DeepSeek-Coder report, table 2"),
    (["huggyllama/llama-7b", "lmsys/vicuna-7b-v1.3"], dense("LlamaForCausalLM", 32, 4096, 11008, 32, 32, 32000, 2048), "LLaMA report, table 2"),
    (["huggyllama/llama-13b", "lmsys/vicuna-13b-v1.3"], dense("LlamaForCausalLM", 40, 5120, 13824, 40, 40, 32000, 2048), "LLaMA report, table 2"),
    (["huggyllama/llama-65b"], dense("LlamaForCausalLM", 80, 8192, 22016, 64, 64, 32000, 2048), "LLaMA report, table 2"),
    (["lmsys/vicuna-7b-v1.5"], dense("LlamaForCausalLM", 32, 4096, 11008, 32, 32, 32000, 4096), "tuned from meta-llama/Llama-2-7b-hf (its card)"),
    (["lmsys/vicuna-13b-v1.5"], dense("LlamaForCausalLM", 40, 5120, 13824, 40, 40, 32000, 4096), "tuned from meta-llama/Llama-2-13b-hf (its card)"),
    (["upstage/SOLAR-10.7B-Instruct-v1.0", "upstage/SOLAR-10.7B-v1.0"], dense("LlamaForCausalLM", 48, 4096, 14336, 32, 8, 32000, 4096), "SOLAR report: Mistral 7B's layers, 48 of them"),
    (["microsoft/Phi-3-medium-4k-instruct"], dense("Phi3ForCausalLM", 40, 5120, 17920, 40, 10, 32064, 4096), "Phi-3 report, section 2: 40 heads, 40 layers, width 5,120"),
    (["Qwen/Qwen1.5-0.5B-Chat", "Qwen/Qwen1.5-0.5B"], dense("Qwen2ForCausalLM", 24, 1024, 2816, 16, 16, 151936, 32768, tied=True), "card of Qwen/Qwen1.5-0.5B"),
    (["Qwen/Qwen1.5-1.8B-Chat", "Qwen/Qwen1.5-1.8B"], dense("Qwen2ForCausalLM", 24, 2048, 5504, 16, 16, 151936, 32768), "card of Qwen/Qwen1.5-1.8B"),
    (["Qwen/Qwen1.5-4B-Chat", "Qwen/Qwen1.5-4B"], dense("Qwen2ForCausalLM", 40, 2560, 6912, 20, 20, 151936, 32768), "card of Qwen/Qwen1.5-4B"),
    (["Qwen/Qwen1.5-7B-Chat", "Qwen/Qwen1.5-7B"], dense("Qwen2ForCausalLM", 32, 4096, 11008, 32, 32, 151936, 32768), "card of Qwen/Qwen1.5-7B"),
    (["Qwen/Qwen1.5-14B-Chat", "Qwen/Qwen1.5-14B"], dense("Qwen2ForCausalLM", 40, 5120, 13696, 40, 40, 152064, 32768), "card of Qwen/Qwen1.5-14B"),
    (["Qwen/Qwen1.5-32B-Chat", "Qwen/Qwen1.5-32B"], dense("Qwen2ForCausalLM", 64, 5120, 27392, 40, 8, 152064, 32768), "card of Qwen/Qwen1.5-32B"),
    (["Qwen/Qwen1.5-72B-Chat", "Qwen/Qwen1.5-72B"], dense("Qwen2ForCausalLM", 80, 8192, 24576, 64, 64, 152064, 32768), "card of Qwen/Qwen1.5-72B"),
    (["Qwen/Qwen1.5-110B-Chat", "Qwen/Qwen1.5-110B"], dense("Qwen2ForCausalLM", 80, 8192, 49152, 64, 8, 152064, 32768), "card of Qwen/Qwen1.5-110B"),
    (["CohereForAI/c4ai-command-r-v01", "CohereLabs/c4ai-command-r-v01"], dense("CohereForCausalLM", 40, 8192, 22528, 64, 64, 256000, 131072, tied=True), "card of c4ai-command-r-v01: 35 billion parameters"),
    (["CohereForAI/c4ai-command-r-plus", "CohereLabs/c4ai-command-r-plus"], dense("CohereForCausalLM", 64, 12288, 33792, 96, 8, 256000, 131072, tied=True, use_qk_norm=True), "card of c4ai-command-r-plus: 104 billion parameters"),
    (["CohereForAI/aya-expanse-8b", "CohereLabs/aya-expanse-8b"], dense("CohereForCausalLM", 32, 4096, 14336, 32, 8, 256000, 8192, tied=True), "card of aya-expanse-8b"),
    (["ibm-granite/granite-3.1-8b-instruct", "ibm-granite/granite-3.1-8b-base", "ibm-granite/granite-3.2-8b-instruct", "ibm-granite/granite-3.3-8b-instruct"], dense("GraniteForCausalLM", 40, 4096, 12800, 32, 8, 49155, 131072, tied=True), "card of granite-3.1-8b-instruct, table of the architecture"),
    (["ibm-granite/granite-3.1-2b-instruct", "ibm-granite/granite-3.1-2b-base", "ibm-granite/granite-3.2-2b-instruct", "ibm-granite/granite-3.3-2b-instruct"], dense("GraniteForCausalLM", 40, 2048, 8192, 32, 8, 49155, 131072, tied=True), "card of granite-3.1-2b-instruct, table of the architecture"),
    (["bigcode/starcoder2-3b"], dense("Starcoder2ForCausalLM", 30, 3072, 12288, 24, 2, 49152, 16384, tied=True, sliding_window=4096, use_bias=True), "StarCoder 2 report, table 6"),
    (["bigcode/starcoder2-7b"], dense("Starcoder2ForCausalLM", 32, 4608, 18432, 36, 4, 49152, 16384, tied=True, sliding_window=4096, use_bias=True), "StarCoder 2 report, table 6"),
    (["bigcode/starcoder2-15b", "bigcode/starcoder2-15b-instruct-v0.1"], dense("Starcoder2ForCausalLM", 40, 6144, 24576, 48, 4, 49152, 16384, tied=True, sliding_window=4096, use_bias=True), "StarCoder 2 report, table 6"),
    (["EleutherAI/gpt-neox-20b"], {k: v for k, v in dense("GPTNeoXForCausalLM", 44, 6144, 24576, 64, 64, 50432, 2048, rotary_pct=0.25).items()}, "GPT-NeoX-20B report, table 1"),
    (["allenai/OLMo-2-0325-32B-Instruct", "allenai/OLMo-2-0325-32B"], dense("Olmo2ForCausalLM", 64, 5120, 27648, 40, 8, 100352, 4096), "OLMo 2 report, table of the 32B model"),
    (["HuggingFaceTB/SmolLM3-3B", "HuggingFaceTB/SmolLM3-3B-Base"], dense("SmolLM3ForCausalLM", 36, 2048, 11008, 16, 4, 128256, 65536, tied=True), "card of SmolLM3-3B"),
    (["ByteDance-Seed/Seed-OSS-36B-Instruct"], dense("SeedOssForCausalLM", 64, 5120, 27648, 80, 8, 155136, 524288, head_dim=128), "card of Seed-OSS-36B-Instruct, table of the architecture"),
    (["Qwen/Qwen3-Coder-30B-A3B-Instruct"], "Qwen/Qwen3-30B-A3B-Instruct-2507", "shapes as Qwen/Qwen3-30B-A3B, 262,144 positions (its card)"),
]

AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}}
def gptq(bits): return {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": 128, "sym": True, "desc_act": False}}
FP8 = {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}}
def compressed(weights, inputs):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized" if weights["num_bits"] == 4 else "float-quantized",
                                    "ignore": ["lm_head"], "config_groups": {"group_0": group}}}
W4A16 = compressed({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True, "dynamic": False}, None)
FP8D = compressed({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False},
                  {"num_bits": 8, "type": "float", "strategy": "token", "symmetric": True, "dynamic": True})
KINDS = {"awq": (AWQ, "AWQ: 4 bits, groups of 128"), "int4": (gptq(4), "GPTQ: 4 bits, groups of 128"), "int8": (gptq(8), "GPTQ: 8 bits, groups of 128"),
         "fp8": (FP8, "FP8 in blocks of 128 x 128"), "w4a16": (W4A16, "compressed-tensors: 4 bits, groups of 128"),
         "fp8d": (FP8D, "compressed-tensors: FP8 by channel, activations by token")}
def siblings():
    for s in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B"):
        base = f"Qwen/Qwen2.5-{s}-Instruct"
        yield from ((f"{base}-{n}", base, k) for n, k in (("AWQ", "awq"), ("GPTQ-Int4", "int4"), ("GPTQ-Int8", "int8")))
    for s in ("0.5B", "1.5B", "3B", "7B", "14B", "32B"):
        base = f"Qwen/Qwen2.5-Coder-{s}-Instruct"
        yield from ((f"{base}-{n}", base, k) for n, k in (("AWQ", "awq"), ("GPTQ-Int4", "int4"), ("GPTQ-Int8", "int8")))
    for s in ("3B", "7B", "32B", "72B"):
        yield f"Qwen/Qwen2.5-VL-{s}-Instruct-AWQ", f"Qwen/Qwen2.5-VL-{s}-Instruct", "awq"
    for s in ("4B", "8B", "14B", "32B"):
        yield f"Qwen/Qwen3-{s}-AWQ", f"Qwen/Qwen3-{s}", "awq"
    for s in ("0.6B", "1.7B", "4B", "8B", "14B"):
        yield f"Qwen/Qwen3-{s}-FP8", f"Qwen/Qwen3-{s}", "fp8"
    for n in ("Qwen3-4B-Instruct-2507", "Qwen3-4B-Thinking-2507", "Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B-Thinking-2507",
              "Qwen3-235B-A22B-Instruct-2507", "Qwen3-235B-A22B-Thinking-2507", "Qwen3-Coder-30B-A3B-Instruct"):
        yield f"Qwen/{n}-FP8", f"Qwen/{n}", "fp8"
    yield "Qwen/Qwen3-30B-A3B-GPTQ-Int4", "Qwen/Qwen3-30B-A3B", "int4"
    yield "Qwen/QwQ-32B-AWQ", "Qwen/QwQ-32B", "awq"
    for s in ("8B", "70B", "405B"):
        base = f"meta-llama/Meta-Llama-3.1-{s}"
        yield f"hugging-quants/Meta-Llama-3.1-{s}-Instruct-AWQ-INT4", base, "awq"
        yield f"hugging-quants/Meta-Llama-3.1-{s}-Instruct-GPTQ-INT4", base, "int4"
        yield f"RedHatAI/Meta-Llama-3.1-{s}-Instruct-FP8-dynamic", base, "fp8d"
        yield f"RedHatAI/Meta-Llama-3.1-{s}-Instruct-quantized.w4a16", base, "w4a16"
    for n, b in (("Llama-3.3-70B-Instruct", "meta-llama/Meta-Llama-3.1-70B"), ("Llama-3.2-1B-Instruct", "meta-llama/Llama-3.2-1B"),
                 ("Llama-3.2-3B-Instruct", "meta-llama/Llama-3.2-3B"), ("Mistral-7B-Instruct-v0.3", "mistralai/Mistral-7B-Instruct-v0.3"),
                 ("Mistral-Nemo-Instruct-2407", "mistralai/Mistral-Nemo-Instruct-2407"), ("Mixtral-8x7B-Instruct-v0.1", "mistralai/Mixtral-8x7B-v0.1"),
                 ("Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"), ("Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-72B-Instruct"),
                 ("phi-4", "microsoft/phi-4"), ("DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
                 ("DeepSeek-R1-Distill-Llama-70B", "meta-llama/Meta-Llama-3.1-70B"), ("DeepSeek-R1-Distill-Qwen-14B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"),
                 ("Qwen3-32B", "Qwen/Qwen3-32B"), ("Qwen3-8B", "Qwen/Qwen3-8B"), ("Qwen3-14B", "Qwen/Qwen3-14B")):
        yield f"RedHatAI/{n}-FP8-dynamic", b, "fp8d"
        if "Mixtral" not in n:
            yield f"RedHatAI/{n}-quantized.w4a16", b, "w4a16"
    for n, b in (("Llama-2-7B-Chat", "meta-llama/Llama-2-7b-chat-hf"), ("Llama-2-13B-chat", "meta-llama/Llama-2-13b-chat-hf"),
                 ("Llama-2-70B-Chat", "meta-llama/Llama-2-70b-chat-hf"), ("Mistral-7B-Instruct-v0.1", "mistralai/Mistral-7B-Instruct-v0.1"),
                 ("Mistral-7B-Instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.2"), ("CodeLlama-34B-Instruct", "codellama/CodeLlama-34b-Instruct-hf"),
                 ("zephyr-7B-beta", "HuggingFaceH4/zephyr-7b-beta"), ("Yi-34B-Chat", "01-ai/Yi-34B-Chat"),
                 ("deepseek-coder-33B-instruct", "deepseek-ai/deepseek-coder-33b-instruct")):
        yield f"TheBloke/{n}-AWQ", b, "awq"
        yield f"TheBloke/{n}-GPTQ", b, "int4"
    yield "TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ", "mistralai/Mixtral-8x7B-v0.1", "awq"
    yield "casperhansen/llama-3-8b-instruct-awq", "meta-llama/Meta-Llama-3-8B-Instruct", "awq"
    yield "casperhansen/llama-3-70b-instruct-awq", "meta-llama/Meta-Llama-3-70B-Instruct", "awq"
    yield "casperhansen/llama-3.3-70b-instruct-awq", "meta-llama/Meta-Llama-3.1-70B", "awq"
    yield "casperhansen/mistral-nemo-instruct-2407-awq", "mistralai/Mistral-Nemo-Instruct-2407", "awq"
    yield "casperhansen/deepseek-r1-distill-qwen-32b-awq", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "awq"

# Written down by hand without opening what is named: what is checked is the number of parameters.
UNOPENED = "; not opened, checked by parameter count"

# What Ollama's library calls models whose names it changed.
TYPED = {"deepseek-r1:1.5b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-r1:7b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
         "deepseek-r1:8b": "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek-r1:14b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
         "deepseek-r1:32b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1:70b": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
         "mistral-nemo": "mistralai/Mistral-Nemo-Instruct-2407", "mistral-small:24b": "mistralai/Mistral-Small-24B-Instruct-2501",
         "mistral": "mistralai/Mistral-7B-Instruct-v0.3", "mistral:7b": "mistralai/Mistral-7B-Instruct-v0.3",
         "mistral-large": "mistralai/Mistral-Large-Instruct-2411", "phi3:mini": "microsoft/Phi-3-mini-4k-instruct",
         "phi3.5": "microsoft/Phi-3.5-mini-instruct", "phi4-mini": "microsoft/Phi-4-mini-instruct", "qwq": "Qwen/QwQ-32B",
         "tinyllama": "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "gemma3:4b": "google/gemma-3-4b-it", "gemma3:12b": "google/gemma-3-12b-it",
         "gemma3:27b": "google/gemma-3-27b-it", "gemma3:1b": "google/gemma-3-1b-it", "gemma2:9b": "google/gemma-2-9b-it",
         "gemma2:27b": "google/gemma-2-27b-it", "gemma2:2b": "google/gemma-2-2b-it", "zephyr": "HuggingFaceH4/zephyr-7b-beta",
         "qwen2.5vl:3b": "Qwen/Qwen2.5-VL-3B-Instruct", "qwen2.5vl:7b": "Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5vl:32b": "Qwen/Qwen2.5-VL-32B-Instruct",
         "qwen2.5vl:72b": "Qwen/Qwen2.5-VL-72B-Instruct", "qwen3-coder:30b": "Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3:30b": "Qwen/Qwen3-30B-A3B",
         "llama3:8b": "meta-llama/Meta-Llama-3-8B-Instruct", "llama3": "meta-llama/Meta-Llama-3-8B-Instruct",
         "llama3:70b": "meta-llama/Meta-Llama-3-70B-Instruct", "llama3.1": "meta-llama/Llama-3.1-8B-Instruct",
         "llama3.1:8b": "meta-llama/Llama-3.1-8B-Instruct", "llama3.1:70b": "meta-llama/Llama-3.1-70B-Instruct",
         "llama3.2": "meta-llama/Llama-3.2-3B", "llama3.2:1b": "meta-llama/Llama-3.2-1B-Instruct", "llama3.3": "meta-llama/Llama-3.3-70B-Instruct"}

def normal(id):
    return "".join(c for c in id.lower() if c.isalnum() or c == "/")

def main(wheel):
    rows = tomllib.loads((HERE.parent / "architectures.toml").read_text())["architecture"]
    known = {n for r in rows for n in r["names"]}
    hand, kept = {}, {}
    for f in sorted(HERE.glob("*.toml")):
        kept[f.stem] = f.read_text().split(MARKER)[0].rstrip() + "\n"
        for m in tomllib.loads(kept[f.stem]).get("model", []):
            for id in [m["id"], *m.get("aliases", [])]:
                hand[normal(id)] = m["id"]
    found, source = {}, {}
    for c in table(wheel):
        made = litgpt(c, known)
        if made and normal(made[0]) not in hand:
            try:
                check(made[0].split("/")[1], made[1])
            except AssertionError as wrong:
                # The table is wrong, or the name counts otherwise: such a model is left out.
                print("left out:", wrong)
                continue
            found[made[0]], source[made[0]] = made[1], "litgpt 0.5.13 config.py (PyPI); checked by parameter count"
    for ids, config, where in MORE:
        if isinstance(config, str):
            config = found[config]
        for id in ids:
            if normal(id) not in hand and config["architectures"][0] in known:
                check(id.split("/")[1] if re.search(r"\d[bB]", id) or any(k in id for k in PUBLISHED) else ids[0].split("/")[1], config)
                found[id], source[id] = config, where + UNOPENED
    # The same configuration is one entry.
    groups = {}
    for id, config in found.items():
        groups.setdefault((id.split("/")[0], json.dumps(config), source[id]), []).append(id)
    entries = []
    owner = dict(hand)
    for (_, text, where), ids in groups.items():
        entries.append([ids[0], ids[1:], where, f"config = '''\n{text}'''"])
        owner |= {normal(i): ids[0] for i in ids}
    for id, base, kind in siblings():
        if normal(id) in owner or normal(base) not in owner:
            continue
        set_, what = KINDS[kind]
        entries.append([id, [], f"configuration of {base}, {what}, as its name says", f"base = \"{owner[normal(base)]}\"\nset = '''\n{json.dumps(set_)}'''"])
        owner[normal(id)] = id
    typed = {}
    for name, id in TYPED.items():
        if normal(id) in owner:
            typed.setdefault(id, []).append(name)
    out = {k: [] for k in kept}
    for id, aliases, where, body in entries:
        file = id.split("/")[0].lower()
        names = f"aliases = {json.dumps(aliases)}\n" if aliases else ""
        out.setdefault(file, []).append(f"[[model]]\nid = \"{id}\"\n{names}source = {json.dumps(where)}\n{body}\n")
    for file, blocks in out.items():
        top = kept.get(file, HEAD)
        text = top + (f"\n{MARKER}\n\n" + "\n".join(blocks) if blocks else "")
        (HERE / f"{file}.toml").write_text(text)
    lines = [f"{json.dumps(n)} = {json.dumps(i)}" for i, names in sorted(typed.items()) for n in sorted(names)]
    (HERE / "typed.toml").write_text("# Names of Ollama's library that are not the model's own, written by harvest.py.\n\n[typed]\n" + "\n".join(lines) + "\n")
    ids = len(owner)
    print(f"{ids} ids, {len(entries)} entries written, {len(set(hand.values()))} kept by hand")

main(sys.argv[1])
