#!/usr/bin/env python3
"""Keeps the lower part of knowledge/models/*.toml: `harvest.py LITGPT_WHEEL`, then look at the diff.

What stands above the marker of a file is kept by hand and wins. Below it this script writes what litgpt's configuration
table (`pip download --no-deps litgpt`) says of models whose architecture plans know, more models whose shapes public sources
name (MORE), models that took the shapes of another (TUNED), models whose config.json was read (OPENED), and quantised siblings
(`siblings`). Each entry is checked: the parameters that its shapes add up to must be those that its name or its publisher says.
"""
import json, re, sys, tomllib, types, zipfile
from pathlib import Path

from more import MORE
from opened import COUNTED, OPENED
from tuned import COUNTS, TUNED

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
            config |= {"rope_scaling": {"type": "longrope", "short_factor": [], "long_factor": []}, "original_max_position_embeddings": 4096}
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

# What some architectures call a shape.
NAMES = {"hidden_size": ["d_model", "n_embd"], "num_hidden_layers": ["n_layers", "num_layers", "n_layer"], "num_attention_heads": ["n_heads", "n_head"],
         "num_key_value_heads": ["num_kv_heads", "multi_query_group_num", "kv_n_heads"], "head_dim": ["kv_channels"],
         "intermediate_size": ["ffn_hidden_size", "ffn_dim", "n_inner"], "vocab_size": ["padded_vocab_size"],
         "num_experts": ["num_local_experts", "n_routed_experts", "moe_num_experts"], "shared": ["n_shared_experts", "moe_num_shared_experts", "num_shared_expert", "num_shared_experts"],
         "dense_first": ["first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"]}
# Feed-forwards without a gate.
FULL = "full_attention"
UNGATED = ("GPTNeoXForCausalLM", "PhiForCausalLM", "FalconForCausalLM", "Starcoder2ForCausalLM", "ArceeForCausalLM", "ApertusForCausalLM", "NemotronHForCausalLM", "NemotronForCausalLM",
           "GPTJForCausalLM", "GPT2LMHeadModel", "BloomForCausalLM", "OPTForCausalLM", "GPTBigCodeForCausalLM")

def shapes(config):
    t = dict(config.get("text_config") or config.get("llm_config") or config)
    for part in ("attn_config", "ffn_config"):
        t |= t.get(part, {})
    for name, others in NAMES.items():
        t.setdefault(name, next((t[o] for o in others if t.get(o) is not None), None))
    # GPT-2 and its kin count by the hidden size what they do not say.
    t["intermediate_size"] = t["intermediate_size"] or 4 * t["hidden_size"]
    if t.get("multi_query") and t["num_key_value_heads"] is None:
        t["num_key_value_heads"] = 1
    return {k: v[0] if isinstance(v, list) and v and k != "layer_types" else v for k, v in t.items()}

def attention(t):
    h, a = t["hidden_size"], t["num_attention_heads"]
    if rank := t.get("kv_lora_rank"):
        nope, rope, v = t["qk_nope_head_dim"], t["qk_rope_head_dim"], t["v_head_dim"]
        q = t.get("q_lora_rank")
        return (h * q + q * a * (nope + rope) if q else h * a * (nope + rope)) + h * (rank + rope) + rank * a * (nope + v) + a * v * h
    d = t.get("head_dim") or h // a
    return 2 * h * d * a + 2 * h * d * (t["num_key_value_heads"] or a)

def state_space(t):
    """Its two projections."""
    h, heads, groups = t["hidden_size"], t.get("mamba_num_heads") or t.get("mamba_n_heads"), t.get("n_groups") or t.get("mamba_n_groups")
    width = heads * (t.get("mamba_head_dim") or t["mamba_d_head"])
    return h * (2 * width + 2 * groups * (t.get("ssm_state_size") or t["mamba_d_state"]) + heads) + width * h

def recurrent(c):
    """Layers that are state spaces and nothing else: their projections, and of Mamba 1 what makes its steps."""
    h, inner, state = c["hidden_size"], c["expand"] * c["hidden_size"], c["state_size"]
    if steps := c.get("time_step_rank"):
        layer = 3 * h * inner + 2 * inner * (steps + state)
    else:
        layer = h * (3 * inner + 2 * c["n_groups"] * state + c["num_heads"])
    return (c["num_hidden_layers"] * layer + c["vocab_size"] * h * (1 if c["tie_word_embeddings"] else 2)) / 1e9

