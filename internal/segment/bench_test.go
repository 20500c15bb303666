package segment

import (
	"log/slog"
	"testing"
	"time"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// BenchmarkFirstUse is what the checks of a segment of 64 MiB cost that nothing vouches for, and with a seal.
func BenchmarkFirstUse(b *testing.B) {
	env := &Env{
		Files: index.NewFileCache(vfs.OS(), 8), Pages: index.NewCache(1 << 20), Logger: slog.New(slog.DiscardHandler),
		Clock: time.Now, Metrics: new(Metrics),
	}
	env.SetDir(b.TempDir())
	cfg := Config{IndexIntervalBytes: 4096, MaxIndexBytes: 10 << 20}
	s, err := Create(env, 0, cfg)
	if err != nil {
		b.Fatal(err)
	}
	batch := sized(b, 0, 1024, 1000)
	size := int64(0)
	for i := int64(0); size+1024 <= 64<<20; i++ {
		batch.SetBaseOffset(i)
		batch.SetMaxTimestamp(1000+i, record.CreateTime)
		add(b, s, batch)
		size += 1024
	}
	if err := s.Finish(); err != nil {
		b.Fatal(err)
	}
	seal, ok, err := s.Seal()
	if err != nil || !ok {
		b.Fatal(ok, err)
	}
	s.Release()
	for name, use := range map[string]func(s *Segment) error{
		"Ends":      func(s *Segment) error { return s.readyEnds() },
		"Headers":   func(s *Segment) error { return s.ready() },
		"Checksums": func(s *Segment) error { _, err := s.Prove(0, size, size); return err },
		"Rebuild":   func(s *Segment) error { return s.rebuild("a benchmark") },
		"Seal": func(s *Segment) error {
			s.env.Seal = func(int64) (Seal, bool) { return seal, true }
			return s.ready()
		},
	} {
		b.Run(name, func(b *testing.B) {
			env.Seal = nil
			b.SetBytes(size)
			for b.Loop() {
				s := Open(env, 0, cfg, HasIndex|HasTime)
				if err := use(s); err != nil {
					b.Fatal(err)
				}
				s.Release()
			}
		})
	}
}
