"""Models that took the shapes of another, for harvest.py: tuned from it, trained further, or the same in another edition.

Each is (ids with the same configuration, the configuration or the id that has it, where it is from), as in more.py.
"""
from more import L8, L70, MISTRAL7, dense, q2

def of(base, ids, config=None):
    """Tuned from `base`, whose configuration it keeps."""
    return ids, config or base, f"tuned from {base} (their cards): its configuration"
def same(base, ids, why):
    """Another edition of `base`."""
    return ids, base, f"shapes as {base}: {why}"

L3_8 = dense("LlamaForCausalLM", 32, 4096, 14336, 32, 8, 128256, 8192)
L3_70 = dense("LlamaForCausalLM", 80, 8192, 28672, 64, 8, 128256, 8192)
LLAMA2 = {"7": (32, 4096, 11008, 32, 32), "13": (40, 5120, 13824, 40, 40), "70": (80, 8192, 28672, 64, 8)}
def llama2(size, vocab=32000, positions=4096, **more): return dense("LlamaForCausalLM", *LLAMA2[size], vocab, positions, **more)
GPU_POOR = "RahulSChand/gpu_poor ad2fc0e public/all_configs.json"
WINDOW = MISTRAL7 | {"sliding_window": 4096}

# What the publisher of each counts, in billions, where its name rounds or is silent.
COUNTS = {"dolly-v2-3b": 2.78, "Qwen3-VL-4B": 4.44, "Qwen3-Coder-Next": 80.0, "gemma-1.1-7b": 8.54, "gemma-1.1-2b": 2.51, "DeepSeek-V3.2": 671.0, "DeepSeek-R1-Zero": 671.0, "DeepSeek-R1T-Chimera": 671.0,
          "command-a-translate": 111.0, "guardian-3.1-2b": 2.53, "Kimi-K2-Base": 1026.0, "MiMo-V2-Flash": 309.0, "SFR-Embedding-Mistral": 7.11, "Linq-Embed-Mistral": 7.11,
          "Llama-Guard-3-1B": 1.24, "Llama3.2-1B": 1.24, "Mistral-Small-Instruct-2409": 22.2, "StableBeluga2": 69.0, "8x7b": 46.7, "8x22b": 140.6, "WizardLM-2-8x22B": 140.6, "7b-gemma": 8.54,
          "Athene-V2": 72.7, "K2-Think": 32.8, "Marco-o1": 7.62, "DeepScaleR-1.5B": 1.78, "DeepCoder-1.5B": 1.78, "Reasoning-Qwen-1.5B": 1.78, "Jan-v1-2509": 4.02, "Fara-7B": 8.29, "Holo1-7B": 8.29,
          "Holo1.5-7B": 8.29, "RoboBrain2.0-7B": 8.29, "Nanonets-OCR": 3.75, "Holo1-3B": 3.75, "UI-TARS-7B": 8.29, "UGround-V1-7B": 8.29, "sarvam-translate": 4.3, "NuExtract-v1.5": 3.82, "gorilla-openfunctions-v2": 6.91}

