package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
)

// Each fake node has a port of its own: the API server knows a kubelet by address and port alone.
const firstPort = 20000

const healthyLog = `(APIServer pid=1) INFO 11-21 08:01:00 [api_server.py:1977] vLLM API server version 0.11.0
(EngineCore_DP0 pid=201) INFO 11-21 08:01:10 [gpu_model_runner.py:2930] Starting to load model Qwen/Qwen3-32B...
(EngineCore_DP0 pid=201) INFO 11-21 08:03:00 [default_loader.py:314] Loading weights took 41.22 seconds
(EngineCore_DP0 pid=201) INFO 11-21 08:03:05 [gpu_worker.py:349] Available KV cache memory: 12.20 GiB
(APIServer pid=1) INFO 11-21 08:03:25 [api_server.py:2052] Starting vLLM API server 0 on http://0.0.0.0:8000
(APIServer pid=1) INFO:     Application startup complete.
`

// containerLog is what one container printed. filler bytes of a server's daily lines go before the real ones;
// they are made while they are sent.
type containerLog struct {
	current, previous string
	hasPrevious       bool
	filler            int64
}

const fillerLine = "(APIServer pid=1) INFO 11-21 08:%02d:%02d [loggers.py:236] Engine 000: Avg prompt throughput: 900.1 tokens/s, Avg generation throughput: 310.2 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 41.2%%\n"

func filler(i int64) string { return fmt.Sprintf(fillerLine, i/60%60, i%60) }

func (f *fleet) listen(ctx context.Context) error {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(f.pki, "kubelet-server.crt"), filepath.Join(f.pki, "kubelet-server.key"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(f.pki, "ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	// Who comes without a certificate of the cluster is refused, as by a real one.
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	for i := range f.nodes {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", f.address, firstPort+i))
		if err != nil {
			return err
		}
		server := &http.Server{Handler: f.kubelet(nodeName(i))}
		go func() { _ = server.Serve(tls.NewListener(listener, config)) }()
		context.AfterFunc(ctx, func() { _ = server.Close() })
	}
	return nil
}

func (f *fleet) kubelet(node string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		f.containerLogs(w, r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), r.URL.Query())
	})
	mux.HandleFunc("GET /logs/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<pre>\n<a href=\"kern.log\">kern.log</a>\n</pre>\n")
	})
	mux.HandleFunc("GET /logs/kern.log", func(w http.ResponseWriter, r *http.Request) {
		// By way of ServeContent, as the kubelet does: a range of a large file can be asked for.
		http.ServeContent(w, r, "kern.log", time.Time{}, strings.NewReader(f.kern[node]))
	})
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) {
		list := core.PodList{}
		for _, p := range f.pods[node] {
			list.Items = append(list.Items, *p)
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("GET /stats/summary", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f.summary(node))
	})
	mux.HandleFunc("GET /metrics/cadvisor", func(w http.ResponseWriter, _ *http.Request) { f.cadvisor(w, node) })
	return mux
}

func (f *fleet) containerLogs(w http.ResponseWriter, namespace, pod, container string, query url.Values) {
	log := f.logs[namespace+"/"+pod+"/"+container]
	text := log.current
	if query.Get("previous") == "true" {
		if !log.hasPrevious {
			http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", container, pod), http.StatusBadRequest)
			return
		}
		text = log.previous
	}
	if query.Get("sinceTime") != "" || query.Get("sinceSeconds") != "" {
		// What came after it cannot be told without the runtime's own times; the filler is older than all.
		log.filler = 0
	}
	var out io.Writer = w
	if limit, err := strconv.ParseInt(query.Get("limitBytes"), 10, 64); err == nil {
		out = &limited{w, limit}
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	fillers := log.filler / int64(len(filler(0)))
	first := int64(0)
	if tail, err := strconv.ParseInt(query.Get("tailLines"), 10, 64); err == nil {
		tail = max(tail, 0)
		if own := int64(len(lines)); tail <= own {
			first, lines = fillers, lines[own-tail:]
		} else {
			first = max(0, fillers-(tail-own))
		}
	}
	stamp := func(string) string { return "" }
	if query.Get("timestamps") == "true" {
		now := time.Now().UTC()
		stamp = func(string) string { return now.Format("2006-01-02T15:04:05.000000000Z ") }
	}
	w.Header().Set("Content-Type", "text/plain")
	for i := first; i < fillers; i++ {
		line := filler(i)
		if _, err := io.WriteString(out, stamp(line)+line); err != nil {
			return
		}
	}
	for _, line := range lines {
		if _, err := io.WriteString(out, stamp(line)+line); err != nil {
			return
		}
	}
}

// limited ends the answer after so many bytes.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, io.EOF
	}
	n, err := l.w.Write(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return len(p), err
}

// used is a made-up amount of memory: half of the limit, the same each time.
func used(c core.Container) int64 { return max(c.Resources.Limits.Memory().Value()/2, 64<<20) }

func (f *fleet) summary(node string) any {
	type memory struct {
		Time            time.Time `json:"time"`
		UsageBytes      int64     `json:"usageBytes"`
		WorkingSetBytes int64     `json:"workingSetBytes"`
		RSSBytes        int64     `json:"rssBytes"`
	}
	now := time.Now().UTC().Truncate(time.Second)
	pods := []any{}
	for _, p := range f.pods[node] {
		containers := []any{}
		for _, c := range p.Spec.Containers {
			if running(p, c.Name) {
				containers = append(containers, map[string]any{"name": c.Name, "memory": memory{now, used(c), used(c), used(c)}})
			}
		}
		pods = append(pods, map[string]any{"podRef": map[string]any{"name": p.Name, "namespace": p.Namespace, "uid": p.UID}, "containers": containers})
	}
	return map[string]any{"node": map[string]any{"nodeName": node, "memory": memory{now, 1 << 40, 1 << 40, 1 << 40}}, "pods": pods}
}

func (f *fleet) cadvisor(w io.Writer, node string) {
	_, _ = io.WriteString(w, "# HELP container_memory_working_set_bytes Current working set in bytes.\n# TYPE container_memory_working_set_bytes gauge\n")
	for _, p := range f.pods[node] {
		for _, c := range p.Spec.Containers {
			if running(p, c.Name) {
				fmt.Fprintf(w, "container_memory_working_set_bytes{container=%q,id=\"/kubepods/burstable/pod%s\",image=%q,name=\"\",namespace=%q,pod=%q} %d\n",
					c.Name, p.UID, c.Image, p.Namespace, p.Name, used(c))
			}
		}
	}
}
