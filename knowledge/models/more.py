"""Models whose shapes public sources name, for harvest.py: (ids with the same configuration, the configuration, where it is from)."""

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
    (["Qwen/Qwen2.5-VL-7B-Instruct", "allenai/olmOCR-7B-0725", "allenai/olmOCR-7B-0825"], vl("7B"), "acproject/duorou docs/qwen2.5vl_graph.md (printed module tree); text as Qwen/Qwen2.5-7B"),
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
    (["CohereForAI/c4ai-command-r-plus", "CohereLabs/c4ai-command-r-plus", "CohereLabs/c4ai-command-r-plus-08-2024", "CohereForAI/c4ai-command-r-plus-08-2024"], dense("CohereForCausalLM", 64, 12288, 33792, 96, 8, 256000, 131072, tied=True, use_qk_norm=True), "card of c4ai-command-r-plus: 104 billion parameters"),
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

# A decoder of one width whose experts begin behind some dense layers.
def routed(arch, layers, hidden, inter, heads, kv, vocab, positions, experts, top, width, dense_first, shared, **more):
    return dense(arch, layers, hidden, inter, heads, kv, vocab, positions, n_routed_experts=experts, num_experts_per_tok=top,
                 moe_intermediate_size=width, first_k_dense_replace=dense_first, n_shared_experts=shared, **more)

