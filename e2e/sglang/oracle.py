#!/usr/bin/env python3
"""SGLang's own arithmetic of weights and pools, on a machine without GPU and without weights.

Requests in (one JSON object a line), answers out, progress on stderr; `ask.py` makes requests, `README.md` names the fields.
Plumbing is replaced, arithmetic is not: a stub of the driver's library lets the extensions load, the card of the request
answers `torch.cuda`, a script on PATH answers `nvidia-smi`, tensors asked for on the card are made on "meta", and torch's own
"fake" process group plays one rank of any world. `ServerArgs` resolves the flags, `DummyModelLoader` builds the model,
`KVCacheConfigurator` sizes the pools from a free memory that the request gives.
"""
import argparse, collections, contextlib, gc, json, logging, os, pickle, re, shutil, signal, subprocess, sys, tempfile
import time, traceback, types

FREE = [0]


def log(*a): print(*a, file=sys.stderr, flush=True)


# ---- the machine -------------------------------------------------------------------------------
def stub_driver():
    """A libcuda.so.1 whose every function that the extensions import reports an error."""
    import ctypes, glob, importlib.util
    names = set()
    for package in ("sgl_kernel", "flashinfer", "deep_gemm", "sgl_deep_gemm", "humming"):
        spec = importlib.util.find_spec(package)
        root = os.path.dirname(spec.origin) if spec and spec.origin else None
        for so in glob.glob(os.path.join(root, "**/*.so"), recursive=True) if root else ():
            names |= set(re.findall(rb"\0(cu(?!da|blas|dnn|rand|solver|sparse)[A-Z]\w+)(?=\0)", open(so, "rb").read()))
    d = tempfile.mkdtemp(prefix="oracle-cuda-")
    src, so = os.path.join(d, "s.c"), os.path.join(d, "libcuda.so.1")
    with open(src, "w") as f: f.writelines(f"int {n.decode()}(void) {{ return 100; }}\n" for n in sorted(names | {b"cuInit"}))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", so, "-Wl,-soname,libcuda.so.1", src], check=True)
    ctypes.CDLL(so, mode=ctypes.RTLD_GLOBAL)
    sys.setdlopenflags(os.RTLD_LAZY)
    shutil.rmtree(d)


def fake_smi(mib):
    """`nvidia-smi --query-gpu=memory.total`, where the engine reads the size of the card."""
    d = tempfile.mkdtemp(prefix="oracle-smi-")
    path = os.path.join(d, "nvidia-smi")
    with open(path, "w") as f: f.write(f"#!/bin/sh\necho {mib}\n")
    os.chmod(path, 0o755)
    os.environ["PATH"] = d + ":" + os.environ["PATH"]


class Anything:
    """Stands for streams, events and graphs: callable, any attribute, context manager."""
    def __init__(self, *a, **k): pass
    def __call__(self, *a, **k): return self
    def __getattr__(self, n):
        if n.startswith("__"): raise AttributeError(n)
        return Anything()
    def __enter__(self): return self
    def __exit__(self, *a): return False
    def __int__(self): return 0


