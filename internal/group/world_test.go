package group

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

var errLost = errors.New("not replicated in time")

// world is a machine with its log, its clock and its clients.
type world struct {
	m      *Machine
	config Config
	log    []Replayed
	nowMs  int64
	nextID int
	timers map[string]int64
	held   []*Write // appended, not yet stored
	hold   bool
	lose   bool // the next write cannot be appended
	out    strings.Builder
	quiet  bool
	crowd  *crowd // nil: none

	image           *metadata.Image
	topicsCreatedAt int64
	consumers       ConsumerConfig
}

func newWorld() *world {
	w := &world{nowMs: 1_000_000, config: Config{MinSessionTimeoutMs: 6000, MaxSessionTimeoutMs: 1_800_000,
		InitialRebalanceDelayMs: 3000, MaxSize: 100, MetadataMaxBytes: 4096, RetentionMs: 604_800_000,
		ConsumerMaxSize: 100, ConsumerAssignors: []string{UniformAssignor, RangeAssignor},
		ConsumerMigration: MigrateEither, PatternRefreshMs: 600_000},
		image: metadata.NewImage(), topicsCreatedAt: -1,
		consumers: ConsumerConfig{SessionTimeoutMs: 45_000, HeartbeatIntervalMs: 5000}}
	w.restart()
	return w
}

// restart makes the machine anew, from the log.
func (w *world) restart() {
	if w.m != nil {
		w.m.Unloaded(errors.New("not the coordinator"))
	}
	w.timers, w.held = map[string]int64{}, nil
	w.m = New(Options{
		Config:          func() Config { return w.config },
		ConsumerConfig:  func(string) ConsumerConfig { return w.consumers },
		Image:           func() *metadata.Image { return w.image },
		TopicsCreatedAt: func() int64 { return w.topicsCreatedAt },
		NewID:           w.newID, NewShortID: w.newID}, w)
	for _, r := range w.log {
		if marker, ok := asMarker(r); ok {
			w.m.ReplayMarker(r.ProducerID, marker)
		} else if err := w.m.Replay(r); err != nil {
			w.printf("skipped: %v", err)
		}
	}
	for _, one := range w.m.Loaded() {
		_ = w.write(one)
	}
}

func (w *world) newID() string {
	w.nextID++
	return fmt.Sprint(w.nextID)
}

// topicID is the id of a topic of the world: its name.
func topicID(name string) (id wire.UUID) {
	copy(id[:], name)
	return id
}

// setTopic makes a topic, or gives it more partitions.
func (w *world) setTopic(name string, partitions int32) {
	d := metadata.NewDelta(w.image)
	records := []metadata.Body{}
	from := int32(0)
	if t := w.image.Topic(name); t != nil {
		from = int32(t.NumPartitions())
	} else {
		w.topicsCreatedAt = w.image.Offset() + 1
		records = append(records, &metadata.TopicRecord{Name: name, TopicID: topicID(name)})
	}
	for p := from; p < partitions; p++ {
		records = append(records, &metadata.PartitionRecord{PartitionID: p, TopicID: topicID(name),
			Replicas: []int32{1}, ISR: []int32{1}, Leader: 1})
	}
	w.replay(d, records)
}

func (w *world) replay(d *metadata.Delta, records []metadata.Body) {
	for _, r := range records {
		if err := d.Replay(metadata.Record{Body: r}); err != nil {
			panic(err)
		}
	}
	d.Advance(w.image.Offset()+1, 1, w.nowMs)
	w.image = d.Image()
}

// Markers stand in the log as records with a key of one byte.
func asMarker(r Replayed) (commit, ok bool) { return len(r.Key) == 1 && r.Key[0] == 1, len(r.Key) == 1 }

func (w *world) marker(producer int64, commit bool) {
	key := []byte{0}
	if commit {
		key[0] = 1
	}
	w.log = append(w.log, Replayed{Offset: int64(len(w.log)), ProducerID: producer, Key: key})
	w.m.ReplayMarker(producer, commit)
}

func (w *world) NowMs() int64                    { return w.nowMs }
func (w *world) SetTimer(key string, atMs int64) { w.timers[key] = atMs }
func (w *world) StopTimer(key string)            { delete(w.timers, key) }

// advance lets time pass; what is due goes off in order.
func (w *world) advance(ms int64) {
	until := w.nowMs + ms
	for {
		next, at := "", until+1
		for key, t := range w.timers {
			if t < at || t == at && key < next {
				next, at = key, t
			}
		}
		if at > until {
			break
		}
		w.nowMs = max(w.nowMs, at)
		delete(w.timers, next)
		_ = w.write(w.m.Timeout(next))
	}
	w.nowMs = until
}

func (w *world) printf(format string, args ...any) {
	if !w.quiet {
		fmt.Fprintf(&w.out, format+"\n", args...)
	}
}

// write appends what a command wants, and stores it unless the script holds writes back.
func (w *world) write(one *Write) error { return w.writeFor(one, noProducer) }