def blocks(c):
    """Blocks that a search chose one by one; their widths are rounded up to 256."""
    h, heads = c["hidden_size"], c["num_attention_heads"]
    total = 2 * c["vocab_size"] * h
    for b in c["block_configs"]:
        if not b["attention"]["no_op"]:
            total += 2 * h * h * (1 + 1 / b["attention"]["n_heads_in_group"])
        if not b["ffn"]["no_op"]:
            total += 3 * h * -(-int(2 * b["ffn"]["ffn_mult"] * h / 3) // 256) * 256
    return total / 1e9

def parameters(config):
    """Billions, from shapes: embeddings, attention, state space, feed-forward; norms and biases are less than the tolerance."""
    if "state_size" in config:
        return recurrent(config)
    if "block_configs" in config:
        return blocks(config)
    t, arch = shapes(config), config["architectures"][0]
    h, layers, experts = t["hidden_size"], t["num_hidden_layers"], t["num_experts"]
    matrices = 2 if arch in UNGATED else 3
    width = t.get("moe_intermediate_size") or t["intermediate_size"]
    if t.get("block_auto_adjust_ff_dim"):
        width = width * 2 // 3
    dense = t["dense_first"] or 0 if experts else layers
    routed = (experts or 0) * width + (t["shared"] or 0) * width
    routed += t.get("shared_intermediate_size") or t.get("shared_expert_intermediate_size") or 0
    if period := t.get("expert_layer_period"):
        dense = layers - layers // period
    mlps, attentions, states, delta = layers, layers, 0, 0
    if order := t.get("hybrid_override_pattern"):
        mlps, attentions, states = order.count("-"), order.count("*"), order.count("M")
        dense = mlps
    elif period := t.get("attn_layer_period"):
        # Mamba 1: its two large projections have six widths of the hidden size.
        attentions = layers // period
        states, t["mamba_n_heads"], t["mamba_d_head"], t["mamba_n_groups"] = layers - attentions, 2, h, 0
    elif arch == "FalconH1ForCausalLM":
        states = layers
    elif "mamba" in (t.get("layer_types") or []):
        states = t["layer_types"].count("mamba")
        attentions = layers - states
    elif "linear_attention" in (t.get("layer_types") or []):
        # Delta rules: projections of queries and keys, of values and their gate, and one back.
        attentions = t["layer_types"].count(FULL)
        keys, values = (t[f"linear_num_{k}_heads"] * t[f"linear_{k}_head_dim"] for k in ("key", "value"))
        delta = (layers - attentions) * h * (2 * keys + 3 * values)
        if t.get("attn_output_gate"):
            delta += attentions * h * t["head_dim"] * t["num_attention_heads"]
    elif "conv" in (t.get("layer_types") or []):
        # Three inputs and one output of the hidden size, as much as an attention whose queries have it.
        attentions = layers
    total = attentions * attention(t) + (states * state_space(t) if states else 0) + delta
    total += matrices * h * (dense * (t["intermediate_size"] if experts else width) + (mlps - dense) * routed)
    total += t["vocab_size"] * h * (1 if t.get("tie_word_embeddings", True) else 2)
    e = config.get("vision_config")
    if e and "num_hidden_layers" in e:
        gate = 3 if e["model_type"] == "pixtral" else 2
        total += e["num_hidden_layers"] * (4 * e["hidden_size"] ** 2 + gate * e["hidden_size"] * e["intermediate_size"])
    elif e and "embed_dim" in e:
        total += e["depth"] * (4 + 2 * e["mlp_ratio"]) * e["embed_dim"] ** 2
    elif e and "depth" in e:
        n = e.get("hidden_size", 1280)
        total += e["depth"] * (4 * n * n + 3 * n * e["intermediate_size"])
    if a := config.get("audio_config"):
        n = a["d_model"]
        total += a["encoder_layers"] * (4 * n * n + 2 * n * a["encoder_ffn_dim"])
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
             "Qwen3-1.7B": 1.72, "Platypus-30B": 32.5, "MicroLlama": 0.3, "Qwen2-1.5B": 1.54, "Qwen2-7B": 7.62,
             "Mistral-Nemo": 12.25, "Small-24B": 23.6, "Small-3": 23.6, "Devstral": 23.6, "FreeWilly2": 69.0, "Phi-3-medium": 14.0,
             "SmolLM2-1.7B": 1.71, "granite-3.1-8b": 8.1, "granite-3.2-8b": 8.1, "granite-3.3-8b": 8.1, "granite-3.1-2b": 2.5, "granite-3.2-2b": 2.5, "granite-3.3-2b": 2.5, "command-r-v01": 35.0, "command-r-plus": 104.0, "Qwen1.5-0.5B": 0.46, "Qwen1.5-7B": 7.72, "starcoder2-3b": 3.03, "starcoder2-7b": 7.17, "starcoder2-15b": 15.96, "aya-expanse-8b": 8.03, "SmolLM3-3B": 3.08, "QwQ-32B": 32.8,
             "GLM-4.5": 355.0, "GLM-4.6": 355.0, "GLM-4.7": 355.0, "GLM-4.5-Air": 106.0, "GLM-4-9B": 9.4, "glm-4-9b": 9.4, "GLM-Z1-9B": 9.4, "Magistral-Small": 23.6,
             "Mistral-Small-3.1": 24.0, "Mistral-Small-3.2": 24.0, "Magistral-Small-2509": 24.0, "pixtral-12b": 12.7, "Pixtral-12B": 12.7, "Hunyuan-A13B": 80.4, "llava-1.5-7b": 7.06, "llava-1.5-13b": 13.35, "dbrx": 132.0,
             "internlm3-8b": 8.8, "internlm2_5-7b": 7.74, "internlm2-chat-7b": 7.74, "internlm2-7b": 7.74, "internlm2_5-20b": 19.86, "internlm2-chat-20b": 19.86, "granite-4.0-h-small": 32.0, "LFM2-1.2B": 1.17, "Falcon-H1-7B": 7.59,
             "command-a-03-2025": 111.0, "command-r7b": 8.03, "aya-expanse-32b": 32.3, "Qwen3-Embedding-8B": 7.57, "Qwen3-Reranker-8B": 7.57,
             "Qwen2-VL-2B": 2.2, "Qwen2-VL-7B": 8.29, "Qwen2-VL-72B": 73.4, "InternVL3-8B": 7.94, "InternVL3-14B": 15.1, "InternVL3-2B": 2.09, "DeepSeek-V2-Lite": 15.7, "DeepSeek-Coder-V2-Lite": 15.7,
             "OLMoE-1B-7B": 6.92, "Qwen2-Audio-7B": 8.4, "Phi-3.5-MoE": 41.9, "Qwen1.5-MoE-A2.7B": 14.3, "Qwen2-57B": 57.4, "gpt-j-6b": 6.05, "gpt2": 0.124, "gpt2-medium": 0.355, "gpt2-large": 0.774, "gpt2-xl": 1.56,
             "bloom": 176.2, "bloomz": 176.2, "bloom-7b1": 7.07, "bloomz-7b1": 7.07, "bloom-3b": 3.0, "bloomz-3b": 3.0, "starcoder": 15.5, "Jamba": 51.6, "Minitron-8B": 8.27, "GLM-4.7-Flash": 30.0,
             "ERNIE-4.5-0.3B": 0.36, "DeepSeek-V2": 236.0, "DeepSeek-Coder-V2": 236.0, "granite-4.0-h-tiny": 6.94, "chatglm3-6b": 6.24, "QVQ-72B": 73.4, "command-a-reasoning": 111.0,
             "MiniCPM4": 8.19, "whisper": None, "olmOCR-7B": 8.29, "gemma-3-270m": 0.27, "command-r-08-2024": 32.3, "command-r-plus-08-2024": 104.0, "llava-v1.6-mistral-7b": 7.57, "stablelm-2-12b": 12.1, "InternVL3_5-1B": 1.1, "InternVL3_5-2B": 2.3, "InternVL3_5-4B": 4.7, "InternVL3_5-8B": 8.5, "InternVL3_5-14B": 15.1, "Phi-4-multimodal": 3.84, "chatglm2-6b": 6.24, "base-alpha-3b": 3.64, "tuned-alpha-3b": 3.64, "base-alpha-7b": 7.87, "tuned-alpha-7b": 7.87, "bloom-560m": 0.56, "bloomz-560m": 0.56, "bloom-1b1": 1.07, "bloomz-1b1": 1.07, "bloom-1b7": 1.72, "bloomz-1b7": 1.72, "santacoder": 1.12, "cwm": 32.0, "A.X-K1": 519.0, "SuperNova-Lite": 8.03, "LFM2-8B": 8.3, "Ling-mini": 16.3, "Ring-mini": 16.3, "granite-3.0-3b-a800m": 3.3, "granite-3.0-1b-a400m": 1.33, "granite-3.0-8b": 8.1, "granite-3.0-2b": 2.5, "MiniCPM3": 4.1, "INTELLECT-2": 32.8, "INTELLECT-3": 106.0, "DeepSWE": 32.8, "Jan-nano": 4.0, "Cosmos-Reason1-7B": 8.29, "UI-TARS-1.5-7B": 8.29, "RolmOCR": 8.29, "olmOCR-2-7B": 8.29, "Arcee-Blitz": 23.6, "Ling-flash": 103.0, "Ring-flash": 103.0, "Ling-1T": 1000.0, "Ring-1T": 1000.0, "AFM-4.5B": 4.6, "Seed-OSS": 36.2} | COUNTS | COUNTED

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
    # Qwen counts these without their towers.
    have = parameters({k: v for k, v in config.items() if k != "vision_config" or "Qwen3.5" not in name})
    assert abs(have - said) <= 0.09 * said, f"{name}: shapes add up to {have:.2f} billion parameters, {said} are published"

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
    for n in ("Qwen3-Coder-480B-A35B-Instruct", "Qwen3-Next-80B-A3B-Instruct", "Qwen3-Next-80B-A3B-Thinking", "Qwen3-Coder-Next", "Qwen3.5-27B", "Qwen3.5-35B-A3B", "Qwen3.5-122B-A10B", "Qwen3.5-397B-A17B",
              "Qwen3.6-27B", "Qwen3.6-35B-A3B", *(f"Qwen3-VL-{s}-{e}" for s in ("2B", "4B", "8B", "30B-A3B", "32B", "235B-A22B") for e in ("Instruct", "Thinking"))):
        yield f"Qwen/{n}-FP8", f"Qwen/{n}", "fp8"
    for n in ("Qwen2-0.5B-Instruct", "Qwen2-1.5B-Instruct", "Qwen2-7B-Instruct", "Qwen2-VL-2B-Instruct", "Qwen2-VL-7B-Instruct", "Qwen1.5-7B-Chat", "Qwen1.5-14B-Chat"):
        yield from ((f"Qwen/{n}-{q}", f"Qwen/{n}", k) for q, k in (("AWQ", "awq"), ("GPTQ-Int4", "int4"), ("GPTQ-Int8", "int8")))
    for n in ("DeepSeek-R1", "DeepSeek-R1-0528", "DeepSeek-V3", "DeepSeek-V3-0324"):
        yield f"cognitivecomputations/{n}-AWQ", f"deepseek-ai/{n}", "awq"
    for n in ("3.5-2.4B-Instruct", "3.5-7.8B-Instruct", "3.5-32B-Instruct", "Deep-2.4B", "Deep-7.8B", "Deep-32B"):
        yield f"LGAI-EXAONE/EXAONE-{n}-AWQ", f"LGAI-EXAONE/EXAONE-{n}", "awq"
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
CHECKED = "; checked by parameter count"

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
    """As catalogue.rs does it: separators count between digits only."""
    between = re.sub(r"(?<=[0-9])[^a-z0-9/]+(?=[0-9])", "|", id.lower())
    return re.sub(r"[^a-z0-9/|]", "", between)

def main(wheel):
    rows = tomllib.loads((HERE.parent / "architectures.toml").read_text())["architecture"]
    known = {n for r in rows for n in r["names"]}
    hand, kept, by_hand = {}, {}, {}
    for f in sorted(HERE.glob("*.toml")):
        kept[f.stem] = f.read_text().split(MARKER)[0].rstrip() + "\n"
        for m in tomllib.loads(kept[f.stem]).get("model", []):
            for id in [m["id"], *m.get("aliases", [])]:
                hand[normal(id)] = m["id"]
                if "config" in m:
                    by_hand[id] = json.loads(m["config"])
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
    opened = [(ids, config, where, CHECKED) for ids, config, where in OPENED]
    for ids, config, where, how in [(*m, UNOPENED) for m in MORE + TUNED] + opened:
        if isinstance(config, str):
            config = found.get(config) or by_hand[config]
        for id in ids:
            if normal(id) not in hand and config["architectures"][0] in known:
                check(id.split("/")[1] if re.search(r"\d[bB]", id) or any(k in id for k in PUBLISHED) else ids[0].split("/")[1], config)
                found[id], source[id] = config, where + how
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