def fake_cuda(cap, name, total):
    import torch
    props = types.SimpleNamespace(name=name, major=cap[0], minor=cap[1], total_memory=total, is_integrated=False,
                                  multi_processor_count={9: 132, 10: 148}.get(cap[0], 108), warp_size=32, uuid="0",
                                  shared_memory_per_block_optin=232448 if cap[0] >= 9 else 101376, gcnArchName="",
                                  shared_memory_per_multiprocessor=233472, L2_cache_size=50 << 20,
                                  max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536)
    def fn(v): return lambda *a, **k: v
    c = torch.cuda
    for n, v in dict(is_available=True, device_count=64, current_device=0, set_device=None, synchronize=None, empty_cache=None,
                     reset_peak_memory_stats=None, get_device_capability=cap, get_device_name=name, is_initialized=True,
                     get_device_properties=props, memory_allocated=0, max_memory_allocated=0, memory_reserved=0, init=None,
                     graph_pool_handle=(0, 0), is_current_stream_capturing=False, is_bf16_supported=True,
                     can_device_access_peer=True, get_arch_list=[f"sm_{cap[0]}{cap[1]}"], manual_seed_all=None,
                     memory_stats=collections.defaultdict(int), _lazy_init=None).items():
        setattr(c, n, fn(v))
    c.mem_get_info = lambda *a, **k: (FREE[0], total)
    c.device = type("device", (Anything,), {})
    for n in ("Stream", "Event", "CUDAGraph", "ExternalStream"): setattr(c, n, type(n, (Anything,), {}))
    for n in ("current_stream", "default_stream", "stream"): setattr(c, n, fn(Anything()))
    real = torch.get_device_module
    torch.get_device_module = lambda d=None: c if d is None or "cuda" in str(d) else real(d)
    try:
        from triton.backends import backends
        backends["nvidia"].driver.is_active = staticmethod(lambda: True)
        from triton.runtime import driver as td
        td.set_active(types.SimpleNamespace(
            get_current_target=lambda: types.SimpleNamespace(backend="cuda", arch=cap[0] * 10 + cap[1], warp_size=32),
            get_current_device=lambda: 0, get_device_capability=lambda *a: cap, get_current_stream=lambda *a: 0,
            get_active_torch_device=lambda: torch.device("meta"), get_benchmarker=lambda: None,
            get_device_interface=lambda: torch.cuda, utils=types.SimpleNamespace(
                get_device_properties=lambda *a: dict(multiprocessor_count=props.multi_processor_count, warpSize=32,
                                                      max_shared_mem=props.shared_memory_per_block_optin))))
    except Exception as e: log(f"triton's driver stays: {e!r}")