func (w *world) writeFor(one *Write, producer int64) error {
	if one == nil {
		return nil
	}
	if w.lose {
		w.lose = false
		w.printf("lost")
		one.Stored(errLost)
		return errLost
	}
	base := int64(len(w.log))
	for i, r := range one.Records {
		w.log = append(w.log, Replayed{Offset: base + int64(i), ProducerID: producer, Key: r.Key, Value: r.Value})
		w.printf("append %s", showRecord(r))
	}
	one.Apply(base)
	if w.hold {
		w.held = append(w.held, one)
		return nil
	}
	one.Stored(nil)
	return nil
}

func (w *world) release(err error) {
	held := w.held
	w.hold, w.held = false, nil
	for _, one := range held {
		one.Stored(err)
	}
}

func showRecord(r Record) string {
	key, err := DecodeKey(r.Key)
	if err != nil {
		return err.Error()
	}
	name := key.Group
	if key.isOffset() {
		name += fmt.Sprintf(" %s-%d", key.Topic, key.Partition)
	}
	if key.isConsumer() {
		return name + showConsumerRecord(key, r.Value)
	}
	if r.Value == nil {
		return name + " tombstone"
	}
	if key.isOffset() {
		o, err := DecodeOffset(r.Value)
		return name + " " + showOffset(o) + showError(err)
	}
	v, err := decodeClassic(r.Value)
	if err != nil {
		return name + showError(err)
	}
	return name + " " + showClassic(v)
}

func showError(err error) string {
	if err == nil {
		return ""
	}
	return " error: " + err.Error()
}

func showOffset(o Offset) string {
	s := fmt.Sprint(o.Offset)
	if o.LeaderEpoch >= 0 {
		s += fmt.Sprintf(" epoch=%d", o.LeaderEpoch)
	}
	if o.Metadata != "" {
		s += fmt.Sprintf(" metadata=%q", o.Metadata)
	}
	if o.ExpireMs >= 0 {
		s += fmt.Sprintf(" expires=%d", o.ExpireMs)
	}
	if o.TopicID != (wire.UUID{}) {
		s += fmt.Sprintf(" id=%x", o.TopicID[15])
	}
	return s
}

func showClassic(v *classicValue) string {
	s := fmt.Sprintf("%s generation=%d protocol=%s leader=%s since=%d", v.protocolType, v.generation, show(v.protocol),
		show(v.leader), v.currentStateMs)
	for _, m := range v.members {
		s += fmt.Sprintf(" [%s%s session=%d rebalance=%d %q %q]", m.id, showInstance(m.instanceID), m.sessionTimeoutMs,
			m.rebalanceTimeoutMs, m.subscription, m.assignment)
	}
	return s
}

func show(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func showInstance(s *string) string {
	if s == nil {
		return ""
	}
	return " instance=" + *s
}

func (w *world) joined(name string) func(JoinResponse) {
	return func(r JoinResponse) {
		if r.Err != nil {
			w.printf("%s: %v, member %q", name, r.Err, r.MemberID)
			return
		}
		s := fmt.Sprintf("%s: member %s of generation %d, %s %s, leader %s", name, r.MemberID, r.Generation,
			show(r.ProtocolType), show(r.Protocol), r.Leader)
		if r.SkipAssignment {
			s += ", skips assignment"
		}
		for _, m := range r.Members {
			s += fmt.Sprintf(" [%s%s %q]", m.ID, showInstance(m.InstanceID), m.Metadata)
		}
		w.printf("%s", s)
	}
}

func (w *world) synced(name string) func(SyncResponse) {
	return func(r SyncResponse) {
		if r.Err != nil {
			w.printf("%s: %v", name, r.Err)
			return
		}
		w.printf("%s: assigned %s, %s %s", name, showAssignment(r.Assignment), show(r.ProtocolType), show(r.Protocol))
	}
}

// showAssignment shows the partitions of an assignment, or its bytes when it is none.
func showAssignment(b []byte) string {
	all, ok := readAssignment(b)
	if len(b) == 0 || !ok {
		return fmt.Sprintf("%q", b)
	}
	s := []string{}
	for _, t := range all {
		s = append(s, fmt.Sprintf("%s%v", t.topic, t.partitions))
	}
	return strings.Join(s, " ")
}

func (w *world) each(each []error, err error) {
	if err != nil {
		w.printf("error: %v", err)
		return
	}
	for _, one := range each {
		if one == nil {
			w.printf("ok")
		} else {
			w.printf("error: %v", one)
		}
	}
}

func (w *world) list(f Filter) {
	all := w.m.List(f)
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.ID, b.ID) })
	for _, l := range all {
		w.printf("%s %s %s %s", l.ID, l.Kind, l.ProtocolType, l.State)
	}
}

func (w *world) describe(id string) {
	d, err := w.m.Describe(id)
	if err != nil {
		w.printf("%s: %v", d.State, err)
		return
	}
	w.printf("%s %s %s", d.State, d.ProtocolType, d.Protocol)
	for _, m := range d.Members {
		w.printf("  %s%s %s %s %q %q", m.ID, showInstance(m.InstanceID), m.ClientID, m.ClientHost, m.Metadata,
			m.Assignment)
	}
}

func (w *world) fetched(topics []FetchedTopic) {
	for _, t := range topics {
		for _, p := range t.Partitions {
			w.printf("%s-%d %d epoch=%d %q%s", t.Topic, p.Partition, p.Offset, p.LeaderEpoch, p.Metadata,
				showError(p.Err))
		}
	}
}
