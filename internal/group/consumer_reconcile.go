package group

import (
	"maps"

	"tidemark/internal/wire"
)

// reconcile takes a member as near to its target as it can get now, and writes that down.
//
//	stable ── has something that is another's ──▶ unrevoked ── says that it gave it up ──▶ next epoch
//	stable, unrevoked, unreleased ── something it is to have is still another's ──▶ unreleased, at the target's epoch
//
// Kafka: CurrentAssignmentBuilder.
func (s *step) reconcile(m *consumerMember, to target, epoch int32, changed bool, has []OwnedPartitions,
) (*consumerMember, error) {
	if !changed && m.isReconciled(epoch) {
		return m, nil
	}
	r := reconciler{c: s.c, m: m, to: to, epoch: epoch, has: has, topics: s.c.topicIDs(s.image, m)}
	next, err := r.next(changed)
	if err != nil || next == nil {
		return m, err
	}
	if next.epoch == m.epoch && next.previousEpoch == m.previousEpoch && next.state == m.state &&
		next.assigned.same(m.assigned) && next.revoking.same(m.revoking) {
		return m, nil
	}
	s.put(kindCurrent, next.id, next.encodeCurrent())
	if next.classic == nil {
		s.later(func() { s.c.mindRevocation(next) })
	}
	return next, nil
}

// mindRevocation gives a member that is to give partitions up its time.
func (c *consumer) mindRevocation(m *consumerMember) {
	if m.state == memberUnrevoked {
		c.mind(revocationTimer, m.id, m.rebalanceTimeoutMs)
	} else {
		c.m.host.StopTimer(timerKey(revocationTimer, c.id, m.id))
	}
}

// reconciler works out a member's next assignment.
type reconciler struct {
	c      *consumer
	m      *consumerMember
	to     target
	epoch  int32             // of the target
	has    []OwnedPartitions // what the member says that it has; nil: not told
	topics map[wire.UUID]bool
}

// next is the member's next state; nil: the same.
func (r *reconciler) next(changed bool) (*consumerMember, error) {
	switch r.m.state {
	case memberStable:
		if r.m.epoch != r.epoch {
			return r.toward(r.m.epoch), nil
		}
	case memberUnrevoked:
		if !r.owns(r.m.revoking) {
			return r.toward(r.m.epoch), nil
		}
	case memberUnreleased:
		return r.toward(r.m.epoch), nil
	default:
		if r.has == nil || len(r.has) > 0 {
			return nil, refuse(ErrFencedMemberEpoch, "The consumer group member is in a unknown state. "+
				"The member must abandon all its partitions and rejoin.")
		}
		return r.toward(r.epoch), nil
	}
	if changed {
		return r.unsubscribe(), nil
	}
	return nil, nil
}

// owns tells whether the member has, or may have, one of some partitions.
func (r *reconciler) owns(some owned) bool {
	if r.has == nil {
		return true
	}
	for _, t := range r.has {
		for _, p := range t.Partitions {
			if some.has(t.TopicID, p) {
				return true
			}
		}
	}
	return false
}

// unsubscribe has the member give up the topics that it does not want any more.
func (r *reconciler) unsubscribe() *consumerMember {
	keep, revoking := owned{}, owned{}
	for id, partitions := range r.m.assigned {
		if r.topics[id] {
			keep[id] = partitions
		} else {
			revoking[id] = maps.Clone(partitions)
		}
	}
	if len(revoking) == 0 {
		return nil
	}
	for id, partitions := range r.m.revoking {
		if revoking[id] == nil {
			revoking[id] = map[int32]int32{}
		}
		maps.Copy(revoking[id], partitions)
	}
	next := r.moved(r.m.epoch)
	next.assigned = keep
	if r.owns(revoking) {
		next.state, next.revoking = memberUnrevoked, revoking
	}
	return next
}

// moved is the member in an epoch.
func (r *reconciler) moved(epoch int32) *consumerMember {
	next := *r.m
	next.previousEpoch, next.epoch = r.m.epoch, epoch
	return &next
}

// toward gives the member what is free of its target, or has it give up first what is not in its target.
func (r *reconciler) toward(epoch int32) *consumerMember {
	keep, revoking, free, waits := r.divide()
	if len(revoking) > 0 && r.owns(revoking) {
		next := r.moved(epoch)
		next.state, next.assigned, next.revoking = memberUnrevoked, keep, revoking
		return next
	}
	for id, partitions := range free {
		if keep[id] == nil {
			keep[id] = map[int32]int32{}
		}
		for _, p := range partitions {
			keep[id][p] = r.epoch
		}
	}
	next := r.moved(r.epoch)
	next.state, next.assigned, next.revoking = memberStable, keep, owned{}
	if waits {
		next.state = memberUnreleased
	}
	return next
}

// divide sorts partitions: those that the member keeps, those that it is to give up, and those that it is to get and
// nobody has. waits: others have some that it is to get.
func (r *reconciler) divide() (keep, revoking owned, free target, waits bool) {
	keep, revoking, free = owned{}, owned{}, target{}
	wanted := owned{}
	for id, partitions := range r.to {
		if !r.topics[id] {
			continue
		}
		wanted[id] = map[int32]int32{}
		for _, p := range partitions {
			wanted[id][p] = 0
			switch {
			case r.m.assigned.has(id, p):
			case r.c.isHeld(id, p) && !r.m.revoking.has(id, p):
				waits = true
			default:
				free[id] = append(free[id], p)
			}
		}
	}
	for id, partitions := range r.m.assigned {
		for p, since := range partitions {
			to := revoking
			if wanted.has(id, p) {
				to = keep
			}
			if to[id] == nil {
				to[id] = map[int32]int32{}
			}
			to[id][p] = since
		}
	}
	return keep, revoking, free, waits
}

// waits tells whether a member is to get a partition that another has.
func (c *consumer) waits(m *consumerMember) bool {
	if m.state != memberUnreleased {
		return false
	}
	for id, partitions := range c.targets[m.id] {
		for _, p := range partitions {
			if !m.assigned.has(id, p) && c.isHeld(id, p) {
				return true
			}
		}
	}
	return false
}
