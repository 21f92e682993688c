"""Models whose config.json, or a copy of it, was read, for harvest.py: (ids, the configuration, where it is from), as in more.py."""
from more import PIXTRAL, dense, exaone, granite, lfm2, sees, text_of, whisper

YARN16 = {"rope_type": "yarn", "type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
          "llama_4_scaling_beta": 0.1}
FP8_TEXT = {"quant_method": "fp8", "activation_scheme": "static", "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"]}
def ministral3(layers, hidden, inter, tied, **more):
    text = text_of(dense("", layers, hidden, inter, 32, 8, 131072, 262144, tied=tied, head_dim=128, rope_parameters=YARN16, sliding_window=None), "ministral3")
    return sees("Mistral3ForConditionalGeneration", "mistral3", text, PIXTRAL, spatial_merge_size=2, image_token_index=10, multimodal_projector_bias=False, vision_feature_layer=-1, **more)
M3, M8, M14 = (26, 3072, 9216, True), (34, 4096, 14336, False), (40, 5120, 16384, False)
RECIPE = "vLLM's recipe of Ministral 3 says what is tied and that the weights are FP8; the size of its files that only the layers of its language model are"
def granite4(layers, hidden, inter, heads, kv, seen, positions, **mamba):
    """Dense layers: experts are none, and their shared part is all."""
    return dense("GraniteMoeHybridForCausalLM", layers, hidden, inter, heads, kv, 100352, positions, tied=True, model_type="granitemoehybrid", num_local_experts=0, num_experts_per_tok=0,
                 shared_intermediate_size=inter, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256, mamba_conv_bias=True, mamba_proj_bias=False, attention_bias=False,
                 layer_types=["attention" if i in seen else "mamba" for i in range(layers)], **mamba)
def bigcode(layers, hidden, heads):
    return {"architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_inner": 4 * hidden, "multi_query": True, "vocab_size": 49152,
            "n_positions": 8192, "tie_word_embeddings": True, "torch_dtype": "float32"}
def yi(layers, hidden, inter, heads, kv, positions): return dense("LlamaForCausalLM", layers, hidden, inter, heads, kv, 64000, positions)
OLMO1 = dense("OlmoForCausalLM", 16, 2048, 8192, 16, 16, 50304, 2048, tied=True, model_type="olmo", clip_qkv=None)
LFM26 = [2, 5, 9, 13, 17, 21, 24, 27]

