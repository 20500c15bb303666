package group

import (
	"cmp"
	"slices"
	"strings"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
)

// The assignors of consumer groups.
const (
	UniformAssignor = "uniform"
	RangeAssignor   = "range"
)

// assignors compute targets: every partition of a topic goes to one of those who are subscribed to it.
var assignors = map[string]func(*assignmentSpec) map[string]target{
	UniformAssignor: assignUniform,
	RangeAssignor:   assignRange,
}

// assignmentSpec is what an assignor is given.
type assignmentSpec struct {
	image       *metadata.Image
	members     []assignee // by id
	homogeneous bool       // all are subscribed to the same topics
}

// assignee is a member as an assignor sees it.
type assignee struct {
	id         string
	instanceID *string
	topics     map[wire.UUID]bool // that exist
	had        target             // of the last target
}

// topicToAssign is a topic with who is subscribed to it.
type topicToAssign struct {
	id          wire.UUID
	partitions  int32
	subscribers []int // indices of members, ascending
}

// topics are all topics to assign, by id.
func (s *assignmentSpec) topics() []topicToAssign {
	byID := map[wire.UUID]*topicToAssign{}
	for i, m := range s.members {
		for id := range m.topics {
			t := byID[id]
			if t == nil {
				t = &topicToAssign{id: id}
				if known := s.image.TopicByID(id); known != nil {
					t.partitions = int32(known.NumPartitions())
				}
				byID[id] = t
			}
			t.subscribers = append(t.subscribers, i)
		}
	}
	all := make([]topicToAssign, 0, len(byID))
	for _, id := range sortedIDs(byID) {
		all = append(all, *byID[id])
	}
	return all
}

// assignRange gives each subscriber of a topic a run of its partitions, so that partitions of the same number of
// topics with as many partitions meet in one member. Members stand in order of their instance ids, those without
// after them in order of their ids.
func assignRange(s *assignmentSpec) map[string]target {
	members := slices.Clone(s.members)
	slices.SortFunc(members, func(a, b assignee) int {
		switch {
		case a.instanceID != nil && b.instanceID != nil:
			return strings.Compare(*a.instanceID, *b.instanceID)
		case a.instanceID != nil:
			return -1
		case b.instanceID != nil:
			return 1
		}
		return strings.Compare(a.id, b.id)
	})
	sorted := &assignmentSpec{image: s.image, members: members}
	targets := emptyTargets(s.members)
	for _, t := range sorted.topics() {
		n := int32(len(t.subscribers))
		next := int32(0)
		for i, member := range t.subscribers {
			share := t.partitions / n
			if int32(i) < t.partitions%n {
				share++
			}
			for range share {
				targets[members[member].id][t.id] = append(targets[members[member].id][t.id], next)
				next++
			}
		}
	}
	return targets
}

func emptyTargets(members []assignee) map[string]target {
	targets := make(map[string]target, len(members))
	for _, m := range members {
		targets[m.id] = target{}
	}
	return targets
}

// assignUniform gives every member as many partitions as any other, as far as subscriptions allow, and leaves with
// each what it had.
func assignUniform(s *assignmentSpec) map[string]target {
	u := newUniform(s)
	u.keep()
	u.fill()
	u.balance()
	return u.targets()
}

// uniform is an assignment in the making.
type uniform struct {
	s      *assignmentSpec
	topics []topicToAssign
	owners map[wire.UUID][]int // member of each partition; -1: none
	loads  []int               // partitions of each member
}

func newUniform(s *assignmentSpec) *uniform {
	u := &uniform{s: s, topics: s.topics(), owners: map[wire.UUID][]int{}, loads: make([]int, len(s.members))}
	for _, t := range u.topics {
		owners := make([]int, t.partitions)
		for p := range owners {
			owners[p] = -1
		}
		u.owners[t.id] = owners
	}
	// Topics with most partitions for each subscriber come first: they leave least choice.
	slices.SortStableFunc(u.topics, func(a, b topicToAssign) int {
		perMember := func(t topicToAssign) float64 { return float64(t.partitions) / float64(len(t.subscribers)) }
		return cmp.Or(cmp.Compare(perMember(b), perMember(a)), cmp.Compare(len(a.subscribers), len(b.subscribers)))
	})
	return u
}

