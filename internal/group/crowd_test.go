package group

import (
	"fmt"
	"slices"
)

// crowd are many members of group "g", whose answers are counted instead of told.
type crowd struct {
	ids        []string // by member
	from       int      // members below it are dead
	generation int32
	leader     string
	tally      map[string]int
}

func init() {
	commands["crowd"] = crowdCommand
	commands["crowd-sync"] = crowdSyncCommand
	commands["crowd-silent"] = crowdSilentCommand
	commands["tally"] = tallyCommand
}

// crowd n=N [from=M]: N members join at once, or join again; those below M are dead.
func crowdCommand(w *world, a *args) {
	n := int(a.int("n", 1000))
	if w.crowd == nil || len(w.crowd.ids) != n {
		w.crowd = &crowd{ids: make([]string, n), tally: map[string]int{}}
	}
	w.quiet, w.crowd.from = true, int(a.int("from", 0))
	for i := w.crowd.from; i < n; i++ {
		w.crowd.join(w, i)
	}
	w.quiet = false
}

func (c *crowd) join(w *world, i int) {
	r := &JoinRequest{Group: "g", MemberID: c.ids[i], ClientID: fmt.Sprintf("m%d", i), ClientHost: "/10.0.0.1",
		SessionTimeoutMs: 10_000, RebalanceTimeoutMs: 60_000, ProtocolType: "consumer",
		Protocols: []Protocol{{Name: "range", Metadata: subscribed("t")}}}
	_ = w.write(w.m.Join(r, func(r JoinResponse) {
		if r.Err != nil {
			c.tally["join: "+r.Err.Error()]++
			return
		}
		c.ids[i], c.generation = r.MemberID, r.Generation
		c.tally[fmt.Sprintf("joined generation %d", r.Generation)]++
		if r.Leader == r.MemberID {
			c.leader = r.MemberID
			c.tally[fmt.Sprintf("leads %d members", len(r.Members))]++
		}
	}))
}

// crowd-sync: all ask for their assignment, the leader last.
func crowdSyncCommand(w *world, _ *args) {
	c := w.crowd
	w.quiet = true
	ids := slices.Clone(c.ids[c.from:])
	slices.SortStableFunc(ids, func(a, b string) int { // the leader is the last
		switch c.leader {
		case a:
			return 1
		case b:
			return -1
		}
		return 0
	})
	for _, id := range ids {
		r := &SyncRequest{Group: "g", MemberID: id, Generation: c.generation}
		if id == c.leader {
			for _, one := range c.ids[c.from:] {
				r.Assignments = append(r.Assignments, Assignment{MemberID: one, Bytes: []byte("share of " + one)})
			}
		}
		_ = w.write(w.m.Sync(r, func(r SyncResponse) {
			switch {
			case r.Err != nil:
				c.tally["sync: "+r.Err.Error()]++
			case string(r.Assignment) != "share of "+id:
				c.tally[fmt.Sprintf("has %q", r.Assignment)]++
			default:
				c.tally["has its share"]++
			}
		}))
	}
	w.quiet = false
}

// crowd-silent plus=MS: time passes, in which all but the first n give signs of life every three seconds.
func crowdSilentCommand(w *world, a *args) {
	c := w.crowd
	w.quiet = true
	for range a.int("plus", 0) / 3000 {
		w.advance(3000)
		for _, id := range c.ids[a.int("n", 0):] {
			if err := w.m.Heartbeat("g", id, nil, c.generation); err != nil {
				c.tally["heartbeat: "+err.Error()]++
			}
		}
	}
	w.quiet = false
}

// tally tells and forgets the answers so far.
func tallyCommand(w *world, _ *args) {
	var lines []string
	for what, n := range w.crowd.tally {
		lines = append(lines, fmt.Sprintf("%d × %s", n, what))
	}
	slices.Sort(lines)
	for _, line := range lines {
		w.printf("%s", line)
	}
	clear(w.crowd.tally)
}