def meta_mode():
    """Torch function mode: what is asked for on the card is made on meta."""
    import torch
    from torch.overrides import TorchFunctionMode

    def on(d):
        if isinstance(d, str) and d.startswith("cuda"): return torch.device("meta")
        if isinstance(d, torch.device) and d.type == "cuda": return torch.device("meta")
        return d

    class CudaIsMeta(TorchFunctionMode):
        def __torch_function__(self, func, types_, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if "device" in kwargs:
                d = kwargs["device"]
                kwargs["device"] = torch.device("meta") if type(d) is int else on(d)
            kwargs.pop("pin_memory", None)
            n = getattr(func, "__name__", "")
            meta = bool(args) and isinstance(args[0], torch.Tensor) and args[0].device.type == "meta"
            if n == "cuda": return args[0].to("meta")
            if n == "pin_memory": return args[0]
            if meta and n in ("item", "tolist", "__bool__", "__float__", "__int__", "is_nonzero", "equal", "allclose"):
                # Values do not exist on meta: a scale reads as one, a test as true.
                one = {torch.bool: True}.get(args[0].dtype, 1.0 if args[0].dtype.is_floating_point else 1)
                if n == "tolist":
                    for d in reversed(args[0].shape): one = [one] * d
                    return one
                kind = {"__bool__": bool, "is_nonzero": bool, "equal": bool, "allclose": bool, "__float__": float, "__int__": int}
                return kind.get(n, lambda x: x)(one)
            if meta and n in ("isnan", "isinf", "isneginf"):
                return torch.zeros((), dtype=torch.bool, device="cpu").expand(args[0].shape)
            if meta and n in ("unique", "_unique2"): return args[0].flatten()[:1]
            if meta and (n == "cpu" or n == "to" and (args[1:2] == ("cpu",) or str(kwargs.get("device")) == "cpu")) \
                    and args[0].numel() < 1 << 20:
                return torch.ones(args[0].shape, dtype=args[0].dtype, device="cpu")
            if n in ("to", "new_empty", "new_zeros", "new_full", "new_ones", "new_tensor"): args = tuple(on(a) for a in args)
            return func(*args, **kwargs)
    return CudaIsMeta()


def one_process():
    """Groups of a world of which only this rank runs."""
    import torch.distributed as dist
    from torch.testing._internal.distributed import fake_pg  # noqa: registers the "fake" backend
    new_group = dist.new_group
    def fake_group(ranks=None, timeout=None, backend=None, **k):
        return new_group(ranks, backend="fake", **{a: b for a, b in k.items() if a == "group_desc"})
    dist.new_group = fake_group
    import sglang.srt.distributed.parallel_state as ps
    if hasattr(ps, "in_the_same_node_as"): ps.in_the_same_node_as = lambda pg, source_rank=0: [True] * dist.get_world_size(pg)
    from sglang.srt.distributed.device_communicators import pynccl
    def absent(self, *a, **k): self.available, self.disabled, self.world_size = False, True, 1
    pynccl.PyNcclCommunicator.__init__ = absent
    from sglang.srt.distributed.device_communicators import shm_broadcast
    shm_broadcast.MessageQueue.create_from_process_group = staticmethod(lambda *a, **k: None)


# ---- one request -------------------------------------------------------------------------------
def folder_of(config, quant):
    """The engine wants a folder with the model's files."""
    d = tempfile.mkdtemp(prefix="oracle-model-")
    if "model_type" not in config:
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as names
        config = dict(config, model_type=next(t for t, a in names.items() if config["architectures"][0] in (a, [a])))
    json.dump(config, open(os.path.join(d, "config.json"), "w"))
    if quant:       # trimmed copies lack the producer
        json.dump({"producer": {"name": "modelopt", "version": "0.37.0"}, **quant}, open(os.path.join(d, "hf_quant_config.json"), "w"))
    return d


def weights(model):
    """Bytes of the meta tensors that are alive, each storage once: of modules by name, then whatever else is held."""
    import torch
    by, seen = collections.Counter(), set()
    def add(name, t):
        if not isinstance(t, torch.Tensor) or t.device.type != "meta": return
        s = t.untyped_storage()
        if s._cdata in seen: return
        seen.add(s._cdata)
        by[name] += s.nbytes()
    for _, p in model.named_parameters(remove_duplicate=False): add("parameters", p)
    for _, b in model.named_buffers(remove_duplicate=False): add("buffers", b)
    gc.collect()
    for o in gc.get_objects():
        if issubclass(type(o), torch.Tensor): add("other", o)
    return dict(total=sum(by.values()))


def tolerant(model, failed):
    """Repacking that launches kernels fails here: such a module keeps its built layout, and is counted."""
    def wrap(method):
        real = method.process_weights_after_loading
        def run(layer, *a, **k):
            kept = dict(layer._parameters)
            try: return real(layer, *a, **k)
            except Exception as e:
                layer._parameters.clear(); layer._parameters.update(kept)
                failed[f"{type(method).__name__}: {type(e).__name__}: {str(e)[:100]}{where(e)}"] += 1
        method.process_weights_after_loading = run
    done = set()
    for m in model.modules():
        method = getattr(m, "quant_method", None)
        if method is not None and id(method) not in done and hasattr(method, "process_weights_after_loading"):
            done.add(id(method)); wrap(method)


def where(e):
    fs = [f"{os.path.basename(f.filename)}:{f.lineno}:{f.name}" for f in traceback.extract_tb(e.__traceback__)
          if "sglang" in f.filename or "transformers" in f.filename]
    return " @ " + " < ".join(reversed(fs[-4:])) if fs else ""


def build(model_config):
    """What the loader of dummy weights builds; the weights after repacking where that needs no kernel."""
    import torch
    from sglang.srt.model_loader import loader
    from sglang.srt.configs.load_config import LoadConfig
    from sglang.srt.model_loader.utils import set_default_torch_dtype
    config = LoadConfig(load_format="dummy")
    quant = loader._get_quantization_config(model_config, config)
    with set_default_torch_dtype(model_config.dtype), torch.device("meta"):
        model = loader._initialize_model(model_config, config, quant)
    out = weights(model)
    def process():
        failed = collections.Counter()
        tolerant(model, failed)
        try: loader.post_load_weights(model)
        except Exception as e: failed[f"post_load_weights: {type(e).__name__}: {str(e)[:100]}{where(e)}"] += 1
        for _, module in model.named_modules():
            method = getattr(module, "quant_method", None)
            if method is None or hasattr(module, "is_weights_quantized") and module.is_weights_quantized(): continue
            if hasattr(method, "process_weights_after_loading"): method.process_weights_after_loading(module)
        gc.collect()
        w = weights(model)
        for why, n in failed.most_common(4): log(f"{n} modules keep the built layout: {why}")
        if failed: w["as_built"] = sum(failed.values())
        return w
    with set_default_torch_dtype(model_config.dtype):
        try: out = in_fork(process)
        except RuntimeError as e: out["as_built"] = str(e)[:100]
    return model, out


def resolved():
    from sglang.srt.runtime_context import get_exec, get_schedule
    s, g, k = get_schedule(), get_exec().graph.cuda_graph_config, get_exec().kernel
    return dict(mem_fraction_static=s.mem_fraction_static, page_size=s.page_size, chunked_prefill_size=s.chunked_prefill_size,
                decode_max_bs=g.decode.max_bs, prefill_graph=str(g.prefill.backend).rsplit(".", 1)[-1].lower(),
                attention_backend=k.attention_backend, max_running_requests=s.max_running_requests)


def answer(req):
    import torch, torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.distributed import bootstrap
    from sglang.srt.runtime_context import SpawnRanks, get_schedule, publish
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.model_executor import model_runner as mr
    out = {}
    logging.getLogger("sglang").propagate = bool(os.environ.get("ORACLE_VERBOSE"))
    folder = folder_of(req["model"], req.get("quant"))
    step = "arguments"
    try:
        FREE[0] = req["before"]
        args = prepare_server_args(["--model-path", folder, "--device", "cuda", "--load-format", "dummy",
                                    "--skip-tokenizer-init", "--log-level", "warning", *req["flags"].split()])
        publish(args, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))
        out["resolved"] = resolved()
        step = "world"
        from sglang.srt.runtime_context import get_parallel
        p = get_parallel()
        dist.init_process_group(backend="fake", store=FakeStore(), world_size=p.tp_size * p.pp_size, rank=0)
        with meta_mode():
            bootstrap.init_parallel_runtime(server_args=args, device="cuda", dist_port=1)
            step = "config"
            mc = ModelConfig.from_server_args(args)
            bootstrap.init_layer_runtime(model_config=mc)
            out.update(context=mc.context_len, dtype=str(mc.dtype).replace("torch.", ""), architecture=mc.hf_config.architectures[0],
                       quantization=mc.quantization)
            runner = object.__new__(mr.ModelRunner)
            runner.__dict__.update(
                mem_fraction_static=get_schedule().mem_fraction_static, gpu_id=0, model_config=mc, server_args=args,
                is_draft_worker=False, device="cuda", draft_attention_backend=None, draft_model_idx=None, memory_pool_config=None,
                spec_algorithm=mr.SpeculativeAlgorithm.from_string(mr.get_spec().speculative_algorithm), lora_manager=None,
                page_size=get_schedule().page_size, req_to_token_pool=None, token_to_kv_pool_allocator=None, forward_stream=None,
                is_hybrid_swa=mc.is_hybrid_swa, is_hybrid_swa_compress=mc.is_hybrid_swa_compress, dtype=mc.dtype,
                use_mla_backend=mc.attention_arch == mr.AttentionArch.MLA, is_multimodal=mc.is_multimodal)
            step = "speculation"
            runner.init_spec_aux_hidden_state()
            runner.pre_model_load_memory = bootstrap.measure_pre_model_load_memory(device="cuda", is_draft_worker=False)
            runner.pp_group = p.pp_group
            step = "build"
            runner.model, out["weights"] = build(mc)
            runner.dtype = mc.dtype
            step = "pool"
            runner.sliding_window_size = mr.resolve_sliding_window_size(runner.model, mc)
            runner.layer_info = mr.resolve_layer_indices(model=runner.model, model_config=mc, is_draft_worker=False, draft_model_idx=None)
            runner.configure_kv_cache_dtype()
            out["kv_dtype"] = str(runner.kv_cache_dtype).replace("torch.", "")
            runner.init_kv_cache_configurator()
            c = runner.kv_cache_configurator
            after = [free(req, a, out["weights"]) for a in req["after"]]
            # Where the weights alone are too much, loading dies before any pool is sized.
            out["pools"] = [pool(c, runner, a) for a in after if a > 0]
        out["outcome"] = "answered"
    except Exception as e:
        out.update(outcome="error", step=step, error=f"{type(e).__name__}: {str(e)[:600]}{where(e)}")
        if os.environ.get("ORACLE_VERBOSE"): traceback.print_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return out


