package broker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLoggers(t *testing.T) {
	var out bytes.Buffer
	base := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: levelTrace}))
	l := newLoggers(base, slog.LevelInfo)
	root, api := l.logger(rootLogger), l.logger(apiLogger).With("k", "v").WithGroup("g")
	logged := func() string {
		out.Reset()
		for name, logger := range map[string]*slog.Logger{"root": root, "api": api} {
			logger.Debug(name + "-debug")
			logger.Info(name + "-info")
			logger.Error(name + "-error")
		}
		var seen []string
		for _, m := range []string{"root-debug", "root-info", "root-error", "api-debug", "api-info", "api-error"} {
			if strings.Contains(out.String(), m) {
				seen = append(seen, m)
			}
		}
		return strings.Join(seen, " ")
	}
	for _, step := range []struct {
		change          func()
		rootNow, apiNow string
		want            string
	}{
		{func() {}, "INFO", "INFO", "root-info root-error api-info api-error"},
		{func() { l.SetLevel(rootLogger, "WARN") }, "WARN", "WARN", "root-error api-error"},
		{func() { l.SetLevel(apiLogger, "DEBUG") }, "WARN", "DEBUG", "root-error api-debug api-info api-error"},
		{func() { l.SetLevel(rootLogger, "FATAL") }, "FATAL", "DEBUG", "api-debug api-info api-error"},
		{func() { l.UnsetLevel(apiLogger) }, "FATAL", "FATAL", ""},
		{func() { l.SetLevel(rootLogger, "TRACE") }, "TRACE", "TRACE",
			"root-debug root-info root-error api-debug api-info api-error"},
	} {
		step.change()
		levels := l.Levels()
		if levels[rootLogger] != step.rootNow || levels[apiLogger] != step.apiNow {
			t.Errorf("levels %v, want %s and %s", levels, step.rootNow, step.apiNow)
		}
		if got := logged(); got != step.want {
			t.Errorf("at %s and %s logged %q, want %q", step.rootNow, step.apiNow, got, step.want)
		}
	}
}

func TestStartLevel(t *testing.T) {
	warn := slog.New(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, test := range []struct {
		base  *slog.Logger
		start slog.Leveler
		want  string
	}{
		{warn, nil, "WARN"}, {warn, slog.LevelError, "ERROR"}, {slog.New(slog.DiscardHandler), nil, "INFO"},
		{warn, slog.Level(-20), "TRACE"}, {warn, slog.LevelInfo + 1, "INFO"}, {warn, slog.Level(40), "FATAL"},
	} {
		if got := newLoggers(test.base, test.start).Levels()[serverLogger]; got != test.want {
			t.Errorf("from %v: %s, want %s", test.start, got, test.want)
		}
	}
}