// keep leaves with members what they had and still want, up to an equal share where all want the same.
func (u *uniform) keep() {
	total := 0
	for _, t := range u.topics {
		total += int(t.partitions)
	}
	least, extra := 0, 0
	if n := len(u.s.members); n > 0 {
		least, extra = total/n, total%n
	}
	for i, m := range u.s.members {
		quota := total
		if u.s.homogeneous {
			quota = least
			if extra > 0 {
				quota++
			}
		}
		for _, id := range sortedIDs(m.had) {
			for _, p := range m.had[id] {
				owners := u.owners[id]
				if m.topics[id] && int(p) < len(owners) && p >= 0 && owners[p] < 0 && u.loads[i] < quota {
					owners[p] = i
					u.loads[i]++
				}
			}
		}
		if u.s.homogeneous && u.loads[i] > least {
			extra--
		}
	}
}

// fill gives the partitions that nobody has to the subscriber with fewest.
func (u *uniform) fill() {
	for _, t := range u.topics {
		queue := newLoads(u, t.subscribers)
		for p, owner := range u.owners[t.id] {
			if owner < 0 {
				i := queue.least()
				u.owners[t.id][p] = i
				u.loads[i]++
				queue.changed()
			}
		}
	}
}

// balanceRounds bounds how often topics are gone through.
const balanceRounds = 16

// balance moves partitions from those with most to those with fewest, topic by topic, until nothing moves.
func (u *uniform) balance() {
	if u.s.homogeneous {
		return // it is, by the shares
	}
	for range balanceRounds {
		moved := false
		for _, t := range u.topics {
			moved = u.balanceTopic(t) || moved
		}
		if !moved {
			return
		}
	}
}

func (u *uniform) balanceTopic(t topicToAssign) (moved bool) {
	byOwner := map[int][]int{}
	for p, owner := range u.owners[t.id] {
		byOwner[owner] = append(byOwner[owner], p)
	}
	for {
		least, most := -1, -1
		for _, i := range t.subscribers {
			if least < 0 || u.loads[i] < u.loads[least] {
				least = i
			}
			if len(byOwner[i]) > 0 && (most < 0 || u.loads[i] > u.loads[most]) {
				most = i
			}
		}
		if most < 0 || u.loads[most]-u.loads[least] <= 1 {
			return moved
		}
		last := len(byOwner[most]) - 1
		p := byOwner[most][last]
		byOwner[most] = byOwner[most][:last]
		byOwner[least] = append(byOwner[least], p)
		u.owners[t.id][p] = least
		u.loads[most]--
		u.loads[least]++
		moved = true
	}
}

func (u *uniform) targets() map[string]target {
	targets := emptyTargets(u.s.members)
	for _, t := range u.topics {
		for p, owner := range u.owners[t.id] {
			if owner >= 0 {
				one := targets[u.s.members[owner].id]
				one[t.id] = append(one[t.id], int32(p))
			}
		}
	}
	return targets
}

// loadQueue gives out the member with fewest partitions; of as few, the first.
type loadQueue struct {
	u       *uniform
	members []int // a heap by load and index
}

func newLoads(u *uniform, members []int) *loadQueue {
	q := &loadQueue{u: u, members: slices.Clone(members)}
	slices.SortFunc(q.members, func(a, b int) int {
		return cmp.Or(cmp.Compare(u.loads[a], u.loads[b]), cmp.Compare(a, b))
	})
	return q
}

func (q *loadQueue) least() int { return q.members[0] }

// changed puts the first member back in its place after its load rose.
func (q *loadQueue) changed() {
	less := func(a, b int) bool {
		x, y := q.members[a], q.members[b]
		return q.u.loads[x] < q.u.loads[y] || q.u.loads[x] == q.u.loads[y] && x < y
	}
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q.members) {
			return
		}
		if child+1 < len(q.members) && less(child+1, child) {
			child++
		}
		if !less(child, i) {
			return
		}
		q.members[i], q.members[child] = q.members[child], q.members[i]
		i = child
	}
}