OPENED = [
    (["Qwen/CodeQwen1.5-7B-Chat", "Qwen/CodeQwen1.5-7B"], dense("Qwen2ForCausalLM", 32, 4096, 13440, 32, 4, 92416, 65536), "config.json of Qwen/CodeQwen1.5-7B-Chat 8374194"),
    (["01-ai/Yi-Coder-9B-Chat", "01-ai/Yi-Coder-9B"], yi(48, 4096, 11008, 32, 4, 131072), "config.json of BenevolenceMessiah/Yi-Coder-9B-Chat-8x-MoE 7ed1079, made of it"),
    (["01-ai/Yi-Coder-1.5B-Chat", "01-ai/Yi-Coder-1.5B"], yi(24, 2048, 5504, 16, 16, 131072), "config.json of CedPei/yi-ft-sql, tuned from it"),
    (["01-ai/Yi-9B-200K"], yi(48, 4096, 11008, 32, 4, 262144), "config.json of Joseph717171/BigYi-15.75B-200k, made of it with more layers; 48 of them (Yi report)"),
    (["01-ai/Yi-6B-200K"], yi(32, 4096, 11008, 32, 4, 200000), "config.json of 01-ai/Yi-6B-200K 76effa2"),
    (["infly/OpenCoder-8B-Instruct", "infly/OpenCoder-8B-Base"], dense("LlamaForCausalLM", 32, 4096, 14336, 32, 8, 96640, 8192), "config.json of AIFunOver/OpenCoder-8B-Instruct-openvino-4bit, made of it"),
    (["zai-org/glm-4-9b-chat-1m", "THUDM/glm-4-9b-chat-1m"], {"architectures": ["ChatGLMModel"], "model_type": "chatglm", "num_layers": 40, "hidden_size": 4096, "ffn_hidden_size": 13696, "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 4, "padded_vocab_size": 151552, "seq_length": 1048576, "add_bias_linear": False, "add_qkv_bias": True, "rmsnorm": True, "post_layer_norm": True, "original_rope": True, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}, "config.json of THUDM/glm-4-9b-chat-1m 3a69124"),
    (["zai-org/GLM-4-32B-0414", "zai-org/GLM-4-32B-Base-0414", "zai-org/GLM-Z1-32B-0414", "THUDM/GLM-4-32B-0414", "THUDM/GLM-Z1-32B-0414"], dense("Glm4ForCausalLM", 61, 6144, 23040, 48, 2, 151552, 32768, head_dim=128, attention_bias=False, partial_rotary_factor=0.5, model_type="glm4"), "config.json of Edens-Gate/GLM-v2-lora, tuned from GLM-4-32B-0414"),
    (["distil-whisper/distil-large-v3", "distil-whisper/distil-large-v3.5"], whisper(32, 2, 1280, 20, 128, 51866), "config.json of ek9624/whisper-distil-large-v3-ealb, tuned from distil-large-v3"),
    (["ibm-granite/granite-3.1-3b-a800m-instruct", "ibm-granite/granite-3.1-3b-a800m-base"], granite(32, 1536, 40) | {"max_position_embeddings": 131072}, "config.json of ibm-granite/granite-3.1-3b-a800m-instruct 0f46c0f"),
    (["upstage/solar-pro-preview-instruct"], dense("SolarForCausalLM", 64, 5120, 17920, 40, 10, 32128, 4096, model_type="solar", sliding_window=2047, bskcn_1=[12, 20, 32, 44], bskcn_2=[20, 32], bskcn_3=[16, 24, 36, 48], bskcn_4=[28, 40], bskcn_tv=[0.9, 0.8]), "config.json of upstage/solar-pro-preview-instruct"),
    (["openbmb/MiniCPM-V-2_6"], dense("MiniCPMV", 28, 3584, 18944, 28, 4, 151666, 32768, model_type="minicpmv", version=2.6, query_num=64, drop_vision_last_layer=False, image_size=448, patch_size=14, slice_mode=True, slice_config={"max_slice_nums": 9, "patch_size": 14},
      vision_config={"model_type": "siglip", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 980, "patch_size": 14}), "config.json of CTW-g123/MiniCPM, tuned from it"),
    (["openbmb/MiniCPM-Llama3-V-2_5"], dense("MiniCPMV", 32, 4096, 14336, 32, 8, 128256, 8192, model_type="minicpmv", query_num=96, drop_vision_last_layer=False, image_size=448, patch_size=14, slice_mode=True, slice_config={"max_slice_nums": 9, "patch_size": 14},
      vision_config={"model_type": "idefics2", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 980, "patch_size": 14}), "config.json of openbmb/MiniCPM-Llama3-V-2_5 refs/pr/10"),
    (["allenai/OLMo-1B-hf"], OLMO1, "config.json of onnx-community/OLMo-1B-hf, made of it"),
    (["amd/AMD-OLMo-1B-SFT", "amd/AMD-OLMo-1B", "amd/AMD-OLMo-1B-SFT-DPO"], OLMO1, "config.json of amd/AMD-OLMo-1B-SFT 3c518a9"),
    (["ibm-granite/granite-4.0-micro", "ibm-granite/granite-4.0-micro-base"], granite4(40, 2560, 8192, 40, 8, range(40), 131072, mamba_n_heads=128, mamba_d_head=40, mamba_d_state=256), "config.json of NexaAI/Granite-4-Micro-ANE, made of it; its card, table of the architecture"),
    (["ibm-granite/granite-4.0-h-micro", "ibm-granite/granite-4.0-h-micro-base"], granite4(40, 2048, 8192, 32, 8, (5, 15, 25, 35), 131072, mamba_n_heads=64, mamba_d_head=64, mamba_d_state=128, position_embedding_type="nope"), "config.json of anuj6316/granite, tuned from it; its card, table of the architecture"),
    (["ibm-granite/granite-4.0-h-350m", "ibm-granite/granite-4.0-h-350m-base"], granite4(32, 768, 2048, 12, 4, (10, 13, 17, 27), 32768, mamba_n_heads=48, mamba_d_head=32, mamba_d_state=128, position_embedding_type="nope"), "config.json of Org-Exp/SSM-350m, tuned from it; its card: 340 million parameters"),
    (["openchat/openchat_3.5", "openchat/openchat-3.5-1210"], dense("MistralForCausalLM", 32, 4096, 14336, 32, 8, 32002, 8192, sliding_window=4096), "config.json of bartowski/openchat-3.5-1210-starling-slerp-exl2 and yjoon/openchat_3.5-lora-test, made of them"),
    (["Nexusflow/Starling-LM-7B-beta"], dense("MistralForCausalLM", 32, 4096, 14336, 32, 8, 32002, 8192, sliding_window=4096), "tuned from openchat/openchat-3.5-0106 (its card): config.json of andysalerno/openchat-nectar-0.5, tuned from it, too"),
    (["LGAI-EXAONE/EXAONE-3.0-7.8B-Instruct"], exaone(32, 4096, 14336, 32, 8) | {"max_position_embeddings": 4096}, "config.json of BM-K/EXAONE-3.0-7.8B-Daily-Conversation-Summary, tuned from it"),
    (["LiquidAI/LFM2-2.6B", "LiquidAI/LFM2-2.6B-Exp", "LiquidAI/LFM2-2.6B-Transcript"], lfm2(30, 2048, 10752, 32, 8, LFM26), "config.json of LiquidAI/LFM2-2.6B-Transcript-ONNX"),
    (["nvidia/Llama-3.1-Minitron-4B-Width-Base"], dense("LlamaForCausalLM", 32, 3072, 9216, 32, 8, 128256, 8192, head_dim=128), "config.json of denkijin/Llama-3.1-Minitron-4B-Width-Base, a copy"),
    (["nvidia/Minitron-4B-Base", "nvidia/Nemotron-Mini-4B-Instruct"], dense("NemotronForCausalLM", 32, 3072, 9216, 24, 8, 256000, 4096, head_dim=128, model_type="nemotron", hidden_act="relu2", partial_rotary_factor=0.5), "config.json of nvidia/Minitron-4B-Base ebb5506, and what is tuned from it (its card)"),
    (["bigcode/starcoderbase-7b"], bigcode(42, 4096, 32), "config.json of tina1111/starcoderbase-7b-sharded-bf16, a copy"),
    (["bigcode/starcoderbase-3b"], bigcode(36, 2816, 22), "config.json of starkosae/starcoder-3b-finetuned-codecontests, tuned from it"),
    (["bigcode/starcoderbase-1b"], bigcode(24, 2048, 16), "config.json of bigcode/astraios-1b-fft, tuned from it"),
    (["llm-jp/llm-jp-3-13b", "llm-jp/llm-jp-3-13b-instruct", "llm-jp/llm-jp-3-13b-instruct2", "llm-jp/llm-jp-3-13b-instruct3"], dense("LlamaForCausalLM", 40, 5120, 13824, 40, 40, 99584, 4096), "config.json of llm-jp/llm-jp-3-13b"),
    (["JetBrains/Mellum-4b-base", "JetBrains/Mellum-4b-sft-python", "JetBrains/Mellum-4b-sft-all", "JetBrains/Mellum-4b-sft-kotlin"], dense("LlamaForCausalLM", 30, 3072, 8256, 24, 24, 98304, 8192, head_dim=128), "metadata and size of lazarevtill/Mellum-4b-sft-python, converted from it"),
    (["mistralai/Ministral-3-3B-Reasoning-2512", "mistralai/Ministral-3-3B-Base-2512"], ministral3(*M3), "mlc-ai/mlc-llm 79d603f python/mlc_llm/model/model_preset.py, ministral3_3b_2512"),
    (["mistralai/Ministral-3-8B-Reasoning-2512", "mistralai/Ministral-3-8B-Base-2512"], ministral3(*M8), "Ministral3Config of transformers' documentation, whose defaults are this model's; encoder as Ministral-3-3B"),
    (["mistralai/Ministral-3-14B-Reasoning-2512", "mistralai/Ministral-3-14B-Base-2512"], ministral3(*M14), "NVIDIA-NeMo/Megatron-Bridge 067f987 docs/models/mistral/ministral3.md: 40 layers of 5,120; their width is what the size of its files leaves; encoder as Ministral-3-3B"),
    (["mistralai/Ministral-3-3B-Instruct-2512"], ministral3(*M3, quantization_config=FP8_TEXT), "shapes as Ministral-3-3B-Base-2512; " + RECIPE),
    (["mistralai/Ministral-3-8B-Instruct-2512"], ministral3(*M8, quantization_config=FP8_TEXT), "shapes as Ministral-3-8B-Base-2512; " + RECIPE),
    (["mistralai/Ministral-3-14B-Instruct-2512"], ministral3(*M14, quantization_config=FP8_TEXT), "shapes as Ministral-3-14B-Base-2512; " + RECIPE),
]
# What the publisher of each counts, in billions, where its name rounds or is silent; None: shapes of Whisper are not counted here.
COUNTED = {"MiniCPM-Llama3-V-2_5": 8.5, "OLMo-1B": 1.18, "Minitron-4B-Depth": 4.54, "Nemotron-Nano-4B": 4.51, "AI21-Jamba-1.5-Large": 398.0, "AI21-Jamba-Large": 398.0, "distil-large": None, "granite-3b-code": 3.48, "granite-3.1-3b-a800m": 3.3, "phi-1": 1.42,
           "InternVL2_5-2B": 2.21, "InternVL2-2B": 2.21, "CodeQwen1.5-7B": 7.25, "glm-4-9b-chat-1m": 9.48, "solar-pro-preview": 22.1, "MiniCPM-V-2_6": 8.1, "granite-4.0-micro": 3.4, "granite-4.0-h-micro": 3.19, "granite-4.0-h-350m": 0.34, "openchat_3.5": 7.24,
           "Llama-3.1-Minitron-4B-Width": 4.51, "starcoderbase-1b": 1.14, "starcoderbase-3b": 3.04, "starcoderbase-7b": 7.3, "Ministral-3-3B": 3.85, "Ministral-3-8B": 8.9, "Ministral-3-14B": 13.9}
