// Faults is a proxy in front of the API server that fails on demand, and counts.
//
// A client's certificate cannot be handed on, so who brings no token is admin here; only tests come.
// Rules are put with HTTP at the port after its own:
//
//	PUT    /rules   [{"path": "/pods/[^/]+/log", "status": 429, "retry_after": 1, "times": 2}]
//	DELETE /rules   removes them and sets the counts to zero
//	GET    /counts  {"requests": 12, "max_in_flight": 4, "faults": 2, "paths": {"GET /api/v1/pods": 3}}
//
// The first rule that fits and has times left is taken. `path` is a regular expression on method, path and query
// ("GET /api/v1/pods?limit=500").
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// rule is one fault. What is zero does not happen.
type rule struct {
	Path string `json:"path"`
	// Answers with this status and the body of a Kubernetes Status, instead of asking the API server.
	Status     int    `json:"status,omitempty"`
	Reason     string `json:"reason,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"`
	// Waits until the rules are removed: what a test does meanwhile is over when the API server is asked.
	Hold bool `json:"hold,omitempty"`
	// Cuts the connection after so many bytes of the API server's answer; -1: before its head.
	CutAfter int64 `json:"cut_after,omitempty"`
	// Sends the answer slowly: so many bytes a second.
	BytesPerSecond int `json:"bytes_per_second,omitempty"`
	// How often; 0: always.
	Times int `json:"times,omitempty"`

	pattern *regexp.Regexp
	used    int
	gone    chan struct{}
}

type counts struct {
	Requests    int            `json:"requests"`
	InFlight    int            `json:"in_flight"`
	MaxInFlight int            `json:"max_in_flight"`
	Faults      int            `json:"faults"`
	Paths       map[string]int `json:"paths"`
}

type proxy struct {
	mu     sync.Mutex
	rules  []*rule
	counts counts
	next   *httputil.ReverseProxy
}

func (p *proxy) enter(r *http.Request) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Requests++
	p.counts.InFlight++
	p.counts.MaxInFlight = max(p.counts.MaxInFlight, p.counts.InFlight)
	p.counts.Paths[r.Method+" "+r.URL.Path]++
	for _, rule := range p.rules {
		if (rule.Times == 0 || rule.used < rule.Times) && rule.pattern.MatchString(r.Method+" "+r.URL.RequestURI()) {
			rule.used++
			p.counts.Faults++
			return rule
		}
	}
	return nil
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := p.enter(r)
	defer func() {
		p.mu.Lock()
		p.counts.InFlight--
		p.mu.Unlock()
	}()
	if fault == nil {
		p.next.ServeHTTP(w, r)
		return
	}
	if fault.Hold {
		select {
		case <-fault.gone:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case fault.CutAfter < 0:
		// The server closes the connection without a word.
		panic(http.ErrAbortHandler)
	case fault.Status != 0:
		refuse(w, fault)
	case fault.CutAfter > 0 || fault.BytesPerSecond > 0:
		p.next.ServeHTTP(&poor{ResponseWriter: w, left: fault.CutAfter, cuts: fault.CutAfter > 0, rate: fault.BytesPerSecond}, r)
	default:
		p.next.ServeHTTP(w, r)
	}
}

// refuse answers as the API server does: with an object of kind Status.
func refuse(w http.ResponseWriter, fault *rule) {
	reason := fault.Reason
	if reason == "" {
		reason = map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
			429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}[fault.Status]
	}
	details := map[string]any{}
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		details["retryAfterSeconds"] = fault.RetryAfter
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": fmt.Sprintf("fault proxy: %d %s", fault.Status, reason), "reason": reason, "details": details, "code": fault.Status})
}

// poor is an answer that is cut or slow.
type poor struct {
	http.ResponseWriter
	left int64
	cuts bool
	rate int
}

func (p *poor) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		n := len(data)
		if p.rate > 0 {
			n = min(n, max(p.rate/10, 1))
		}
		if p.cuts {
			n = int(min(int64(n), p.left))
		}
		k, err := p.ResponseWriter.Write(data[:n])
		written += k
		if err != nil {
			return written, err
		}
		p.Flush()
		data, p.left = data[n:], p.left-int64(n)
		if p.cuts && p.left <= 0 {
			panic(http.ErrAbortHandler)
		}
		if p.rate > 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	return written, nil
}

func (p *poor) Flush() {
	if f, ok := p.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Without it, `exec` and `port-forward` could not take the connection over.
func (p *poor) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *proxy) replace(rules []*rule) {
	for _, rule := range p.rules {
		close(rule.gone)
	}
	p.rules = rules
}

func (p *proxy) control(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "PUT /rules":
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		var rules []*rule
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&rules); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, rule := range rules {
			pattern, err := regexp.Compile(rule.Path)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			rule.pattern = pattern
			rule.gone = make(chan struct{})
		}
		p.replace(rules)
	case "DELETE /rules":
		p.replace(nil)
		p.counts = counts{InFlight: p.counts.InFlight, Paths: map[string]int{}}
	case "GET /counts":
		answer := p.counts
		answer.Paths = maps.Clone(p.counts.Paths)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	default:
		http.NotFound(w, r)
	}
}

func main() {
	upstream := flag.String("upstream", "https://10.96.0.1:443", "the API server")
	listen := flag.String("listen", "10.244.0.1:6444", "address; the control endpoint is on the next port")
	ca := flag.String("ca", "", "")
	cert := flag.String("cert", "", "of this server")
	key := flag.String("key", "", "")
	clientCert := flag.String("client-cert", "", "shown to the API server where the client sends no token")
	clientKey := flag.String("client-key", "", "")
	flag.Parse()

	target, err := url.Parse(*upstream)
	check(err)
	text, err := os.ReadFile(*ca)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(*clientCert, *clientKey)
	check(err)
	transport := func(certificates ...tls.Certificate) *http.Transport {
		return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, DisableCompression: true}
	}
	p := &proxy{counts: counts{Paths: map[string]int{}}, next: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport:     byIdentity{admin: transport(pair), bearer: transport()},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}}

	host, port, err := net.SplitHostPort(*listen)
	check(err)
	number, err := strconv.Atoi(port)
	check(err)
	go func() {
		check(http.ListenAndServe(net.JoinHostPort(host, strconv.Itoa(number+1)), http.HandlerFunc(p.control)))
	}()
	server := &http.Server{Addr: *listen, Handler: p, ErrorLog: log.New(io.Discard, "", 0)}
	check(server.ListenAndServeTLS(*cert, *key))
}

// byIdentity sends a service account's token on as it is: rights are those of who asks.
type byIdentity struct{ admin, bearer http.RoundTripper }

func (b byIdentity) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return b.bearer.RoundTrip(r)
	}
	return b.admin.RoundTrip(r)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
