package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"tidemark/internal/logdir"
)

// admin is the HTTP port for operators: /live, /ready and /metrics.
type admin struct {
	listener net.Listener
	server   *http.Server
}

// adminKey is the config with the address of the admin port.
const adminKey = "tidemark.admin.listener"

// adminTimeout bounds how long a client may take to send its request.
const adminTimeout = 10 * time.Second

// startAdmin opens the admin port before the partitions are loaded, so that a long recovery can be watched.
func (b *Broker) startAdmin(ctx context.Context) error {
	address := b.config().AdminListener
	if address == "" {
		return nil
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil && b.opts.Properties[adminKey] == "" {
		b.log.Warn("the default admin port is taken: there is none", "config", adminKey, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("open admin port (%s, empty for none): %w", adminKey, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "live") })
	mux.HandleFunc("GET /ready", b.answerReady)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		b.metrics.write(w)
	})
	b.admin = &admin{listener: listener, server: &http.Server{Handler: mux, ReadHeaderTimeout: adminTimeout}}
	go func() {
		if err := b.admin.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			b.log.Error("admin port failed", "error", err)
		}
	}()
	return nil
}

// answerReady answers 200 when clients are served, else 503 with how far loading is.
func (b *Broker) answerReady(w http.ResponseWriter, _ *http.Request) {
	if b.ready.Load() {
		_, _ = fmt.Fprintln(w, "ready")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	var l logdir.Loading
	if b.dirs != nil {
		l = b.dirs.Loading()
	}
	_, _ = fmt.Fprintf(w, "not ready: %d of %d partitions loaded", l.PartitionsDone, l.Partitions)
	if l.Bytes > 0 {
		_, _ = fmt.Fprintf(w, ", %d of %d bytes recovered", l.BytesDone, l.Bytes)
	}
	if l.Left > 0 {
		_, _ = fmt.Fprintf(w, ", %v left", l.Left.Round(time.Second))
	}
	_, _ = fmt.Fprintln(w)
}

func (a *admin) close() error { return a.server.Close() }

// AdminAddress is the address of the admin port; "" when there is none.
func (b *Broker) AdminAddress() string {
	if b.admin == nil {
		return ""
	}
	return b.admin.listener.Addr().String()
}

func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "localhost"
}
