package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/broker"
	"tidemark/internal/config"
	"tidemark/vfs"
)

// What serve uses when neither an option nor the properties say otherwise.
const (
	defaultData   = "./tidemark-data"
	defaultListen = "127.0.0.1:9092"
	// stopTimeout is how long requests in flight may take at a stop.
	stopTimeout = 30 * time.Second
)

const serveHelp = `Serve starts a broker in this process and runs until SIGTERM or SIGINT, which stop
it in good order. A second signal ends it at once; the next start recovers.

The data directory is a Kafka log directory (log.dirs). One that is empty is made
ready without a separate format step; one that another process holds is refused.

Configuration is Kafka's: the keys of a server.properties file are honoured, unknown
ones are named in a warning. --set wins over --data and --listen, these over --config.

With --read-only the DIRs (without any, those of --data or log.dirs) are only read:
log directories, folders that hold partitions' folders, or partitions' folders, of a
copy, a snapshot or a mounted disk. Topics have the configs, ids and numbers of partitions
that a metadata log in one of the DIRs knows; without one, the defaults. All clients can
read and look up by time; whatever would change something is refused as not authorized,
commits of offsets too. What must be mended to be read is mended in memory.

Tidemark's own keys:
  tidemark.admin.listener   HOST:PORT of /metrics, /ready and /live (empty: none)
  tidemark.api.versions     wide (old clients too) or kafka (as Kafka 4.3.1)
  tidemark.lookup.slow.ms   log look-ups by time that take this long (-1: never)
  tidemark.memory.bytes     memory for requests and caches
  tidemark.open.files       open log and index files at most
  tidemark.scrub.interval.ms, tidemark.scrub.bytes.per.second
                            how often and how fast all segments are read and checked

Exit status: 0 after a stop in good order, 1 on an error.`

const serveExample = `  tidemark serve
  tidemark serve --data /var/lib/kafka --listen 0.0.0.0:9092
  tidemark serve --config server.properties --set num.partitions=3
  tidemark serve --read-only /mnt/snapshot/kafka-logs
  tidemark serve --read-only /tmp/orders-0 /tmp/orders-1 --listen 127.0.0.1:9192`

// everyLevel lets everything through: the broker's loggers have levels of their own.
const everyLevel = slog.Level(math.MinInt32)

// serveOptions are the options of serve.
type serveOptions struct {
	config, data, listen, level string
	set                         []string
	readOnly, acceptStrays      bool
	dirs                        []string // with readOnly
}

func serveCommand(env *cli.Env) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve [--read-only DIR...]", Short: "Start the broker", Long: serveHelp, Example: serveExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && !o.readOnly {
				return fmt.Errorf("unexpected %q: directories are given with --data, or with --read-only", args[0])
			}
			o.dirs = args
			return serve(cmd.Context(), env, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.config, "config", "", "server.properties `file` to start from")
	f.StringVar(&o.data, "data", "", "log `directory` (log.dirs); several with commas (default "+defaultData+")")
	f.StringVar(&o.listen, "listen", "", "`HOST:PORT` to listen on (default "+defaultListen+")")
	f.StringArrayVar(&o.set, "set", nil, "set a config, as in `key=value`; may be repeated")
	f.BoolVar(&o.readOnly, "read-only", false, "serve the DIRs without changing anything in them")
	f.BoolVar(&o.acceptStrays, "accept-strays", false,
		"in the first start on a directory that Kafka used: let folders of partitions that its metadata does not know be "+
			"renamed -stray")
	f.StringVar(&o.level, "log-level", "info", "what is logged to stderr: debug, info, warn or error")
	return cmd
}

// properties puts the options together: file, then --data and --listen, then --set.
func (o serveOptions) properties() (map[string]string, error) {
	props := map[string]string{}
	if o.config != "" {
		text, err := os.ReadFile(o.config)
		if err != nil {
			return nil, err
		}
		if props, err = config.ParseProperties(text); err != nil {
			return nil, fmt.Errorf("%s: %w", o.config, err)
		}
	}
	if o.data != "" {
		delete(props, "log.dir")
		props["log.dirs"] = o.data
	} else if props["log.dirs"] == "" && props["log.dir"] == "" {
		props["log.dirs"] = defaultData
	}
	if o.listen != "" {
		props["listeners"] = "PLAINTEXT://" + o.listen
		delete(props, "advertised.listeners")
	} else if props["listeners"] == "" {
		props["listeners"] = "PLAINTEXT://" + defaultListen
	}
	for _, pair := range o.set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--set %q: want key=value", pair)
		}
		props[key] = value
	}
	return props, nil
}

func serve(ctx context.Context, env *cli.Env, o serveOptions) error {
	props, err := o.properties()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return fmt.Errorf("--log-level %q: want debug, info, warn or error", o.level)
	}
	logger := slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: everyLevel}))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	options := broker.Options{Properties: props, Logger: logger, LogLevel: level, Version: versionText(buildInfo()),
		AcceptStrays: o.acceptStrays}
	if o.readOnly {
		if options.ReadOnly = o.dirs; len(o.dirs) == 0 {
			options.ReadOnly = broker.LogDirs(props)
		}
	}
	b, err := startUnlessSignalled(starting, cancel, signals, options)
	if err != nil {
		return explainStart(err, o.readOnly, broker.LogDirs(props))
	}
	_, _ = fmt.Fprintf(env.Stdout, "tidemark is ready on %s\n", strings.Join(b.Addresses(), ", "))
	<-signals
	return stopBroker(ctx, b, signals)
}

// startUnlessSignalled starts the broker; a signal meanwhile gives up.
func startUnlessSignalled(ctx context.Context, cancel func(), signals <-chan os.Signal, o broker.Options) (
	*broker.Broker, error) {
	started := make(chan struct{})
	defer close(started)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-started:
		}
	}()
	return broker.Start(ctx, o)
}

func buildInfo() *debug.BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return info
}

func stopBroker(ctx context.Context, b *broker.Broker, signals <-chan os.Signal) error {
	go func() {
		<-signals
		os.Exit(1)
	}()
	stopping, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return b.Stop(stopping)
}

// explainStart adds to an error of the start what to do about it.
func explainStart(err error, readOnly bool, dirs []string) error {
	var locked *vfs.LockedError
	switch {
	case errors.As(err, &locked) && readOnly:
		return fmt.Errorf("%w\nanother broker runs on this directory (process %d): stop it, or serve a copy", err, locked.PID)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission) && !readOnly:
		return fmt.Errorf("%w\nto read it without writing: %s", err, broker.ReadOnlyCommand(dirs))
	case errors.As(err, &locked) && locked.PID != 0:
		return fmt.Errorf("%w\nanother broker runs on this directory (process %d): stop it, or give another --data",
			err, locked.PID)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w\nanother program listens there: stop it, or give another --listen", err)
	}
	return err
}
