package main

import (
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"tidemark/internal/inspect"
)

// progress shows how many bytes of a long work are done, on the error output when that is a terminal.
type progress struct {
	done atomic.Int64
	bars *mpb.Progress
	bar  *mpb.Bar
	stop chan struct{}
}

// startProgress begins to show work over the logs of targets.
func (o *logOptions) startProgress(what string, targets []inspect.Target) *progress {
	p := &progress{stop: make(chan struct{})}
	if o.json || !onTerminal(o.env.Stderr) {
		return p
	}
	total := inspect.SizeBytes(o.fs, targets)
	p.bars = mpb.New(mpb.WithOutput(o.env.Stderr), mpb.WithWidth(40))
	p.bar = p.bars.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(what+" "), decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" "), decor.AverageSpeed(decor.SizeB1024(0), "% .1f"),
			decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
	go func() {
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
	}()
	return p
}

// add may be called by several goroutines.
func (p *progress) add(bytes int64) { p.done.Add(bytes) }

// end takes the bar away.
func (p *progress) end() {
	close(p.stop)
	if p.bars != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
