package broker

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// The loggers whose levels can be told and changed while the broker runs (Kafka's BROKER_LOGGER resource, KIP-412).
// The root logger is the broker's own; the others log what their component sees, from root's level on as long as they
// have none of their own. Levels are not stored: the next start begins with root's alone.
const (
	rootLogger        = "root"
	apiLogger         = "tidemark.api"
	coordinatorLogger = "tidemark.coordinator"
	logdirLogger      = "tidemark.logdir"
	quorumLogger      = "tidemark.quorum"
	replicaLogger     = "tidemark.replica"
	serverLogger      = "tidemark.server"
)

// Levels that slog has no name for.
const (
	levelTrace = slog.LevelDebug - 4
	levelFatal = slog.LevelError + 4
)

// levelNames are Kafka's names of levels, the lowest first.
var levelNames = []struct {
	name  string
	level slog.Level
}{{"TRACE", levelTrace}, {"DEBUG", slog.LevelDebug}, {"INFO", slog.LevelInfo}, {"WARN", slog.LevelWarn},
	{"ERROR", slog.LevelError}, {"FATAL", levelFatal}}

// levelName is the name of the highest level that is not above l.
func levelName(l slog.Level) string {
	name := levelNames[0].name
	for _, n := range levelNames {
		if l >= n.level {
			name = n.name
		}
	}
	return name
}

// loggers are the broker's loggers. They are safe for concurrent use.
type loggers struct {
	base slog.Handler
	all  map[string]*logLevel
}

// logLevel is the level of one logger, root's while it has none of its own.
type logLevel struct {
	own  slog.LevelVar
	set  atomic.Bool
	root *logLevel // nil for root
}

// Level implements [slog.Leveler].
func (l *logLevel) Level() slog.Level {
	if l.root != nil && !l.set.Load() {
		return l.root.Level()
	}
	return l.own.Level()
}

// newLoggers makes the loggers over a logger that takes at least what they let through. start is root's level; nil:
// the lowest that base takes.
func newLoggers(base *slog.Logger, start slog.Leveler) *loggers {
	root := &logLevel{}
	root.own.Set(startLevel(base, start))
	l := &loggers{base: base.Handler(), all: map[string]*logLevel{rootLogger: root}}
	for _, name := range []string{apiLogger, coordinatorLogger, logdirLogger, quorumLogger, replicaLogger, serverLogger} {
		l.all[name] = &logLevel{root: root}
	}
	return l
}

func startLevel(base *slog.Logger, start slog.Leveler) slog.Level {
	if start != nil {
		return start.Level()
	}
	for _, n := range levelNames {
		if base.Enabled(context.Background(), n.level) {
			return n.level
		}
	}
	return slog.LevelInfo
}

// logger is the logger of a component.
func (l *loggers) logger(name string) *slog.Logger {
	return slog.New(leveledHandler{l.base, l.all[name]})
}

// Levels implements [api.Loggers].
func (l *loggers) Levels() map[string]string {
	levels := make(map[string]string, len(l.all))
	for name, level := range l.all {
		levels[name] = levelName(level.Level())
	}
	return levels
}

// SetLevel implements [api.Loggers].
func (l *loggers) SetLevel(name, level string) {
	for _, n := range levelNames {
		if n.name == level {
			l.all[name].own.Set(n.level)
			l.all[name].set.Store(true)
		}
	}
}

// UnsetLevel implements [api.Loggers].
func (l *loggers) UnsetLevel(name string) { l.all[name].set.Store(false) }

// leveledHandler lets through what is not below a level.
type leveledHandler struct {
	slog.Handler
	level slog.Leveler
}

// Enabled implements [slog.Handler].
func (h leveledHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements [slog.Handler].
func (h leveledHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveledHandler{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements [slog.Handler].
func (h leveledHandler) WithGroup(name string) slog.Handler {
	return leveledHandler{h.Handler.WithGroup(name), h.level}
}
