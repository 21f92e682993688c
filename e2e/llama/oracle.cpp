// Asks llama.cpp's own code what it would allocate: requests in (one JSON object a line), answers out.
//
// Weights are not read: the library loads headers and simulates allocations (`no_alloc`), as its own --fit does. Graphics
// cards are RPC devices of this machine, which the library places layers on as on any other.
#include "ggml-rpc.h"
#include "llama-ext.h"
#include "llama.h"
#include "nlohmann/json.hpp"

#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

using nlohmann::json;

static std::string told;
static void keep(ggml_log_level level, const char *text, void *) {
    static const char *words[] = {"buffer size", "cells,", "n_outputs_max ", "offloaded", "offloading", "flash_attn",
                                  "Flash Attention", "pipeline", "n_ctx_seq  ", "n_ubatch"};
    bool wanted = level == GGML_LOG_LEVEL_ERROR;
    for (auto w : words) wanted |= strstr(text, w) != nullptr;
    if (wanted) told += text;
}

static ggml_type type_of(const std::string &name) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        auto n = ggml_type_name((ggml_type) i);
        if (n && name == n) return (ggml_type) i;
    }
    return GGML_TYPE_F16;
}

static json answer(const json &r, const std::vector<ggml_backend_dev_t> &cards) {
    json out = {{"id", r.value("id", "")}};
    told.clear();
    auto mp = llama_model_default_params();
    mp.no_alloc = r.value("simulate", true);
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    mp.n_gpu_layers = r.value("ngl", -1);
    std::vector<ggml_backend_dev_t> devices(cards.begin(), cards.begin() + std::min<size_t>(r.value("cards", 1), cards.size()));
    devices.push_back(nullptr);
    mp.devices = devices.data();
    std::vector<float> split = r.value("split", std::vector<float>());
    split.resize(llama_max_devices());
    bool any = false;
    for (float s : split) any |= s > 0;
    if (any) mp.tensor_split = split.data();
    if (r.value("no_split", false)) mp.split_mode = LLAMA_SPLIT_MODE_NONE;
    std::vector<std::string> patterns;
    for (int i = 0; i < r.value("experts_in_ram", 0); i++)
        patterns.push_back("blk\\." + std::to_string(i) + "\\.ffn_(up|down|gate|gate_up)_(ch|)exps");
    std::vector<llama_model_tensor_buft_override> overrides;
    for (auto &p : patterns) overrides.push_back({p.c_str(), ggml_backend_cpu_buffer_type()});
    overrides.push_back({nullptr, nullptr});
    if (!patterns.empty()) mp.tensor_buft_overrides = overrides.data();
    auto *model = llama_model_load_from_file(r.at("model").get<std::string>().c_str(), mp);
    if (!model) { out["outcome"] = "rejected"; out["error"] = told; return out; }

    auto cp = llama_context_default_params();
    cp.n_ctx = r.value("ctx", 0);
    cp.n_batch = r.value("batch", 2048);
    cp.n_ubatch = r.value("ubatch", 512);
    // tools/server/server.cpp: four slots that share one cache where --parallel is not given.
    cp.n_seq_max = r.contains("parallel") ? r["parallel"].get<int>() : 4;
    cp.kv_unified = r.contains("unified") ? r["unified"].get<bool>() : !r.contains("parallel");
    // tools/server/server-context.cpp `server_output_limits`: an output for each slot, without a drafter.
    cp.n_outputs_max = r.contains("outputs") ? r["outputs"].get<int>() : std::min<int>(cp.n_batch, cp.n_seq_max);
    cp.type_k = type_of(r.value("ctk", "f16"));
    cp.type_v = type_of(r.value("ctv", "f16"));
    auto fa = r.value("fa", "auto");
    cp.flash_attn_type = fa == "on" ? LLAMA_FLASH_ATTN_TYPE_ENABLED : fa == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
    cp.swa_full = r.value("swa_full", false);
    cp.offload_kqv = !r.value("kv_in_ram", false);
    auto *ctx = llama_init_from_model(model, cp);
    if (!ctx) { out["outcome"] = "rejected"; out["error"] = told; llama_model_free(model); return out; }
    out["outcome"] = "fits";
    out["layers"] = llama_model_n_layer(model);
    out["slot_context"] = llama_n_ctx_seq(ctx);
    json buffers = json::array();
    for (auto &[buft, mb] : llama_get_memory_breakdown(ctx)) {
        int card = -1;
        for (size_t i = 0; i < cards.size(); i++)
            if (ggml_backend_buft_get_device(buft) == cards[i]) card = (int) i;
        buffers.push_back({{"name", ggml_backend_buft_name(buft)}, {"card", card}, {"model", mb.model}, {"context", mb.context}, {"compute", mb.compute}});
    }
    out["buffers"] = buffers;
    out["log"] = told;
    llama_free(ctx);
    llama_model_free(model);
    return out;
}

int main() {
    const int most = 2;
    std::vector<std::string> ends;
    for (int i = 0; i < most; i++) ends.push_back("127.0.0.1:" + std::to_string(52400 + getpid() % 500 * 4 + i));
    for (auto &end : ends) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            freopen("/dev/null", "w", stdout);
            auto *cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
            ggml_backend_rpc_start_server(end.c_str(), nullptr, 1, 1, &cpu);
            _exit(1);
        }
    }
    sleep(1);
    llama_log_set(keep, nullptr);
    llama_backend_init();
    std::vector<ggml_backend_dev_t> cards;
    for (auto &end : ends) {
        auto reg = ggml_backend_rpc_add_server(end.c_str());
        if (!reg) { fprintf(stderr, "no RPC device at %s\n", end.c_str()); return 1; }
        cards.push_back(ggml_backend_reg_dev_get(reg, 0));
    }
    std::string line;
    while (std::getline(std::cin, line)) {
        json out;
        json r = json::parse(line, nullptr, false);
        try { out = answer(r, cards); }
        catch (const std::exception &e) { out = {{"id", r.value("id", "")}, {"outcome", "error"}, {"error", e.what()}}; }
        std::cout << out.dump() << std::endl;
    }
}
