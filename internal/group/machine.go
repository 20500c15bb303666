package group

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"tidemark/internal/metadata"
)

// Config is what an administrator may set; see Options.Config. Times are ms.
type Config struct {
	MinSessionTimeoutMs     int32 // group.min.session.timeout.ms
	MaxSessionTimeoutMs     int32 // group.max.session.timeout.ms
	InitialRebalanceDelayMs int32 // group.initial.rebalance.delay.ms
	MaxSize                 int32 // group.max.size
	MetadataMaxBytes        int32 // offset.metadata.max.bytes
	RetentionMs             int64 // offsets.retention.minutes

	ConsumerMaxSize   int32    // group.consumer.max.size
	ConsumerAssignors []string // group.consumer.assignors, the default first
	ConsumerMigration string   // group.consumer.migration.policy, in lower case
	PatternRefreshMs  int64    // group.consumer.regex.refresh.interval.ms
}

// ConsumerConfig is what may be set for a consumer group of its own. Times are ms.
type ConsumerConfig struct {
	SessionTimeoutMs     int32 // consumer.session.timeout.ms
	HeartbeatIntervalMs  int32 // consumer.heartbeat.interval.ms
	AssignmentIntervalMs int32 // consumer.assignment.interval.ms
}

// newMemberJoinTimeoutMs is how long a member that has just joined may take until the rebalance is done.
//
// Kafka: GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS.
const newMemberJoinTimeoutMs = 5 * 60 * 1000

// Host is what a machine sees of the world.
type Host interface {
	// NowMs is the time, in ms since 1970.
	NowMs() int64
	// SetTimer has [Machine.Timeout] called with key at a time, once; a timer of that key is replaced.
	SetTimer(key string, atMs int64)
	// StopTimer forgets the timer of a key.
	StopTimer(key string)
}

// Options are what a machine needs. All but Logger are required.
type Options struct {
	Config func() Config // as it is now
	// ConsumerConfig is what is set for a group, or else for all.
	ConsumerConfig func(group string) ConsumerConfig
	Image          func() *metadata.Image // the newest metadata
	// TopicsCreatedAt is the offset of the newest metadata that brought a topic.
	TopicsCreatedAt func() int64
	NewID           func() string // a random UUID in its usual form of 36 characters
	NewShortID      func() string // a random UUID in Kafka's form of 22 characters
	Logger          *slog.Logger  // nil: silent
}

// Machine holds the groups of one partition of __consumer_offsets.
type Machine struct {
	o       Options
	host    Host
	log     *slog.Logger
	groups  map[string]group
	offsets offsetTable
	pending pendingOffsets
	hashes  topicHashes
	viewers map[string]func(topic string) bool // who asked for patterns last, by group
}

// group is a group, whatever its protocol.
type group interface {
	// stateName is the name of the state, as ListGroups has it.
	stateName() string
	// kind is the name of the protocol, as ListGroups has it.
	kind() string
	protocolTypeName() string
	isEmpty() bool
	// checkCommit tells whether somebody may commit now; each, when not nil, tells it of a partition.
	checkCommit(c *committer) (each commitCheck, err error)
	// checkFetch tells whether a member may ask for offsets.
	checkFetch(memberID *string, epoch int32) error
	checkOffsetDelete() error
	checkDelete() error
	// subscribes tells whether members are, or may be, subscribed to a topic.
	subscribes(topic string) bool
	// retention tells from when on an offset's retention counts; not ok: offsets of the group do not expire.
	retention() (from func(o Offset) int64, ok bool)
	// tombstones are the records that end the group.
	tombstones() []Record
	// stopTimers forgets all timers of the group.
	stopTimers()
}

// Record is a key and value for the log; a nil Value is a tombstone.
type Record struct {
	Key, Value []byte
}

// Write is what a command wants appended as one batch. The caller appends it and calls Apply with the offset of the
// first record; then Stored, with nil when it is on all in-sync replicas, else with why it could not be appended or
// replicated. Without Apply, Stored is called with an error.
type Write struct {
	Records []Record
	apply   func(base int64)
	stored  func(err error)
}

// Apply takes on what was appended.
func (w *Write) Apply(base int64) {
	if w.apply != nil {
		w.apply(base)
	}
}

