package coordinator

import (
	"errors"
	"time"

	"tidemark/internal/group"
)

// groupShard is one partition of __consumer_offsets. It implements [Shard], and group.Host for its machine.
type groupShard struct {
	g       *Groups
	env     *Env
	machine *group.Machine
	unknown int // records of a kind that is not known
}

func (g *Groups) newShard(e *Env) *groupShard {
	s := &groupShard{g: g, env: e}
	s.machine = group.New(g.o.Machine, s)
	return s
}

func (s *groupShard) NowMs() int64                    { return s.env.Now().UnixMilli() }
func (s *groupShard) SetTimer(key string, atMs int64) { s.env.SetTimer(key, time.UnixMilli(atMs)) }
func (s *groupShard) StopTimer(key string)            { s.env.StopTimer(key) }

func (s *groupShard) Replay(r Replayed) error {
	err := s.machine.Replay(group.Replayed{Offset: r.Offset, ProducerID: r.ProducerID, Key: r.Key, Value: r.Value})
	if errors.Is(err, group.ErrUnknownRecord) {
		s.unknown++
		return nil
	}
	return err
}

func (s *groupShard) ReplayMarker(producerID int64, _ int16, commit bool) {
	s.machine.ReplayMarker(producerID, commit)
}

func (s *groupShard) Loaded() {
	if s.unknown > 0 {
		s.g.o.Logger.Info("records of other kinds of groups are left as they are", "partition", s.env.Partition(),
			"records", s.unknown)
	}
	s.writeAll(s.machine.Loaded())
	s.expireLater()
}

func (s *groupShard) Unloaded() { s.machine.Unloaded(ErrNotCoordinator) }

func (s *groupShard) Timeout(key string) {
	if key == expiryTimer {
		s.writeAll(s.machine.Expire(tombstoneBatchBytes))
		s.expireLater()
		return
	}
	if w := s.machine.Timeout(key); w != nil {
		s.env.Run(func() *Write { return s.write(w) }, w.Stored)
	}
}

func (s *groupShard) expireLater() { s.env.SetTimer(expiryTimer, s.env.Now().Add(s.g.o.ExpireEvery)) }

// write is the runtime's form of what the machine wants written.
func (s *groupShard) write(w *group.Write) *Write {
	if w == nil {
		return nil
	}
	records := make([]Record, len(w.Records))
	for i, r := range w.Records {
		records[i] = Record(r)
	}
	return &Write{Records: records, Apply: w.Apply}
}

// writeAll queues writes of the machine's own.
func (s *groupShard) writeAll(all []*group.Write) {
	for _, w := range all {
		s.env.Do("", func() *Write { return s.write(w) }, func(err error) {
			w.Stored(err)
			if err != nil {
				s.g.o.Logger.Warn("records of groups cannot be written", "partition", s.env.Partition(), "error", err)
			}
		})
	}
}
