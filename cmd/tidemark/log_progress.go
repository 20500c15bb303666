package main

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/inspect"
)

// progress shows how many bytes of a long work are done, on the error output when that is a terminal. Every command
// that reads logs has one.
type progress struct {
	done atomic.Int64
	bars *mpb.Progress
	bar  *mpb.Bar
	stop chan struct{}

	// What else goes to the terminal meanwhile is written above the bar.
	env    *cli.Env
	stderr io.Writer
	out    *output   // nil: it goes elsewhere
	behind io.Writer // what out wrote to
}

// startProgress begins to show work over the logs of targets.
func (o *logOptions) startProgress(what string, targets []inspect.Target) *progress {
	p := noProgress()
	if !onTerminal(o.env.Stderr) {
		return p
	}
	total := inspect.SizeBytes(o.fs, targets)
	p.bars = mpb.New(mpb.WithOutput(o.env.Stderr), mpb.WithWidth(40))
	p.bar = p.bars.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(what+" "), decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageSpeed(decor.SizeB1024(0), "% .1f"),
			decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	p.env, p.stderr, o.env.Stderr = o.env, o.env.Stderr, p.bars
	if out, ok := o.env.Stdout.(*output); ok && out.terminal {
		p.out, p.behind, out.Writer = out, out.Writer, p.bars
	}
	go p.show(total)
	return p
}

// noProgress shows nothing.
func noProgress() *progress { return &progress{stop: make(chan struct{})} }

func (p *progress) show(total int64) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.bar.SetCurrent(min(p.done.Load(), total-1))
		case <-p.stop:
			return
		}
	}
}

// add may be called by several goroutines.
func (p *progress) add(bytes int64) { p.done.Add(bytes) }

// end takes the bar away.
func (p *progress) end() {
	close(p.stop)
	if p.bars == nil {
		return
	}
	p.bar.Abort(true)
	p.bars.Wait()
	p.env.Stderr = p.stderr
	if p.out != nil {
		p.out.Writer = p.behind
	}
}