def free(req, after, built):
    """Free after loading: as the request says, or what the weights leave."""
    return after or req["before"] - built["total"]


def pool(c, runner, after):
    """The pools that `after` free bytes give; in a fork, because the sizing writes to the context."""
    from sglang.srt.model_executor.pool_configurator import create_memory_pool_configurator
    from sglang.srt.runtime_context import get_schedule
    def cut():
        FREE[0] = after
        o = dict(after=after)
        try:
            config = c._resolve_memory_pool_config(runner.pre_model_load_memory)
        except (ValueError, RuntimeError) as e:
            text = str(e)
            if re.search(r"memory|SWA pool|KV cache", text): return dict(o, refusal=text)
            return dict(o, error=f"{type(e).__name__}: {text[:300]}{where(e)}")
        except Exception as e:
            return dict(o, error=f"{type(e).__name__}: {str(e)[:300]}{where(e)}")
        o.update(tokens=config.max_total_num_tokens, running=config.max_running_requests)
        if config.swa_max_total_num_tokens is not None:
            o["window_tokens"] = config.swa_max_total_num_tokens
        if c.mambaish_config is not None:
            o.update(states=get_schedule().max_mamba_cache_size, state_bytes=c.mambaish_config.mamba2_cache_params.mamba_cache_per_req,
                     per_request=c._calculate_mamba_ratio())
        size = create_memory_pool_configurator(c)
        o["cell"] = getattr(size, "_cell_size", getattr(size, "bytes_per_full_token", None))
        return o
    try: return in_fork(cut)
    except RuntimeError as e: return dict(after=after, error=str(e))