TUNED = [
    # The same in another edition.
    same("Qwen/Qwen3-VL-2B-Instruct", ["Qwen/Qwen3-VL-2B-Thinking"], "Qwen3-VL's card names both editions"),
    same("Qwen/Qwen3-VL-4B-Instruct", ["Qwen/Qwen3-VL-4B-Thinking"], "Qwen3-VL's card names both editions"),
    same("Qwen/Qwen3-VL-8B-Instruct", ["Qwen/Qwen3-VL-8B-Thinking"], "Qwen3-VL's card names both editions"),
    same("Qwen/Qwen3-VL-2B-Instruct", ["Qwen/Qwen3-VL-Embedding-2B", "Qwen/Qwen3-VL-Reranker-2B"], "trained from it (their cards)"),
    same("Qwen/Qwen3-VL-8B-Instruct", ["Qwen/Qwen3-VL-Embedding-8B", "Qwen/Qwen3-VL-Reranker-8B"], "trained from it (their cards)"),
    same("Qwen/Qwen3-VL-30B-A3B-Instruct", ["Qwen/Qwen3-VL-30B-A3B-Thinking"], "Qwen3-VL's card names both editions"),
    same("Qwen/Qwen3-VL-235B-A22B-Instruct", ["Qwen/Qwen3-VL-235B-A22B-Thinking"], "Qwen3-VL's card names both editions"),
    same("Qwen/Qwen3-Next-80B-A3B-Instruct", ["Qwen/Qwen3-Coder-Next", "Qwen/Qwen3-Coder-Next-Base"], "config.json of mlx-community/Qwen3-Coder-Next-nvfp4"),
    same("google/gemma-3-27b-it", ["google/gemma-3-27b-pt", "google/translategemma-27b-it"], "its pretrained edition, and one tuned from it (its card)"),
    same("google/gemma-3-12b-it", ["google/gemma-3-12b-pt", "google/translategemma-12b-it"], "its pretrained edition, and one tuned from it (its card)"),
    same("google/gemma-3-4b-it", ["google/gemma-3-4b-pt", "google/translategemma-4b-it", "google/medgemma-1.5-4b-it"], "its pretrained edition, and such as are tuned from it (their cards)"),
    same("google/gemma-3-1b-it", ["google/gemma-3-1b-pt"], "its pretrained edition"),
    same("google/gemma-3-270m", ["google/functiongemma-270m-it"], "tuned from it (its card)"),
    same("google/gemma-2-9b-it", ["google/shieldgemma-9b", "google/txgemma-9b-chat", "google/txgemma-9b-predict"], "tuned from google/gemma-2-9b (their cards)"),
    same("google/gemma-2-27b-it", ["google/shieldgemma-27b", "google/txgemma-27b-chat", "google/txgemma-27b-predict"], "tuned from google/gemma-2-27b (their cards)"),
    same("google/gemma-2-2b-it", ["google/gemma-2-2b-jpn-it", "google/shieldgemma-2b"], "tuned from google/gemma-2-2b (their cards)"),
    same("google/gemma-7b-it", ["google/gemma-1.1-7b-it", "google/codegemma-7b"], "Gemma 1.1's card, and CodeGemma's report"),
    same("google/gemma-2b-it", ["google/gemma-1.1-2b-it", "google/codegemma-2b"], "Gemma 1.1's card, and CodeGemma's report"),
    same("deepseek-ai/DeepSeek-V3.2", ["deepseek-ai/DeepSeek-V3.2-Speciale", "deepseek-ai/DeepSeek-Math-V2", "deepseek-ai/DeepSeek-V3.2-Exp-Base"], "their cards"),
    same("deepseek-ai/DeepSeek-R1", ["deepseek-ai/DeepSeek-R1-Zero", "deepseek-ai/DeepSeek-Prover-V2-671B"], "trained from deepseek-ai/DeepSeek-V3-Base (their cards)"),
    same("deepseek-ai/DeepSeek-R1", ["tngtech/DeepSeek-R1T-Chimera", "tngtech/DeepSeek-TNG-R1T2-Chimera"], "assembled of DeepSeek's R1 and V3-0324 (their cards)"),
    same("deepseek-ai/DeepSeek-V2.5", ["deepseek-ai/DeepSeek-V2.5-1210", "deepseek-ai/DeepSeek-Coder-V2-Base", "deepseek-ai/DeepSeek-Coder-V2-Instruct-0724", "deepseek-ai/DeepSeek-V2-Chat-0628"], "their cards"),
    same("deepseek-ai/deepseek-llm-7b-chat", ["deepseek-ai/deepseek-coder-7b-base-v1.5", "deepseek-ai/deepseek-coder-7b-instruct-v1.5"], "trained further from DeepSeek-LLM 7B (their cards)"),
    same("deepseek-ai/deepseek-llm-7b-chat", ["deepseek-ai/deepseek-math-7b-base", "deepseek-ai/deepseek-math-7b-instruct", "deepseek-ai/deepseek-math-7b-rl", "deepseek-ai/DeepSeek-Prover-V1.5-RL", "deepseek-ai/DeepSeek-Prover-V1.5-SFT"], "trained further from DeepSeek-Coder-Base-v1.5 7B (DeepSeekMath and DeepSeek-Prover reports)"),
    same("zai-org/GLM-4.5", ["zai-org/GLM-4.5-Base"], "its base edition"),
    same("zai-org/GLM-4.5-Air", ["zai-org/GLM-4.5-Air-Base"], "its base edition"),
    same("CohereLabs/c4ai-command-a-03-2025", ["CohereLabs/command-a-translate-08-2025"], "tuned from it (its card)"),
    same("CohereLabs/c4ai-command-r7b-12-2024", ["CohereLabs/c4ai-command-r7b-arabic-02-2025"], "tuned from it (its card)"),
    same("CohereLabs/aya-expanse-8b", ["CohereLabs/aya-23-8B", "CohereForAI/aya-23-8B"], "mlc-ai/mlc-llm 79d603f python/mlc_llm/model/model_preset.py, aya-23"),
    same("ibm-granite/granite-3.3-8b-instruct", ["ibm-granite/granite-3.3-8b-base", "ibm-granite/granite-guardian-3.1-8b", "ibm-granite/granite-guardian-3.2-8b", "ibm-granite/granite-guardian-3.3-8b"], "its base, and such as are tuned from Granite 3.1 to 3.3 (their cards)"),
    same("ibm-granite/granite-3.3-2b-instruct", ["ibm-granite/granite-3.3-2b-base", "ibm-granite/granite-guardian-3.1-2b"], "its base, and one tuned from Granite 3.1 (its card)"),
    same("nvidia/Llama-3_3-Nemotron-Super-49B-v1", ["nvidia/Llama-3_3-Nemotron-Super-49B-v1_5"], "trained further from it (its card)"),
    same("nvidia/NVIDIA-Nemotron-Nano-9B-v2", ["nvidia/NVIDIA-Nemotron-Nano-9B-v2-Base"], "its base edition"),
    same("allenai/Olmo-3-32B-Think", ["allenai/Olmo-3.1-32B-Instruct", "allenai/Olmo-3.1-32B-Think"], "trained further (their cards)"),
    same("allenai/Olmo-3-7B-Think", ["allenai/Olmo-3-7B-Think-SFT", "allenai/Olmo-3-7B-Instruct-SFT", "allenai/Olmo-3-7B-RL-Zero-Math"], "other stages of it (their cards)"),
    same("allenai/OLMoE-1B-7B-0924", ["allenai/OLMoE-1B-7B-0125"], "trained longer (its card)"),
    same("LGAI-EXAONE/EXAONE-4.0-32B", ["LGAI-EXAONE/EXAONE-4.0.1-32B"], "its later edition"),
    same("moonshotai/Kimi-K2-Instruct", ["moonshotai/Kimi-K2-Base"], "its base edition"),
    same("XiaomiMiMo/MiMo-V2-Flash", ["XiaomiMiMo/MiMo-V2-Flash-Base"], "its base edition"),
    same("ByteDance-Seed/Seed-OSS-36B-Instruct", ["ByteDance-Seed/Seed-OSS-36B-Base", "ByteDance-Seed/Seed-OSS-36B-Base-woSyn"], "its base editions"),
    same("ByteDance-Seed/Seed-OSS-36B-Instruct", ["NousResearch/Hermes-4.3-36B"], "tuned from ByteDance-Seed/Seed-OSS-36B-Base (its card)"),
    same("baidu/ERNIE-4.5-21B-A3B-PT", ["baidu/ERNIE-4.5-21B-A3B-Base-PT"], "its base edition"),
    same("baidu/ERNIE-4.5-300B-A47B-PT", ["baidu/ERNIE-4.5-300B-A47B-Base-PT"], "its base edition"),
    same("intfloat/e5-mistral-7b-instruct", ["Salesforce/SFR-Embedding-Mistral"], "trained on top of it (its card)"),
    same("intfloat/e5-mistral-7b-instruct", ["Linq-AI-Research/Linq-Embed-Mistral"], "trained on top of it (its card)"),
    same("OpenGVLab/InternVL3-38B", ["OpenGVLab/InternVL3-38B-Instruct"], "its stage before preferences (its card)"),
    same("OpenGVLab/InternVL3-78B", ["OpenGVLab/InternVL3-78B-Instruct"], "its stage before preferences (its card)"),
    same("meta-llama/Llama-3.2-1B", ["meta-llama/Llama-Guard-3-1B"], "tuned from it (its card)"),
    same("mistralai/Codestral-22B-v0.1", ["mistralai/Mistral-Small-Instruct-2409"], "its card: 22 billion parameters, a vocabulary of 32,768 and 32 thousand positions"),
    same("codellama/CodeLlama-7b-hf", ["meta-llama/CodeLlama-7b-hf", "meta-llama/CodeLlama-7b-Instruct-hf"], "its maker's copy"),
    same("codellama/CodeLlama-13b-hf", ["meta-llama/CodeLlama-13b-hf"], "its maker's copy"),
    same("codellama/CodeLlama-34b-hf", ["meta-llama/CodeLlama-34b-hf", "meta-llama/CodeLlama-34b-Instruct-hf"], "its maker's copy"),

    # Llama 3.1 and 3.3.
    of("meta-llama/Llama-3.1-8B", ["allenai/Llama-3.1-Tulu-3.1-8B", "allenai/Llama-3.1-Tulu-3-8B-SFT", "allenai/Llama-3.1-Tulu-3-8B-DPO",
        "nvidia/OpenMath2-Llama3.1-8B", "nvidia/Llama-3.1-Nemotron-Safety-Guard-8B-v3", "Skywork/Skywork-Critic-Llama-3.1-8B",
        "Skywork/Skywork-o1-Open-Llama-3.1-8B", "cognitivecomputations/dolphin-2.9.4-llama3.1-8b", "VAGOsolutions/Llama-3.1-SauerkrautLM-8b-Instruct",
        "tokyotech-llm/Llama-3.1-Swallow-8B-Instruct-v0.3", "tokyotech-llm/Llama-3.1-Swallow-8B-Instruct-v0.5", "aisingapore/Llama-SEA-LION-v3-8B-IT", "aisingapore/Llama-SEA-LION-v3.5-8B-R",
        "scb10x/llama3.1-typhoon2-8b-instruct", "Team-ACE/ToolACE-8B", "Team-ACE/ToolACE-2-Llama-3.1-8B", "watt-ai/watt-tool-8B", "meetkai/functionary-small-v3.2",
        "AtlaAI/Selene-1-Mini-Llama-3.1-8B", "deepcogito/cogito-v1-preview-llama-8B", "FreedomIntelligence/HuatuoGPT-o1-8B", "SentientAGI/Dobby-Mini-Unhinged-Llama-3.1-8B", "zai-org/LongWriter-llama3.1-8b"], L8),
    of("meta-llama/Llama-3.1-70B", ["allenai/Llama-3.1-Tulu-3-70B-SFT", "allenai/Llama-3.1-Tulu-3-70B-DPO", "nvidia/OpenMath2-Llama3.1-70B", "arcee-ai/Llama-3.1-SuperNova",
        "tokyotech-llm/Llama-3.1-Swallow-70B-Instruct-v0.3", "cyberagent/Llama-3.1-70B-Japanese-Instruct-2407", "meetkai/functionary-medium-v3.1", "deepcogito/cogito-v1-preview-llama-70B",
        "deepcogito/cogito-v2-preview-llama-70B", "Sao10K/L3.1-70B-Euryale-v2.2", "Sao10K/L3.1-70B-Hanami-x1"], L70),
    of("meta-llama/Llama-3.3-70B-Instruct", ["nvidia/Llama-3.3-Nemotron-70B-Select", "nvidia/Llama-3.3-Nemotron-70B-Edit", "nvidia/Llama-3.3-Nemotron-70B-Feedback", "watt-ai/watt-tool-70B",
        "huihui-ai/Llama-3.3-70B-Instruct-abliterated", "SentientAGI/Dobby-Unhinged-Llama-3.3-70B", "Steelskull/L3.3-MS-Nevoria-70b", "TheDrummer/Anubis-70B-v1.1",
        "LatitudeGames/Wayfarer-Large-70B-Llama-3.3", "shisa-ai/shisa-v2-llama3.3-70b", "perplexity-ai/r1-1776-distill-llama-70b"], L70),
    of("meta-llama/Meta-Llama-3.1-405B", ["deepcogito/cogito-v2-preview-llama-405B"]),
    of("meta-llama/Llama-3.2-3B", ["NousResearch/Hermes-3-Llama-3.2-3B", "NousResearch/DeepHermes-3-Llama-3-3B-Preview", "cognitivecomputations/Dolphin3.0-Llama3.2-3B", "deepcogito/cogito-v1-preview-llama-3B"]),
    of("meta-llama/Llama-3.2-1B", ["cognitivecomputations/Dolphin3.0-Llama3.2-1B"]),
    # Llama 3.
    of("meta-llama/Meta-Llama-3-8B", ["NousResearch/Hermes-2-Theta-Llama-3-8B", "meta-llama/Meta-Llama-Guard-2-8B", "openchat/openchat-3.6-8b-20240522", "nvidia/Llama3-ChatQA-1.5-8B",
        "aaditya/Llama3-OpenBioLLM-8B", "m42-health/Llama3-Med42-8B", "Groq/Llama-3-Groq-8B-Tool-Use", "Sao10K/L3-8B-Stheno-v3.2", "Sao10K/L3-8B-Lunaris-v1", "princeton-nlp/Llama-3-Instruct-8B-SimPO",
        "VAGOsolutions/Llama-3-SauerkrautLM-8b-Instruct", "mlabonne/NeuralDaredevil-8B-abliterated", "failspy/Meta-Llama-3-8B-Instruct-abliterated-v3", "TIGER-Lab/MAmmoTH2-8B-Plus",
        "swap-uniba/LLaMAntino-3-ANITA-8B-Inst-DPO-ITA", "lightblue/suzume-llama-3-8B-multilingual", "tokyotech-llm/Llama-3-Swallow-8B-Instruct-v0.1", "DiscoResearch/Llama3-German-8B"], L3_8),
    of("meta-llama/Meta-Llama-3-70B", ["Nexusflow/Athene-70B", "nvidia/Llama3-ChatQA-1.5-70B", "aaditya/Llama3-OpenBioLLM-70B", "m42-health/Llama3-Med42-70B", "Groq/Llama-3-Groq-70B-Tool-Use",
        "cognitivecomputations/dolphin-2.9.1-llama-3-70b", "abacusai/Smaug-Llama-3-70B-Instruct", "Sao10K/L3-70B-Euryale-v2.1", "neversleep/Llama-3-Lumimaid-70B-v0.1"], L3_70),
    # Llama 2 and its kin.
    (["lmsys/vicuna-7b-v1.5-16k"], llama2("7", rope_scaling={"type": "linear", "factor": 4.0}), GPU_POOR + "; linear RoPE scaling by 4 (its card)"),
    (["lmsys/vicuna-13b-v1.5-16k"], llama2("13", rope_scaling={"type": "linear", "factor": 4.0}), GPU_POOR + "; linear RoPE scaling by 4 (its card)"),
    (["lmsys/vicuna-33b-v1.3"], dense("LlamaForCausalLM", 60, 6656, 17920, 52, 52, 32000, 2048), GPU_POOR + "; LLaMA report, table 2"),
    (["NousResearch/Nous-Hermes-Llama2-13b"], llama2("13", 32032), GPU_POOR),
    (["Gryphe/MythoMax-L2-13b"], llama2("13"), GPU_POOR),
    (["KoboldAI/LLaMA2-13B-Tiefighter"], llama2("13"), "merged of models tuned from meta-llama/Llama-2-13b-hf (its card): its configuration"),
    (["Undi95/ReMM-SLERP-L2-13B"], llama2("13"), GPU_POOR),
    (["stabilityai/StableBeluga2"], llama2("70"), GPU_POOR),
    (["stabilityai/StableBeluga-7B"], llama2("7"), GPU_POOR),
    (["stabilityai/StableBeluga-13B"], llama2("13"), GPU_POOR),
    (["elyza/ELYZA-japanese-Llama-2-7b-instruct", "elyza/ELYZA-japanese-Llama-2-7b"], llama2("7"), GPU_POOR),
    (["WizardLMTeam/WizardLM-13B-V1.2"], llama2("13"), GPU_POOR + ", under its older name"),
    (["WizardLMTeam/WizardLM-70B-V1.0"], llama2("70", 32001), GPU_POOR + ", under its older name"),
    (["WizardLMTeam/WizardCoder-Python-34B-V1.0"], dense("LlamaForCausalLM", 48, 8192, 22016, 64, 8, 32001, 16384), GPU_POOR + ", under its older name; positions of codellama/CodeLlama-34b-Python-hf"),
    (["microsoft/Orca-2-7b"], llama2("7", 32003), "tuned from meta-llama/Llama-2-7b-hf (its card): its shapes, three tokens more"),
    (["microsoft/Orca-2-13b"], llama2("13", 32003), "tuned from meta-llama/Llama-2-13b-hf (its card): its shapes, three tokens more"),
    (["databricks/dolly-v2-3b"], dense("GPTNeoXForCausalLM", 32, 2560, 10240, 32, 32, 50280, 2048, rotary_pct=0.25), "tuned from EleutherAI/pythia-2.8b (its card): its shapes; vocabulary: " + GPU_POOR),
    (["databricks/dolly-v2-7b"], dense("GPTNeoXForCausalLM", 32, 4096, 16384, 32, 32, 50280, 2048, rotary_pct=0.25), "tuned from EleutherAI/pythia-6.9b (its card): its shapes; vocabulary: " + GPU_POOR),
    (["databricks/dolly-v2-12b"], dense("GPTNeoXForCausalLM", 36, 5120, 20480, 40, 40, 50280, 2048, rotary_pct=0.25), "tuned from EleutherAI/pythia-12b (its card): its shapes; vocabulary: " + GPU_POOR),
    of("codellama/CodeLlama-7b-Instruct-hf", ["defog/sqlcoder-7b-2"]),
    of("codellama/CodeLlama-70b-hf", ["defog/sqlcoder-70b-alpha"]),
    # Mistral.
    of("mistralai/Mistral-7B-v0.1", ["HuggingFaceH4/zephyr-7b-alpha", "HuggingFaceH4/mistral-7b-sft-beta", "teknium/OpenHermes-2-Mistral-7B",
        "Intel/neural-chat-7b-v3-3", "Intel/neural-chat-7b-v3", "NousResearch/Nous-Hermes-2-Mistral-7B-DPO", "NousResearch/Hermes-2-Pro-Mistral-7B",
        "cognitivecomputations/dolphin-2.6-mistral-7b", "cognitivecomputations/dolphin-2.2.1-mistral-7b", "argilla/notus-7b-v1", "Equall/Saul-7B-Instruct-v1", "Undi95/Toppy-M-7B", "Gryphe/MythoMist-7b",
        "BioMistral/BioMistral-7B", "speakleash/Bielik-7B-Instruct-v0.1", "mlabonne/AlphaMonarch-7B"], WINDOW),
    (["mistral-community/Mistral-7B-v0.2", "cognitivecomputations/dolphin-2.8-mistral-7b-v02", "prometheus-eval/prometheus-7b-v2.0"], MISTRAL7, "shapes as mistralai/Mistral-7B-Instruct-v0.2, from whose base it is (their cards)"),
    of("mistralai/Mistral-Small-24B-Instruct-2501", ["NousResearch/DeepHermes-3-Mistral-24B-Preview", "cognitivecomputations/Dolphin3.0-Mistral-24B", "cognitivecomputations/Dolphin3.0-R1-Mistral-24B",
        "cognitivecomputations/Dolphin-Mistral-24B-Venice-Edition"]),
    of("mistralai/Mixtral-8x7B-v0.1", ["NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO", "NousResearch/Nous-Hermes-2-Mixtral-8x7B-SFT", "cognitivecomputations/dolphin-2.5-mixtral-8x7b", "cognitivecomputations/dolphin-2.7-mixtral-8x7b",
        "VAGOsolutions/SauerkrautLM-Mixtral-8x7B-Instruct", "prometheus-eval/prometheus-8x7b-v2.0", "Salesforce/xLAM-8x7b-r"]),
    of("mistralai/Mixtral-8x22B-v0.1", ["alpindale/WizardLM-2-8x22B", "microsoft/WizardLM-2-8x22B", "cognitivecomputations/dolphin-2.9.2-mixtral-8x22b", "Salesforce/xLAM-8x22b-r"]),
    of("upstage/SOLAR-10.7B-v1.0", ["NousResearch/Nous-Hermes-2-SOLAR-10.7B", "VAGOsolutions/SauerkrautLM-SOLAR-Instruct", "Sao10K/Fimbulvetr-11B-v2"]),
    of("01-ai/Yi-34B", ["NousResearch/Nous-Hermes-2-Yi-34B"]),
    of("bigcode/starcoder2-15b", ["HuggingFaceH4/starchat2-15b-v0.1"]),
    of("google/gemma-7b", ["HuggingFaceH4/zephyr-7b-gemma-v0.1"]),
]

