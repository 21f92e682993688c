// A collector that takes traces as OpenTelemetry's own does (its decoder of OTLP), and prints a line for each span.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	http.HandleFunc("/v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalJSON(body); err != nil {
			fmt.Println("refused:", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all := request.Traces().ResourceSpans()
		for i := 0; i < all.Len(); i++ {
			resource := all.At(i).Resource().Attributes().AsRaw()
			for j := 0; j < all.At(i).ScopeSpans().Len(); j++ {
				spans := all.At(i).ScopeSpans().At(j).Spans()
				for k := 0; k < spans.Len(); k++ {
					s := spans.At(k)
					line, _ := json.Marshal(map[string]any{
						"resource": resource, "trace": s.TraceID().String(), "span": s.SpanID().String(), "parent": s.ParentSpanID().String(),
						"name": s.Name(), "kind": s.Kind().String(), "status": s.Status().Code().String(), "events": s.Events().Len(),
						"nanoseconds": uint64(s.EndTimestamp()) - uint64(s.StartTimestamp()), "attributes": s.Attributes().AsRaw(),
					})
					fmt.Println(string(line))
				}
			}
		}
		w.Header().Set("content-type", "application/json")
		_, _ = w.Write([]byte("{}"))
	})
	_ = http.Serve(listener, nil)
}