GLM45 = routed("Glm4MoeForCausalLM", 92, 5120, 12288, 96, 8, 151552, 131072, 160, 8, 1536, 3, 1, head_dim=128, use_qk_norm=True, attention_bias=True, partial_rotary_factor=0.5, num_nextn_predict_layers=1, model_type="glm4_moe")
AIR = routed("Glm4MoeForCausalLM", 46, 4096, 10944, 96, 8, 151552, 131072, 128, 8, 1408, 1, 1, head_dim=128, use_qk_norm=False, attention_bias=True, partial_rotary_factor=0.5, num_nextn_predict_layers=1, model_type="glm4_moe")
SLIME = "THUDM/slime 624b824 scripts/models/"
SMALL3 = dense("MistralForCausalLM", 40, 5120, 32768, 32, 8, 131072, 131072, head_dim=128)
PIXTRAL = {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "head_dim": 64, "image_size": 1540, "patch_size": 14, "num_channels": 3}
CLIP_L = {"model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "projection_dim": 768}
def text_of(config, model_type):
    return {k: v for k, v in config.items() if k != "architectures"} | {"model_type": model_type}
def sees(arch, model_type, text, vision, **more):
    return {"architectures": [arch], "model_type": model_type, "text_config": text, "vision_config": vision, "torch_dtype": "bfloat16",
            "tie_word_embeddings": text["tie_word_embeddings"], **more}
SMALL31 = sees("Mistral3ForConditionalGeneration", "mistral3", text_of(SMALL3, "mistral") | {"sliding_window": None}, PIXTRAL, spatial_merge_size=2, image_token_index=10, multimodal_projector_bias=False, vision_feature_layer=-1)
def llava(size):
    text = {"7B": dense("", 32, 4096, 11008, 32, 32, 32064, 4096), "13B": dense("", 40, 5120, 13824, 40, 40, 32064, 4096)}[size]
    return sees("LlavaForConditionalGeneration", "llava", text_of(text, "llama"), CLIP_L, image_token_index=32000, vision_feature_layer=-2, vision_feature_select_strategy="default")
def vl2(size):
    text = q2({"2B": "1.5B"}.get(size, size), 32768)
    e = {"depth": 32, "embed_dim": 1280, "hidden_size": text["hidden_size"], "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "patch_size": 14,
         "spatial_merge_size": 2, "temporal_patch_size": 2}
    return text | {"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl",
                   "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vision_config": e}
def internvl(text, vocab):
    vision = {"model_type": "intern_vit_6b", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "qkv_bias": True, "qk_normalization": False}
    return {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "torch_dtype": "bfloat16", "downsample_ratio": 0.5, "force_image_size": 448, "max_dynamic_patch": 12,
            "tie_word_embeddings": False, "llm_config": text | {"vocab_size": vocab, "model_type": "qwen2", "tie_word_embeddings": False}, "vision_config": vision}
def pattern(kinds, layers): return [kinds[i % len(kinds)] for i in range(layers)]
SLIDE, FULL = "sliding_attention", "full_attention"
LITE = routed("DeepseekV2ForCausalLM", 27, 2048, 10944, 16, 16, 102400, 163840, 64, 6, 1408, 1, 2, n_group=1, topk_group=1, topk_method="greedy", model_type="deepseek_v2", q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
              rope_scaling={"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1})
def exaone(layers, hidden, inter, heads, kv, tied=False):
    c = dense("ExaoneForCausalLM", layers, hidden, inter, heads, kv, 102400, 32768, tied=tied, model_type="exaone", activation_function="silu")
    return c | {"num_layers": c.pop("num_hidden_layers")}

MORE += [
    (["zai-org/GLM-4.5"], GLM45, SLIME + "glm4.5-355B-A32B.sh"),
    (["zai-org/GLM-4.6", "zai-org/GLM-4.7"], GLM45 | {"max_position_embeddings": 202752}, SLIME + "glm4.5-355B-A32B.sh; the same layers, 202,752 positions (card of GLM-4.6)"),
    (["zai-org/GLM-4.5-Air"], AIR, SLIME + "glm4.5-106B-A12B.sh"),
    (["zai-org/GLM-4-9B-0414", "zai-org/GLM-Z1-9B-0414", "THUDM/GLM-4-9B-0414"], dense("Glm4ForCausalLM", 40, 4096, 13696, 32, 2, 151552, 32768, head_dim=128, attention_bias=True, partial_rotary_factor=0.5, model_type="glm4"), SLIME + "glm4-9B.sh"),
    (["zai-org/glm-4-9b-chat-hf", "THUDM/glm-4-9b-chat-hf"], dense("GlmForCausalLM", 40, 4096, 13696, 32, 2, 151552, 131072, head_dim=128, attention_bias=True, partial_rotary_factor=0.5, model_type="glm"), SLIME + "glm4-9B.sh, whose shapes it shares"),
    (["zai-org/glm-4-9b-chat", "THUDM/glm-4-9b-chat"], {"architectures": ["ChatGLMModel"], "model_type": "chatglm", "num_layers": 40, "hidden_size": 4096, "ffn_hidden_size": 13696, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2, "padded_vocab_size": 151552, "seq_length": 131072, "add_bias_linear": False, "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True, "original_rope": True, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, SLIME + "glm4-9B.sh, whose shapes it shares; keys of ChatGLM"),
    (["mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistralai/Mistral-Small-3.1-24B-Base-2503", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistralai/Magistral-Small-2509"], SMALL31, "text as mistralai/Mistral-Small-24B-Instruct-2501, 131,072 positions; encoder: Mistral3Config of transformers' documentation"),
    (["mistralai/Devstral-Small-2507", "mistralai/Magistral-Small-2506", "mistralai/Magistral-Small-2507"], SMALL3, "tuned from Mistral-Small-3.1-24B without its encoder (its card)"),
    (["mistralai/Ministral-8B-Instruct-2410"], dense("MistralForCausalLM", 36, 4096, 12288, 32, 8, 131072, 32768, head_dim=128), "card of Ministral-8B-Instruct-2410, table of the architecture"),
    (["mistralai/Codestral-22B-v0.1"], dense("MistralForCausalLM", 56, 6144, 16384, 48, 8, 32768, 32768, head_dim=128), "the model's params.json: 56 layers of 6,144"),
    (["mistral-community/pixtral-12b", "mistralai/Pixtral-12B-2409"], sees("LlavaForConditionalGeneration", "llava", text_of(dense("", 40, 5120, 14336, 32, 8, 131072, 1024000, head_dim=128), "mistral") | {"sliding_window": None}, PIXTRAL | {"image_size": 1024, "patch_size": 16}, image_token_index=10, vision_feature_layer=-1, vision_feature_select_strategy="full"), "text as mistralai/Mistral-Nemo-Instruct-2407 (its card); encoder: PixtralVisionConfig of transformers' documentation"),
    (["tencent/Hunyuan-A13B-Instruct", "tencent/Hunyuan-A13B-Pretrain"], dense("HunYuanMoEV1ForCausalLM", 32, 4096, 3072, 32, 8, 128167, 32768, tied=True, model_type="hunyuan_v1_moe", num_experts=64, moe_topk=[8] * 32, moe_intermediate_size=[3072] * 32, num_shared_expert=[1] * 32, moe_layer_num_skipped=0, use_mixed_mlp_moe=True, use_qk_norm=True, use_cla=False), "Hunyuan-A13B report, table 1"),
    (["baidu/ERNIE-4.5-21B-A3B-PT", "baidu/ERNIE-4.5-21B-A3B-Thinking"], dense("Ernie4_5_MoeForCausalLM", 28, 2560, 12288, 20, 4, 103424, 131072, tied=True, head_dim=128, model_type="ernie4_5_moe", moe_num_experts=64, moe_k=6, moe_num_shared_experts=2, moe_intermediate_size=1536, moe_layer_start_index=1, moe_layer_end_index=27, moe_layer_interval=1, use_bias=False), "Ernie4_5_MoeConfig of transformers' documentation, whose defaults are this model's"),
    (["baidu/ERNIE-4.5-300B-A47B-PT"], dense("Ernie4_5_MoeForCausalLM", 54, 8192, 28672, 64, 8, 103424, 131072, model_type="ernie4_5_moe", moe_num_experts=64, moe_k=8, moe_num_shared_experts=0, moe_intermediate_size=3584, moe_layer_start_index=3, moe_layer_end_index=53, moe_layer_interval=1, use_bias=False), "ERNIE 4.5 report, table of the models"),
    (["llava-hf/llava-1.5-7b-hf"], llava("7B"), "text as lmsys/vicuna-7b-v1.5 with 64 entries more; encoder: CLIP ViT-L/14 at 336 (LLaVA 1.5 report)"),
    (["llava-hf/llava-1.5-13b-hf"], llava("13B"), "text as lmsys/vicuna-13b-v1.5 with 64 entries more; encoder: CLIP ViT-L/14 at 336 (LLaVA 1.5 report)"),
    (["databricks/dbrx-instruct", "databricks/dbrx-base"], {"architectures": ["DbrxForCausalLM"], "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352, "attn_config": {"model_type": "", "clip_qkv": 8, "kv_n_heads": 8, "rope_theta": 500000}, "ffn_config": {"model_type": "", "ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4, "ffn_act_fn": {"name": "silu"}, "moe_loss_weight": 0.05}, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, "databricks/dbrx README: 16 experts, 132 billion parameters"),
    (["internlm/internlm3-8b-instruct"], dense("InternLM3ForCausalLM", 48, 4096, 10240, 32, 2, 128512, 32768, head_dim=128, model_type="internlm3", qkv_bias=False, bias=False, rope_scaling={"rope_type": "dynamic", "factor": 6.0}), "card of internlm3-8b-instruct: 8 billion parameters"),
    (["internlm/internlm2_5-7b-chat", "internlm/internlm2-chat-7b", "internlm/internlm2-7b"], dense("InternLM2ForCausalLM", 32, 4096, 14336, 32, 8, 92544, 32768, model_type="internlm2", bias=False), "InternLM2 report, table of the models"),
    (["internlm/internlm2_5-20b-chat", "internlm/internlm2-chat-20b"], dense("InternLM2ForCausalLM", 48, 6144, 16384, 48, 8, 92544, 32768, model_type="internlm2", bias=False), "InternLM2 report, table of the models"),
    (["nvidia/NVIDIA-Nemotron-Nano-9B-v2"], dense("NemotronHForCausalLM", 56, 4480, 15680, 40, 8, 131072, 131072, head_dim=128, model_type="nemotron_h", hybrid_override_pattern="M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", mamba_num_heads=128, mamba_head_dim=80, ssm_state_size=128, n_groups=8, conv_kernel=4, chunk_size=128, expand=2, mlp_hidden_act="relu2", attention_bias=False, mlp_bias=False, use_bias=False, use_conv_bias=True), "Nemotron Nano 2 report, table of the architecture"),
    (["ibm-granite/granite-4.0-h-small"], dense("GraniteMoeHybridForCausalLM", 40, 4096, 768, 32, 8, 100352, 131072, tied=True, model_type="granitemoehybrid", num_local_experts=72, num_experts_per_tok=10, shared_intermediate_size=1536, mamba_n_heads=128, mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, attention_bias=False, position_embedding_type="nope", layer_types=["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)]), "card of granite-4.0-h-small, table of the architecture"),
    (["LiquidAI/LFM2-1.2B"], dense("Lfm2ForCausalLM", 16, 2048, 12288, 32, 8, 65536, 128000, tied=True, model_type="lfm2", block_dim=2048, block_ff_dim=12288, block_auto_adjust_ff_dim=True, block_ffn_dim_multiplier=1.0, block_multiple_of=256, block_use_swiglu=True, conv_L_cache=3, conv_bias=False, conv_dim=2048, full_attn_idxs=[2, 5, 8, 10, 12, 14], layer_types=[FULL if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)]), "card of LFM2-1.2B: 10 convolutions and 6 attentions"),
    (["tiiuae/Falcon-H1-7B-Instruct", "tiiuae/Falcon-H1-7B-Base"], dense("FalconH1ForCausalLM", 44, 3072, 12288, 12, 2, 130048, 262144, head_dim=128, model_type="falcon_h1", mamba_d_ssm=3072, mamba_n_heads=24, mamba_d_head=128, mamba_d_state=256, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, mamba_rms_norm=False, mamba_use_mlp=True, attention_bias=False, mlp_bias=False, projectors_bias=False), "Falcon-H1 report, table of the architectures"),
    (["CohereLabs/c4ai-command-a-03-2025", "CohereForAI/c4ai-command-a-03-2025", "CohereLabs/command-a-reasoning-08-2025"], dense("Cohere2ForCausalLM", 64, 12288, 36864, 96, 8, 256000, 131072, tied=True, model_type="cohere2", sliding_window=4096, layer_types=pattern([SLIDE, SLIDE, SLIDE, FULL], 64)), "Command A report: 111 billion parameters, one layer of four sees all"),
    (["CohereLabs/c4ai-command-r7b-12-2024", "CohereForAI/c4ai-command-r7b-12-2024"], dense("Cohere2ForCausalLM", 32, 4096, 14336, 32, 8, 256000, 132096, tied=True, model_type="cohere2", sliding_window=4096, layer_types=pattern([SLIDE, SLIDE, SLIDE, FULL], 32)), "card of c4ai-command-r7b-12-2024; defaults of Cohere2Config in transformers' documentation"),
    (["CohereLabs/aya-expanse-32b", "CohereForAI/aya-expanse-32b", "CohereLabs/c4ai-command-r-08-2024", "CohereForAI/c4ai-command-r-08-2024"], dense("CohereForCausalLM", 40, 8192, 24576, 64, 8, 256000, 131072, tied=True), "card of aya-expanse-32b"),
    (["Qwen/Qwen3-Embedding-8B", "Qwen/Qwen3-Reranker-8B"], dense("Qwen3ForCausalLM", 36, 4096, 12288, 32, 8, 151665, 40960, head_dim=128), "trained from Qwen/Qwen3-8B-Base (its card): its shapes"),
    (["Qwen/Qwen3-Embedding-4B", "Qwen/Qwen3-Reranker-4B"], dense("Qwen3ForCausalLM", 36, 2560, 9728, 32, 8, 151665, 40960, head_dim=128, tied=True), "trained from Qwen/Qwen3-4B-Base (its card): its shapes"),
    (["Qwen/Qwen3-Embedding-0.6B", "Qwen/Qwen3-Reranker-0.6B"], dense("Qwen3ForCausalLM", 28, 1024, 3072, 16, 8, 151669, 32768, head_dim=128, tied=True), "trained from Qwen/Qwen3-0.6B-Base (its card): its shapes"),
    (["LGAI-EXAONE/EXAONE-4.0-32B"], dense("Exaone4ForCausalLM", 64, 5120, 27392, 40, 8, 102400, 131072, head_dim=128, model_type="exaone4", sliding_window=4096, sliding_window_pattern="LLLG", layer_types=pattern([SLIDE, SLIDE, SLIDE, FULL], 64)), "card of EXAONE-4.0-32B, table of the architecture"),
    (["LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", "LGAI-EXAONE/EXAONE-Deep-7.8B"], exaone(32, 4096, 14336, 32, 8), "EXAONE 3.5 report, table 1"),
    (["LGAI-EXAONE/EXAONE-3.5-32B-Instruct", "LGAI-EXAONE/EXAONE-Deep-32B"], exaone(64, 5120, 27392, 40, 8), "EXAONE 3.5 report, table 1"),
    (["LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct", "LGAI-EXAONE/EXAONE-Deep-2.4B"], exaone(30, 2560, 7168, 32, 8, tied=True), "EXAONE 3.5 report, table 1"),
    (["allenai/Olmo-3-7B-Instruct", "allenai/Olmo-3-7B-Think", "allenai/Olmo-3-1025-7B"], dense("Olmo3ForCausalLM", 32, 4096, 11008, 32, 32, 100278, 65536, model_type="olmo3", sliding_window=4096, layer_types=pattern([SLIDE, SLIDE, SLIDE, FULL], 32)), "Olmo 3 report, table of the architectures"),
    (["allenai/Olmo-3-32B-Think", "allenai/Olmo-3-1125-32B"], dense("Olmo3ForCausalLM", 64, 5120, 27648, 40, 8, 100278, 65536, model_type="olmo3", sliding_window=4096, layer_types=pattern([SLIDE, SLIDE, SLIDE, FULL], 64)), "Olmo 3 report, table of the architectures"),
    (["arcee-ai/AFM-4.5B", "arcee-ai/AFM-4.5B-Base"], dense("ArceeForCausalLM", 36, 2560, 18432, 20, 4, 128004, 65536, head_dim=128, model_type="arcee", hidden_act="relu2", mlp_bias=False), "ArceeConfig of transformers' documentation; card of AFM-4.5B"),
    (["swiss-ai/Apertus-70B-Instruct-2509", "swiss-ai/Apertus-70B-2509"], dense("ApertusForCausalLM", 80, 8192, 43008, 64, 8, 131072, 65536, model_type="apertus", hidden_act="xielu", qk_norm=True), "Apertus report, table of the architectures"),
    (["swiss-ai/Apertus-8B-Instruct-2509", "swiss-ai/Apertus-8B-2509"], dense("ApertusForCausalLM", 32, 4096, 21504, 32, 8, 131072, 65536, model_type="apertus", hidden_act="xielu", qk_norm=True), "Apertus report, table of the architectures"),
    (["OpenGVLab/InternVL3-8B", "OpenGVLab/InternVL3-8B-Instruct"], internvl(q2("7B", 32768), 151674), "InternVL3 report, table 1: InternViT-300M and Qwen2.5-7B"),
    (["OpenGVLab/InternVL3-14B"], internvl(q2("14B", 32768), 151674), "InternVL3 report, table 1: InternViT-300M and Qwen2.5-14B"),
    (["OpenGVLab/InternVL3-2B"], internvl(q2("1.5B", 32768), 151674), "InternVL3 report, table 1: InternViT-300M and Qwen2.5-1.5B"),
    (["openbmb/MiniCPM4-8B", "openbmb/MiniCPM4.1-8B"], dense("MiniCPMForCausalLM", 32, 4096, 16384, 32, 2, 73448, 32768, model_type="minicpm", scale_depth=1.4, scale_emb=12, dim_model_base=256), "MiniCPM4 report; card of MiniCPM4-8B"),
    (["Qwen/Qwen2-VL-2B-Instruct"], vl2("2B"), "text as Qwen/Qwen2-1.5B; encoder: Qwen2-VL report, table 1"),
    (["Qwen/Qwen2-VL-7B-Instruct"], vl2("7B"), "text as Qwen/Qwen2-7B; encoder: Qwen2-VL report, table 1"),
    (["Qwen/Qwen2-VL-72B-Instruct", "Qwen/QVQ-72B-Preview"], vl2("72B"), "text as Qwen/Qwen2-72B; encoder: Qwen2-VL report, table 1"),
    (["deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "deepseek-ai/DeepSeek-Coder-V2-Lite-Base"], LITE, "DeepSeek-V2 report, appendix B; DeepSeek-Coder-V2 report, which trained it further"),
    (["allenai/OLMoE-1B-7B-0924", "allenai/OLMoE-1B-7B-0924-Instruct", "allenai/OLMoE-1B-7B-0125-Instruct"], dense("OlmoeForCausalLM", 16, 2048, 1024, 16, 16, 50304, 4096, model_type="olmoe", num_experts=64, num_experts_per_tok=8), "OLMoE report, table of the architecture"),
    (["microsoft/Phi-3.5-MoE-instruct"], dense("PhiMoEForCausalLM", 32, 4096, 6400, 32, 8, 32064, 131072, model_type="phimoe", num_local_experts=16, num_experts_per_tok=2, sliding_window=131072, attention_bias=True, lm_head_bias=True), "PhimoeConfig of transformers' documentation, whose defaults are this model's"),
    (["Qwen/Qwen1.5-MoE-A2.7B", "Qwen/Qwen1.5-MoE-A2.7B-Chat"], dense("Qwen2MoeForCausalLM", 24, 2048, 5632, 16, 16, 151936, 8192, model_type="qwen2_moe", num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408, shared_expert_intermediate_size=5632, decoder_sparse_step=1), "Qwen2MoeConfig of transformers' documentation, whose defaults are this model's"),
    (["Qwen/Qwen2-57B-A14B", "Qwen/Qwen2-57B-A14B-Instruct"], dense("Qwen2MoeForCausalLM", 28, 3584, 18944, 28, 4, 151936, 32768, model_type="qwen2_moe", num_experts=64, num_experts_per_tok=8, moe_intermediate_size=2560, shared_expert_intermediate_size=20480, decoder_sparse_step=1), "Qwen2 report, table 1"),
    (["EleutherAI/gpt-j-6b"], {"architectures": ["GPTJForCausalLM"], "model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": None, "rotary": True, "rotary_dim": 64, "vocab_size": 50400, "n_positions": 2048, "tie_word_embeddings": False, "torch_dtype": "float16"}, "GPTJConfig of transformers' documentation, whose defaults are this model's"),
]
def gpt2(layers, hidden, heads):
    return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_inner": None, "vocab_size": 50257, "n_positions": 1024, "n_ctx": 1024, "tie_word_embeddings": True, "torch_dtype": "float32"}
def bloom(layers, hidden, heads):
    return {"architectures": ["BloomForCausalLM"], "model_type": "bloom", "hidden_size": hidden, "n_layer": layers, "n_head": heads, "vocab_size": 250880, "seq_length": 2048, "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
def opt(layers, hidden, heads):
    return {"architectures": ["OPTForCausalLM"], "model_type": "opt", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "ffn_dim": 4 * hidden, "word_embed_proj_dim": hidden,
            "vocab_size": 50272, "max_position_embeddings": 2048, "do_layer_norm_before": True, "activation_function": "relu", "tie_word_embeddings": True, "torch_dtype": "float16"}
def jamba(layers, hidden, inter, heads):
    return dense("JambaForCausalLM", layers, hidden, inter, heads, 8, 65536, 262144, model_type="jamba", num_experts=16, num_experts_per_tok=2, expert_layer_period=2, expert_layer_offset=1, attn_layer_period=8, attn_layer_offset=4,
                 mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=hidden // 16, mamba_conv_bias=True, mamba_proj_bias=False)
MORE += [
    (["openai-community/gpt2"], gpt2(12, 768, 12), "GPT2Config of transformers' documentation, whose defaults are this model's"),
    (["openai-community/gpt2-medium"], gpt2(24, 1024, 16), "GPT-2 report, table 2"),
    (["openai-community/gpt2-large"], gpt2(36, 1280, 20), "GPT-2 report, table 2"),
    (["openai-community/gpt2-xl"], gpt2(48, 1600, 25), "GPT-2 report, table 2"),
    (["bigscience/bloom", "bigscience/bloomz"], bloom(70, 14336, 112), "BLOOM report, table 3"),
    (["bigscience/bloom-7b1", "bigscience/bloomz-7b1"], bloom(30, 4096, 32), "BLOOM report, table 3"),
    (["bigscience/bloom-3b", "bigscience/bloomz-3b"], bloom(30, 2560, 32), "BLOOM report, table 3"),
    (["facebook/opt-1.3b"], opt(24, 2048, 32), "OPT report, table 1"),
    (["facebook/opt-2.7b"], opt(32, 2560, 32), "OPT report, table 1"),
    (["facebook/opt-6.7b"], opt(32, 4096, 32), "OPT report, table 1"),
    (["facebook/opt-13b"], opt(40, 5120, 40), "OPT report, table 1"),
    (["facebook/opt-30b"], opt(48, 7168, 56), "OPT report, table 1"),
    (["facebook/opt-66b"], opt(64, 9216, 72), "OPT report, table 1"),
    (["bigcode/starcoder", "bigcode/starcoderbase"], {"architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "multi_query": True, "vocab_size": 49152, "n_positions": 8192, "tie_word_embeddings": True, "torch_dtype": "float32"}, "StarCoder report, table 8"),
    (["ai21labs/Jamba-v0.1", "ai21labs/AI21-Jamba-1.5-Mini", "ai21labs/AI21-Jamba-Mini-1.6"], jamba(32, 4096, 14336, 32), "JambaConfig of transformers' documentation, whose defaults are this model's"),
    (["nvidia/Nemotron-H-8B-Base-8K"], dense("NemotronHForCausalLM", 52, 4096, 21504, 32, 8, 131072, 8192, head_dim=128, model_type="nemotron_h", hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-", mamba_num_heads=128, mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, chunk_size=128, expand=2, mlp_hidden_act="relu2", attention_bias=False, mlp_bias=False, use_bias=False, use_conv_bias=True), "Nemotron-H report, table of the architectures"),
    (["nvidia/Minitron-8B-Base"], dense("NemotronForCausalLM", 32, 4096, 16384, 48, 8, 256000, 4096, head_dim=128, model_type="nemotron", hidden_act="relu2", partial_rotary_factor=0.5), "Minitron report, table of the architectures"),
    (["zai-org/GLM-4.7-Flash"], routed("Glm4MoeLiteForCausalLM", 47, 2048, 10240, 20, 20, 154880, 202752, 64, 4, 1536, 1, 1, model_type="glm4_moe_lite", head_dim=64, q_lora_rank=768, kv_lora_rank=512, qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, n_group=1, topk_group=1, topk_method="noaux_tc", num_nextn_predict_layers=1, partial_rotary_factor=1.0), SLIME + "glm4.7-30B-A3B.sh"),
    (["tencent/Hunyuan-7B-Instruct"], dense("HunYuanDenseV1ForCausalLM", 32, 4096, 14336, 32, 8, 128167, 32768, tied=True, head_dim=128, model_type="hunyuan_v1_dense", use_qk_norm=True, use_cla=False), "card of Hunyuan-7B-Instruct"),
    (["baidu/ERNIE-4.5-0.3B-PT"], dense("Ernie4_5ForCausalLM", 18, 1024, 3072, 16, 2, 103424, 131072, tied=True, head_dim=128, model_type="ernie4_5", use_bias=False), "Ernie4_5Config of transformers' documentation, whose defaults are this model's"),
    (["deepseek-ai/DeepSeek-V2", "deepseek-ai/DeepSeek-V2-Chat", "deepseek-ai/DeepSeek-V2.5", "deepseek-ai/DeepSeek-Coder-V2-Instruct"], LITE | routed("DeepseekV2ForCausalLM", 60, 5120, 12288, 128, 128, 102400, 163840, 160, 6, 1536, 1, 2, q_lora_rank=1536, n_group=8, topk_group=3, topk_method="group_limited_greedy"), "DeepSeek-V2 report, section 3.1.2"),
    (["ibm-granite/granite-4.0-h-tiny"], dense("GraniteMoeHybridForCausalLM", 40, 1536, 512, 12, 4, 100352, 131072, tied=True, head_dim=128, model_type="granitemoehybrid", num_local_experts=64, num_experts_per_tok=6, shared_intermediate_size=1024, mamba_n_heads=48, mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, attention_bias=False, position_embedding_type="nope", layer_types=["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)]), "card of granite-4.0-h-tiny, table of the architecture"),
    (["zai-org/chatglm3-6b", "THUDM/chatglm3-6b"], {"architectures": ["ChatGLMModel"], "model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "ffn_hidden_size": 13696, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2, "padded_vocab_size": 65024, "seq_length": 8192, "add_bias_linear": False, "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True, "original_rope": True, "tie_word_embeddings": False, "torch_dtype": "float16"}, "ChatGLMConfig of vLLM, whose defaults are this model's"),
    (["Qwen/Qwen2-Audio-7B-Instruct", "Qwen/Qwen2-Audio-7B"], {"architectures": ["Qwen2AudioForConditionalGeneration"], "model_type": "qwen2_audio", "audio_token_index": 151646, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
      "audio_config": {"model_type": "qwen2_audio_encoder", "num_mel_bins": 128, "d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "max_source_positions": 1500, "activation_function": "gelu", "scale_embedding": False},
      "text_config": text_of(dense("", 32, 4096, 11008, 32, 32, 156032, 8192), "qwen2")}, "text as Qwen/Qwen-7B; encoder: Qwen2AudioEncoderConfig of transformers' documentation, whose defaults are this model's"),
]
def whisper(layers, decoders, width, heads, bins=80, vocab=51865):
    return {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "is_encoder_decoder": True, "vocab_size": vocab, "num_mel_bins": bins, "d_model": width,
            "encoder_layers": layers, "encoder_attention_heads": heads, "encoder_ffn_dim": 4 * width, "decoder_layers": decoders, "decoder_attention_heads": heads, "decoder_ffn_dim": 4 * width,
            "max_source_positions": 1500, "max_target_positions": 448, "num_hidden_layers": layers, "tie_word_embeddings": True, "torch_dtype": "float16"}
MORE += [
    (["openai/whisper-large-v3"], whisper(32, 32, 1280, 20, 128, 51866), "Whisper report, table 1; card of whisper-large-v3: 128 Mel bins, a token for Cantonese"),
    (["openai/whisper-large-v3-turbo"], whisper(32, 4, 1280, 20, 128, 51866), "card of whisper-large-v3-turbo: large-v3 with 4 layers in the decoder"),
    (["openai/whisper-large-v2", "openai/whisper-large"], whisper(32, 32, 1280, 20), "Whisper report, table 1"),
    (["openai/whisper-medium"], whisper(24, 24, 1024, 16), "Whisper report, table 1"),
    (["openai/whisper-small"], whisper(12, 12, 768, 12), "Whisper report, table 1"),
    (["google/gemma-3-270m", "google/gemma-3-270m-it"], dense("Gemma3ForCausalLM", 18, 640, 2048, 4, 1, 262144, 32768, tied=True, head_dim=256, sliding_window=512, layer_types=pattern([SLIDE] * 5 + [FULL], 18)), "card of gemma-3-270m; the pattern of Gemma 3's other sizes"),
    (["llava-hf/llava-v1.6-mistral-7b-hf"], sees("LlavaNextForConditionalGeneration", "llava_next", text_of(dense("", 32, 4096, 14336, 32, 8, 32064, 32768), "mistral") | {"sliding_window": None}, CLIP_L, image_token_index=32000, vision_feature_layer=-2, vision_feature_select_strategy="default", image_grid_pinpoints=[[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]), "text as mistralai/Mistral-7B-Instruct-v0.2 with 64 entries more; encoder: CLIP ViT-L/14 at 336 (LLaVA-NeXT's page)"),
    (["stabilityai/stablelm-2-12b", "stabilityai/stablelm-2-12b-chat"], dense("StableLmForCausalLM", 40, 5120, 13824, 32, 8, 100352, 4096, model_type="stablelm", qk_layernorm=True, use_qkv_bias=False, use_parallel_residual=True, partial_rotary_factor=0.25), "Stable LM 2 12B report, table of the architecture"),
]

# Layers without attention between those with it, and the tower of pictures that Qwen3-VL of about that size has.
def qwen35(layers, hidden, inter, heads, kv, values, tied, tower):
    depth, width, wide, seen = tower
    text = {k: v for k, v in dense("", layers, hidden, inter, heads, kv, 248320, 262144, tied=tied, head_dim=256, model_type="qwen3_5_text").items() if k != "architectures"}
    text |= {"attn_output_gate": True, "layer_types": pattern(["linear_attention"] * 3 + [FULL], layers), "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
             "linear_num_key_heads": 16, "linear_num_value_heads": values, "linear_value_head_dim": 128, "mtp_num_hidden_layers": 1, "mamba_ssm_dtype": "float32",
             "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "rope_type": "default", "partial_rotary_factor": 0.25}}
    vision = {"model_type": "qwen3_5", "depth": depth, "hidden_size": width, "intermediate_size": wide, "num_heads": seen, "in_channels": 3, "num_position_embeddings": 2304,
              "out_hidden_size": hidden, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "deepstack_visual_indexes": []}
    return sees("Qwen3_5ForConditionalGeneration", "qwen3_5", text, vision)
def mamba(layers, hidden):
    return {"architectures": ["MambaForCausalLM"], "model_type": "mamba", "hidden_size": hidden, "num_hidden_layers": layers, "state_size": 16, "conv_kernel": 4, "expand": 2, "intermediate_size": 2 * hidden,
            "time_step_rank": -(-hidden // 16), "use_bias": False, "use_conv_bias": True, "vocab_size": 50280, "tie_word_embeddings": True, "torch_dtype": "float32"}
def lfm2(layers, hidden, wide, heads, kv, seen):
    # What is written down is two thirds of it rounded up, as the model's code counts it.
    return dense("Lfm2ForCausalLM", layers, hidden, wide, heads, kv, 65536, 128000, tied=True, model_type="lfm2", block_dim=hidden, block_ff_dim=wide, block_auto_adjust_ff_dim=False, block_multiple_of=256,
                 block_use_swiglu=True, conv_L_cache=3, conv_bias=False, conv_dim=hidden, full_attn_idxs=seen, layer_types=[FULL if i in seen else "conv" for i in range(layers)])
def granite(layers, hidden, experts):
    return dense("GraniteMoeForCausalLM", layers, hidden, 512, hidden // 64, 8, 49155, 4096, tied=True, model_type="granitemoe", num_local_experts=experts, num_experts_per_tok=8)
def next_llava(text, model_type):
    return sees("LlavaNextForConditionalGeneration", "llava_next", text_of(text, model_type), CLIP_L, image_token_index=32000, vision_feature_layer=-2, vision_feature_select_strategy="default",
                image_grid_pinpoints=[[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]])
def q3(layers, hidden, inter, heads, kv, tied): return dense("Qwen3ForCausalLM", layers, hidden, inter, heads, kv, 151936, 40960, tied=tied, head_dim=128)
def internvl35(text):
    c = internvl(text, 151936)
    return c | {"llm_config": c["llm_config"] | {"model_type": text.get("model_type", "qwen3"), "architectures": text["architectures"]}}
SIGLIP_SO = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 224, "patch_size": 14}
def paligemma(image):
    text = text_of(dense("", 18, 2048, 16384, 8, 1, 257216, 8192, tied=True, head_dim=256), "gemma")
    return sees("PaliGemmaForConditionalGeneration", "paligemma", text, SIGLIP_SO | {"image_size": image}, projection_dim=2048, image_token_index=257152)
LING = dense("BailingMoeV2ForCausalLM", 20, 2048, 5120, 16, 4, 157184, 32768, head_dim=128, model_type="bailing_moe", num_experts=256, num_shared_experts=1, num_experts_per_tok=8, n_group=8, topk_group=4,
             moe_intermediate_size=512, first_k_dense_replace=1, use_qk_norm=True, use_qkv_bias=False, use_bias=False, partial_rotary_factor=0.5, score_function="sigmoid", moe_router_enable_expert_bias=True)
GEMMA3_4 = "google/gemma-3-4b-it"

MORE += [
    (["Qwen/Qwen3.5-0.8B", "Qwen/Qwen3.5-0.8B-Base"], qwen35(24, 1024, 3584, 8, 2, 16, True, (12, 768, 3072, 12)), "THUDM/slime f8879db scripts/models/qwen3.5-0.8B.sh; its tower of 12 layers of 768 was not read anywhere"),
    (["Qwen/Qwen3.5-2B", "Qwen/Qwen3.5-2B-Base"], qwen35(24, 2048, 6144, 8, 2, 16, True, (24, 1024, 4096, 16)), "K1XE/BPM 55093cf scripts/models/qwen3.5-2B.sh; encoder as Qwen/Qwen3-VL-2B-Instruct"),
    (["Qwen/Qwen3.5-4B", "Qwen/Qwen3.5-4B-Base"], qwen35(32, 2560, 9216, 16, 4, 32, True, (24, 1024, 4096, 16)), "radixark/miles 51b148c scripts/models/qwen3.5-4B.sh; encoder as Qwen/Qwen3-VL-4B-Instruct"),
    (["Qwen/Qwen3.5-9B", "Qwen/Qwen3.5-9B-Base"], qwen35(32, 4096, 12288, 16, 4, 32, False, (27, 1152, 4304, 16)), "Qwen3_5TextConfig of transformers' documentation, whose defaults are this model's; encoder as Qwen/Qwen3-VL-8B-Instruct"),
    (["arcee-ai/Llama-3.1-SuperNova-Lite", "nvidia/llama-3.1-nemoguard-8b-topic-control", "nvidia/llama-3.1-nemoguard-8b-content-safety"], L8, "tuned from meta-llama/Llama-3.1-8B (their cards): its configuration"),
    (["bigscience/bloom-560m", "bigscience/bloomz-560m"], bloom(24, 1024, 16), "BLOOM report, table 3"),
    (["bigscience/bloom-1b1", "bigscience/bloomz-1b1"], bloom(24, 1536, 16), "BLOOM report, table 3"),
    (["bigscience/bloom-1b7", "bigscience/bloomz-1b7"], bloom(24, 2048, 16), "BLOOM report, table 3"),
    (["bigcode/gpt_bigcode-santacoder"], {"architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "multi_query": True, "vocab_size": 49280, "n_positions": 2048, "tie_word_embeddings": True, "torch_dtype": "float32"}, "SantaCoder report, section 4: 1.1 billion parameters"),
    (["microsoft/Phi-3-medium-128k-instruct"], dense("Phi3ForCausalLM", 40, 5120, 17920, 40, 10, 32064, 131072, original_max_position_embeddings=4096, rope_scaling={"type": "longrope", "short_factor": [], "long_factor": []}), "Phi-3 report, section 2: as Phi-3-medium-4k-instruct with LongRoPE"),
    (["ibm-granite/granite-3.0-8b-instruct", "ibm-granite/granite-3.0-8b-base"], dense("GraniteForCausalLM", 40, 4096, 12800, 32, 8, 49155, 4096, tied=True), "card of granite-3.0-8b-instruct, table of the architecture"),
    (["ibm-granite/granite-3.0-2b-instruct", "ibm-granite/granite-3.0-2b-base"], dense("GraniteForCausalLM", 40, 2048, 8192, 32, 8, 49155, 4096, tied=True), "card of granite-3.0-2b-instruct, table of the architecture"),
    (["ibm-granite/granite-3.0-3b-a800m-instruct", "ibm-granite/granite-3.0-3b-a800m-base"], granite(32, 1536, 40), "card of granite-3.0-3b-a800m-instruct, table of the architecture"),
    (["ibm-granite/granite-3.0-1b-a400m-instruct", "ibm-granite/granite-3.0-1b-a400m-base"], granite(24, 1024, 32), "card of granite-3.0-1b-a400m-instruct, table of the architecture"),
    (["state-spaces/mamba-130m-hf"], mamba(24, 768), "Mamba report, table of the sizes"),
    (["state-spaces/mamba-370m-hf"], mamba(48, 1024), "Mamba report, table of the sizes"),
    (["state-spaces/mamba-790m-hf"], mamba(48, 1536), "Mamba report, table of the sizes"),
    (["state-spaces/mamba-1.4b-hf"], mamba(48, 2048), "Mamba report, table of the sizes"),
    (["state-spaces/mamba-2.8b-hf"], mamba(64, 2560), "Mamba report, table of the sizes"),
    (["mistralai/Mamba-Codestral-7B-v0.1"], {"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8, "conv_kernel": 4, "expand": 2, "chunk_size": 256, "use_bias": False, "use_conv_bias": True, "vocab_size": 32768, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, "Mamba2Config of transformers' documentation, whose defaults are this model's"),
    (["tiiuae/falcon-mamba-7b", "tiiuae/falcon-mamba-7b-instruct"], mamba(64, 4096) | {"architectures": ["FalconMambaForCausalLM"], "model_type": "falcon_mamba", "vocab_size": 65024, "tie_word_embeddings": False, "time_step_rank": 256, "torch_dtype": "bfloat16"}, "Falcon Mamba report, table of the architecture"),
    (["LiquidAI/LFM2-350M"], lfm2(16, 1024, 4608, 16, 8, [2, 5, 8, 10, 12, 14]), "LFM2 report, table of the sizes"),
    (["LiquidAI/LFM2-700M"], lfm2(16, 1536, 6912, 24, 8, [2, 5, 8, 10, 12, 14]), "LFM2 report, table of the sizes"),
    (["LiquidAI/LFM2.5-1.2B-Instruct", "LiquidAI/LFM2.5-1.2B-Base", "LiquidAI/LFM2.5-1.2B-Thinking"], "LiquidAI/LFM2-1.2B", "shapes as LiquidAI/LFM2-1.2B, on which it was trained further (its card)"),
    (["llava-hf/llava-v1.6-vicuna-7b-hf"], next_llava(dense("", 32, 4096, 11008, 32, 32, 32064, 4096), "llama"), "text as lmsys/vicuna-7b-v1.5 with 64 entries more; encoder: CLIP ViT-L/14 at 336 (LLaVA-NeXT's page)"),
    (["llava-hf/llava-v1.6-vicuna-13b-hf"], next_llava(dense("", 40, 5120, 13824, 40, 40, 32064, 4096), "llama"), "text as lmsys/vicuna-13b-v1.5 with 64 entries more; encoder: CLIP ViT-L/14 at 336 (LLaVA-NeXT's page)"),
    (["OpenGVLab/InternVL3_5-1B"], internvl35(q3(28, 1024, 3072, 16, 8, True)), "InternVL3.5 report, table 1: InternViT-300M and Qwen3-0.6B"),
    (["OpenGVLab/InternVL3_5-2B"], internvl35(q3(28, 2048, 6144, 16, 8, True)), "InternVL3.5 report, table 1: InternViT-300M and Qwen3-1.7B"),
    (["OpenGVLab/InternVL3_5-4B"], internvl35(q3(36, 2560, 9728, 32, 8, True)), "InternVL3.5 report, table 1: InternViT-300M and Qwen3-4B"),
    (["OpenGVLab/InternVL3_5-8B", "OpenGVLab/InternVL3_5-8B-Instruct"], internvl35(q3(36, 4096, 12288, 32, 8, False)), "InternVL3.5 report, table 1: InternViT-300M and Qwen3-8B"),
    (["OpenGVLab/InternVL3_5-14B", "OpenGVLab/InternVL3_5-14B-Instruct"], internvl35(q3(40, 5120, 17408, 40, 8, False)), "InternVL3.5 report, table 1: InternViT-300M and Qwen3-14B"),
    (["google/paligemma-3b-pt-224", "google/paligemma-3b-mix-224"], paligemma(224), "PaliGemma report: Gemma 2B and SigLIP So400m; PaliGemmaConfig of transformers' documentation"),
    (["google/paligemma-3b-pt-448", "google/paligemma-3b-mix-448"], paligemma(448), "PaliGemma report: Gemma 2B and SigLIP So400m; PaliGemmaConfig of transformers' documentation"),
    (["google/medgemma-4b-it", "google/medgemma-4b-pt"], GEMMA3_4, "tuned from google/gemma-3-4b-pt (its card): its configuration"),
    (["google/medgemma-27b-it"], "google/gemma-3-27b-it", "tuned from google/gemma-3-27b-pt (its card): its configuration"),
    (["openbmb/MiniCPM3-4B"], dense("MiniCPM3ForCausalLM", 62, 2560, 6400, 40, 40, 73448, 32768, model_type="minicpm3", head_dim=96, q_lora_rank=768, kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64), "MiniCPM3Config of transformers' documentation, whose defaults are this model's"),
    (["inclusionAI/Ling-mini-2.0", "inclusionAI/Ring-mini-2.0"], LING, "inclusionAI/Ring-V2.5 models/configuration_bailing_moe_v2_5.py, whose defaults of experts and widths are Ling-mini 2.0's; ant-yy/Ling-V2 README: 16 billion parameters"),
    (["Qwen/Qwen3-ASR-1.7B"], {"architectures": ["Qwen3ASRForConditionalGeneration"], "audio_config": {"num_mel_bins": 128, "encoder_layers": 24, "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "d_model": 1024, "n_window": 50, "output_dim": 3584, "n_window_infer": 800, "downsample_hidden_size": 480, "max_position_embeddings": 13, "model_type": "qwen3_asr_encoder"}, "text_config": {"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 65536, "tie_word_embeddings": True, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "attention_bias": False, "use_sliding_window": False, "max_window_layers": 28, "layer_types": [FULL] * 28, "model_type": "qwen3"}, "tie_word_embeddings": True, "model_type": "qwen3_asr", "torch_dtype": "bfloat16"}, "Qwen3ASRConfig of transformers' documentation, whose defaults are this model's"),
    (["allenai/Olmo-Hybrid-7B"], {"architectures": ["OlmoHybridForCausalLM"], "vocab_size": 100352, "hidden_size": 3840, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 30, "num_key_value_heads": 30, "max_position_embeddings": 65536, "tie_word_embeddings": False, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "attention_bias": False, "layer_types": pattern(["linear_attention", "linear_attention", "linear_attention", FULL], 32), "linear_num_key_heads": 30, "linear_num_value_heads": 30, "linear_key_head_dim": 96, "linear_value_head_dim": 192, "linear_conv_kernel_dim": 4, "model_type": "olmo_hybrid", "torch_dtype": "bfloat16"}, "OlmoHybridConfig of transformers' documentation, whose defaults are this model's"),
    (["facebook/cwm", "facebook/cwm-sft"], {"architectures": ["CwmForCausalLM"], "vocab_size": 128256, "hidden_size": 6144, "intermediate_size": 21504, "num_hidden_layers": 64, "num_attention_heads": 48, "num_key_value_heads": 8, "max_position_embeddings": 131072, "tie_word_embeddings": False, "rope_parameters": {"rope_theta": 1000000.0, "factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "mlp_bias": False, "head_dim": 128, "sliding_window": 8192, "layer_types": pattern([FULL, SLIDE, SLIDE, SLIDE], 64), "model_type": "cwm", "torch_dtype": "bfloat16"}, "CwmConfig of transformers' documentation, whose defaults are this model's"),
    (["LiquidAI/LFM2-8B-A1B"], dense("Lfm2MoeForCausalLM", 24, 2048, 7168, 32, 8, 65536, 128000, tied=True, model_type="lfm2_moe", moe_intermediate_size=1792, num_experts=32, num_experts_per_tok=4, num_dense_layers=2, use_expert_bias=True, conv_L_cache=3, conv_bias=False, layer_types=[FULL if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)]), "LFM2 report, table of the sizes; Lfm2MoeConfig of transformers' documentation for the widths"),
    (["skt/A.X-K1"], {"architectures": ["AXK1ForCausalLM"], "vocab_size": 163840, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 64, "num_key_value_heads": 64, "n_shared_experts": 1, "n_routed_experts": 192, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8, "max_position_embeddings": 32768, "tie_word_embeddings": False, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "rope_interleave": True, "attention_bias": False, "mlp_layer_types": ["dense"] + ["sparse"] * 60, "qk_head_dim": 192, "head_dim": 64, "model_type": "axk1", "torch_dtype": "bfloat16"}, "AXK1Config of transformers' documentation, whose defaults are this model's"),
]

def smol(layers, hidden, inter, heads, kv): return dense("LlamaForCausalLM", layers, hidden, inter, heads, kv, 49152, 2048, tied=True)
KDA = [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26]
MORE += [
    (["HuggingFaceTB/SmolLM-135M", "HuggingFaceTB/SmolLM-135M-Instruct"], smol(30, 576, 1536, 9, 3), "shapes as HuggingFaceTB/SmolLM2-135M, 2,048 positions (card of SmolLM-135M)"),
    (["HuggingFaceTB/SmolLM-360M", "HuggingFaceTB/SmolLM-360M-Instruct"], smol(32, 960, 2560, 15, 5), "shapes as HuggingFaceTB/SmolLM2-360M, 2,048 positions (card of SmolLM-360M)"),
    (["HuggingFaceTB/SmolLM-1.7B", "HuggingFaceTB/SmolLM-1.7B-Instruct"], smol(24, 2048, 8192, 32, 32), "shapes as HuggingFaceTB/SmolLM2-1.7B, 2,048 positions (card of SmolLM-1.7B)"),
    (["zai-org/chatglm2-6b", "THUDM/chatglm2-6b"], {"architectures": ["ChatGLMModel"], "model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "ffn_hidden_size": 13696, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2, "padded_vocab_size": 65024, "seq_length": 32768, "add_bias_linear": False, "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True, "original_rope": True, "tie_word_embeddings": False, "torch_dtype": "float16"}, "shapes as zai-org/chatglm3-6b, 32,768 positions (its card)"),
    (["moonshotai/Kimi-Linear-48B-A3B-Instruct", "moonshotai/Kimi-Linear-48B-A3B-Base"], dense("KimiLinearForCausalLM", 27, 2304, 9216, 32, 32, 163840, 1048576, head_dim=72, model_type="kimi_linear", num_experts=256, num_experts_per_token=8, num_shared_experts=1, moe_intermediate_size=1024,
      first_k_dense_replace=1, moe_layer_freq=1, kv_lora_rank=512, q_lora_rank=None, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, mla_use_nope=True,
      linear_attn_config={"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "kda_layers": KDA, "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}), "Kimi Linear report, table of the architecture: three layers of KDA to one of MLA"),
    (["microsoft/Phi-4-multimodal-instruct"], dense("Phi4MMForCausalLM", 32, 3072, 8192, 24, 8, 200064, 131072, tied=True, model_type="phi4mm", original_max_position_embeddings=4096, partial_rotary_factor=0.75,
      rope_scaling={"type": "longrope", "short_factor": [], "long_factor": []}, sliding_window=262144,
      audio_processor={"name": "cascades", "config": {"attention_dim": 1024, "attention_heads": 16, "linear_units": 1536, "num_blocks": 24, "kernel_size": 3, "input_size": 80, "time_reduction": 8, "nemo_conv_settings": {"conv_channels": 1024}, "relative_attention_bias_args": {"t5_bias_max_distance": 500, "type": "t5"}}},
      embd_layer={"image_embd_layer": {"crop_size": 448, "image_token_compression_cls": "avg_pool_2d", "projection_cls": "mlp", "use_hd_transform": True}, "audio_embd_layer": {"compression_rate": 8, "projection_cls": "mlp"}}), "text as microsoft/Phi-4-mini-instruct (its report); towers as vLLM's code of them builds them; the language model"),
]
MORE += [
    (["TinyLlama/TinyLlama-1.1B-Chat-v0.3", "TinyLlama/TinyLlama-1.1B-Chat-v0.4", "TinyLlama/TinyLlama-1.1B-Chat-v0.6"], dense("LlamaForCausalLM", 22, 2048, 5632, 32, 4, 32000, 2048), "shapes as TinyLlama/TinyLlama-1.1B-Chat-v1.0; some have three tokens more"),
]
def tuned(ids, base): return (ids, base, f"tuned from {base} (its card): its configuration")
# InternViT-6B of InternVL's reports.
VIT6 = {"model_type": "intern_vit_6b", "hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45, "num_attention_heads": 25, "image_size": 448, "patch_size": 14,
        "qkv_bias": False, "qk_normalization": True, "norm_type": "rms_norm"}
MORE += [
    tuned(["Salesforce/Llama-xLAM-2-8b-fc-r", "mlabonne/Meta-Llama-3.1-8B-Instruct-abliterated"], "NousResearch/Hermes-3-Llama-3.1-8B"),
    tuned(["Sao10K/L3.3-70B-Euryale-v2.3", "VAGOsolutions/Llama-3.1-SauerkrautLM-70b-Instruct", "tokyotech-llm/Llama-3.3-Swallow-70B-Instruct-v0.4", "aisingapore/Llama-SEA-LION-v3-70B-IT",
           "Salesforce/Llama-xLAM-2-70b-fc-r"], "NousResearch/Hermes-3-Llama-3.1-70B"),
    tuned(["rinna/llama-3-youko-8b", "elyza/Llama-3-ELYZA-JP-8B", "defog/llama-3-sqlcoder-8b"], "NousResearch/Meta-Llama-3-8B-Instruct"),
    tuned(["NousResearch/Hermes-3-Llama-3.1-405B", "NousResearch/Hermes-4-405B", "allenai/Llama-3.1-Tulu-3-405B"], "meta-llama/Meta-Llama-3.1-405B"),
    (["Skywork/Skywork-OR1-32B", "Skywork/Skywork-OR1-32B-Preview", "cyberagent/DeepSeek-R1-Distill-Qwen-32B-Japanese"], "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "tuned from deepseek-ai/DeepSeek-R1-Distill-Qwen-32B (README of Skywork/Skywork-OR1-32B): its configuration"),
    tuned(["cyberagent/DeepSeek-R1-Distill-Qwen-14B-Japanese", "nvidia/AceReason-Nemotron-14B"], "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"),
    tuned(["Skywork/Skywork-OR1-7B", "Skywork/Skywork-OR1-Math-7B", "nvidia/AceReason-Nemotron-7B"], "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
    (["NovaSky-AI/Sky-T1-32B-Preview", "simplescaling/s1-32B", "simplescaling/s1.1-32B", "bespokelabs/Bespoke-Stratos-32B", "open-thoughts/OpenThinker-32B", "open-thoughts/OpenThinker2-32B", "Salesforce/xLAM-2-32b-fc-r", "nvidia/OpenCodeReasoning-Nemotron-32B"],
     q2("32B", 32768), "tuned from Qwen/Qwen2.5-32B-Instruct (their cards): its configuration"),
    (["open-thoughts/OpenThinker-7B", "open-thoughts/OpenThinker2-7B", "open-thoughts/OpenThinker3-7B", "bespokelabs/Bespoke-Stratos-7B"], q2("7B", 32768), "tuned from Qwen/Qwen2.5-7B-Instruct (their cards): its configuration"),
    (["moonshotai/Kimi-Dev-72B"], q2("72B", 131072), "tuned from Qwen/Qwen2.5-72B (its card): its configuration"),
    (["anthracite-org/magnum-v4-72b"], q2("72B", 32768), "tuned from Qwen/Qwen2.5-72B-Instruct (its card): its configuration"),
    (["SakanaAI/TinySwallow-1.5B-Instruct", "katanemo/Arch-Router-1.5B"], q2("1.5B", 32768), "tuned from Qwen/Qwen2.5-1.5B-Instruct (their cards): its configuration"),
    tuned(["PrimeIntellect/INTELLECT-2"], "Qwen/QwQ-32B"),
    tuned(["agentica-org/DeepSWE-Preview", "Tesslate/UIGEN-X-32B-0727"], "Qwen/Qwen3-32B"),
    tuned(["huihui-ai/Qwen3-14B-abliterated"], "Qwen/Qwen3-14B"),
    tuned(["Menlo/Jan-nano"], "Qwen/Qwen3-4B"),
    tuned(["janhq/Jan-v1-4B"], "Qwen/Qwen3-4B-Thinking-2507"),
    tuned(["nvidia/Cosmos-Reason1-7B", "ByteDance-Seed/UI-TARS-1.5-7B", "reducto/RolmOCR", "numind/NuExtract-2.0-8B", "allenai/olmOCR-2-7B-1025"], "Qwen/Qwen2.5-VL-7B-Instruct"),
    tuned(["arcee-ai/Arcee-Blitz"], "mistralai/Mistral-Small-24B-Instruct-2501"),
    tuned(["mlabonne/NeuralBeagle14-7B"], "HuggingFaceH4/zephyr-7b-beta"),
    tuned(["Phind/Phind-CodeLlama-34B-v2"], "codellama/CodeLlama-34b-hf"),
    tuned(["m-a-p/OpenCodeInterpreter-DS-33B"], "deepseek-ai/deepseek-coder-33b-instruct"),
    tuned(["ise-uiuc/Magicoder-S-DS-6.7B"], "deepseek-ai/deepseek-coder-6.7b-instruct"),
    tuned(["PrimeIntellect/INTELLECT-3"], "zai-org/GLM-4.5-Air"),
    tuned(["HuggingFaceH4/zephyr-orpo-141b-A35b-v0.1"], "mistralai/Mixtral-8x22B-v0.1"),
    tuned(["openai/gpt-oss-safeguard-20b"], "openai/gpt-oss-20b"),
    tuned(["openai/gpt-oss-safeguard-120b"], "openai/gpt-oss-120b"),
    tuned(["prithivMLmods/Qwen3-VL-8B-Instruct-abliterated"], "Qwen/Qwen3-VL-8B-Instruct"),
    (["speakleash/Bielik-11B-v2.3-Instruct", "speakleash/Bielik-11B-v2.2-Instruct", "speakleash/Bielik-11B-v2"], dense("MistralForCausalLM", 50, 4096, 14336, 32, 8, 32128, 32768), "Bielik 11B v2 report, table of the architecture: Mistral 7B grown to 50 layers"),
    (["utter-project/EuroLLM-9B", "utter-project/EuroLLM-9B-Instruct"], dense("LlamaForCausalLM", 42, 4096, 12288, 32, 8, 128000, 4096), "EuroLLM-9B report, table of the hyperparameters"),
    (["tiiuae/Falcon-H1-34B-Instruct", "tiiuae/Falcon-H1-34B-Base"], dense("FalconH1ForCausalLM", 72, 5120, 21504, 20, 4, 261120, 262144, head_dim=128, model_type="falcon_h1", mamba_d_ssm=4096, mamba_n_heads=32, mamba_d_head=128, mamba_d_state=256, mamba_n_groups=2,
      mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, mamba_rms_norm=False), "table of FalconH1 in transformers' documentation: depth, width, heads, state"),
    (["inclusionAI/Ling-flash-2.0", "inclusionAI/Ring-flash-2.0"], LING | {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 9216, "num_attention_heads": 32, "moe_intermediate_size": 1024}, "Ling 2.0 report, table of the architectures: 100 billion parameters, 6.1 of them active"),
    (["inclusionAI/Ling-1T", "inclusionAI/Ring-1T"], LING | {"num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 18432, "num_attention_heads": 64, "num_key_value_heads": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 4}, "Ling 2.0 report, table of the architectures: 1,000 billion parameters, 51 of them active"),
    (["OpenGVLab/InternVL3-38B"], internvl(q2("32B", 32768), 151674) | {"vision_config": VIT6}, "InternVL3 report, table 1: InternViT-6B and Qwen2.5-32B"),
    (["OpenGVLab/InternVL3-78B"], internvl(q2("72B", 32768), 151674) | {"vision_config": VIT6}, "InternVL3 report, table 1: InternViT-6B and Qwen2.5-72B"),
    (["OpenGVLab/InternVL3_5-38B", "OpenGVLab/InternVL3_5-38B-Instruct"], internvl35(q3(64, 5120, 25600, 64, 8, False)) | {"vision_config": VIT6}, "InternVL3.5 report, table 1: InternViT-6B and Qwen3-32B"),
    (["moonshotai/Moonlight-16B-A3B", "moonshotai/Moonlight-16B-A3B-Instruct"], routed("DeepseekV3ForCausalLM", 27, 2048, 11264, 16, 16, 163840, 8192, 64, 6, 1408, 1, 2, n_group=1, topk_group=1, topk_method="noaux_tc", scoring_func="sigmoid", model_type="deepseek_v3",
      q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128), "Moonlight report: 16 billion parameters in DeepSeek-V3's architecture"),
]

# Models of several kinds whose shapes reports and other code name.
MEGATRON = "NVIDIA-NeMo/NeMo 8cfedd7203 nemo/collections/llm/gpt/model/"
def internlm2(layers, hidden, inter, heads, kv): return dense("InternLM2ForCausalLM", layers, hidden, inter, heads, kv, 92553, 32768, model_type="internlm2", bias=False)
def internvl2(text, vision=None):
    c = internvl(text, text["vocab_size"])
    return c | {"llm_config": c["llm_config"] | {"model_type": text.get("model_type", "qwen2")}} | ({"vision_config": vision} if vision else {})
def paligemma2(layers, hidden, inter, heads, kv, image, head_dim=256):
    text = text_of(dense("", layers, hidden, inter, heads, kv, 257216, 8192, tied=True, head_dim=head_dim, sliding_window=4096, layer_types=pattern([SLIDE, FULL], layers)), "gemma2")
    return sees("PaliGemmaForConditionalGeneration", "paligemma", text, SIGLIP_SO | {"image_size": image}, projection_dim=hidden, image_token_index=257152)
def q3moe(layers, hidden, inter, heads, kv, width):
    return dense("Qwen3MoeForCausalLM", layers, hidden, inter, heads, kv, 151936, 40960, head_dim=128, model_type="qwen3_moe", num_experts=128, num_experts_per_tok=8, moe_intermediate_size=width, decoder_sparse_step=1, mlp_only_layers=[])
STARCODER = {"architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "multi_query": True, "vocab_size": 49152, "n_positions": 8192, "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
MORE += [
    (["nvidia/NVIDIA-Nemotron-Nano-12B-v2", "nvidia/NVIDIA-Nemotron-Nano-12B-v2-Base"], dense("NemotronHForCausalLM", 62, 5120, 20480, 40, 8, 131072, 131072, head_dim=128, model_type="nemotron_h", hybrid_override_pattern="M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-", mamba_num_heads=128, mamba_head_dim=80, ssm_state_size=128, n_groups=8, conv_kernel=4, chunk_size=128, expand=2, mlp_hidden_act="relu2", attention_bias=False, mlp_bias=False, use_bias=False, use_conv_bias=True), MEGATRON + "ssm.py; Nemotron Nano 2 report, table of the architecture"),
    (["nvidia/Mistral-NeMo-Minitron-8B-Base", "nvidia/Mistral-NeMo-Minitron-8B-Instruct"], dense("MistralForCausalLM", 40, 4096, 11520, 32, 8, 131072, 8192, head_dim=128), "card of Mistral-NeMo-Minitron-8B-Base: width 4,096, 32 heads, 11,520, 40 layers"),
    (["nvidia/Llama-3.1-Minitron-4B-Depth-Base"], dense("LlamaForCausalLM", 16, 4096, 14336, 32, 8, 128256, 8192), "card of Llama-3.1-Minitron-4B-Depth-Base: Llama 3.1 8B with 16 layers"),
    (["nvidia/Llama-3.1-Nemotron-Nano-4B-v1.1"], dense("LlamaForCausalLM", 32, 3072, 9216, 32, 8, 128256, 131072, head_dim=128, rope_scaling=LLAMA31), "made of nvidia/Llama-3.1-Minitron-4B-Width-Base, 131,072 positions (its card)"),
    (["01-ai/Yi-9B"], dense("LlamaForCausalLM", 48, 4096, 11008, 32, 4, 64000, 4096), "Yi report: Yi-6B with 48 layers"),
    (["01-ai/Yi-1.5-6B-Chat", "01-ai/Yi-1.5-6B"], dense("LlamaForCausalLM", 32, 4096, 11008, 32, 4, 64000, 4096), "shapes as 01-ai/Yi-6B, on which it was trained further (its card)"),
    (["01-ai/Yi-1.5-9B-Chat-16K"], dense("LlamaForCausalLM", 48, 4096, 11008, 32, 4, 64000, 16384), "shapes as 01-ai/Yi-1.5-9B, 16,384 positions (its card)"),
    (["01-ai/Yi-1.5-34B-Chat-16K"], dense("LlamaForCausalLM", 60, 7168, 20480, 56, 8, 64000, 16384), "shapes as 01-ai/Yi-1.5-34B, 16,384 positions (its card)"),
    (["01-ai/Yi-34B-200K"], dense("LlamaForCausalLM", 60, 7168, 20480, 56, 8, 64000, 200000), "shapes as 01-ai/Yi-34B, 200,000 positions (its card)"),
    (["ai21labs/AI21-Jamba-1.5-Large", "ai21labs/AI21-Jamba-Large-1.6", "ai21labs/AI21-Jamba-Large-1.7"], jamba(72, 8192, 24576, 64), "Jamba 1.5 report, section 2: 72 layers of 8,192, 398 billion parameters"),
    (["ai21labs/AI21-Jamba-Mini-1.7"], jamba(32, 4096, 14336, 32), "shapes as ai21labs/AI21-Jamba-Mini-1.6 (its card)"),
    (["LiquidAI/LFM2-1.2B-Tool", "LiquidAI/LFM2-1.2B-Extract", "LiquidAI/LFM2-1.2B-RAG"], "LiquidAI/LFM2-1.2B", "tuned from LiquidAI/LFM2-1.2B (their cards): its configuration"),
    (["CohereLabs/aya-23-35B", "CohereForAI/aya-23-35B"], dense("CohereForCausalLM", 40, 8192, 22528, 64, 64, 256000, 8192, tied=True), "trained from Command R (its card): its shapes, 8,192 positions"),
    (["openai/whisper-base"], whisper(6, 6, 512, 8), "Whisper report, table 1"),
    (["openai/whisper-tiny"], whisper(4, 4, 384, 6), "Whisper report, table 1"),
    (["openai/whisper-medium.en"], whisper(24, 24, 1024, 16, vocab=51864), "Whisper report, table 1; a token less without languages"),
    (["openai/whisper-small.en"], whisper(12, 12, 768, 12, vocab=51864), "Whisper report, table 1; a token less without languages"),
    (["openai/whisper-base.en"], whisper(6, 6, 512, 8, vocab=51864), "Whisper report, table 1; a token less without languages"),
    (["openai/whisper-tiny.en"], whisper(4, 4, 384, 6, vocab=51864), "Whisper report, table 1; a token less without languages"),
    (["distil-whisper/distil-large-v2"], whisper(32, 2, 1280, 20), "Distil-Whisper report: large-v2 with 2 layers in the decoder"),
    (["ibm-granite/granite-8b-code-instruct-4k", "ibm-granite/granite-8b-code-base-4k"], dense("LlamaForCausalLM", 36, 4096, 14336, 32, 8, 49152, 4096, tied=True, attention_bias=True, mlp_bias=True), "Granite Code report, table of the architectures"),
    (["ibm-granite/granite-8b-code-instruct-128k", "ibm-granite/granite-8b-code-base-128k"], dense("LlamaForCausalLM", 36, 4096, 14336, 32, 8, 49152, 128000, tied=True, attention_bias=True, mlp_bias=True), "Granite Code report, table of the architectures; 128,000 positions (its card)"),
    (["ibm-granite/granite-3b-code-instruct-2k", "ibm-granite/granite-3b-code-base-2k"], dense("LlamaForCausalLM", 32, 2560, 10240, 32, 32, 49152, 2048, tied=True, attention_bias=True, mlp_bias=True), "Granite Code report, table of the architectures"),
    (["ibm-granite/granite-3b-code-instruct-128k", "ibm-granite/granite-3b-code-base-128k"], dense("LlamaForCausalLM", 32, 2560, 10240, 32, 32, 49152, 128000, tied=True, attention_bias=True, mlp_bias=True), "Granite Code report, table of the architectures; 128,000 positions (its card)"),
    (["stabilityai/stable-code-instruct-3b"], "stabilityai/stable-code-3b", "tuned from stabilityai/stable-code-3b (its card): its configuration"),
    (["microsoft/phi-1"], "microsoft/phi-1_5", "shapes as microsoft/phi-1_5 (its report): RahulSChand/gpu_poor ad2fc0e public/all_configs.json"),
    (["google/paligemma2-3b-pt-224", "google/paligemma2-3b-mix-224"], paligemma2(26, 2304, 9216, 8, 4, 224), "PaliGemma 2 report, table 1: Gemma 2 2B and SigLIP So400m"),
    (["google/paligemma2-3b-pt-448", "google/paligemma2-3b-mix-448"], paligemma2(26, 2304, 9216, 8, 4, 448), "PaliGemma 2 report, table 1: Gemma 2 2B and SigLIP So400m"),
    (["google/paligemma2-10b-pt-224", "google/paligemma2-10b-mix-224"], paligemma2(42, 3584, 14336, 16, 8, 224), "PaliGemma 2 report, table 1: Gemma 2 9B and SigLIP So400m"),
    (["google/paligemma2-10b-pt-448", "google/paligemma2-10b-mix-448"], paligemma2(42, 3584, 14336, 16, 8, 448), "PaliGemma 2 report, table 1: Gemma 2 9B and SigLIP So400m"),
    (["OpenGVLab/InternVL2_5-1B"], internvl2(q2("0.5B", 32768) | {"vocab_size": 151674}), "InternVL 2.5 report, table 2: InternViT-300M and Qwen2.5-0.5B"),
    (["OpenGVLab/InternVL2_5-2B"], internvl2(internlm2(24, 2048, 8192, 16, 8)), "InternVL 2.5 report, table 2: InternViT-300M and InternLM2.5-1.8B (InternLM2 report, table of the models)"),
    (["OpenGVLab/InternVL2_5-4B"], internvl2(q2("3B", 32768) | {"vocab_size": 151674}), "InternVL 2.5 report, table 2: InternViT-300M and Qwen2.5-3B"),
    (["OpenGVLab/InternVL2_5-8B"], internvl2(internlm2(32, 4096, 14336, 32, 8)), "InternVL 2.5 report, table 2: InternViT-300M and InternLM2.5-7B"),
    (["OpenGVLab/InternVL2_5-26B"], internvl2(internlm2(48, 6144, 16384, 48, 8), VIT6), "InternVL 2.5 report, table 2: InternViT-6B and InternLM2.5-20B"),
    (["OpenGVLab/InternVL2_5-38B"], internvl2(q2("32B", 32768) | {"vocab_size": 151674}, VIT6), "InternVL 2.5 report, table 2: InternViT-6B and Qwen2.5-32B"),
    (["OpenGVLab/InternVL2_5-78B"], internvl2(q2("72B", 32768) | {"vocab_size": 151674}, VIT6), "InternVL 2.5 report, table 2: InternViT-6B and Qwen2.5-72B"),
    (["OpenGVLab/InternVL2-1B"], internvl2(q2("0.5B", 32768) | {"vocab_size": 151655}), "its card: InternViT-300M and Qwen2-0.5B"),
    (["OpenGVLab/InternVL2-2B"], internvl2(internlm2(24, 2048, 8192, 16, 8)), "its card: InternViT-300M and InternLM2-1.8B (InternLM2 report, table of the models)"),
    (["OpenGVLab/InternVL2-8B"], internvl2(internlm2(32, 4096, 14336, 32, 8)), "its card: InternViT-300M and InternLM2.5-7B"),
    (["OpenGVLab/InternVL2-26B"], internvl2(internlm2(48, 6144, 16384, 48, 8), VIT6), "its card: InternViT-6B and InternLM2-20B"),
    (["OpenGVLab/InternVL3-1B", "OpenGVLab/InternVL3-1B-Instruct"], internvl2(q2("0.5B", 32768) | {"vocab_size": 151674}), "InternVL3 report, table 1: InternViT-300M and Qwen2.5-0.5B"),
    (["OpenGVLab/InternVL3_5-30B-A3B", "OpenGVLab/InternVL3_5-30B-A3B-Instruct"], internvl35(q3moe(48, 2048, 6144, 32, 4, 768)), "InternVL3.5 report, table 1: InternViT-300M and Qwen3-30B-A3B"),
    (["OpenGVLab/InternVL3_5-241B-A28B", "OpenGVLab/InternVL3_5-241B-A28B-Instruct"], internvl35(q3moe(94, 4096, 12288, 64, 4, 1536)) | {"vision_config": VIT6}, "InternVL3.5 report, table 1: InternViT-6B and Qwen3-235B-A22B"),
    (["google/medgemma-27b-text-it"], dense("Gemma3ForCausalLM", 62, 5376, 21504, 32, 16, 262144, 131072, tied=True, head_dim=128, sliding_window=1024, layer_types=pattern([SLIDE] * 5 + [FULL], 62)), "the text of google/gemma-3-27b-pt alone (its card)"),
    (["ibm-granite/granite-20b-code-instruct-8k", "ibm-granite/granite-20b-code-base-8k"], STARCODER | {"n_layer": 52}, "Granite Code report, table of the architectures"),
    (["ibm-granite/granite-34b-code-instruct-8k", "ibm-granite/granite-34b-code-base-8k"], STARCODER | {"n_layer": 88}, "Granite Code report, table of the architectures"),
    (["LGAI-EXAONE/EXAONE-4.0-1.2B"], dense("Exaone4ForCausalLM", 30, 2048, 4096, 32, 8, 102400, 65536, tied=True, head_dim=64, model_type="exaone4", sliding_window=None, layer_types=[FULL] * 30), "card of EXAONE-4.0-1.2B, table of the architecture: 1.07 billion parameters beside the embedding"),
]
