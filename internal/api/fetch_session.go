package api

import (
	"container/list"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
)

// Fetch sessions (KIP-227): the server remembers the partitions of a consumer, which then names only what changed,
// and answers only with partitions that have something new.

// The session epochs with a meaning of their own.
const (
	initialEpoch = 0  // full fetch, asks for a session
	finalEpoch   = -1 // full fetch, without a session
)

// sessionEvictable is how long a session must be unused before any other may take its place.
const sessionEvictable = 2 * time.Minute

// partitionKey names a partition in a session: by topic id from v13 on, by name before.
type partitionKey struct {
	topic     string
	topicID   metadata.UUID
	partition int32
}

// sessionPartition is what a session remembers of one partition: what to fetch, and what was last answered.
type sessionPartition struct {
	key            partitionKey
	name           string // of the topic, once its id was known; a session with ids only
	in             protocol.FetchPartition
	highWatermark  int64 // -1: answer whatever it is
	logStartOffset int64
}

// fetchSession is one session. The lock of the cache guards it.
type fetchSession struct {
	id, epoch  int32
	usesIDs    bool
	privileged bool // a follower's
	order      *list.List
	byKey      map[partitionKey]*list.Element
	created    time.Time
	used       time.Time
	// running is the connection whose fetch is being answered, nil: none is; its next fetches wait in queue. A fetch
	// on another connection overtakes it, and makes its answer an error.
	running *protocol.Conn
	queue   []*fetching
}

// fetchSessions is the bounded cache of sessions.
type fetchSessions struct {
	limit func() int
	clock func() time.Time
	rand  func() uint64

	mu   sync.Mutex
	byID map[int32]*fetchSession
}

func newFetchSessions(o Options) *fetchSessions {
	return &fetchSessions{clock: o.Clock, rand: o.Rand, byID: map[int32]*fetchSession{},
		limit: func() int { return int(o.Node().Broker().MaxIncrementalFetchSessionCacheSlots) }}
}

// sessionContext says how a fetch is answered.
type sessionContext struct {
	cache *fetchSessions
	// session is set for an incremental fetch and for a full one that asks for a session.
	session     *fetchSession
	incremental bool
	wantsNew    bool
	// held is the session in which the connection's next fetches wait for this one.
	held *fetchSession
}

// enter tells whether a fetch may start. It may not when the same connection has one of the same session that is not
// answered yet: Kafka handles one request of a connection at a time. leave gives it back when its turn comes.
func (s *fetchSessions) enter(f *fetching) bool {
	r := &f.request
	if f.c.version() < sessionFetch || r.SessionID == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.byID[r.SessionID]
	if session != nil && session.running == f.c.request.Conn {
		session.queue = append(session.queue, f)
		return false
	}
	return true
}

// leave notes that a fetch was answered, and returns the one that waited for that, if any.
func (s *fetchSessions) leave(f *fetching) *fetching {
	session := f.session.held
	if session == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if session.running != f.c.request.Conn {
		return nil
	}
	if len(session.queue) == 0 {
		session.running = nil
		return nil
	}
	next := session.queue[0]
	session.queue = session.queue[1:]
	next.session.held = session // even if it is refused
	return next
}

// nextFetch starts the fetch that waited for one that is answered now.
func (a *API) nextFetch(answered *fetching) {
	if next := a.sessions.leave(answered); next != nil {
		a.startFetch(next)
	}
}

// begin decides which partitions a fetch is about, and puts them into f.wanted. It returns a code other than 0
// when the session is unknown or out of step.
func (s *fetchSessions) begin(f *fetching) int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &f.request
	f.session.cache = s
	if f.c.version() < sessionFetch || r.SessionEpoch == initialEpoch || r.SessionEpoch == finalEpoch {
		if r.SessionID != 0 {
			delete(s.byID, r.SessionID)
		}
		f.session.wantsNew = f.c.version() >= sessionFetch && r.SessionEpoch == initialEpoch
		f.wantAll()
		return none
	}
	return s.continueSession(f)
}

// wantAll takes the partitions of a full fetch: one named again replaces the first.
func (f *fetching) wantAll() {
	n := 0
	for _, t := range f.request.Topics {
		n += len(t.Partitions)
	}
	f.wanted = make([]wanted, 0, n)
	var seen map[partitionKey]int
	if n > 1 {
		seen = make(map[partitionKey]int, n)
	}
	for _, t := range f.request.Topics {
		for _, p := range t.Partitions {
			key := partitionKey{t.Name, t.ID, p.Index}
			if i, again := seen[key]; again {
				f.wanted[i].in = p
				continue
			}
			if seen != nil {
				seen[key] = len(f.wanted)
			}
			f.wanted = append(f.wanted, wanted{topic: t.Name, topicID: t.ID, in: p})
		}
	}
}

// continueSession is begin for an incremental fetch.
func (s *fetchSessions) continueSession(f *fetching) int16 {
	r := &f.request
	session := s.byID[r.SessionID]
	switch {
	case session == nil:
		return kerr.FetchSessionIDNotFound.Code
	case session.epoch != r.SessionEpoch:
		return kerr.InvalidFetchSessionEpoch.Code
	case session.usesIDs != (f.c.version() >= idFetch):
		return kerr.FetchSessionTopicIDError.Code
	}
	session.update(r)
	session.used = s.clock()
	if session.order.Len() == 0 {
		delete(s.byID, session.id)
	} else {
		session.epoch = nextEpoch(session.epoch)
		f.session.session, f.session.incremental = session, true
		f.session.held, session.running = session, f.c.request.Conn
	}
	f.wanted = make([]wanted, 0, session.order.Len())
	for e := session.order.Front(); e != nil; e = e.Next() {
		p := e.Value.(*sessionPartition)
		f.wanted = append(f.wanted, wanted{topic: p.key.topic, topicID: p.key.topicID, in: p.in, cached: p})
	}
	return none
}

func nextEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1
	}
	return epoch + 1
}

// update takes over what an incremental fetch changes.
func (session *fetchSession) update(r *protocol.FetchRequest) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			session.put(partitionKey{t.Name, t.ID, p.Index}, p)
		}
	}
	for _, t := range r.Forgotten {
		for _, p := range t.Partitions {
			key := partitionKey{t.Name, t.ID, p}
			if e := session.byKey[key]; e != nil {
				session.order.Remove(e)
				delete(session.byKey, key)
			}
		}
	}
}

func (session *fetchSession) put(key partitionKey, in protocol.FetchPartition) *sessionPartition {
	if e := session.byKey[key]; e != nil {
		p := e.Value.(*sessionPartition)
		p.in = in
		return p
	}
	p := &sessionPartition{key: key, in: in, highWatermark: -1, logStartOffset: -1}
	session.byKey[key] = session.order.PushBack(p)
	return p
}

// respond makes the answer: of a full fetch every partition, of an incremental one those with something new. A
// partition that had records goes to the end of the session's order, so that a large one cannot starve the rest.
// read is written over.
func (x *sessionContext) respond(f *fetching, read []protocol.FetchPartitionResponse) *protocol.FetchResponse {
	s := x.cache
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.wantsNew {
		x.session = s.create(f)
	}
	response := &protocol.FetchResponse{}
	if x.session != nil {
		response.SessionID = x.session.id
	}
	if x.incremental && x.session.epoch != nextEpoch(f.request.SessionEpoch) {
		response.ErrorCode = kerr.InvalidFetchSessionEpoch.Code
		return response
	}
	kept := read[:0]
	for i := range f.wanted {
		w := &f.wanted[i]
		changed := w.cached == nil || w.cached.note(&read[i])
		if x.incremental && !changed {
			continue
		}
		if x.incremental && w.sizeBytes > 0 {
			if e := x.session.byKey[w.cached.key]; e != nil {
				x.session.order.MoveToBack(e)
			}
		}
		kept = append(kept, read[i])
		addToTopic(response, w, kept)
	}
	return response
}

// addToTopic puts the last of all answers kept so far into the answer's last topic, or into a new one when it is of
// another topic. The partitions of a topic are a part of kept.
func addToTopic(response *protocol.FetchResponse, w *wanted, kept []protocol.FetchPartitionResponse) {
	n := len(response.Topics)
	if n == 0 || response.Topics[n-1].Name != w.topic || response.Topics[n-1].ID != [16]byte(w.topicID) {
		response.Topics = append(response.Topics, protocol.FetchTopicResponse{Name: w.topic, ID: w.topicID})
		n++
	}
	topic := &response.Topics[n-1]
	topic.Partitions = kept[len(kept)-len(topic.Partitions)-1:]
}

// note remembers what is answered and tells whether it is new.
func (p *sessionPartition) note(read *protocol.FetchPartitionResponse) bool {
	changed := read.Records.SizeBytes() > 0 || read.DivergingEpoch != nil || read.PreferredReadReplica >= 0
	if read.HighWatermark != p.highWatermark {
		changed = true
		p.highWatermark = read.HighWatermark
	}
	if read.LogStartOffset != p.logStartOffset {
		changed = true
		p.logStartOffset = read.LogStartOffset
	}
	if read.ErrorCode != none {
		changed = true
		p.highWatermark = -1 // so that the partition is answered once the error is gone
	}
	return changed
}

// create makes a session of a full fetch, if there is room or a session that may go; else nil, which is legal: the
// client goes on with full fetches.
func (s *fetchSessions) create(f *fetching) *fetchSession {
	now := s.clock()
	privileged := f.request.ReplicaID >= 0
	if len(s.byID) >= s.limit() && !s.evict(now, privileged, len(f.wanted)) {
		return nil
	}
	session := &fetchSession{id: s.newID(), epoch: nextEpoch(initialEpoch), usesIDs: f.c.version() >= idFetch,
		privileged: privileged, order: list.New(), byKey: map[partitionKey]*list.Element{}, created: now, used: now}
	for i := range f.wanted {
		w := &f.wanted[i]
		w.cached = session.put(partitionKey{w.topic, w.topicID, w.in.Index}, w.in)
		if w.partition != nil {
			w.cached.name = w.partition.Topic
		}
	}
	s.byID[session.id] = session
	return session
}

// newID draws a positive id that is not in use.
func (s *fetchSessions) newID() int32 {
	for {
		id := int32(s.rand() & math.MaxInt32)
		if _, taken := s.byID[id]; id != 0 && !taken {
			return id
		}
	}
}

// evict makes room: of the sessions unused for long the oldest goes; else a smaller one, if it is not a follower's
// or the new one is a follower's.
func (s *fetchSessions) evict(now time.Time, privileged bool, size int) bool {
	var stale, smaller *fetchSession
	for _, one := range s.byID {
		if now.Sub(one.used) > sessionEvictable && (stale == nil || one.used.Before(stale.used)) {
			stale = one
		}
		weaker := privileged && !one.privileged ||
			privileged == one.privileged && one.order.Len() < size && now.Sub(one.created) > sessionEvictable
		if weaker && (smaller == nil || one.order.Len() < smaller.order.Len()) {
			smaller = one
		}
	}
	victim := stale
	if victim == nil {
		victim = smaller
	}
	if victim == nil {
		return false
	}
	delete(s.byID, victim.id)
	return true
}