QWEN25 = {s: f"Qwen/Qwen2.5-{s}-Instruct" for s in ("0.5B", "1.5B", "3B", "7B", "14B", "32B", "72B")}
def qwen25(size, ids): return of(QWEN25[size], ids, q2(size, 32768))
TUNED += [
    # Qwen 2.5 and 2.
    qwen25("0.5B", ["cognitivecomputations/Dolphin3.0-Qwen2.5-0.5B"]),
    qwen25("1.5B", ["katanemo/Arch-Function-1.5B"]),
    qwen25("3B", ["katanemo/Arch-Function-3B", "Salesforce/xLAM-2-3b-fc-r", "simplescaling/s1.1-3B"]),
    qwen25("7B", ["katanemo/Arch-Function-7B", "simplescaling/s1.1-7B", "nvidia/OpenCodeReasoning-Nemotron-7B"]),
    qwen25("14B", ["simplescaling/s1.1-14B", "nvidia/OpenCodeReasoning-Nemotron-14B"]),
    qwen25("32B", ["NovaSky-AI/Sky-T1-32B-Flash", "GAIR/LIMO", "nvidia/OpenCodeReasoning-Nemotron-32B-IOI", "elyza/ELYZA-Shortcut-1.0-Qwen-32B"]),
    qwen25("72B", ["Nexusflow/Athene-V2-Chat", "Nexusflow/Athene-V2-Agent", "huihui-ai/Qwen2.5-72B-Instruct-abliterated", "abacusai/Dracarys2-72B-Instruct"]),
    of("Qwen/Qwen2.5-32B", ["deepcogito/cogito-v1-preview-qwen-32B", "LLM360/K2-Think", "nvidia/OpenMath-Nemotron-32B"]),
    of("Qwen/Qwen2.5-14B", ["deepcogito/cogito-v1-preview-qwen-14B", "nvidia/OpenMath-Nemotron-14B", "nvidia/OpenMath-Nemotron-14B-Kaggle"]),
    of("Qwen/Qwen2.5-Math-7B", ["nvidia/AceMath-7B-Instruct"]),
    of("Qwen/Qwen2.5-Math-72B", ["nvidia/AceMath-72B-Instruct"]),
    of("Qwen/Qwen2.5-Coder-32B-Instruct", ["SWE-bench/SWE-agent-LM-32B", "Skywork/Skywork-SWE-32B", "microsoft/NextCoder-32B", "open-r1/OlympicCoder-32B"]),
    of("Qwen/Qwen2.5-Coder-14B-Instruct", ["microsoft/NextCoder-14B"]),
    of("Qwen/Qwen2.5-Coder-7B-Instruct", ["microsoft/NextCoder-7B", "open-r1/OlympicCoder-7B", "SWE-bench/SWE-agent-LM-7B", "seeklhy/OmniSQL-7B"]),
    of("Qwen/Qwen2-7B-Instruct", ["AIDC-AI/Marco-o1"]),
    of("Qwen/Qwen2-72B-Instruct", ["anthracite-org/magnum-v2-72b"]),
    of("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", ["agentica-org/DeepScaleR-1.5B-Preview", "agentica-org/DeepCoder-1.5B-Preview", "nvidia/Nemotron-Research-Reasoning-Qwen-1.5B"]),
    of("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", ["huihui-ai/DeepSeek-R1-Distill-Qwen-32B-abliterated", "qihoo360/TinyR1-32B-Preview"]),
    of("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", ["arcee-ai/Arcee-Maestro-7B-Preview"]),
    of("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", ["qihoo360/Light-R1-14B-DS"]),
    of("Qwen/QwQ-32B", ["huihui-ai/QwQ-32B-abliterated", "ArliAI/QwQ-32B-ArliAI-RpR-v4"]),
    # Qwen 3.
    of("Qwen/Qwen3-8B", ["nvidia/Nemotron-Orchestrator-8B", "Goekdeniz-Guelmez/Josiefied-Qwen3-8B-abliterated-v1", "Goedel-LM/Goedel-Prover-V2-8B", "Intelligent-Internet/II-Medical-8B"]),
    of("Qwen/Qwen3-14B", ["NousResearch/Hermes-4-14B", "NousResearch/NousCoder-14B", "OpenPipe/Qwen3-14B-Instruct", "Tesslate/UIGEN-T3-14B-Preview"]),
    of("Qwen/Qwen3-32B", ["nvidia/Qwen3-Nemotron-32B-RLBFF", "Goedel-LM/Goedel-Prover-V2-32B", "aisingapore/Qwen-SEA-LION-v4-32B-IT", "inclusionAI/AReaL-boba-2-32B"]),
    of("Qwen/Qwen3-4B-Instruct-2507", ["Tesslate/WEBGEN-4B-Preview"]),
    of("Qwen/Qwen3-4B-Thinking-2507", ["janhq/Jan-v1-2509"]),
    of("Qwen/Qwen3-VL-8B-Instruct", ["nvidia/Cosmos-Reason2-8B", "datalab-to/chandra"]),
    of("Qwen/Qwen3-VL-2B-Instruct", ["nvidia/Cosmos-Reason2-2B"]),
    # Qwen 2.5 VL and 2 VL.
    of("Qwen/Qwen2.5-VL-7B-Instruct", ["microsoft/Fara-7B", "Hcompany/Holo1-7B", "Hcompany/Holo1.5-7B", "BAAI/RoboBrain2.0-7B"]),
    of("Qwen/Qwen2.5-VL-3B-Instruct", ["nanonets/Nanonets-OCR-s", "nanonets/Nanonets-OCR2-3B", "numind/NuExtract-2.0-4B", "Hcompany/Holo1-3B"]),
    of("Qwen/Qwen2-VL-7B-Instruct", ["ByteDance-Seed/UI-TARS-7B-DPO", "ByteDance-Seed/UI-TARS-7B-SFT", "osunlp/UGround-V1-7B", "allenai/olmOCR-7B-0225-preview"]),
    of("Qwen/Qwen2-VL-72B-Instruct", ["ByteDance-Seed/UI-TARS-72B-DPO", "ByteDance-Seed/UI-TARS-72B-SFT", "osunlp/UGround-V1-72B"]),
    of("Qwen/Qwen2-VL-2B-Instruct", ["ByteDance-Seed/UI-TARS-2B-SFT", "osunlp/UGround-V1-2B", "numind/NuExtract-2.0-2B"]),
    # Gemma 2 and 3.
    of("google/gemma-2-9b", ["aisingapore/Gemma-SEA-LION-v3-9B-IT", "INSAIT-Institute/BgGPT-Gemma-2-9B-IT-v1.0", "silma-ai/SILMA-9B-Instruct-v1.0", "princeton-nlp/gemma-2-9b-it-SimPO", "UCLA-AGI/Gemma-2-9B-It-SPPO-Iter3",
        "Unbabel/Tower-Plus-9B", "tokyotech-llm/Gemma-2-Llama-Swallow-9b-it-v0.1", "anthracite-org/magnum-v4-9b"]),
    of("google/gemma-2-27b", ["INSAIT-Institute/BgGPT-Gemma-2-27B-IT-v1.0", "anthracite-org/magnum-v4-27b"]),
    of("google/gemma-3-27b-it", ["aisingapore/Gemma-SEA-LION-v4-27B-IT", "mlabonne/gemma-3-27b-it-abliterated"]),
    of("google/gemma-3-4b-it", ["sarvamai/sarvam-translate"]),
    # Phi, DeepSeek, others.
    of("microsoft/Phi-3.5-mini-instruct", ["numind/NuExtract-v1.5", "flowaicom/Flow-Judge-v0.1"]),
    of("deepseek-ai/deepseek-coder-6.7b-instruct", ["m-a-p/OpenCodeInterpreter-DS-6.7B"]),
    of("deepseek-ai/deepseek-math-7b-base", ["AI-MO/NuminaMath-7B-TIR"]),
    of("deepseek-ai/deepseek-coder-7b-instruct-v1.5", ["gorilla-llm/gorilla-openfunctions-v2"]),
]