def in_fork(fn, timeout=None):
    """`fn` in a fork; its result comes back pickled."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        try:
            if timeout: signal.signal(signal.SIGALRM, signal.SIG_DFL); signal.alarm(int(timeout))
            data = pickle.dumps((True, fn()))
        except BaseException as e:
            data = pickle.dumps((False, f"{type(e).__name__}: {str(e)[:600]}{where(e)}"))
        with os.fdopen(w, "wb") as f: f.write(data)
        os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f: data = f.read()
    _, st = os.waitpid(pid, 0)
    if not data: raise RuntimeError(f"died: signal {os.WTERMSIG(st)}" if os.WIFSIGNALED(st) else f"died: exit {st}")
    ok, v = pickle.loads(data)
    if not ok: raise RuntimeError(v)
    return v


def prepare(cap, name, total, mib):
    """The server's process: environment, imports."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", DO_NOT_TRACK="1", TOKENIZERS_PARALLELISM="false",
                      TORCHDYNAMO_DISABLE="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    os.environ.setdefault("CUDA_HOME", os.path.join(sys.prefix, "cuda"))     # some ask only whether it is set
    stub_driver()
    fake_smi(mib)
    t = time.time()
    import torch; torch.set_num_threads(1)
    fake_cuda(cap, name, total)
    import sglang, sglang.srt.server_args, sglang.srt.model_executor.model_runner, sglang.srt.model_loader.loader  # noqa
    import sglang.srt.models.registry  # noqa: imports every model once
    one_process()
    try:
        import deep_gemm
        deep_gemm.get_num_sms = lambda: torch.cuda.get_device_properties(0).multi_processor_count
    except ImportError: pass
    log(f"[{name}] imported in {time.time() - t:.0f} s")
    gc.freeze()


def serve(device, timeout):
    proto = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)    # libraries may print
    prepare(*device)
    import sglang
    for line in sys.stdin:
        req = json.loads(line)
        t = time.time()
        try: out = in_fork(lambda: answer(req), timeout)
        except RuntimeError as e: out = dict(outcome="error", step="process", error=str(e))
        log(f"{req['id']} {out['outcome']} {time.time() - t:.1f} s {out.get('step', '')} {(out.get('error') or '')[:200]}")
        out = dict({k: req[k] for k in ("id", "config", "flags", "card", "before")}, sglang=sglang.__version__, **out)
        proto.write(re.sub(r"/[\w/.-]*oracle-model-\w+", "<folder>", json.dumps(out, separators=(",", ":"))) + "\n"); proto.flush()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--timeout", type=int, default=300, help="seconds a request")
    ap.add_argument("--serve", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.serve:
        cap, *rest = json.loads(a.serve)
        return serve((tuple(cap), *rest), a.timeout)
    groups = collections.OrderedDict()
    for line in filter(str.strip, sys.stdin):
        q = json.loads(line)
        c = q["card"]
        groups.setdefault((c["capability"][0], c["capability"][1], c["name"], c["total_bytes"], c["driver_mib"]), []).append(line)
    for (major, minor, *card), questions in groups.items():
        p = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", json.dumps([(major, minor), *card]),
                              "--timeout", str(a.timeout)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in questions:
            p.stdin.write(line.strip() + "\n"); p.stdin.flush()
            r = p.stdout.readline()
            if not r: sys.exit(f"the server of {card[0]} died")
            sys.stdout.write(r); sys.stdout.flush()
        p.stdin.close(); p.wait()


if __name__ == "__main__": main()