// Stored ends the write.
func (w *Write) Stored(err error) {
	if w.stored != nil {
		w.stored(err)
	}
}

// New makes a machine without groups.
func New(o Options, host Host) *Machine {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Machine{o: o, host: host, log: o.Logger, groups: map[string]group{}, offsets: offsetTable{},
		pending: newPendingOffsets(), hashes: topicHashes{}, viewers: map[string]func(string) bool{}}
}

// Replayed is a record on its way into a machine. Key and Value are only read during the call.
type Replayed struct {
	Offset     int64
	ProducerID int64 // of a transactional batch; else -1
	Key, Value []byte
}

// Replay takes in one record of the log; a nil value is a tombstone.
//
// Errors: ErrUnknownRecord and those of a malformed record; the machine has not changed then, and the caller may go
// on.
func (m *Machine) Replay(r Replayed) error {
	key, err := DecodeKey(r.Key)
	if err != nil {
		return err
	}
	switch {
	case key.isOffset():
		err = m.replayOffset(key, r)
	case key.Kind == kindClassic:
		err = m.replayClassic(key.Group, r.Value)
	default:
		err = m.replayConsumer(key, r.Value)
	}
	if err != nil {
		return fmt.Errorf("group %q: %w", key.Group, err)
	}
	return nil
}

// Loaded ends the loading: from now on members have to give signs of life. It returns what a group that is larger
// than it may be needs written.
func (m *Machine) Loaded() []*Write {
	var writes []*Write
	for _, id := range sortedKeys(m.groups) {
		switch g := m.groups[id].(type) {
		case *classic:
			if w := g.loaded(); w != nil {
				writes = append(writes, w)
			}
		case *consumer:
			g.loaded()
		}
	}
	return writes
}

// loaded gives all members the time of a session. A group that is larger than it may be has to rebalance.
func (c *classic) loaded() *Write {
	for _, one := range c.members {
		c.expectHeartbeat(one, one.sessionTimeoutMs)
	}
	if len(c.members) > int(c.m.o.Config().MaxSize) {
		return c.prepareRebalance("loaded group is over capacity")
	}
	return nil
}

// Unloaded ends the machine's life: whatever waits is answered with an error.
func (m *Machine) Unloaded(err error) {
	for _, g := range m.groups {
		c, ok := g.(*classic)
		if !ok {
			continue
		}
		for _, one := range c.members {
			c.answerJoin(one, JoinResponse{Err: err, MemberID: one.id, Generation: NoGeneration})
			one.answerSync(SyncResponse{Err: err})
		}
	}
}

// Len is the number of groups.
func (m *Machine) Len() int { return len(m.groups) }

// classicGroup finds a classic group; nil when there is none.
func (m *Machine) classicGroup(id string) *classic {
	c, _ := m.groups[id].(*classic)
	return c
}

// The kinds of timers. A key is the kind, the length of the group id, the group id, and for a member its id.
const (
	heartbeatTimer = 'h'
	joinTimer      = 'j'
	syncTimer      = 's'

	sessionTimer     = 'S' // of a member of a consumer group
	revocationTimer  = 'R'
	regexTimer       = 'P' // of a consumer group
	classicJoinTimer = 'J' // of a member of the classic protocol in a consumer group
	classicSyncTimer = 'Y'
)

func timerKey(kind byte, group, member string) string {
	return string(kind) + strconv.Itoa(len(group)) + ":" + group + member
}

// Timeout is called when a timer goes off.
func (m *Machine) Timeout(key string) *Write {
	kind, id, member := splitTimerKey(key)
	if c, ok := m.groups[id].(*consumer); ok {
		return c.timeout(kind, member)
	}
	c := m.classicGroup(id)
	if c == nil {
		return nil
	}
	switch kind {
	case heartbeatTimer:
		return c.heartbeatMissed(member)
	case joinTimer:
		return c.joinTimeIsUp()
	case syncTimer:
		return c.syncTimeIsUp()
	}
	return nil
}

func splitTimerKey(key string) (kind byte, group, member string) {
	length, rest, ok := strings.Cut(key, ":")
	if !ok || len(length) < 2 {
		return 0, "", ""
	}
	n, err := strconv.Atoi(length[1:])
	if err != nil || n > len(rest) {
		return 0, "", ""
	}
	return length[0], rest[:n], rest[n:]
}
